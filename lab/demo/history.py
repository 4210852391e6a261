"""What happened during the demo's burst, in one shape for the summary and the report."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True)
class Run:
    """One start of a job. Times are seconds since the first submit."""

    start: float
    end: float
    nodes: tuple[str, ...]
    rented: bool
    state: str


@dataclass(frozen=True)
class JobHistory:
    id: int
    name: str
    gpus: int
    nodes: int
    submit: float
    runs: tuple[Run, ...]
    fate: Literal["home", "rented", "waited", "lost"]
    """where it ended; `waited`: at home, after the policy had said to wait"""

    @property
    def gpu_hours(self) -> float:
        return sum(self.gpus * (run.end - run.start) for run in self.runs) / 3600


@dataclass(frozen=True)
class Mark:
    """One decision or fault, to hover over."""

    at: float
    kind: str
    text: str


@dataclass(frozen=True)
class LeaseHistory:
    node: str
    type: str
    zone: str
    market: str
    start: float
    end: float
    usd: float
    ended: str


@dataclass(frozen=True)
class History:
    home_gpus: int
    gpus_per_node: int
    jobs: tuple[JobHistory, ...]
    leases: tuple[LeaseHistory, ...]
    marks: tuple[Mark, ...]
    run_twice: int
    budget_usd: float
    facts: dict[str, str] = field(default_factory=dict)
    """lines for the page's head: engine, compression, price age"""

    @property
    def end(self) -> float:
        ends = [run.end for job in self.jobs for run in job.runs] + [lease.end for lease in self.leases]
        return max(ends, default=1.0)

    @property
    def spent_usd(self) -> float:
        return sum(lease.usd for lease in self.leases)


def steps(changes: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """Running sum of (time, change) pairs as (time, value) points, one a distinct time, beginning at (0, ...)."""
    points: list[tuple[float, float]] = [(0.0, 0.0)]
    value = 0.0
    for at, change in sorted(changes):
        value += change
        if points[-1][0] == max(at, 0.0):
            points[-1] = (points[-1][0], value)
        else:
            points.append((at, value))
    return points


def queue(history: History) -> list[tuple[float, float]]:
    """Jobs that wait, over time."""
    changes = []
    for job in history.jobs:
        pending = job.submit
        for run in job.runs:
            changes += [(pending, 1.0), (run.start, -1.0)]
            pending = run.end
        if not job.runs:
            changes += [(job.submit, 1.0), (history.end, -1.0)]
    return steps(changes)


def gpus_in_use(history: History, *, rented: bool) -> list[tuple[float, float]]:
    runs = [(job.gpus, run) for job in history.jobs for run in job.runs if run.rented == rented]
    return steps([change for gpus, run in runs for change in ((run.start, gpus), (run.end, -gpus))])


def gpus_leased(history: History) -> list[tuple[float, float]]:
    size = history.gpus_per_node
    return steps([change for lease in history.leases for change in ((lease.start, size), (lease.end, -size))])
