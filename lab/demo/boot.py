"""How a rented node comes up: from the start of its systemd to the moment when Slurm has it, and what was on the
critical path.
"""

from __future__ import annotations

import re
import time
from dataclasses import dataclass

from ironburst.controller.ledger import Ledger
from lab.demo.inside import Inside

BEGUN = "systemctl show --property=UserspaceTimestampMonotonic --value"
CHAIN = (
    "timeout 30 systemctl is-system-running --wait > /dev/null; "
    "systemd-analyze --no-pager critical-chain slurmd.service"
)
UNITS_S = {"min": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6}


@dataclass(frozen=True)
class Boot:
    """One node's boot. `accepted_s`: until the controller saw it registered with Slurm, so up to a tick late; `path`:
    (unit, seconds).
    """

    node: str
    accepted_s: float
    path: tuple[tuple[str, float], ...]

    def text(self) -> str:
        steps = ", ".join(f"{unit.removesuffix('.service')} {seconds:.1f}" for unit, seconds in self.path)
        accepted = f"{self.node} was accepted by Slurm {self.accepted_s:.1f} s after its boot began"
        return f"{accepted}; on the critical path (s): {steps}"


def seconds_of(text: str) -> float:
    """Seconds in systemd's "1min 2.5s" or "340ms"."""
    return sum(float(number) * UNITS_S[unit] for number, unit in re.findall(r"([\d.]+)(min|ms|us|s)\b", text))


def path_of(chain: str) -> tuple[tuple[str, float], ...]:
    """Units of `systemd-analyze critical-chain` that took 0.1 s or more, first one first."""
    lines = re.findall(r"(?m)([\w@\\.-]+\.\w+)(?: @[^+\n]+)? \+(.+?)\s*$", chain)
    units = [(unit, round(seconds_of(took), 2)) for unit, took in reversed(lines)]
    return tuple((unit, seconds) for unit, seconds in units if seconds >= 0.1)


def measure(inside: Inside, ledger: Ledger) -> Boot | None:
    """The boot of the first rented node that takes jobs; None as long as there is none."""
    for lease in ledger.leases():
        joined = [event.at_s for event in ledger.events(0.0) if event.kind == "joined" and event.launch == lease.launch]
        if lease.state != "ready" or not joined:
            continue
        shown = inside.run([*inside.head_prefix(), f"scontrol --oneliner show node {lease.node}"])
        address = re.search(r"NodeAddr=(\S+)", shown)
        if address is None:
            continue
        host = next(host for host in inside.site.hosts() if host.spec.address == address.group(1))
        # the hosts are containers: their monotonic clock is this machine's
        begun = time.time() - time.monotonic() + int(host.ssh(BEGUN).stdout) / 1e6
        return Boot(lease.node, max(joined) - begun, path_of(host.ssh(CHAIN).stdout))
    return None
