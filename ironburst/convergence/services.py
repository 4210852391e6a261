"""The schedulers of the hosts of a converge as one NodeService (ironburst.ports.service): a node is of one of them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from ironburst.ports.service import NodeService, Occupancy, SchedulerMissing


class Services:
    """A NodeService. `sides`: by kind; `of`: hosts, and of which kind of scheduler they are nodes; `there`: kinds that
    must be installed, for nodes of theirs were converged before.
    """

    def __init__(self, sides: Mapping[str, NodeService], of: Mapping[str, str], there: Collection[str] = ()):
        self._sides, self._of, self._there = sides, of, there

    def occupancy(self) -> dict[str, Occupancy]:
        """Of each its own nodes. Raises SchedulerMissing where none is installed yet, SchedulerError where one doesn't
        answer.
        """
        found: dict[str, Occupancy] = {}
        missing: list[SchedulerMissing] = []
        for kind, side in self._sides.items():
            try:
                found |= {name: node for name, node in side.occupancy().items() if self._of.get(name, kind) == kind}
            except SchedulerMissing as error:  # before its first converge it has no nodes
                if kind in self._there:
                    raise
                missing.append(error)
        if missing and len(missing) == len(self._sides):
            raise missing[0]
        return found

    def drain(self, nodes: Sequence[str], reason: str) -> None:
        """At each its own."""
        for kind, names in self._split(nodes).items():
            self._sides[kind].drain(names, reason)

    def resume(self, nodes: Sequence[str]) -> None:
        """At each its own."""
        for kind, names in self._split(nodes).items():
            self._sides[kind].resume(names)

    def _split(self, nodes: Sequence[str]) -> dict[str, list[str]]:
        split: dict[str, list[str]] = {}
        for name in nodes:
            split.setdefault(self._of[name], []).append(name)
        return split
