"""What a play knows of its snapshots already, and what stays the same from one to the next. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ironburst.burst import Job, Node
from ironburst.replay.view import JobsOn, RentedView


class Known:
    """The jobs at home, by node, too; and what `Snapshot.knowing` takes."""

    def __init__(self, home: Sequence[Node]):
        self._running: dict[int, tuple[Job, ...]] = {}
        self._at_home: tuple[Job, ...] | None = ()  # None: another one has begun or ended
        self._on = JobsOn()
        self._home = tuple(home)
        self._home_of = {node.name: node for node in home}
        self._rented_nodes: Mapping[str, Node] | None = None
        self._nodes: tuple[Node, ...] = ()
        self._of_nodes: dict[str, Any] = {}
        self._kept: dict[str, Any] = {}

    @property
    def at_home(self) -> tuple[Job, ...]:
        """The parts of jobs that run there, in the order in which they began."""
        if self._at_home is None:
            self._at_home = tuple([part for parts in self._running.values() for part in parts])
        return self._at_home

    def nodes(self, view: RentedView) -> tuple[Node, ...]:
        """Home's and the rented ones: one and the same object while they are."""
        if self._rented_nodes is not view.nodes:
            self._rented_nodes, node_of = view.nodes, {**self._home_of, **view.nodes}
            self._nodes = tuple(node_of.values())
            self._of_nodes = {"node_of": node_of, "launchable": view.launchable}
        return self._nodes

    def begins(self, number: int, parts: tuple[Job, ...]) -> None:
        """A job begins at home, in these parts."""
        self._running[number], self._at_home = parts, None
        self._on.begin(parts)

    def ends(self, number: int) -> Job:
        """It has ended there. Returns its first part."""
        parts, self._at_home = self._running.pop(number), None
        self._on.end(parts)
        return parts[0]

    def of(self, view: RentedView) -> dict[str, Any]:
        """The properties of a snapshot with these `nodes`."""
        return {
            "jobs_on": {**self._on, **view.jobs_on},
            "kept": self._kept,
            "offered": view.offered,
            "owned": self._home,
            **self._of_nodes,
        }
