"""The jobs that a scheduler has accounted for, try by try. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple


class Window(NamedTuple):
    """A part of time; what happens at `to_s` is outside."""

    from_s: float
    to_s: float

    def overlap(self, from_s: float, to_s: float) -> tuple[float, float] | None:
        """What of another part lies in it; None: nothing."""
        begin, end = max(from_s, self.from_s), min(to_s, self.to_s)
        return (begin, end) if end > begin else None


class JobRun(NamedTuple):
    """One try of a job: a job that was requeued has several. Seconds since 1970."""

    job: int  # as the ledger has it
    called: str  # as its user calls it
    user: str
    account: str
    nodes: tuple[str, ...]
    gpus: int  # of all its nodes
    submit_s: float
    start_s: float | None  # None: it hasn't started
    end_s: float | None  # None: it runs still
    elapsed_s: float  # without what it was suspended

    def part(self, window: Window, now_s: float) -> tuple[float, float] | None:
        """When it held its nodes in a window; None: it didn't."""
        if self.start_s is None or not self.nodes or not self.gpus:
            return None
        return window.overlap(self.start_s, now_s if self.end_s is None else min(self.end_s, now_s))

    @property
    def busy(self) -> float:
        """The part of its time that counts, 0 to 1: not that in which it was suspended."""
        if self.start_s is None or self.end_s is None or self.end_s <= self.start_s:
            return 1.0
        return min(max(self.elapsed_s / (self.end_s - self.start_s), 0.0), 1.0)

    @property
    def gpus_a_node(self) -> float:
        """Accounting has only the sum: each node has an equal part of it."""
        return self.gpus / len(self.nodes) if self.nodes else 0.0


class First(NamedTuple):
    """The first start of a job, and what it had waited for since it was submitted first."""

    run: JobRun
    wait_s: float


def first_starts(runs: Iterable[JobRun], window: Window) -> list[First]:
    """Of the jobs with GPUs that began in a window, in the order of their starts. A requeued job counts once: Slurm
    sets the submit of a later try to the moment of the requeue, so the first try's counts. Another user's job of the
    same id is another one (slurmctld counts anew where it was set up again).
    """
    submitted: dict[tuple[int, str], float] = {}
    started: dict[tuple[int, str], JobRun] = {}
    for run in runs:
        job = run.job, run.user
        submitted[job] = min(submitted.get(job, run.submit_s), run.submit_s)
        if run.start_s is not None and run.gpus:
            before = started.get(job)
            if before is None or (before.start_s or 0.0) > run.start_s:
                started[job] = run
    firsts = [First(run, max((run.start_s or 0.0) - submitted[job], 0.0)) for job, run in started.items()]
    within = [each for each in firsts if window.from_s <= (each.run.start_s or 0.0) < window.to_s]
    return sorted(within, key=lambda each: (each.run.start_s or 0.0, each.run.job))
