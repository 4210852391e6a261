"""Backups of each head, made by its timers: how old the newest ones are, and whether the last one failed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ironburst.doctor.checks import CheckResult
from ironburst.document import Host, Scheduler

BACKUPS = {
    "ironburst-slurm-backup": ["/var/backups/ironburst/slurm/[0-9]*", ""],
    "ironburst-backup": ["/var/backups/ironburst/ledger/ledger-*", "/var/lib/ironburst/ledger.*"],
}
"""of a head's timers: their files, and what they copy"""
FAILED = ["systemctl", "list-units", "--state=failed", "--plain", "--no-legend", "ironburst-*backup.service"]
OLD_S = 2 * 86400.0
"""as the alert LedgerBackupOld has it"""


def question(scheduler: Scheduler, host: Host) -> dict[str, Any]:
    """What a head is asked for host_probe; nothing of another host."""
    second = scheduler.second_head
    if host.name == scheduler.head or (second and second.accounting and host.name == second.head):
        return {"backups": BACKUPS, "commands": {"failed": FAILED}}
    if second and host.name == second.head:  # accounting is the first one's
        return {"backups": {"ironburst-backup": BACKUPS["ironburst-backup"]}, "commands": {"failed": FAILED}}
    return {}


def compared(name: str, answer: Mapping[str, Any], now_s: float) -> Iterator[CheckResult]:
    """`answer`: what this host said; of one that is no head it is nothing."""
    failed = answer["commands"].get("failed", {"output": ""})["output"].split()
    for timer, made_s in answer["backups"].items():
        looked_at = f"{BACKUPS[timer][0].rpartition('/')[0]} on {name}"
        todo = f"look at `systemctl status {timer}` there"
        if made_s is None:
            seen, todo = "there is none", f"run `ironburst converge` on it; then `systemctl start {timer}`"
        elif now_s - made_s > OLD_S:
            seen = f"the newest is {(now_s - made_s) / 86400:.0f} days old"
        elif f"{timer}.service" in failed:
            seen = f"the last one failed; the newest is {(now_s - made_s) / 3600:.0f} hours old"
        else:
            seen = f"the newest is {(now_s - made_s) / 3600:.0f} hours old"
            yield CheckResult("backup", looked_at, "ok", seen)
            continue
        yield CheckResult("backup", looked_at, "fail", seen, todo)
