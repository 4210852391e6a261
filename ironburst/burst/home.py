"""The queue laid over the nodes at home: when each job would start there, behind those before it that stay."""

from __future__ import annotations

from collections.abc import Mapping

from ironburst.burst.packing import Placement, Plan
from ironburst.burst.policy import Policy
from ironburst.burst.snapshot import Job, Snapshot

# jobs that one decision lays over the nodes a second time, at most: beyond that a late job is rented for itself
MOST_ANEW = 20_000


class Home:
    """`nodes`: all of home's, up or not; `staying`: the jobs that are planned there so far, in the queue's order."""

    def __init__(self, snapshot: Snapshot, policy: Policy, expected_s: Mapping[int, float]):
        """`expected_s`: run times by job id, where more is known than the limit."""
        self.nodes = [node for node in snapshot.nodes if policy.home_partition in node.partitions]
        self.staying: list[tuple[Job, Placement]] = []
        running = [job for job in snapshot.jobs if job.on]
        up = [node for node in self.nodes if node.open]
        self._plan = Plan(snapshot.now_s, up, running, policy.overdue_s, expected_s)
        self._running_alone = self._plan.copy() if policy.limits else self._plan  # only they lay it anew
        self._laid_anew = 0

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
