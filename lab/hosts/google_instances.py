"""The instances of the lab's Google Cloud: each is a host of the box, named as the instance is."""

from __future__ import annotations

import argparse
import contextlib
import logging
import signal
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from ironburst.catalog.google.machine_types import machine_types
from lab import names
from lab.google.control import Control
from lab.google.machines import Machines, Vm
from lab.google.metadata import Metadata
from lab.google.secret_manager import SecretManager
from lab.google.server import Cloud
from lab.hosts import layers, spec
from lab.hosts.bake import bake
from lab.hosts.box import Box
from lab.hosts.host import Host
from lab.system import LAB_ROOT, LabError

DESCRIPTION = (
    "The daemon in a lab's box: Compute Engine, Secret Manager, metadata server and control endpoint, with real hosts "
    "behind the instances."
)
LOOK_S = 0.3  # between two looks whether a machine has powered itself off
# What Compute Engine takes minutes for
INSERT_S, ROLL_BACK_S, DELETE_S = 1.5, 1.0, 2.0
SHUTDOWN_S = 10.0  # of a spot instance: 30 there
log = logging.getLogger("lab.google")


class InstanceHosts(Machines):
    """What the cloud does to an instance is done to a host, one thing after another of each."""

    def __init__(self, box: Box):
        self.box = box
        self._work = ThreadPoolExecutor(8)
        self._last: dict[str, Future[None]] = {}
        self._up: set[str] = set()  # hosts that only they themselves may power off

    def _do(self, vm: Vm, what: str, act: Callable[[Host], object]) -> None:
        host, before = Host(self.box, vm.name), self._last.get(vm.name)

        def work() -> None:
            if before:
                before.result()
            try:
                act(host)
                log.info("%s: %s", vm.name, what)
            except LabError as error:
                log.error("%s: not %s: %s", vm.name, what, error)

        self._last[vm.name] = self._work.submit(work)

    def launch(self, vm: Vm, image: str) -> None:
        """Start the host."""
        baked = image if layers.is_image(self.box, image) else None
        nic = vm.raw["networkInterfaces"][0]
        wanted = spec.google(vm.name, nic["networkIP"], vm.machine_type, image=baked)

        def start(host: Host) -> None:
            host.start(wanted)
            self._up.add(vm.name)

        self._do(vm, f"{vm.model} {vm.machine_type} started at {wanted.address} in {vm.zone} ({image})", start)

    def press(self, vm: Vm) -> None:
        """Begin a clean shutdown; nobody waits for it."""
        self._up.discard(vm.name)
        self._do(vm, "asked to shut down", lambda host: host.press())

    def off(self, vm: Vm) -> None:
        """A clean shutdown, of one that isn't off; the disk stays."""
        self._up.discard(vm.name)
        self._do(vm, "off", lambda host: host.stop())

    def end(self, vm: Vm) -> None:
        """End the host and wipe its disk."""
        self._up.discard(vm.name)
        self._do(vm, "destroyed", lambda host: host.destroy())

    def bake(self, vm: Vm, image: str, ready: Callable[[bool], None]) -> None:
        """Make image folder `image` of its disk."""

        def copy(host: Host) -> None:
            done = False
            try:
                bake(host, image)
                done = True
            finally:
                ready(done)

        self._do(vm, f"image {image} made of it", copy)

    def console(self, vm: Vm) -> str:
        """What systemd and the programs in it wrote to the console."""
        return Host(self.box, vm.name).console()

    def powered_off(self, vm: Vm) -> bool:
        """Whether the host has."""
        return vm.name in self._up and Host(self.box, vm.name).state() == "off"


def serve(box: Box, project: str, region: str, control_port: int, stop: threading.Event) -> None:
    """Until `stop` is set. OSError if an address can't be listened on."""
    machines, zones = InstanceHosts(box), [f"{region}-{letter}" for letter in "abc"]
    address = (names.HALL_GATEWAY, names.GOOGLE_PORT)
    cloud = Cloud(address=address, project=project, region=region, zones=zones, machines=machines)
    cloud.delays.preempt_s = SHUTDOWN_S
    cloud.spot_usd = {kind.name: usd for kind in machine_types().values() if (usd := kind.spot_usd_per_hour)}
    cloud.delays.insert_s, cloud.delays.roll_back_s, cloud.delays.delete_s = INSERT_S, ROLL_BACK_S, DELETE_S
    servers = [
        Metadata(cloud, (names.METADATA_ADDRESS, 80)),
        SecretManager(cloud.iam, (names.HALL_GATEWAY, names.GOOGLE_PORT + 1), cloud.secrets),
        Control(("127.0.0.1", control_port), cloud),
    ]
    log.info("ready: %s", cloud.at)
    while not stop.wait(LOOK_S):
        with cloud.settled():
            for vm in list(cloud.vms.values()):
                if vm.raw["status"] == "RUNNING" and machines.powered_off(vm):
                    log.info("%s: it has powered itself off", vm.name)
                    cloud.stops(vm)
    for server in servers:
        server.shutdown()
        server.server_close()
    cloud.close()


def main(argv: list[str] | None = None) -> int:
    """Serve until a signal comes. Exit codes: 0 ended by a signal, 1 the lab is at fault, 2 bad arguments."""
    parser = argparse.ArgumentParser(
        prog="python -m lab.google", description=DESCRIPTION, epilog="example: python -m lab.google --prefix demo"
    )
    parser.add_argument("--prefix", required=True, help="the lab's name; its box is where this runs")
    parser.add_argument("--root", type=Path, default=LAB_ROOT, help="folder of all labs")
    parser.add_argument("--project", default="lab-project")
    parser.add_argument("--region", default="us-central1")
    told = "port of the control endpoint on loopback (%(default)s)"
    parser.add_argument("--control-port", type=int, default=5001, help=told)
    arguments = parser.parse_args(argv)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s", stream=sys.stdout)
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    with contextlib.suppress(KeyboardInterrupt):
        try:
            box = Box(arguments.prefix, arguments.root)
            serve(box, arguments.project, arguments.region, arguments.control_port, stop)
        except OSError as error:
            print(f"the lab's cloud can't listen ({error}): run it inside the box, once", file=sys.stderr)
            return 1
    return 0
