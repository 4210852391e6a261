"""What two heads share: is it one folder, and on neither's disk? Without it a head that takes over ends every job."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ironburst.doctor.checks import CheckResult
from ironburst.document import Host, Scheduler

# Of both heads by their mount; written by the role, and not again
FILE = "/var/lib/ironburst/ledger.url"
OF_ONE_HOST = ("ext2", "ext3", "ext4", "xfs", "btrfs", "zfs", "tmpfs", "overlay")
TODO = "mount one folder of a filer on both heads, for root alone, then converge them (docs/how-to/second-head.md)"


def question(scheduler: Scheduler, host: Host) -> dict[str, Any]:
    """What a head is asked for host_probe; nothing of a host that is none of two."""
    second = scheduler.second_head
    if second is None or host.name not in (scheduler.head, second.head):
        return {}
    return {"state": [second.state, FILE]}


def compared(slurm: Scheduler | None, states: Mapping[str, Mapping[str, Any] | None]) -> Iterator[CheckResult]:
    """`states`: what each host that answered said of it."""
    if slurm is None or slurm.second_head is None:
        return
    path, wrong, files = slurm.second_head.state, [], set()
    for name in (slurm.head, slurm.second_head.head):
        if not (seen := states.get(name)):
            continue
        files.add(seen["file"])
        if seen["kind"] is None:
            wrong.append(f"{name}: nothing is mounted at {path}")
        elif seen["writable"] is None:
            wrong.append(f"{name}: {path} ({seen['source']}) doesn't answer in 5 s")
        elif not seen["writable"]:
            wrong.append(f"{name}: {path} ({seen['source']}) is mounted read-only")
        elif seen["kind"] in OF_ONE_HOST:
            wrong.append(f"{name}: {path} is {seen['source']} ({seen['kind']}), which dies with one host")
    if not wrong and len(files) > 1:
        wrong.append(f"the heads see two files at {FILE}: each has mounted another folder")
    if not wrong and None in files:
        wrong.append(f"there is no {FILE}, which both heads have from {path}")
    if wrong:
        yield CheckResult("heads", "what they share", "fail", "; ".join(wrong), TODO)
    else:
        both = len([each for each in states.values() if each]) > 1
        yield CheckResult("heads", "what they share", "ok", f"{path} is one on both" if both else f"{path} is there")
