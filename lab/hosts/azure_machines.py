"""The machines of the lab's Azure: each is a host of the box, named as the machine is."""

from __future__ import annotations

import logging
import sys
import threading

from ironburst.catalog.azure.sizes import sizes
from ironburst.config.azure.rights import READING_SECRET
from lab import names
from lab.azure.control import AzureControl
from lab.azure.key_vault import KeyVault
from lab.azure.metadata import Metadata, tree
from lab.azure.server import Cloud
from lab.azure.wire_server import WireServer
from lab.azure.world import Size, Vm
from lab.hosts import rented, rootfs, spec
from lab.hosts.box import Box

DESCRIPTION = (
    "The daemon in a lab's box: Azure Resource Manager, Key Vault, metadata service, wire server and control endpoint, "
    "with real hosts behind the machines."
)
SUBSCRIPTION, REGION = "0b1f6471-1bf0-4dda-aec3-cb9272f09590", "eastus"
VAULT = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/platform/providers/Microsoft.KeyVault/vaults/{{}}"
# What Azure takes minutes for
CREATE_S, DELETE_S, EVICT_S = 1.5, 2.0, 0.5
SPOT = 0.25  # of the price on demand, as the stand-in's price list has it
log = logging.getLogger("lab.azure")


def serve(box: Box, ports: rented.Ports, stop: threading.Event) -> None:
    """Until `stop` is set. OSError if an address can't be listened on."""

    def host(vm: Vm, image: str | None) -> spec.HostSpec:
        (nic,) = tree(cloud, vm)["network"]["interface"]
        address = nic["ipv4"]["ipAddress"][0]["privateIpAddress"]
        return spec.azure(vm.name, address, vm.size, vm.properties["vmId"], key, image=image)

    key = rootfs.ssh_key(box.root).with_suffix(".pub").read_text().strip()
    machines = rented.RentedHosts(box, log, host)
    cloud = Cloud(address=(names.HALL_GATEWAY, names.AZURE_PORT), region=REGION, machines=machines)
    cloud.subscription, cloud.identities.strict = SUBSCRIPTION, True
    for name, kind in sizes().items():
        cloud.sizes[name] = Size(family=f"standard{kind.family}Family", cores=kind.vcpus or 96)
        if kind.od_usd_per_hour:
            cloud.spot_usd[name] = kind.od_usd_per_hour * SPOT
    cloud.sizes["Standard_D16s_v5"] = Size("standardDSv5Family", 16)
    cloud.delays.create_s, cloud.delays.delete_s, cloud.delays.evict_s = CREATE_S, DELETE_S, EVICT_S
    its = cloud.identities
    metadata = Metadata(cloud, (names.METADATA_ADDRESS, ports.metadata))
    metadata.given = lambda resource, identity: its.token(resource, its.principal_of(identity))
    vaults = KeyVault(
        lambda token: its.knows(token, "https://vault.azure.net"),
        (names.HALL_GATEWAY, names.AZURE_PORT + 1),
        lambda token, vault, name: its.may(token, READING_SECRET, f"{VAULT.format(vault)}/secrets/{name}"),
    )
    wire = WireServer(cloud, metadata, (names.WIRE_SERVER, 80))
    servers = [metadata, vaults, wire, AzureControl(("127.0.0.1", ports.control), cloud, metadata, vaults)]
    log.info("ready: %s", cloud.url)
    rented.watch(cloud, machines, lambda: [vm for vm in cloud.vms.values() if vm.power == "running"], stop)
    rented.close(cloud, servers)


def main() -> int:
    """Serve until a signal comes."""
    return rented.main("lab.azure", DESCRIPTION, serve, sys.argv[1:])
