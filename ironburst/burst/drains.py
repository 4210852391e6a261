"""Whose a drain is: ours, a program's, or a person's, which only a person lifts. By its reason.

A program's verdict is about a machine. A rented one goes with its lease, and the next one of that name is another, so
only a person's words outlive a lease. Slurm notes who set a reason, and that shows little: slurmctld signs as
SlurmUser, also what others wrote before; slurmd, slurmstepd and every health check are root, as is the person who uses
sudo. So words count first, then SlurmUser. Root's words that no program is known to say are a person's: a name that is
held is seen and lifted, while a person's drain that was lost is neither.

The head's SuspendProgram knows the same words (playbooks/roles/slurm_head/templates/ironburst-suspend.j2).
"""

from __future__ import annotations

PREFIX = "ironburst: "  # what we drain nodes for begins with it
# ours of before and of the head's scripts; the scheduler's own word for a node that it powers down
OURS = ("", "no lease", "release", "given up", "POWER_DOWN_ASAP")
# who sets a reason when slurmctld itself does: SlurmUser, as the role slurm_head has it
_SCHEDULER = ("slurm",)
_BEHIND = " : "  # slurmctld adds its words so to those that are there, and signs for all (set_node_reason)
# of slurmctld about a node that is gone, or boots: nothing is wrong with the machine
_PASSING = ("Not responding", "ResumeTimeout reached", "reboot timed out", "reboot complete", "reboot issued")
# What programs say of a machine begins so. Slurm 23.02 to 26.05: drain_nodes and set_node_reason in slurmctld and its
# plugins, validate_node_specs with its gres, _drain_node of slurmd, stepd_drain_node of slurmstepd
PROGRAMS = (
    *_PASSING,
    "Prolog error",
    "Epilog error",
    "Prolog/Epilog failure",
    "Job env setup error",
    "Kill task failed",
    "Job step not running",
    "batch job complete failure",
    "Duplicate jobid",
    "SlurmdSpoolDir is full",
    "switch_g_job_postfini failed",
    "Bad core count",
    "Invalid KNL modes",
    "Low socket*core*thread count",
    "Low CPUs",
    "Low RealMemory",
    "Low TmpDisk",
    "CoreSpec differ",
    "Could not unpack gres data",
    "RestrictedCoresPerGPU",
    "Reported active features",
    "Failed to set node feature",
    "gres/",
    "health: ",  # the role node_health
    "NHC: ",  # LBNL Node Health Check, and what is made of it
)
HELD = "held: "  # the head's SuspendProgram puts it before a person's words when it drains the node again


def by_person(reason: str, reason_by: str) -> bool:
    """Whether neither we nor a program wrote it. `reason_by`: the user that the scheduler names; empty: unknown. It is
    not the one who spoke first where slurmctld added something.
    """
    first = first_words(reason)
    words = first.removeprefix(HELD)
    if _ours(words) or words.startswith(PROGRAMS):  # also held: an older SuspendProgram took these for a person's
        return False
    return words != first or not (reason_by in _SCHEDULER and first == reason)


def verdict(reason: str, reason_by: str) -> str:
    """What a program says is wrong with a machine; empty: none says so."""
    first = first_words(reason)
    said = by_person(reason, reason_by) or _ours(first) or first.startswith((*_PASSING, HELD))
    return "" if said else first


def first_words(reason: str) -> str:
    """A reason without what slurmctld added to it."""
    words = reason.split(_BEHIND)
    while len(words) > 1 and words[-1].startswith(PROGRAMS):
        words.pop()
    return _BEHIND.join(words)


def _ours(words: str) -> bool:
    return words in OURS or words.startswith(PREFIX)
