"""python -m lab.kubernetes.instances: the lab's AWS, whose instances act as nodes of the lab's Kubernetes: each is a
process (`instance`), no host. In the place of `python -m lab.aws`, whose instances are hosts.
"""

import argparse
import contextlib
import ipaddress
import logging
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

from lab import names
from lab.aws.control import DEFAULT_PORT
from lab.aws.server import Address, CannotListen, Listen, serve
from lab.aws.view import InstanceView
from lab.hosts.box import Box
from lab.kubernetes.access import Api, Refused
from lab.kubernetes.commands import ALIVE
from lab.kubernetes.control_plane import ControlPlane
from lab.kubernetes.instance import INSTANCE
from lab.system import LAB_ROOT, LabError, run, wait_for

SILENCE_S = 60  # the API server may be starting again
log = logging.getLogger("lab.aws")


class InstanceProcesses:
    """What the cloud does to an instance is done to a process (lab.aws.server.Machines). `options`: of `instance`."""

    def __init__(
        self, plane: ControlPlane, folder: Path, metadata: Address, endpoint: str, options: Sequence[str] = ()
    ):
        self.plane, self.folder = plane, folder
        where = ["--metadata", f"{metadata[0]}:{metadata[1]}", "--endpoint", endpoint]
        self.argv = [sys.executable, "-m", "lab.kubernetes.instance", *where, *options]
        self._running: dict[str, subprocess.Popen[bytes]] = {}

    def launch(self, view: InstanceView) -> None:
        """Power it on, with an empty disk. LabError if its address can't be had."""
        disk = self.folder / view.instance_id
        disk.mkdir(parents=True)
        _plug("replace", view.address)
        self._power_on(view)
        log.info("%s: %s %s is on, at %s", view.instance_id, view.market, view.instance_type, view.address)

    def terminate(self, view: InstanceView) -> None:
        """Pull the plug; its node falls silent, and its disk is wiped."""
        self._power_off(view)
        shutil.rmtree(self.folder / view.instance_id, ignore_errors=True)
        log.info("%s: ended", view.instance_id)

    def is_off(self, view: InstanceView) -> bool:
        """True if it has powered itself off."""
        process = self._running.get(view.instance_id)
        return process is not None and process.poll() is not None

    def stop(self, view: InstanceView) -> None:
        """Off; the disk stays."""
        self._power_off(view)

    def start(self, view: InstanceView) -> None:
        """On again."""
        _plug("replace", view.address)
        self._power_on(view)

    def bake(self, view: InstanceView, image: str) -> None:
        """LabError: there is nothing on its disk."""
        raise LabError(f"{view.instance_id} is a process of the lab and has no disk that {image} could be made of")

    def console(self, view: InstanceView) -> str:
        """What it has written so far; also after its end, as EC2 keeps it for an hour."""
        path = self._console(view)
        return path.read_text(errors="replace") if path.exists() else ""

    def image_known(self, folder: str) -> bool:
        """None is ever booted: each folder is as good."""
        return bool(folder)

    def _console(self, view: InstanceView) -> Path:
        return self.folder / f"{view.instance_id}.console"

    def _power_on(self, view: InstanceView) -> None:
        argv = [*self.argv, "--address", view.address, "--disk", str(self.folder / view.instance_id)]
        # of its creator's rights and settings nothing but where Python finds itself
        kept = {key: os.environ[key] for key in ("PATH", "PYTHONPATH", "LAB_BOX") if key in os.environ}
        with self._console(view).open("ab") as output:
            self._running[view.instance_id] = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", *argv],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=kept,
                start_new_session=True,
            )

    def _power_off(self, view: InstanceView) -> None:
        process = self._running.pop(view.instance_id, None)
        if process is not None:
            with contextlib.suppress(ProcessLookupError):  # it has powered itself off
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        _plug("delete", view.address)
        wait_for(lambda: self._silenced(view), SILENCE_S, f"the end of {view.instance_id}'s heartbeats", pause=0.5)

    def _silenced(self, view: InstanceView) -> bool:
        """kwok keeps a node alive by a label: it goes, if the node is still this instance. False if nobody answers."""
        try:
            api = self.plane.api()
            for node in api.call("GET", f"/api/v1/nodes?labelSelector={ALIVE}=true")["items"]:
                if node["metadata"].get("annotations", {}).get(INSTANCE) == view.instance_id:
                    _silence(api, node["metadata"])
        except LabError as error:
            log.info("%s: %s", view.instance_id, error)
            return False
        return True


def _silence(api: Api, meta: dict[str, str]) -> None:
    # the uid: not another Node of this name
    patch = {"metadata": {"uid": meta["uid"], "labels": {ALIVE: "false"}}}
    with contextlib.suppress(Refused):  # gone, or another one
        api.call("PATCH", f"/api/v1/nodes/{meta['name']}", patch)


def _plug(verb: str, address: str) -> None:
    """Give the machine an instance's address, or take it away. Those of loopback are all there."""
    if ipaddress.ip_address(address).is_loopback:
        return
    if ipaddress.ip_address(address) not in names.VPC_NETWORK:
        raise LabError(f"address {address} is outside {names.VPC_NETWORK}: the lab routes no other VPC network")
    with contextlib.suppress(LabError) if verb == "delete" else contextlib.nullcontext():
        run(["ip", "address", verb, f"{address}/32", "dev", "br0"])


def main(argv: list[str] | None = None) -> int:
    """Serve until a signal comes. Exit codes: 0 ended by a signal, 1 the lab is at fault, 2 bad arguments."""
    parser = argparse.ArgumentParser(prog="python -m lab.kubernetes.instances", description=__doc__)
    parser.add_argument("--prefix", required=True, help="the lab's name; its box is where this runs")
    parser.add_argument("--root", type=Path, default=LAB_ROOT, help="folder of all labs")
    parser.add_argument("--region", default="us-east-1")
    given = parser.parse_args(argv)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s", stream=sys.stdout)
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    listen = Listen((names.HALL_GATEWAY, 5000), (names.METADATA_ADDRESS, 80), ("127.0.0.1", DEFAULT_PORT))
    box = Box(given.prefix, given.root)
    plane = ControlPlane(given.prefix, given.root)
    machines = InstanceProcesses(plane, box.dir / "instances", listen.metadata, names.AWS_ENDPOINT)
    try:
        serve(listen, given.region, machines, stop)
    except (LabError, CannotListen) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
