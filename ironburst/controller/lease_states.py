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


_GIVEN_UP = {
    State.LEAVING: "it is given up",
    State.TERMINATED: "its node is another instance by now",
    State.ENDED: "it has ended, or another instance has its node",
}
_FOUND = {
    State.JOINED: "an instance that no open lease has answers as its node",
    State.READY: "an instance that no open lease has answers as its node, and works",
}
MOVES: Mapping[State, Mapping[State, str]] = MappingProxyType(
    {
        State.INTENDED: {State.POWERING: "the scheduler has its permit, and powers it up", **_FOUND, **_GIVEN_UP},
        State.POWERING: {State.REQUESTED: "the cloud is asked", **_FOUND, **_GIVEN_UP},
        State.REQUESTED: {
            State.LAUNCHED: "the cloud has launched it",
            State.POWERING: "the cloud has refused: nothing was started, and another zone may be asked",
            **_FOUND,
            **_GIVEN_UP,
        },
        State.LAUNCHED: {
            State.JOINED: "its node registered",
            State.READY: "a job runs on it: it was handed over after this ledger was saved",
            **_GIVEN_UP,
        },
        State.JOINED: {
            State.READY: "a job may use it",
            State.INTERRUPTED: "the provider takes it back, or it is lost",
            **_GIVEN_UP,
        },
        State.READY: {
            State.RELEASING: "it isn't needed, or may not stay: its jobs may end",
            State.INTERRUPTED: "the provider takes it back, or it is lost",
            **_GIVEN_UP,
        },
        State.RELEASING: {
            State.INTERRUPTED: "it can't wait for its jobs",
            **_GIVEN_UP,
        },
        State.INTERRUPTED: dict(_GIVEN_UP),
        State.LEAVING: {State.TERMINATED: "its instance was told to end", State.ENDED: _GIVEN_UP[State.ENDED]},
        State.TERMINATED: {State.ENDED: "its instance is gone"},
        State.ENDED: {State.TERMINATED: "it was taken for ended, and is shown alive", **_FOUND},
    }
)
"""from -> to -> when"""
