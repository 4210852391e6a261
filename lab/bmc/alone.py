"""BMCs of machines that are nothing but their BMC: `python -m lab.bmc --nodes N --faults FILE`, without a lab."""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import threading
import uuid
from contextlib import ExitStack
from pathlib import Path

from lab.bmc.machine import Machine
from lab.bmc.service import Bmc
from lab.bmc.vendors import VENDORS

PASSWORD_VARIABLE = "LAB_BMC_PASSWORD"
NAMESPACE = uuid.UUID("8b1e7f0e-0000-4000-8000-000000000000")


class Flag:
    """A machine whose power is a flag. `delay_s`: what an answer about it takes."""

    def __init__(self, delay_s: float = 0.0) -> None:
        self.on, self._pause, self._delay_s = True, threading.Event(), delay_s

    def is_on(self) -> bool:
        """After a while."""
        self._pause.wait(self._delay_s)
        return self.on

    def start(self) -> None:
        """Power on."""
        self.on = True

    def stop(self) -> None:
        """A clean shutdown."""
        self.on = False

    off = stop


def machine(n: int, vendor: str) -> Machine:
    """The n-th machine, from 1."""
    name = f"node{n:03}"
    mac = f"52:54:00:4f:{n >> 8:02x}:{n & 255:02x}"
    return Machine(name, f"LAB-{n:05}", str(uuid.uuid5(NAMESPACE, name)), (mac,), vendor=vendor)


def main(argv: list[str] | None = None) -> int:
    """Serve until a signal comes. Exit codes: 0 ended by a signal, 1 an address can't be listened on, 2 bad input."""
    parser = argparse.ArgumentParser(prog="python -m lab.bmc", description="Redfish BMCs of machines in memory")
    parser.add_argument("--nodes", type=int, required=True, metavar="N", help="how many; node001 is the first")
    parser.add_argument("--faults", type=Path, metavar="FILE", help="JSON, {node: fault}; it is read at every request")
    parser.add_argument("--log", type=Path, metavar="FILE", help="every request, one JSON object a line")
    parser.add_argument("--vendor", choices=sorted(VENDORS), help="whose BMCs (default: each in turn)")
    parser.add_argument("--address", default="127.0.0.1", help="where they listen (default: %(default)s)")
    parser.add_argument("--port", type=int, default=0, help="of the first one, then one up each (default: free ones)")
    parser.add_argument("--delay", type=float, default=0.0, metavar="SECONDS", help="what each answer takes")
    given = parser.parse_args(argv)
    password = os.environ.get(PASSWORD_VARIABLE)
    if not password or not 0 < given.nodes <= 4096:
        what = (
            "--nodes is a number from 1 to 4096" if password else f"set {PASSWORD_VARIABLE}: user admin logs in by it"
        )
        print(f"lab.bmc: {what}", file=sys.stderr)
        return 2
    ended = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ended.set())
    with ExitStack() as running:
        for n in range(1, given.nodes + 1):
            vendor = given.vendor or sorted(VENDORS)[n % len(VENDORS)]
            here = machine(n, vendor)
            port = given.port + n - 1 if given.port else 0
            try:
                bmc = Bmc(
                    here,
                    Flag(given.delay),
                    password,
                    address=given.address,
                    port=port,
                    faults=given.faults,
                    log=given.log,
                )
            except OSError as error:
                print(f"lab.bmc: {given.address}:{port} can't be listened on: {error.strerror}", file=sys.stderr)
                return 1
            running.enter_context(bmc)
            print(json.dumps({"node": here.name, "url": bmc.url, "vendor": vendor}))
        print("ready", flush=True)
        ended.wait()
    return 0
