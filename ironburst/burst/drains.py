"""Whose a drain is: ours, the scheduler's own, or a person's, which only a person lifts. By its reason.

The head's SuspendProgram knows the same words (playbooks/roles/slurm_head/templates/ironburst-suspend.j2).
"""

from __future__ import annotations

PREFIX = "ironburst: "  # what we drain nodes for begins with it
# ours of before and of the head's scripts; the scheduler's own word for a node that it powers down
_OURS = ("", "no lease", "release", "given up", "POWER_DOWN_ASAP")
# who sets a reason when slurmctld itself does: SlurmUser, as the role slurm_head has it
_SCHEDULER = ("slurm",)
HELD = "held: "  # the head's SuspendProgram puts it before a person's words when it drains the node again


def by_person(reason: str, reason_by: str) -> bool:
    """Whether neither we nor the scheduler said so. `reason_by`: the user that the scheduler names; empty: unknown."""
    if reason.startswith(HELD):
        return True
    return reason not in _OURS and not reason.startswith(PREFIX) and reason_by not in _SCHEDULER
