"""The daemon in a lab's box: AWS API, metadata service and control endpoint, with real hosts behind the instances."""

from __future__ import annotations

import argparse
import ipaddress
import logging
import signal
import sys
import threading
from pathlib import Path

from lab import host as hosts
from lab import names
from lab.aws.cloud import Cloud
from lab.aws.control import DEFAULT_PORT, Control
from lab.aws.imds import Imds
from lab.aws.view import InstanceView
from lab.box import LAB_ROOT, Box, LabError
from lab.image import bake

log = logging.getLogger("lab.aws")


class SiteHosts:
    """The hooks: an instance is a host of the box, named after the instance id."""

    def __init__(self, box: Box):
        self.box = box

    def launch(self, view: InstanceView) -> None:
        """Start the host; returns when its systemd is starting. LabError if it can't."""
        if ipaddress.ip_address(view.address) not in names.VPC_NETWORK:
            raise LabError(
                f"address {view.address} is outside {names.VPC_NETWORK}: the lab routes no other VPC network"
            )
        hosts.Host(self.box, view.instance_id).start(
            hosts.cloud(view.instance_id, view.address, view.instance_type, image=view.image_folder or None)
        )
        log.info(
            "%s: %s %s started at %s in %s (%s)",
            view.instance_id,
            view.market,
            view.instance_type,
            view.address,
            view.zone,
            view.image_id,
        )

    def terminate(self, view: InstanceView) -> None:
        """End the host and wipe its disk; one that isn't there is fine."""
        hosts.Host(self.box, view.instance_id).destroy()
        log.info("%s: destroyed", view.instance_id)

    def bake(self, view: InstanceView, image: str) -> None:
        """Make image folder `image` of the instance's disk. The host is off meanwhile and starts again, as CreateImage
        reboots.
        """
        host = hosts.Host(self.box, view.instance_id)
        bake(host, image)
        host.start()
        log.info("%s: baked from %s", image, view.instance_id)

    def image_known(self, folder: str) -> bool:
        return (self.box.dir / "images" / folder / "image.json").is_file()


def serve(arguments: argparse.Namespace, stop: threading.Event) -> None:
    """Run until `stop` is set. LabError if an address can't be listened on."""
    box = Box(arguments.prefix, arguments.root)
    site = SiteHosts(box)
    try:
        cloud = Cloud(
            arguments.host,
            arguments.port,
            region=arguments.region,
            on_launch=site.launch,
            on_terminate=site.terminate,
            on_bake=site.bake,
        )
        servers = [
            Imds((arguments.imds_host, arguments.imds_port), cloud.instance_at, arguments.region, cloud.credentials),
            Control(("127.0.0.1", arguments.control_port), cloud, site.image_known),
        ]
    except OSError as error:
        raise LabError(
            f"the lab's cloud can't listen ({error}): needed are {arguments.host}:{arguments.port}, {arguments.imds_host}:"
            f"{arguments.imds_port} and 127.0.0.1:{arguments.control_port}; run it inside the box, once"
        ) from None
    for server in servers:
        threading.Thread(target=server.serve_forever, daemon=True).start()
    log.info("ready: %s", cloud.url)
    stop.wait()
    for server in servers:
        server.shutdown()
        server.server_close()
    cloud.close()


def main(argv: list[str] | None = None) -> int:
    """Exit codes: 0 ended by a signal, 1 the lab is at fault, 2 bad arguments."""
    parser = argparse.ArgumentParser(
        prog="python -m lab.aws", description=__doc__, epilog="example: python -m lab.aws --prefix demo"
    )
    parser.add_argument("--prefix", required=True, help="the lab's name; its box is where this runs")
    parser.add_argument("--root", type=Path, default=LAB_ROOT, help="folder of all labs")
    parser.add_argument("--host", default=names.HALL_GATEWAY, help="address of the AWS API (%(default)s)")
    parser.add_argument("--port", type=int, default=5000, help="port of the AWS API (%(default)s)")
    parser.add_argument(
        "--imds-host", default=names.METADATA_ADDRESS, help="address of the metadata service (%(default)s)"
    )
    parser.add_argument("--imds-port", type=int, default=80, help="port of the metadata service (%(default)s)")
    parser.add_argument(
        "--control-port", type=int, default=DEFAULT_PORT, help="port of the control endpoint on loopback (%(default)s)"
    )
    parser.add_argument("--region", default="us-east-1")
    arguments = parser.parse_args(argv)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s", stream=sys.stdout)
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    try:
        serve(arguments, stop)
    except LabError as error:
        print(error, file=sys.stderr)
        return 1
    return 0
