"""The schedulers of the hosts of a converge as one NodeService (ironburst.ports.service): a node is of one of them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

from ironburst.ports.service import NodeService, Occupancy, SchedulerError, SchedulerMissing

if TYPE_CHECKING:
    from ironburst.document import Scheduler

T = TypeVar("T")


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


def heads_of(declared: Scheduler) -> list[str]:
    """Slurm's hosts, the first one first; none where it has no head of its own."""
    second = declared.second_head.head if declared.second_head else ""
    return [name for name in (declared.head, second) if name]


class Heads:
    """A NodeService: one Slurm, asked at the first of its heads that answers; that one comes first from then on. Raises
    SchedulerMissing where no head has Slurm, else the first one's SchedulerError.
    """

    def __init__(self, heads: Sequence[NodeService]):
        self._heads = list(heads)

    def occupancy(self) -> dict[str, Occupancy]:
        """All nodes, by name."""
        return self._asked(lambda head: head.occupancy())

    def drain(self, nodes: Sequence[str], reason: str) -> None:
        """No new job starts there; `reason` is shown to people."""
        self._asked(lambda head: head.drain(nodes, reason))

    def resume(self, nodes: Sequence[str]) -> None:
        """Undrain."""
        self._asked(lambda head: head.resume(nodes))

    def _asked(self, question: Callable[[NodeService], T]) -> T:
        errors: list[SchedulerError] = []
        for head in self._heads:
            try:
                answer = question(head)
            except SchedulerError as error:
                errors.append(error)
            else:
                self._heads.remove(head)
                self._heads.insert(0, head)
                return answer
        raise next((each for each in errors if not isinstance(each, SchedulerMissing)), errors[0])
