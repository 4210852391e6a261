"""From the declaration to the provider's inputs for each node, and to what its install medium holds. Pure."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping, Sequence
from typing import Any

from ironburst import catalog
from ironburst.baremetal.install_scripts import Target
from ironburst.baremetal.unattended import Network, Seed
from ironburst.config.allowance_models import Allowance
from ironburst.config.firmware_models import FirmwareMinimum
from ironburst.config.models import ClusterConfig, Hall, Nodes
from ironburst.system import secrets


def allowed_mismatches(allow: Sequence[Allowance]) -> dict[str, dict[str, str]]:
    """{node: {mismatch: last day}} of the allowances of rule `hardware`."""
    allowed: dict[str, dict[str, str]] = {}
    for each in allow:
        if each.rule == "hardware" and each.of:
            node, _, mismatch = each.of.partition("/")
            days = allowed.setdefault(node, {})
            days[mismatch] = max(each.until.isoformat(), days.get(mismatch, ""))
    return allowed


def node_inputs(
    nodes: Nodes,
    regions: Mapping[str, str] = {},
    ssh_user: str = "root",
    *,
    allowed: Mapping[str, dict[str, str]] | None = None,
    drivers: Mapping[str, str] | None = None,
) -> list[dict[str, Any]]:
    """The provider's inputs for each node of a declared range;
    what isn't declared is left out, so it isn't compared. None without a BMC, and where they aren't managed.
    `regions`: of the clouds' stores of secrets, by provider. `drivers`: the lock's, by node.
    """
    if nodes.bmc is None or not nodes.managed:
        return []
    region = secrets.region_of(nodes.bmc.password, regions)
    return [
        {
            "name": node,
            "bmcAddress": nodes.bmc.addresses[n],
            "bmcUsername": nodes.bmc.username,
            "passwordRef": nodes.bmc.password,  # a reference: the provider resolves it at the moment of use
            **({"secretsRegion": region} if region else {}),
            "verifyTls": nodes.bmc.verify_tls,
            **({"caFile": nodes.bmc.ca_file} if nodes.bmc.ca_file else {}),
            **({"certificateSha256": nodes.bmc.sha256[n]} if nodes.bmc.sha256 else {}),
            "powerOffOnDelete": nodes.power_off_on_delete,
            **({"serial": nodes.serials[n]} if nodes.serials else {}),
            **({"macs": [nodes.macs[n]]} if nodes.macs else {}),
            **({"heightU": nodes.height} if nodes.height else {}),
            **({"powerW": nodes.chassis.power_w} if nodes.chassis.power_w else {}),
            **({"psusNeeded": nodes.chassis.psus_needed} if nodes.chassis.psus_needed else {}),
            **({"allowed": allowed[node]} if allowed and node in allowed else {}),
            **_gpus(nodes),
            **({"driver": drivers[node]} if drivers and node in drivers else {}),
            **({"firmware": [minimum(each) for each in nodes.firmware]} if nodes.firmware else {}),
            **({"bios": dict(nodes.bios)} if nodes.bios else {}),
            **({"install": _install(nodes, n, ssh_user)} if nodes.install else {}),
        }
        for n, node in enumerate(nodes.names)
    ]


def _gpus(nodes: Nodes) -> dict[str, Any]:
    if nodes.platform is None:
        return {"gpuCount": 0} if nodes.role != "gpu" else {}
    platform = catalog.platform(nodes.platform)
    return {"platform": platform.slug, "gpuModel": platform.gpu.model, "gpuCount": platform.gpu_count}


def minimum(each: FirmwareMinimum) -> dict[str, str]:
    """As the provider gets it."""
    return {
        "component": each.component,
        "atLeast": each.at_least,
        "source": each.source,
        "asOf": each.as_of.isoformat(),
    }


def _install(nodes: Nodes, n: int, ssh_user: str) -> dict[str, Any]:
    assert nodes.install
    return {
        "mark": nodes.install.mark,
        "medium": nodes.install.medium_of(nodes.names[n]),
        "boot": nodes.install.boot,
        "allow": nodes.names[n] in nodes.install.allow_install,
        "hostAddress": nodes.addresses[n],
        "sshUser": ssh_user,
        "knownHosts": nodes.install.known_hosts,
        "timeoutSeconds": nodes.install.timeout,
    }


def seed(config: ClusterConfig, hall: Hall, nodes: Nodes, node: str, host_key: str, host_key_public: str) -> Seed:
    """What the install medium of one node holds; its declaration is valid and has an installation."""
    n = nodes.names.index(node)
    assert nodes.install and nodes.serials
    length = ipaddress.IPv4Network(hall.cidr).prefixlen
    network = Network(
        f"{nodes.addresses[n]}/{length}",
        nodes.macs[n] if nodes.macs else None,
        nodes.install.gateway,
        tuple(nodes.install.dns),
    )
    return Seed(
        target=Target(node, nodes.install.mark, nodes.serials[n], nodes.install.disks[n]),
        os=nodes.os or config.software.os,
        user=config.ssh.user,
        authorized_keys=tuple(nodes.install.authorized_keys),
        host_key=host_key,
        host_key_public=host_key_public,
        network=network,
        mirror=nodes.install.mirror,
    )
