"""GPUs of running jobs that do nothing: every combination of what may be known, and what a site sees of it."""

import itertools
from dataclasses import replace

import pytest

from ironburst.controller import idle_evidence, idle_gpus
from ironburst.controller.idle_evidence import Evidence
from ironburst.controller.idle_gpus import IdleGpus, IdleRun, Step, step
from ironburst.controller.metrics import Metrics
from ironburst.document.monitoring import IdleDocument, MonitoringDocument
from ironburst.ports.measured import MeasuredError
from tests.unit.controller.test_job_runs import URL, Measured
from tests.unit.controller.test_metrics import samples

RULE = IdleDocument(after_s=3600, team_s=7200, end="rented", end_after_s=14400, grace_s=1800, watts=120)
AFTER, TEAM, NEAR, END = 3600, 7200, 12600, 14400
GPUS, NOW = 8, 1_795_000_000.0
NOBODY = IdleRun(7, NOW - 20_000, "alice", "vision", GPUS)
LONG_AGO, JUST_NOW = NOW - RULE.grace_s, NOW - RULE.grace_s + 1

COUNTS = (None, 0, 3, GPUS)  # GPUs that did nothing; None: a gap, old samples, a shared GPU, no figures at all
COMBINATIONS = [
    (
        Evidence(
            GPUS, {span: n for span, n in zip((AFTER, TEAM, NEAR, END), counts, strict=True) if n is not None}, low
        ),
        replace(NOBODY, owner_s=owner, team_s=team, warned_s=warned),
        may_end,
    )
    for counts in itertools.product(COUNTS, repeat=4)
    for low in map(frozenset, ((), (NEAR,), (END,), (AFTER, TEAM, NEAR, END)))
    for owner, team, warned in itertools.product((None, LONG_AGO), (None, LONG_AGO), (None, LONG_AGO, JUST_NOW))
    for may_end in (False, True)
]


def expected(seen, told, may_end):
    """The table in words: what must hold for each step, the first that does."""
    after, team, near, end = (seen.idle.get(span) for span in (AFTER, TEAM, NEAR, END))
    dead_near, dead_end = (n == GPUS and span in seen.low for n, span in ((near, NEAR), (end, END)))
    rows = (
        (after == 0 and (told.owner_s or told.warned_s), Step.FORGET),
        (after == 0, Step.NOTHING),
        (told.warned_s and not may_end, Step.UNWARN),
        (told.warned_s and near is not None and not dead_near, Step.UNWARN),
        (after is None, Step.NOTHING),
        (may_end and dead_near and not told.warned_s, Step.WARN),
        (may_end and dead_near and dead_end and told.warned_s == LONG_AGO, Step.END),
        (not told.owner_s, Step.OWNER),
        (team and not told.team_s, Step.TEAM),
        (True, Step.NOTHING),
    )
    return next(what for holds, what in rows if holds)


def test_every_combination():
    seen = set()
    for evidence, told, may_end in COMBINATIONS:
        what = step(RULE, evidence, told, may_end=may_end, now_s=NOW)
        assert what is expected(evidence, told, may_end), (evidence, told, may_end)
        seen.add(what)
    assert seen == set(Step) and len(COMBINATIONS) == 4**4 * 4 * 12 * 2


def test_nothing_ends_on_less_than_everything():
    """Said once more without the table: missing figures, one GPU at work, power or CPUs, no warning, no declaration."""
    ends = [
        (evidence, told, may_end)
        for evidence, told, may_end in COMBINATIONS
        if step(RULE, evidence, told, may_end=may_end, now_s=NOW) is Step.END
    ]
    assert ends
    for evidence, told, may_end in ends:
        assert may_end and told.warned_s is not None and NOW - told.warned_s >= RULE.grace_s
        assert evidence.idle[NEAR] == evidence.idle[END] == GPUS and {NEAR, END} <= evidence.low
        assert evidence.idle.get(AFTER), "and that is so now"


# ---- a site


class Idle(Measured):
    """A site in which `found` is known of each running job ({job: Evidence}); `raises` instead."""

    rule = RULE

    def __init__(self, *args, **more):
        self.found, self.wrong, self.late_s = {}, None, 0.0
        super().__init__(*args, **more)
        self.declare(self.rule)

    def declare(self, rule):
        declared = MonitoringDocument(url=URL, idle=rule)
        self.document = self.document.model_copy(update={"monitoring": declared})

    def start(self, **breaking):
        super().start(**breaking)
        self.controller.idle_gpus = IdleGpus(lambda url: self.prometheus)

    def gather(self, measured, runs, rule, now_s):
        if self.wrong:
            raise self.wrong
        self.clock.at += self.late_s
        return {run.number: self.found.get(run.job, Evidence(run.gpus, {})) for run in runs}

    def tick(self, times=1):
        for _ in range(times):
            if asker := self.controller.idle_gpus._asker:
                asker._thread.join(20)
            report = super().tick()
        return report


@pytest.fixture
def world(tmp_path, monkeypatch):
    world = Idle(tmp_path, home=1)
    monkeypatch.setattr(idle_evidence, "gather", world.gather)
    return world


def idle_for(span, low=True, gpus=GPUS):
    spans = [each for each in (AFTER, TEAM, NEAR, END) if each <= span]
    return Evidence(gpus, dict.fromkeys(spans, gpus), frozenset(spans if low else ()))


def running(world, **more):
    """At home, since an hour and some; then one on a rented node."""
    home = world.slurm.submit(limit_s=86400.0, runs_s=80000.0, account="vision", **more)
    world.tick()
    rented = world.slurm.submit(limit_s=30000.0, runs_s=29000.0, account="nlp", **more)
    world.until(lambda: world.slurm.jobs[rented].job.on, limit_s=7200)
    world.pass_by(AFTER + 600, 60.0)
    assert world.slurm.notices == [] and world.events("idle") == []
    return home, rented


def looks(world, times=1):
    world.pass_by(times * idle_gpus.EVERY_S + 30, 30.0)


def test_the_owner_is_told_once_in_the_jobs_output_and_beside_it_in_the_queue(world):
    home, _ = running(world)
    world.found[home] = idle_for(AFTER)
    looks(world, 4)
    ((job, text),) = world.slurm.notices
    assert job == home and "8 of 8 GPUs have done nothing for 1 h" in text and "scancel" in text
    assert world.slurm.comments[home] == "ironburst: on dgx01; 8 of 8 GPUs idle"
    assert len(world.events("idle")) == 1 and not world.slurm.jobs[home].done
    world.found[home] = Evidence(GPUS, {AFTER: 0, TEAM: 0})
    looks(world)
    assert world.slurm.comments[home] == "ironburst: on dgx01" and idle_gpus.read(world.ledger) == []
    world.found[home] = Evidence(GPUS, {AFTER: 2})
    looks(world)
    assert "2 of 8 GPUs" in world.slurm.notices[-1][1] and len(world.slurm.notices) == 2


def test_then_its_account_by_the_alerts_metric(world):
    home, _ = running(world)
    metrics = Metrics(world.ledger)

    def said():
        metrics.ended(world.document, world.tick())
        return {name: value for name, value in samples(metrics.text).items() if "job_idle" in name}

    world.found[home] = idle_for(TEAM)
    looks(world)
    assert said() == {}
    looks(world)
    assert said() == {f'ironburst_job_idle_gpus{{hpc_job="{home}",user="alice",account="vision"}}': 8}
    world.slurm.cancel(home)
    looks(world)
    assert said() == {}


def test_only_what_is_declared_ends_after_a_warning_and_its_grace(world):
    home, rented = running(world)
    world.found |= {home: idle_for(END), rented: idle_for(END)}
    looks(world, 4)
    warned = [text for job, text in world.slurm.notices if job == rented]
    assert "ended in 30 min" in warned[0] and world.slurm.jobs[rented].done == "CANCELLED"
    at_s = [event.at_s for event in world.ledger.events() if event.kind == "idle" and event.job == rented]
    assert at_s[-1] - at_s[0] >= RULE.grace_s
    assert not world.slurm.jobs[home].done and not any(
        "ended" in text for job, text in world.slurm.notices if job == home
    )


def test_all_may_be_declared(world):
    world.declare(RULE.model_copy(update={"end": "all"}))
    home, rented = running(world)
    world.found |= {home: idle_for(END), rented: idle_for(END)}
    looks(world, 5)
    assert {world.slurm.jobs[job].done for job in (home, rented)} == {"CANCELLED"}


@pytest.mark.parametrize(
    "found",
    [
        Evidence(GPUS, {}),
        idle_for(END, low=False),
        Evidence(GPUS, {AFTER: 8, TEAM: 8, NEAR: 7, END: 7}),
        idle_for(NEAR),
    ],
    ids=["nothing known", "power or CPUs", "one works", "not so long"],
)
def test_what_is_less_ends_nothing(world, found):
    _, rented = running(world)
    world.found[rented] = found
    looks(world, 12)
    assert not world.slurm.jobs[rented].done


def test_a_prometheus_that_is_away_or_late_ends_nothing(world):
    _, rented = running(world)
    world.found[rented] = idle_for(END)
    looks(world)  # it is warned
    world.wrong = MeasuredError("http://prometheus:9090 gives no answer: refused")
    looks(world, 6)
    assert not world.slurm.jobs[rented].done
    assert len([text for text in world.events("trouble") if "do nothing isn't known" in text]) >= 1
    world.wrong, world.late_s = None, idle_gpus.STALE_S + 1
    looks(world, 3)
    assert not world.slurm.jobs[rented].done


def test_work_after_the_warning_takes_it_back(world):
    _, rented = running(world)
    world.found[rented] = idle_for(END)
    looks(world)
    assert idle_gpus.read(world.ledger)[0].warned_s
    world.found[rented] = Evidence(GPUS, {AFTER: 3, TEAM: 3, NEAR: 3, END: 3}, frozenset({NEAR, END}))
    looks(world, 5)
    assert not world.slurm.jobs[rented].done and not idle_gpus.read(world.ledger)[0].warned_s
    world.found[rented] = idle_for(END)
    looks(world)
    assert not world.slurm.jobs[rented].done, "a warning of before doesn't count"
    looks(world, 4)
    assert world.slurm.jobs[rented].done


def test_who_can_not_be_told_is_not_ended(world, monkeypatch):
    _, rented = running(world)
    world.found[rented] = idle_for(END)

    def notify(job, text):
        raise idle_gpus.SchedulerError("Invalid job id specified")

    monkeypatch.setattr(world.slurm, "notify", notify)
    looks(world, 8)
    assert not world.slurm.jobs[rented].done and any("can't be told" in text for text in world.events("trouble"))


def test_many_at_once_take_several_ticks(world, monkeypatch):
    monkeypatch.setattr(idle_gpus, "AT_ONCE", 1)
    home, rented = running(world)
    world.found |= {home: idle_for(AFTER), rented: idle_for(AFTER)}
    looks(world)
    assert {job for job, _ in world.slurm.notices} == {home, rented} and len(world.slurm.notices) == 2


def test_a_restart_forgets_nothing(world):
    _, rented = running(world)
    world.found[rented] = idle_for(END)
    looks(world)
    warned = len(world.slurm.notices)
    world.ledger.close()
    world.start()
    looks(world, 4)
    assert world.slurm.jobs[rented].done == "CANCELLED" and len(world.slurm.notices) == warned + 1


def test_undeclared_nobody_looks(world):
    world.declare(None)
    home, rented = running(world)
    world.found |= {home: idle_for(END), rented: idle_for(END)}
    looks(world, 4)
    assert world.slurm.notices == [] and world.controller.idle_gpus._asker is None
