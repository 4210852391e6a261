"""The queue laid over the nodes at home: when each job would start there, behind those before it that stay."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property, partial

from ironburst.burst.packing import Placement, Plan
from ironburst.burst.policy import Policy
from ironburst.burst.snapshot import Job, Node, Snapshot
from ironburst.nodes import naming

# jobs that one decision lays over the nodes a second time, at most: beyond that a late job is rented for itself
MOST_ANEW = 20_000


class Home:
    """`nodes`: all of home's, up or not, and those of other partitions of owned nodes that its jobs may start in;
    `partitions`: those; `staying`: the jobs that are planned there so far, in the queue's order.
    """

    def __init__(self, snapshot: Snapshot, policy: Policy, expected_s: Mapping[int, float]):
        """`expected_s`: run times by job id, where more is known than the limit."""
        at_home = [job for job in snapshot.waiting if policy.home_partition in job.partitions]
        rented = {pool.partition for pool in snapshot.pools} | {naming.WAITING_PARTITION}
        self.partitions = {name for job in at_home for name in job.partitions} - rented | {policy.home_partition}
        self.nodes, up, names = self._nodes(snapshot)
        self.staying: list[tuple[Job, Placement]] = []
        barring = (job for job in at_home if job.excluded or job.passed_over)
        barred = {names & {*job.excluded, *job.passed_over} for job in barring} - {frozenset()}
        on, kept = snapshot.jobs_on, snapshot.kept
        self._new_plan = partial(Plan, snapshot.now_s, up, on, policy.overdue_s, expected_s, barred, kept)
        self._plan = self._new_plan()
        self._laid_anew = 0

    def _nodes(self, snapshot: Snapshot) -> tuple[list[Node], list[Node], frozenset[str]]:
        """Home's, those of them that are up, and the names of all."""
        owned, partitions = snapshot.owned, self.partitions
        before = snapshot.kept.get("nodes")
        if before is None or before[0] is not owned or before[1] != partitions:
            nodes = [node for node in owned if not partitions.isdisjoint(node.partitions)]
            up, names = [node for node in nodes if node.open], frozenset([node.name for node in nodes])
            before = snapshot.kept["nodes"] = owned, partitions, (nodes, up, names)
        of_home: tuple[list[Node], list[Node], frozenset[str]] = before[2]
        return of_home

    @cached_property
    def _running_alone(self) -> Plan:
        """Without the queue: to lay that anew, which few decisions do."""
        return self._new_plan()

    def earliest(self, job: Job) -> Placement | None:
        """Where it would start first; None: nowhere, as the nodes are."""
        return self._plan.earliest(job)

    def stays(self, job: Job, placement: Placement | None) -> None:
        """The job is left to home: those behind it start later."""
        if placement:
            self._plan.place(job, placement)
            self.staying.append((job, placement))

    @property
    def may_lay_anew(self) -> bool:
        """Whether there is time for it in this decision."""
        return self._laid_anew + len(self.staying) <= MOST_ANEW

    def lay_anew(self, without: Job) -> None:
        """Plan the others again: the job is rented for."""
        others = [job for job, _ in self.staying if job is not without]
        self._laid_anew += len(others)
        self._plan, self.staying = self._running_alone.copy(), []
        for job in others:
            self.stays(job, self.earliest(job))


def could_ever_fit(job: Job, nodes: Iterable[Node]) -> bool:
    """Whether the nodes, all up and empty, could take the job."""
    return sum(node.could_take(job) for node in nodes) >= job.nodes
