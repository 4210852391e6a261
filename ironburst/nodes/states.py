"""Slurm's node states: one base state and any number of flags, and what each of them says of a node.

The words are those of `scontrol show node --json`, so of NODE_STATES in Slurm's src/plugins/data_parser/*/parsers.c;
what they mean is in slurm/slurm.h and under NODE STATE CODES in sinfo(1). Slurm 23.02 to 26.05 share all words but
these: PERFCTRS went with 24.05; BLOCKED and EXTERNAL came with 25.11; POWER_DOWN_ASAP and POWER_DOWN_FORCE, which are
POWER_DOWN with POWER_DRAIN or with POWERED_DOWN, came with 26.05. A word that isn't here says nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Flag, auto


class Says(Flag):
    """What a state says of the node that is in it."""

    NOTHING = 0
    CLOSED = auto()  # it takes no new job, now and by itself
    OUT = auto()  # it is out of service until somebody, or a boot, brings it back
    MOVING = auto()  # its power is being switched, or is asked to be
    GOING_DOWN = auto()  # Slurm is taking it away, or has
    UNREGISTERED = auto()  # so are nodes whose slurmd has never registered
    BUSY = auto()  # it has jobs, or something of one


NOTHING, CLOSED, OUT, MOVING = Says.NOTHING, Says.CLOSED, Says.OUT, Says.MOVING
GOING_DOWN, UNREGISTERED, BUSY = Says.GOING_DOWN, Says.UNREGISTERED, Says.BUSY

STATES: dict[str, Says] = {
    # base states
    "ALLOCATED": BUSY,
    "DOWN": CLOSED | OUT | GOING_DOWN | UNREGISTERED,
    "ERROR": CLOSED | OUT,  # no release uses it
    "FUTURE": CLOSED | OUT | UNREGISTERED,
    "IDLE": NOTHING,
    "INVALID": CLOSED | OUT,  # how the parser calls a base state that it doesn't know
    "MIXED": BUSY,
    "UNKNOWN": CLOSED | OUT | UNREGISTERED,
    # power: asked for (POWER_...), under way (POWERING_...), done (POWERED_...). Slurm gives jobs to a node that comes
    # up, and none to one that goes down, be it asked for only (make_node_avail in slurmctld's node_mgr.c)
    "POWER_UP": CLOSED | MOVING,
    "POWERING_UP": CLOSED | MOVING,
    "POWER_DOWN": CLOSED | OUT | MOVING | GOING_DOWN,
    # slurmctld makes DRAIN and POWER_DOWN of it: never shown alone
    "POWER_DRAIN": CLOSED | OUT | MOVING | GOING_DOWN,
    "POWER_DOWN_ASAP": CLOSED | OUT | MOVING | GOING_DOWN,
    "POWER_DOWN_FORCE": CLOSED | OUT | MOVING | GOING_DOWN,
    "POWERING_DOWN": CLOSED | OUT | MOVING | GOING_DOWN,
    "POWERED_DOWN": CLOSED | OUT | GOING_DOWN,
    # other flags
    "BLOCKED": BUSY,  # by an exclusive job of its topology block
    "CLOUD": NOTHING,
    "COMPLETING": BUSY,
    "DRAIN": CLOSED | OUT,
    "DYNAMIC_FUTURE": NOTHING,
    "DYNAMIC_NORM": NOTHING,
    "EXTERNAL": NOTHING,
    "FAIL": CLOSED | OUT,
    "INVALID_REG": CLOSED | OUT,
    "MAINTENANCE": CLOSED | OUT,
    "NOT_RESPONDING": NOTHING,  # every node, for a moment, when slurmctld has restarted
    "PERFCTRS": NOTHING,
    "PLANNED": NOTHING,
    "REBOOT_CANCELED": NOTHING,
    "REBOOT_ISSUED": CLOSED | OUT,  # it boots now
    "REBOOT_REQUESTED": NOTHING,  # it waits for its jobs; ASAP drains the node too
    "RESERVED": NOTHING,
    "RESUME": NOTHING,
    "UNDRAIN": NOTHING,
}


def _that_say(says: Says) -> frozenset[str]:
    return frozenset(state for state, said in STATES.items() if says in said)


_CLOSED, _OUT, _MOVING, _GOING_DOWN = (_that_say(says) for says in (CLOSED, OUT, MOVING, GOING_DOWN))
_UNREGISTERED, _BUSY = _that_say(UNREGISTERED), _that_say(BUSY)
_TELLING = frozenset(("ALLOCATED", "DOWN", "IDLE", "MIXED"))
_RESERVED = frozenset(("MAINTENANCE", "RESERVED"))
_POWERING_UP = _MOVING - _GOING_DOWN


def known(states: Iterable[str]) -> bool:
    """Its base state says whether jobs are on it: one that never registered may still run an earlier slurmctld's."""
    return not _TELLING.isdisjoint(states)


def closed(states: Iterable[str]) -> bool:
    """It takes no new job, now and by itself."""
    return not _CLOSED.isdisjoint(states)


def available(states: Iterable[str]) -> bool:
    """It serves: it can be given jobs, or will be by itself; also while it doesn't respond."""
    return _OUT.isdisjoint(states)


def reserved(states: Iterable[str]) -> bool:
    """It is in a reservation, for a maintenance or for others: only jobs of that one start there."""
    return not _RESERVED.isdisjoint(states)


def moving(states: Iterable[str]) -> bool:
    """Its power is being switched, or is asked to be."""
    return not _MOVING.isdisjoint(states)


def going_down(states: Iterable[str]) -> bool:
    """Slurm is taking it away, or has."""
    return not _GOING_DOWN.isdisjoint(states)


def powering_up(states: Iterable[str]) -> bool:
    """It is being powered up, or is asked to be."""
    return not _POWERING_UP.isdisjoint(states)


def unregistered(states: Iterable[str]) -> bool:
    """Its slurmd may never have registered."""
    return not _UNREGISTERED.isdisjoint(states)


def busy(states: Iterable[str]) -> bool:
    """It has jobs, or something of one."""
    return not _BUSY.isdisjoint(states)
