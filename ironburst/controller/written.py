"""What of a large queue the ledger has already: with 10,000 jobs, all of them at each tick were 47 GB a day."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from ironburst.burst import Decision, Infeasible, Job, Wait

LARGE = 1000
"""jobs in a queue of which only what changes is written"""
REFRESH_S = 300.0
"""so old the wording of a decision may be then; its code, and its job's state, are those of the last tick"""


class News(NamedTuple):
    """What a tick writes, by job."""

    jobs: frozenset[int]
    answers: Mapping[int, Wait | Infeasible]
    over: Mapping[int, Wait | Infeasible]  # last answers that hold no more, as they were at `until_s`
    until_s: float
    wordings: Mapping[int, Wait | Infeasible] | None  # of all that wait; None: what is written is young enough
    first: bool  # nothing is known of what a tick before wrote


@dataclass(frozen=True)
class Written:
    """After a tick. A new process knows nothing of it, and writes everything once."""

    at_s: float = 0.0
    jobs: Mapping[int, Job] = field(default_factory=dict)
    answers: Mapping[int, Wait | Infeasible] = field(default_factory=dict)
    worded_s: float = 0.0

    def after(self, jobs: Mapping[int, Job], decision: Decision, now_s: float) -> tuple[Written, News]:
        """What the next tick has to write, and what is there then."""
        answers = answers_of(decision)
        if len(jobs) < LARGE:
            return Written(), News(frozenset(jobs), answers, {}, now_s, None, first=True)
        if not self.at_s or now_s < self.at_s:  # or the clock was put back
            return Written(now_s, jobs, answers, now_s), News(frozenset(jobs), answers, {}, now_s, None, first=True)
        over = {id: said for id, said in self.answers.items() if id not in answers or _differ(said, answers[id])}
        # a job without an answer is written, too: its last one is older then, and doesn't count
        changed = {id for id, job in jobs.items() if id not in self.jobs or _row(self.jobs[id]) != _row(job)}
        changed |= {id for id in over if id in jobs}
        new = {id: said for id, said in answers.items() if id in changed or id not in self.answers}
        wordings = answers if now_s - self.worded_s >= REFRESH_S else None
        told = News(frozenset(changed), new, over, self.at_s, wordings, first=False)
        return Written(now_s, jobs, answers, self.worded_s if wordings is None else now_s), told


def answers_of(decision: Decision) -> dict[int, Wait | Infeasible]:
    """By job."""
    return {item.job: item for item in (*decision.infeasible, *decision.waits)}


def _differ(before: Wait | Infeasible, now: Wait | Infeasible) -> bool:
    return before.code != now.code or type(before) is not type(now)


def _row(job: Job) -> tuple[object, ...]:
    """What the ledger has of it."""
    who = (job.name, job.user, job.submit_s, job.nodes, job.each.gpus, job.time_limit_s)
    return (*who, job.state, job.start_s, job.on, job.called)
