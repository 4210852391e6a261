"""The instances of the lab's cloud: each is a host of the box, named after the instance id."""

from __future__ import annotations

import argparse
import ipaddress
import logging
import signal
import sys
import threading
from pathlib import Path

from lab import names
from lab.aws.control import DEFAULT_PORT
from lab.aws.server import CannotListen, Listen, serve
from lab.aws.view import InstanceView
from lab.hosts import layers, spec
from lab.hosts.bake import bake
from lab.hosts.box import Box
from lab.hosts.host import Host
from lab.system import LAB_ROOT, LabError

DESCRIPTION = (
    "The daemon in a lab's box: AWS API, metadata service and control endpoint, with real hosts behind the instances."
)
log = logging.getLogger("lab.aws")


class InstanceHosts:
    """What the cloud does to an instance is done to a host (lab.aws.server.Machines)."""

    def __init__(self, box: Box):
        self.box = box
        self._up: set[str] = set()  # hosts that only they themselves may power off

    def launch(self, view: InstanceView) -> None:
        """Start the host; returns when its systemd is starting. LabError if it can't."""
        if ipaddress.ip_address(view.address) not in names.VPC_NETWORK:
            raise LabError(
                f"address {view.address} is outside {names.VPC_NETWORK}: the lab routes no other VPC network"
            )
        image = view.image_folder or None
        wanted = spec.cloud(view.instance_id, view.address, view.instance_type, image=image)
        self._host(view).start(wanted)
        self._up.add(view.instance_id)
        kind, place = f"{view.market} {view.instance_type}", f"{view.address} in {view.zone}"
        log.info("%s: %s started at %s (%s)", view.instance_id, kind, place, view.image_id)

    def terminate(self, view: InstanceView) -> None:
        """End the host and wipe its disk; one that isn't there is fine."""
        self._up.discard(view.instance_id)
        self._host(view).destroy()
        log.info("%s: destroyed", view.instance_id)

    def bake(self, view: InstanceView, image: str) -> None:
        """Make image folder `image` of the instance's disk. One that runs is off meanwhile and starts again, as
        CreateImage reboots.
        """
        host = self._host(view)
        self._up.discard(view.instance_id)
        bake(host, image)
        if view.state == "running":
            host.start()
            self._up.add(view.instance_id)
        log.info("%s: baked from %s", image, view.instance_id)

    def is_off(self, view: InstanceView) -> bool:
        """True if the host has powered itself off."""
        return view.instance_id in self._up and self._host(view).state() == "off"

    def stop(self, view: InstanceView) -> None:
        """A clean shutdown; the disk stays."""
        self._up.discard(view.instance_id)
        self._host(view).stop()
        log.info("%s: stopped", view.instance_id)

    def start(self, view: InstanceView) -> None:
        """Boot one that was stopped."""
        self._host(view).start()
        self._up.add(view.instance_id)
        log.info("%s: started again", view.instance_id)

    def console(self, view: InstanceView) -> str:
        """What systemd and the programs in it wrote to the console."""
        return self._host(view).console()

    def image_known(self, folder: str) -> bool:
        """True if the lab has this baked image."""
        return layers.is_image(self.box, folder)

    def _host(self, view: InstanceView) -> Host:
        return Host(self.box, view.instance_id)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m lab.aws", description=DESCRIPTION, epilog="example: python -m lab.aws --prefix demo"
    )
    parser.add_argument("--prefix", required=True, help="the lab's name; its box is where this runs")
    parser.add_argument("--root", type=Path, default=LAB_ROOT, help="folder of all labs")
    parser.add_argument("--host", default=names.HALL_GATEWAY, help="address of the AWS API (%(default)s)")
    parser.add_argument("--port", type=int, default=5000, help="port of the AWS API (%(default)s)")
    parser.add_argument(
        "--imds-host", default=names.METADATA_ADDRESS, help="address of the metadata service (%(default)s)"
    )
    parser.add_argument("--metadata-port", type=int, default=80, help="port of the metadata service (%(default)s)")
    parser.add_argument(
        "--control-port", type=int, default=DEFAULT_PORT, help="port of the control endpoint on loopback (%(default)s)"
    )
    parser.add_argument("--region", default="us-east-1")
    return parser


def main(argv: list[str] | None = None) -> int:
    """Serve until a signal comes. Exit codes: 0 ended by a signal, 1 the lab is at fault, 2 bad arguments."""
    arguments = _parser().parse_args(argv)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s", stream=sys.stdout)
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    listen = Listen(
        api=(arguments.host, arguments.port),
        metadata=(arguments.imds_host, arguments.metadata_port),
        control=("127.0.0.1", arguments.control_port),
    )
    try:
        machines = InstanceHosts(Box(arguments.prefix, arguments.root))
        serve(listen, arguments.region, machines, stop)
    except (LabError, CannotListen) as error:
        print(error, file=sys.stderr)
        return 1
    return 0
