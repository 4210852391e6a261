"""The machines of the lab's Google Cloud and Azure: each is a host of the box, named as the machine is."""

from __future__ import annotations

import argparse
import contextlib
import logging
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from socketserver import BaseServer
from typing import Any, NamedTuple

from lab.hosts import layers
from lab.hosts.bake import bake
from lab.hosts.box import Box
from lab.hosts.host import Host
from lab.hosts.spec import HostSpec
from lab.machines import Machine, Machines
from lab.system import LAB_ROOT, LabError

LOOK_S = 0.3  # between two looks whether a machine has powered itself off


class Ports(NamedTuple):
    """Where a daemon listens: its switchboard on loopback, its metadata service at that address."""

    control: int
    metadata: int


class RentedHosts(Machines):
    """What a cloud does to a machine is done to a host, one thing after another of each. `wanted`: the host of a
    machine, with the baked image that it boots (None: a stock image).
    """

    def __init__(self, box: Box, log: logging.Logger, wanted: Callable[[Any, str | None], HostSpec]):
        self.box, self._log, self._wanted = box, log, wanted
        self._work = ThreadPoolExecutor(8)
        self._last: dict[str, Future[None]] = {}
        self._up: set[str] = set()  # hosts that only they themselves may power off

    def _do(self, machine: Machine, what: str, act: Callable[[Host], object]) -> None:
        host, before = Host(self.box, machine.name), self._last.get(machine.name)

        def work() -> None:
            if before:
                before.result()
            try:
                act(host)
                self._log.info("%s: %s", machine.name, what)
            except LabError as error:
                self._log.error("%s: not %s: %s", machine.name, what, error)

        self._last[machine.name] = self._work.submit(work)

    def launch(self, machine: Machine, image: str) -> None:
        """Start the host."""
        wanted = self._wanted(machine, image if layers.is_image(self.box, image) else None)

        def start(host: Host) -> None:
            host.start(wanted)
            self._up.add(machine.name)

        self._do(machine, f"{wanted.hardware.product} started at {wanted.address} ({image})", start)

    def press(self, machine: Machine) -> None:
        """Begin a clean shutdown; nobody waits for it."""
        self._up.discard(machine.name)
        self._do(machine, "asked to shut down", lambda host: host.press())

    def off(self, machine: Machine) -> None:
        """A clean shutdown, of one that isn't off; the disk stays."""
        self._up.discard(machine.name)
        self._do(machine, "off", lambda host: host.stop())

    def end(self, machine: Machine) -> None:
        """End the host and wipe its disk."""
        self._up.discard(machine.name)
        self._do(machine, "destroyed", lambda host: host.destroy())

    def bake(self, machine: Machine, image: str, ready: Callable[[bool], None]) -> None:
        """Make image folder `image` of its disk."""

        def copy(host: Host) -> None:
            done = False
            try:
                bake(host, image)
                done = True
            finally:
                ready(done)

        self._do(machine, f"image {image} made of it", copy)

    def console(self, machine: Machine) -> str:
        """What systemd and the programs in it wrote to the console."""
        return Host(self.box, machine.name).console()

    def powered_off(self, machine: Machine) -> bool:
        """Whether the host has."""
        return machine.name in self._up and Host(self.box, machine.name).state() == "off"


def watch(cloud: Any, machines: RentedHosts, running: Callable[[], Iterable[Any]], stop: threading.Event) -> None:
    """Until `stop` is set: what powers itself off is off in the cloud, too. `running`: the machines that run there."""
    while not stop.wait(LOOK_S):
        with cloud.settled():
            for machine in [each for each in running() if machines.powered_off(each)]:
                logging.info("%s: it has powered itself off", machine.name)
                cloud.stops(machine)


def close(cloud: Any, servers: Iterable[BaseServer]) -> None:
    """End a daemon's servers, and its cloud."""
    for server in servers:
        server.shutdown()
        server.server_close()
    cloud.close()


def main(
    program: str, description: str, serve: Callable[[Box, Ports, threading.Event], None], argv: Sequence[str]
) -> int:
    """Serve until a signal comes. Exit codes: 0 ended by a signal, 1 the lab is at fault, 2 bad arguments. `serve`:
    (box, where it listens, ends when it is set); raises OSError if an address can't be listened on.
    """
    parser = argparse.ArgumentParser(
        prog=f"python -m {program}", description=description, epilog=f"example: python -m {program} --prefix demo"
    )
    parser.add_argument("--prefix", required=True, help="the lab's name; its box is where this runs")
    parser.add_argument("--root", type=Path, default=LAB_ROOT, help="folder of all labs")
    told = "port of the control endpoint on loopback (%(default)s)"
    parser.add_argument("--control-port", type=int, default=5001, help=told)
    parser.add_argument("--metadata-port", type=int, default=80, help="port of the metadata service (%(default)s)")
    arguments = parser.parse_args(argv)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s", stream=sys.stdout)
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    with contextlib.suppress(KeyboardInterrupt):
        try:
            serve(Box(arguments.prefix, arguments.root), Ports(arguments.control_port, arguments.metadata_port), stop)
        except OSError as error:
            print(f"the lab's cloud can't listen ({error}): run it inside the box, once", file=sys.stderr)
            return 1
    return 0
