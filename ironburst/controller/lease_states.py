"""The states of a lease, and the moves between them. `Ledger.move` is the only writer, and refuses any other move."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType


class State(StrEnum):
    """A lease goes down this list."""

    INTENDED = "intended"  # decided and written down; nothing asked of anybody
    # permit and power_up given to the scheduler, which must have handled it before the node registers
    POWERING = "powering"
    REQUESTED = "requested"  # an intent is open: the cloud is or was being asked, with this token and these parameters
    LAUNCHED = "launched"  # the instance exists
    JOINED = "joined"  # its slurmd registered, so its gate passed; still behind the drain
    READY = "ready"  # undrained: it takes jobs
    RELEASING = "releasing"  # powers down when its jobs have ended
    INTERRUPTED = "interrupted"  # the provider takes it back, or it is lost: its jobs go back to the queue
    LEAVING = "leaving"  # to be given up now
    TERMINATED = "terminated"  # the instance was told to end; paid up to here
    ENDED = "ended"


_END = frozenset((State.LEAVING, State.TERMINATED, State.ENDED))  # given up, or another instance has its node
_FOUND = frozenset((State.JOINED, State.READY))  # an instance that no open lease has answers as its node
MOVES: Mapping[State, frozenset[State]] = MappingProxyType(
    {
        State.INTENDED: _END | _FOUND | {State.POWERING, State.LAUNCHED},  # as the controller before wrote
        State.POWERING: _END | _FOUND | {State.REQUESTED},
        State.REQUESTED: _END | _FOUND | {State.LAUNCHED, State.POWERING},  # back: refused, another zone may be asked
        State.LAUNCHED: _END | {State.JOINED, State.READY},
        State.JOINED: _END | {State.READY, State.INTERRUPTED},
        State.READY: _END | {State.RELEASING, State.INTERRUPTED},
        State.RELEASING: _END | {State.INTERRUPTED},
        State.INTERRUPTED: _END,
        State.LEAVING: frozenset((State.TERMINATED, State.ENDED)),
        State.TERMINATED: frozenset((State.ENDED,)),
        State.ENDED: _FOUND | {State.TERMINATED},  # taken for ended, and shown alive
    }
)
"""from -> to, whoever moves it. Which facts lead where, and why: lease_table"""
