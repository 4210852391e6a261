"""The BMCs of a lab's bare-metal hosts: each reports what its host shows, and its button is its host's power."""

from __future__ import annotations

import argparse
import io
import os
import shutil
import signal
import sys
import tarfile
import threading
import urllib.request
from contextlib import ExitStack
from pathlib import Path

from lab import names
from lab.bmc import Bmc, Machine, installer
from lab.hosts import hardware
from lab.hosts.box import Box
from lab.hosts.host import Host
from lab.system import CHECKOUT

PASSWORD_FILE = CHECKOUT / "lab" / "bmc.password"  # the lab's stack refers to it
PASSWORD_VARIABLE = "LAB_BMC_PASSWORD"


def password() -> str:
    """The lab's BMC password: $LAB_BMC_PASSWORD, else the file that the lab's stack refers to."""
    return os.environ.get(PASSWORD_VARIABLE) or PASSWORD_FILE.read_text().strip()


def machine_of(name: str) -> Machine:
    """What the BMC of this lab host reports: the same facts that the host itself shows."""
    inside = hardware.bare_metal(name)
    return Machine(
        name=name,
        serial=names.serial_of(name),
        uuid=names.uuid_of(name),
        macs=(names.mac_of(name),),
        manufacturer=inside.vendor,
        model=inside.product,
        gpus=inside.gpus,
        hcas=inside.mlx5,
        **({} if inside.gpus else {"memory_gib": 256, "psus": 2, "psu_watts": 800, "height_u": 1}),
    )


def disk_of(name: str) -> str:
    """Serial number of the host's disk, as its installer sees it."""
    return f"LABDISK-{name.upper()}"


class HostPower:
    """The power button of a lab host (lab.site has defined what the host is)."""

    def __init__(self, host: Host):
        self.host = host
        self._in_installer = False  # it is on, with no system of its own

    def is_on(self) -> bool:
        """True from the press until it is off for good."""
        return self._in_installer or self.host.state() == "on"

    def start(self) -> None:
        """Power on."""
        self.host.start()

    def stop(self) -> None:
        """A clean shutdown."""
        self._in_installer = False
        self.host.stop()

    def off(self) -> None:
        """A power cut."""
        self._in_installer = False
        self.host.off()

    def start_from(self, url: str) -> bool:
        """Power on, from an install medium: a tar of what `ironburst node medium` wrote, a stand-in for an ISO image.
        The host's disk is made anew, if the medium's guard lets it; True: then the host starts from its disk.
        """
        self._in_installer = True
        medium = self.host.dir / "medium"
        shutil.rmtree(medium, ignore_errors=True)
        try:
            with urllib.request.urlopen(url, timeout=30) as answer:
                content = io.BytesIO(answer.read())
            with tarfile.open(fileobj=content) as tar:
                tar.extractall(medium, filter="data")
        except (OSError, tarfile.TarError) as error:
            self.host.in_console(f"no medium at {url}: {error}")
            return False
        machine = self.host.dir / "installer"
        installer.machine_folder(machine, self.host.spec.serial, disk_of(self.host.name))
        result = installer.start(machine, medium, lambda: self._written(medium))
        self.host.in_console(f"{url}: {result.outcome}: {result.said}")
        self._in_installer = result.outcome == "refused"
        return not self._in_installer

    def _written(self, medium: Path) -> Path:
        """An empty disk, with what the medium gives its host: keys, and who may log in."""
        self.host.wipe()
        root, keys = self.host.dir / "up", medium / "ironburst"
        for name, place, mode in (
            ("ssh_host_ed25519_key", "etc/ssh/ssh_host_ed25519_key", 0o600),
            ("ssh_host_ed25519_key.pub", "etc/ssh/ssh_host_ed25519_key.pub", 0o644),
            ("authorized_keys", "root/.ssh/authorized_keys", 0o600),
        ):
            path = root / place
            path.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(keys / name, path)
            path.chmod(mode)
        (root / "root").chmod(0o700)
        (root / "root/.ssh").chmod(0o700)
        return root


def main(argv: list[str] | None = None) -> int:
    """Serve until a signal comes. Exit codes: 0 ended by a signal, 1 an address can't be listened on."""
    parser = argparse.ArgumentParser(
        prog="python -m lab.bmc", description="Redfish BMCs of a lab's bare-metal hosts, in its box"
    )
    parser.add_argument("--prefix", required=True, help="the lab's prefix")
    box = Box(parser.parse_args(argv).prefix)
    folder = box.dir / "bmc"
    folder.mkdir(parents=True, exist_ok=True)
    faults, log, secret = folder / "faults.json", folder / "requests.jsonl", password()
    ended = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ended.set())
    with ExitStack() as running:
        told = []
        for name, address in names.BMC_ADDRESSES.items():
            try:
                power = HostPower(Host(box, name))
                bmc = Bmc(machine_of(name), power, secret, address=address, faults=faults, log=log)
            except OSError as error:
                reason = f"{error.strerror}; it runs in the lab's box, once"
                print(f"lab.bmc: the BMC of {name} cannot listen on {address}:80: {reason}", file=sys.stderr)
                return 1
            running.enter_context(bmc)
            told.append(f"{name} {bmc.url}")
        print("ready: " + ", ".join(told), flush=True)
        ended.wait()
    return 0
