"""The daemon: AWS API, metadata service and control endpoint in one process, machines behind the instances."""

from __future__ import annotations

import logging
import threading
from dataclasses import dataclass
from typing import Protocol

from lab.aws.cloud import Cloud
from lab.aws.control import Control
from lab.aws.imds import Imds
from lab.aws.view import InstanceView

log = logging.getLogger("lab.aws")
Address = tuple[str, int]
LOOK_S = 0.5  # between two looks whether a machine has powered itself off


class Machines(Protocol):
    """What stands behind the instances. A method that raises fails the call's instance or image."""

    def launch(self, view: InstanceView) -> None:
        """Boot the machine of an instance; returns when it is starting."""

    def terminate(self, view: InstanceView) -> None:
        """End it and wipe its disk; one that isn't there is fine."""

    def bake(self, view: InstanceView, image: str) -> None:
        """Make image folder `image` of its disk."""

    def is_off(self, view: InstanceView) -> bool:
        """True if the machine of a running instance has powered itself off."""
        ...

    def stop(self, view: InstanceView) -> None:
        """Shut it down; its disk stays."""

    def start(self, view: InstanceView) -> None:
        """Boot one that was stopped."""

    def console(self, view: InstanceView) -> str:
        """What it has written to its console."""
        ...

    def image_known(self, folder: str) -> bool:
        """True if there is a baked image of this folder name."""
        ...


@dataclass(frozen=True)
class Listen:
    """Where the daemon listens: the AWS API, the metadata service, the control endpoint."""

    api: Address
    metadata: Address
    control: Address


class CannotListen(Exception):
    """An address is in use, or isn't this machine's; one sentence."""


def serve(listen: Listen, region: str, machines: Machines, stop: threading.Event) -> None:
    """Run until `stop` is set. CannotListen if an address can't be listened on."""
    try:
        cloud = Cloud(
            *listen.api,
            region=region,
            on_launch=machines.launch,
            on_terminate=machines.terminate,
            on_bake=machines.bake,
            on_stop=machines.stop,
            on_start=machines.start,
            on_console=machines.console,
        )
        servers = [
            Imds(listen.metadata, cloud.instance_at, region, cloud.credentials),
            Control(listen.control, cloud, machines.image_known),
        ]
    except OSError as error:
        api, metadata, control = (f"{host}:{port}" for host, port in (listen.api, listen.metadata, listen.control))
        raise CannotListen(
            f"the lab's cloud can't listen ({error}): needed are {api}, {metadata} and {control}; "
            "run it inside the box, once"
        ) from None
    for server in servers:
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    log.info("ready: %s", cloud.url)
    while not stop.wait(LOOK_S):
        for view in list(cloud.hosts.values()):
            if machines.is_off(view):
                cloud.powered_off(view.instance_id)
    for server in servers:
        server.shutdown()
        server.server_close()
    cloud.close()
