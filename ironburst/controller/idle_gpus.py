"""GPUs of running jobs that do nothing: the job's owner is told, then its account (an alert), and it ends only where
that is declared. Asked of Prometheus every ten minutes by a thread of its own: no tick waits.

`step` is all of the decision. What isn't known ends nothing and lifts nothing.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from enum import Enum

from ironburst.burst import Job, explain
from ironburst.controller import idle_evidence
from ironburst.controller.idle_evidence import Evidence
from ironburst.controller.ledger import Ledger
from ironburst.controller.records import RunRow
from ironburst.controller.site import Site
from ironburst.document.monitoring import IdleDocument
from ironburst.nodes import naming
from ironburst.ports import Observation, SchedulerError
from ironburst.ports.measured import Measured, MeasuredError

EVERY_S = 600.0
STALE_S = 180.0
"""an answer that came so late is asked for again"""
AT_ONCE = 25
"""jobs whose owners are told in one tick: each is a command on the head"""
_KEY = "idle_gpus"


class Step(Enum):
    """What is done about a job."""

    NOTHING = "nothing"
    FORGET = "forget"  # its GPUs work again
    UNWARN = "unwarn"  # one does, or its end isn't declared any more
    OWNER = "owner"
    TEAM = "team"
    WARN = "warn"  # the owner, of its end
    END = "end"


@dataclass(frozen=True)
class IdleRun:
    """Of one run: who was told when, seconds since 1970, and of how many GPUs."""

    job: int
    start_s: float
    user: str
    account: str
    gpus: int
    idle: int = 0
    owner_s: float | None = None
    team_s: float | None = None
    warned_s: float | None = None


def step(rule: IdleDocument, seen: Evidence, told: IdleRun, *, may_end: bool, now_s: float) -> Step:
    """The one decision. `may_end`: such jobs end here, as declared."""
    known = rule.after_s in seen.idle
    if known and not seen.idle[rule.after_s]:
        return Step.FORGET if told.owner_s is not None or told.warned_s is not None else Step.NOTHING
    near_s = rule.end_after_s - rule.grace_s
    dead = {span_s: seen.all_idle(span_s) and span_s in seen.low for span_s in (near_s, rule.end_after_s)}
    if told.warned_s is not None and (not may_end or (near_s in seen.idle and not dead[near_s])):
        return Step.UNWARN
    if not known:
        return Step.NOTHING
    if may_end and dead[near_s]:
        if told.warned_s is None:
            return Step.WARN
        if dead[rule.end_after_s] and now_s - told.warned_s >= rule.grace_s:
            return Step.END
    if told.owner_s is None:
        return Step.OWNER
    if told.team_s is None and seen.idle.get(rule.team_s):
        return Step.TEAM
    return Step.NOTHING


class IdleGpus:
    """One for a ticking controller. `connect`: the way to a Prometheus, by its URL; None: nobody is asked."""

    def __init__(self, connect: Callable[[str], Measured] | None = None):
        self._connect = connect
        self._asker: _Asker | None = None
        self._due_s = 0.0

    def look(self, site: Site, observation: Observation) -> None:
        """Once a tick; without `monitoring.idle` in the document nobody looks."""
        rule, url, now_s = site.document.monitoring.idle, site.document.monitoring.url, site.now
        if rule is None or not url or self._connect is None:
            return
        _forget_ended(site.ledger, observation)
        if self._asker and not self._asker.works:
            asker, self._asker = self._asker, None
            if asker.wrong:
                site.tell("trouble", f"which GPUs do nothing isn't known: {asker.wrong}")
            elif now_s - asker.asked_s <= STALE_S:
                told, every = 0, {(each.job, each.start_s): each for each in read(site.ledger)}
                for run in asker.runs:
                    told += _act(site, observation, rule, run, asker.found[run.number], every)
                    if told >= AT_ONCE or site.late:
                        self._due_s = now_s  # the others are asked for again, by the next tick
                        break
        if self._asker is None and now_s >= self._due_s:
            least_s = rule.after_s + idle_evidence.SLOT_S
            runs = [run for run in site.ledger.open_runs() if not run.slice and now_s - run.start_s >= least_s]
            self._due_s = now_s + EVERY_S
            if runs:
                self._asker = _Asker(self._connect(url), runs, rule, now_s)


class _Asker:
    """In a thread of its own."""

    def __init__(self, measured: Measured, runs: Sequence[RunRow], rule: IdleDocument, now_s: float):
        self.runs, self.asked_s = tuple(runs), now_s
        self.found: dict[int, Evidence] = {}
        self.wrong = ""
        self._thread = threading.Thread(target=self._ask, args=(measured, rule), name="idle GPUs", daemon=True)
        self._thread.start()

    @property
    def works(self) -> bool:
        """It isn't done yet."""
        return self._thread.is_alive()

    def _ask(self, measured: Measured, rule: IdleDocument) -> None:
        try:
            self.found = idle_evidence.gather(measured, self.runs, rule, self.asked_s)
        except MeasuredError as error:
            self.wrong = str(error)
        except Exception as error:  # a bug; in this thread nobody else would tell it
            self.wrong = f"{type(error).__name__}: {error}"


def _act(
    site: Site,
    observation: Observation,
    rule: IdleDocument,
    run: RunRow,
    seen: Evidence,
    every: dict[tuple[int, float], IdleRun],
) -> bool:
    """What is so now: only a run that still goes on. Whether the scheduler was asked for something. `every`: those of
    which somebody was told, as the ledger has them.
    """
    job = observation.job(run.job)
    if job is None or job.state != "RUNNING" or job.start_s != run.start_s or observation.unseen_job(run.job):
        return False
    key = (run.job, run.start_s)
    told = every.get(key) or IdleRun(run.job, run.start_s, run.user, run.account, run.gpus)
    what = step(rule, seen, told, may_end=_may_end(site, rule, job), now_s=site.now)
    if what in (Step.OWNER, Step.WARN, Step.END):
        try:
            site.scheduler.notify(job.id, _words(what, rule, job, seen))
        except SchedulerError as error:
            site.tell("trouble", f"the owner of {_called(job)} can't be told that its GPUs do nothing: {error}")
            if what is not Step.OWNER:  # nothing ends untold
                return True
    if what is Step.END:
        try:
            site.scheduler.end_job(job.id)
        except SchedulerError as error:
            site.tell("trouble", f"{_called(job)}, whose GPUs do nothing, can't be ended: {error}")
            return True
    if what is Step.FORGET:
        every.pop(key, None)
    elif what is not Step.NOTHING or key in every:
        every[key] = _after(what, told, seen.idle.get(rule.after_s, told.idle), site.now)
    else:
        return False
    _write(site.ledger, every.values())
    if what in _EVENTS:
        site.event("idle", _EVENTS[what].format(_sentence(job, seen)), job=job.id)
    return what in (Step.OWNER, Step.WARN, Step.END)


def _after(what: Step, told: IdleRun, idle: int, now_s: float) -> IdleRun:
    told = replace(told, idle=idle)
    if what is Step.OWNER:
        return replace(told, owner_s=now_s)
    if what is Step.TEAM:
        return replace(told, team_s=now_s)
    if what is Step.WARN:
        return replace(told, owner_s=told.owner_s or now_s, warned_s=now_s)
    return replace(told, warned_s=None) if what is Step.UNWARN else told


_EVENTS: Mapping[Step, str] = {
    Step.OWNER: "{}: its owner is told",
    Step.TEAM: "{}: its account is told (alert JobIdle)",
    Step.WARN: "{}: its owner is told that it is going to end",
    Step.END: "{}: it is ended, as monitoring.idle declares",
}


def _may_end(site: Site, rule: IdleDocument, job: Job) -> bool:
    if rule.end == "rented":
        return set(job.on) <= {lease.node for lease in site.ledger.leases()}
    return rule.end == "all"


def _called(job: Job) -> str:
    return f"job {job.called or naming.called(job.id)}"


def _longest(seen: Evidence) -> int:
    """For how long some GPU did nothing."""
    return max((span_s for span_s, count in seen.idle.items() if count), default=0)


def _sentence(job: Job, seen: Evidence) -> str:
    longest = _longest(seen)
    count = f"{seen.idle.get(longest, 0)} of {explain.plural(seen.gpus, 'GPU')}"
    return f"{_called(job)} of {job.user}: {count} have done nothing for {explain.duration(longest)}"


def _words(what: Step, rule: IdleDocument, job: Job, seen: Evidence) -> str:
    """For the owner, in the job's output."""
    said = f"ironburst: {_sentence(job, seen)}."
    if what is Step.OWNER:
        return f"{said} Does the program use all of them (nvidia-smi)? If not, end it (scancel) and ask for fewer."
    if what is Step.WARN:
        return f"{said} The job is ended in {explain.duration(rule.grace_s)}, unless one of them works before."
    return f"{said} The job is ended now, as this site declares."


# ---- in the ledger


def read(ledger: Ledger) -> list[IdleRun]:
    """Runs of which somebody was told, as long as they go on."""
    return [IdleRun(**each) for each in json.loads(ledger.noted(_KEY) or "[]")]


def _write(ledger: Ledger, told: Collection[IdleRun]) -> None:
    text = json.dumps([asdict(each) for each in told])
    if text != (ledger.noted(_KEY) or "[]"):
        ledger.note(_KEY, text)


def _forget_ended(ledger: Ledger, observation: Observation) -> None:
    on = {(job.id, job.start_s) for job in observation.jobs}
    told = read(ledger)
    _write(ledger, [each for each in told if (each.job, each.start_s) in on or observation.unseen_job(each.job)])


def forget(ledger: Ledger, ids: Collection[int]) -> None:
    """These ids are other jobs' now."""
    _write(ledger, [each for each in read(ledger) if each.job not in ids])


def idle(ledger: Ledger) -> Iterator[tuple[int, str]]:
    """(job, words) for whoever looks at the queue."""
    for each in read(ledger):
        if each.idle:
            yield each.job, f"{each.idle} of {explain.plural(each.gpus, 'GPU')} idle"
