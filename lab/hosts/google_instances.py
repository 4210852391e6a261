"""The instances of the lab's Google Cloud: each is a host of the box, named as the instance is."""

from __future__ import annotations

import logging
import sys
import threading

from ironburst.catalog.google.machine_types import machine_types
from lab import names
from lab.google.control import Control
from lab.google.metadata import Metadata
from lab.google.secret_manager import SecretManager
from lab.google.server import Cloud
from lab.google.vm import Vm
from lab.hosts import rented, spec
from lab.hosts.box import Box

DESCRIPTION = (
    "The daemon in a lab's box: Compute Engine, Secret Manager, metadata server and control endpoint, with real hosts "
    "behind the instances."
)
PROJECT, REGION = "lab-project", "us-central1"
# What Compute Engine takes minutes for
INSERT_S, ROLL_BACK_S, DELETE_S = 1.5, 1.0, 2.0
SHUTDOWN_S = 10.0  # of a spot instance: 30 there
log = logging.getLogger("lab.google")


def _host(vm: Vm, image: str | None) -> spec.HostSpec:
    return spec.google(vm.name, vm.raw["networkInterfaces"][0]["networkIP"], vm.machine_type, image=image)


def serve(box: Box, ports: rented.Ports, stop: threading.Event) -> None:
    """Until `stop` is set. OSError if an address can't be listened on."""
    machines, zones = rented.RentedHosts(box, log, _host), [f"{REGION}-{letter}" for letter in "abc"]
    address = (names.HALL_GATEWAY, names.GOOGLE_PORT)
    cloud = Cloud(address=address, project=PROJECT, region=REGION, zones=zones, machines=machines)
    cloud.delays.preempt_s = SHUTDOWN_S
    cloud.spot_usd = {kind.name: usd for kind in machine_types().values() if (usd := kind.spot_usd_per_hour)}
    cloud.delays.insert_s, cloud.delays.roll_back_s, cloud.delays.delete_s = INSERT_S, ROLL_BACK_S, DELETE_S
    servers = [
        Metadata(cloud, (names.METADATA_ADDRESS, ports.metadata)),
        SecretManager(cloud.iam, (names.HALL_GATEWAY, names.GOOGLE_PORT + 1), cloud.secrets),
        Control(("127.0.0.1", ports.control), cloud),
    ]
    log.info("ready: %s", cloud.at)
    rented.watch(cloud, machines, lambda: [vm for vm in cloud.vms.values() if vm.raw["status"] == "RUNNING"], stop)
    rented.close(cloud, servers)


def main() -> int:
    """Serve until a signal comes."""
    return rented.main("lab.google", DESCRIPTION, serve, sys.argv[1:])
