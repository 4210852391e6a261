"""Nodes in service: what a converge needs of the scheduler.
Loads nothing else, to keep the check of an unchanged host fast.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from ironburst.nodes import states as node_states


class SchedulerError(Exception):
    """The scheduler couldn't be asked, or refused; the text is one sentence."""


class SchedulerMissing(SchedulerError):
    """There is no scheduler on the machine that was asked: it is not installed yet."""


@dataclass(frozen=True)
class Occupancy:
    """A node and the jobs on it. `registered`: its daemon has registered with
    this controller since the node was added.
    """

    name: str
    partitions: tuple[str, ...]
    states: frozenset[str]
    reason: str = ""
    registered: bool = True
    jobs: tuple[int | str, ...] = ()  # as the scheduler calls them
    end_s: float = 0.0  # when the last of its jobs ends by its limit; 0 without jobs, infinite without a limit
    address: str = ""  # as the scheduler reaches it: an IP address or a name; empty: not said

    @property
    def drained(self) -> bool:
        """It is given no new job because somebody drained it."""
        return "DRAIN" in self.states

    @property
    def busy(self) -> bool:
        """It has jobs, or something of one."""
        return bool(self.jobs) or node_states.busy(self.states)

    @property
    def says_whether_busy(self) -> bool:
        """Its state is one in which the scheduler knows whether jobs are on it."""
        return node_states.known(self.states)

    @property
    def available(self) -> bool:
        """It can be given jobs; also one that does not respond at the moment, as after a restart of the controller."""
        return node_states.available(self.states)

    @property
    def joined(self) -> bool:
        """It may have been given jobs, or may be given one any time; in doubt it has joined."""
        return self.registered or self.busy or not node_states.unregistered(self.states)


class NodeService(Protocol):
    """What a converge needs of the scheduler. All methods raise SchedulerError."""

    def occupancy(self) -> dict[str, Occupancy]:
        """All nodes, by name. Raises SchedulerMissing before the scheduler is installed."""

    def drain(self, nodes: Sequence[str], reason: str) -> None:
        """No new job starts there; `reason` is shown to people."""

    def resume(self, nodes: Sequence[str]) -> None:
        """Undrain."""
