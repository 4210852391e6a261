"""The BMCs of a lab's bare-metal hosts: each reports what its host shows, and its button is its host's power."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import threading
from contextlib import ExitStack

from lab import names
from lab.bmc import Bmc, Machine
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


class HostPower:
    """The power button of a lab host (lab.site has defined what the host is)."""

    def __init__(self, host: Host):
        self.host = host

    def is_on(self) -> bool:
        """True from the press until it is off for good."""
        return self.host.state() == "on"

    def start(self) -> None:
        """Power on."""
        self.host.start()

    def stop(self) -> None:
        """A clean shutdown."""
        self.host.stop()

    def off(self) -> None:
        """A power cut."""
        self.host.off()


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
