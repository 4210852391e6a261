"""From which release of Slurm which other can be reached. Pure.

The rule is SchedMD's (its upgrade guide, branch slurm-25.11; SLURM_MIN_PROTOCOL_VERSION of slurm_protocol_common.h): a
release reads state files and records of the two before it, from 24.11 on of the three before it, and of no newer one.
"""

from __future__ import annotations

import re

RELEASES = (
    *("20.02", "20.11", "21.08", "22.05", "23.02", "23.11", "24.05", "24.11", "25.05", "25.11"),
    "26.05",
)
"""Oldest first; a new one is put at the end."""
THREE_BACK_FROM = "24.11"


def release_of(said: str) -> str:
    """The release in what `slurmctld -V` says ("slurm 24.11.7", "slurm-wlm 24.11.5"); empty: it says none."""
    found = re.search(r"^slurm\S* (\d\d\.\d\d)", said)
    return found[1] if found else ""


def reads(release: str) -> tuple[str, ...]:
    """The releases before `release` whose state it reads, oldest first. ValueError for one that isn't known."""
    at = RELEASES.index(release)
    back = 3 if at >= RELEASES.index(THREE_BACK_FROM) else 2
    return RELEASES[max(0, at - back) : at]


def refused(installed: str, declared: str) -> str:
    """Why `installed` can't become `declared`, in one sentence; empty: it can, or nothing is known of one of them."""
    if installed == declared or not {installed, declared} <= set(RELEASES):
        return ""
    at, to = RELEASES.index(installed), RELEASES.index(declared)
    if to < at:
        return (
            f"Slurm {installed} is installed and {declared} is declared: an older Slurm can't read a newer one's state "
            f"and accounting; declare {installed}, or restore a backup from before the upgrade"
        )
    if installed in reads(declared):
        return ""
    step = next(release for release in reversed(RELEASES[at:to]) if installed in reads(release))
    return (
        f"Slurm {installed} is installed and {declared} is declared, which reads the state of {reads(declared)[0]} and "
        f"newer only: declare {step} first, converge head and nodes, then declare {declared}"
    )
