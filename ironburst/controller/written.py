"""What of a large queue the ledger has already: with 10,000 jobs, all of them at each tick were 47 GB a day."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from ironburst.burst import Decision, Job

LARGE = 1000
"""jobs in a queue of which only what changes is written"""
REFRESH_S = 900.0
"""so old the wording of a decision may be then; its code, and its job's state, are those of the last tick"""
MOVED = 0.25
"""and the predicted start may be off by as much of the time until then"""


class Answer(NamedTuple):
    """What was decided for a job, as far as it makes a row of its own; when the job is predicted to start at home."""

    kind: str
    code: str
    start_s: float | None = None


class News(NamedTuple):
    """What a tick writes, by job."""

    jobs: frozenset[int]
    answers: frozenset[int]
    over: frozenset[int]  # whose last answer holds no more: it did up to `until_s`
    until_s: float


@dataclass(frozen=True)
class Written:
    """After a tick. A new process knows nothing of it, and writes everything once."""

    at_s: float = 0.0
    jobs: Mapping[int, Job] = field(default_factory=dict)
    answers: Mapping[int, tuple[Answer, float]] = field(default_factory=dict)  # and when it was written

    def after(self, jobs: Mapping[int, Job], decision: Decision, now_s: float) -> tuple[Written, News]:
        """What the next tick has to write, and what is there then."""
        answers = answers_of(decision)
        if len(jobs) < LARGE:
            return Written(), News(frozenset(jobs), frozenset(answers), frozenset(), now_s)
        if now_s < self.at_s:  # the clock was put back
            return Written().after(jobs, decision, now_s)
        over = frozenset(id for id, (said, _) in self.answers.items() if said[:2] != answers.get(id, ("",))[:2])
        # a job without an answer is written, too: its last one is older then, and doesn't count
        changed = frozenset(
            id for id, job in jobs.items() if id not in self.jobs or _row(self.jobs[id]) != _row(job)
        ) | {id for id in over if id in jobs}
        new = frozenset(id for id, said in answers.items() if id in changed or not self._stays(id, said, now_s))
        kept = {id: (said, now_s) if id in new else self.answers[id] for id, said in answers.items()}
        return Written(now_s, jobs, kept), News(changed, new, over, self.at_s)

    def _stays(self, id: int, said: Answer, now_s: float) -> bool:
        if id not in self.answers:
            return False
        before, at_s = self.answers[id]
        if not 0 <= now_s - at_s < REFRESH_S or (said.start_s is None) != (before.start_s is None):
            return False
        moved_s = abs((said.start_s or 0.0) - (before.start_s or 0.0))
        return moved_s <= max(60.0, MOVED * ((before.start_s or 0.0) - now_s))


def answers_of(decision: Decision) -> dict[int, Answer]:
    """By job."""
    found = {item.job: Answer("infeasible", item.code) for item in decision.infeasible}
    return found | {wait.job: Answer("wait", wait.code, wait.start_s) for wait in decision.waits}


def _row(job: Job) -> tuple[object, ...]:
    """What the ledger has of it."""
    who = (job.name, job.user, job.submit_s, job.nodes, job.each.gpus, job.time_limit_s)
    return (*who, job.state, job.start_s, job.on, job.called)
