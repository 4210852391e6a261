"""What a play knows of its snapshots already, and what stays the same from one to the next. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ironburst.burst import Job, Node
from ironburst.burst.snapshot import jobs_on
from ironburst.replay.view import RentedView


class Known:
    """The jobs at home, by node, too; and what `Snapshot.knowing` takes."""

    def __init__(self, home: Sequence[Node]):
        self._running: dict[int, tuple[Job, ...]] = {}
        self._at_home: tuple[Job, ...] | None = ()  # None: another one has begun or ended
        self._on: dict[str, list[Job]] = {}  # a list is never changed: what was made of it is known by it
        self._home = tuple(home)
        self._rented_jobs: tuple[Job, ...] | None = None
        self._on_leases: dict[str, list[Job]] = {}
        self._rented_nodes: tuple[Node, ...] | None = None
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
            self._rented_nodes, self._nodes = view.nodes, self._home + view.nodes
            self._of_nodes = {
                "node_of": {node.name: node for node in self._nodes},
                "launchable": frozenset([node.name for node in self._nodes if node.launchable]),
            }
        return self._nodes

    def begins(self, number: int, parts: tuple[Job, ...]) -> None:
        """A job begins at home, in these parts."""
        self._running[number], self._at_home = parts, None
        for part in parts:
            for node in part.on:
                self._on[node] = [*self._on.get(node, ()), part]

    def ends(self, number: int) -> Job:
        """It has ended there. Returns its first part."""
        parts, self._at_home = self._running.pop(number), None
        for part in parts:
            for node in part.on:
                self._on[node] = [other for other in self._on[node] if other is not part]
                if not self._on[node]:
                    del self._on[node]
        return parts[0]

    def of(self, view: RentedView) -> dict[str, Any]:
        """The properties of a snapshot with these `nodes`."""
        if self._rented_jobs is not view.jobs:
            self._rented_jobs, self._on_leases = view.jobs, jobs_on(view.jobs)
        return {"jobs_on": self._on | self._on_leases, "kept": self._kept, **self._of_nodes}
