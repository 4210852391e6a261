"""Whose a drain is: ours, the scheduler's own, or a person's, which only a person lifts. By its reason.

The head's SuspendProgram knows the same words (playbooks/roles/slurm_head/templates/ironburst-suspend.j2).
"""

from __future__ import annotations

PREFIX = "ironburst: "  # what we drain nodes for begins with it
# ours of before and of the head's scripts; the scheduler's own word for a node that it powers down
_OURS = ("", "no lease", "release", "given up", "POWER_DOWN_ASAP")
# who sets a reason when slurmctld itself does: SlurmUser, as the role slurm_head has it
_SCHEDULER = ("slurm",)
_BEHIND = " : "
# what it adds behind " : " to words that are there already, and signs all of it (set_node_reason in its node_mgr.c)
_ADDED = (
    "Not responding",
    "ResumeTimeout reached",
    "reboot timed out",
    "reboot complete",
    "Prolog error",
    "Epilog error",
)
HELD = "held: "  # the head's SuspendProgram puts it before a person's words when it drains the node again


def by_person(reason: str, reason_by: str) -> bool:
    """Whether neither we nor the scheduler said so. `reason_by`: the user that the scheduler names; empty: unknown. It
    is not the one who spoke first where slurmctld added something.
    """
    first = first_words(reason)
    if first.startswith(HELD):
        return True
    ours = first in _OURS or first.startswith(PREFIX)
    return not ours and not (reason_by in _SCHEDULER and (first == reason or first in _ADDED))


def first_words(reason: str) -> str:
    """A reason without what slurmctld added to it."""
    words = reason.split(_BEHIND)
    while len(words) > 1 and words[-1] in _ADDED:
        words.pop()
    return _BEHIND.join(words)
