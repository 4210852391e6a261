"""Runs of jobs: noted in the ledger, asked for when they are over, and no tick waits for the answer."""

import json
import re
import socket
import time
from dataclasses import replace

import pytest

from ironburst import cli
from ironburst.adapters.prometheus import Prometheus
from ironburst.controller import job_runs
from ironburst.controller.job_runs import JobRuns
from ironburst.document.monitoring import MonitoringDocument
from ironburst.nodes import naming
from ironburst.ports.measured import MeasuredError, QueryRefused, Sample
from tests import dcgm, prometheus
from tests.dcgm import Gpu, Load
from tests.fakes.world import World

URL = "http://prometheus:9090"


class FakeMeasured:
    """One GPU a job, seen from a moment to another ({number: (from, to)}); raises what is set."""

    def __init__(self):
        self.seen, self.asked, self.raises = {}, [], None

    def query(self, expression, at_s):
        if "hpc_job=" not in expression:  # of the nodes; they have no BMC
            return []
        number = int(re.search(r'hpc_job="(\d+)"', expression)[1])
        self.asked.append(number)
        if self.raises:
            raise self.raises
        if number not in self.seen or 'hpc_job!=""' in expression:
            return []
        from_s, to_s = self.seen[number]
        value = 0.5
        if "timestamp" in expression:
            value = from_s if "min_over_time" in expression else to_s
        elif "count_over_time" in expression:
            value = max((to_s - from_s) // 30, 1)
        return [Sample({"Hostname": "dgx01", "gpu": "0"}, value)]


class Measured(World):
    """A site whose runs are asked for; each tick first waits for what an earlier one asked."""

    waits = True

    def __init__(self, *args, **more):
        self.prometheus, self.urls = FakeMeasured(), []
        super().__init__(*args, **more)
        self.document = self.document.model_copy(update={"monitoring": MonitoringDocument(url=URL)})

    def start(self, **breaking):
        super().start(**breaking)
        self.controller.job_runs = JobRuns(lambda url: self.urls.append(url) or self.prometheus)

    def tick(self, times=1):
        for _ in range(times):
            if self.waits and (asker := self.controller.job_runs._asker):
                asker._thread.join(20)
            report = super().tick()
        return report

    def runs(self, job):
        return self.ledger.runs_of(job)


@pytest.fixture
def world(tmp_path):
    return Measured(tmp_path, home=2)


def ran(world, runs_s=600.0, **more):
    """A job that has run at home; when it began and ended."""
    job = world.slurm.submit(runs_s=runs_s, limit_s=3600.0, **more)
    world.tick()
    began = world.slurm.jobs[job].job.start_s
    world.prometheus.seen[job] = (began, began + runs_s)
    world.until(lambda: world.slurm.jobs[job].done, every_s=5.0)
    return job, began


def test_a_run_is_noted_and_asked_for_behind_its_end(world):
    job, began = ran(world)
    world.tick()
    (run,) = world.runs(job)
    assert (run.start_s, run.nodes, run.gpus, run.user) == (began, "dgx01", 8, "alice")
    assert run.end_s == pytest.approx(began + 600, abs=10) and world.prometheus.asked == []
    world.pass_by(job_runs.SETTLE_S + 30, 5.0)
    (run,) = world.runs(job)
    assert job_runs.measured(run).busy == 0.5 and run.ask_s is None and set(world.urls) == {URL}
    asked = len(world.prometheus.asked)
    world.pass_by(7200, 60.0)
    assert len(world.prometheus.asked) == asked == 16  # once, in so many queries


def test_without_a_url_nothing_is_noted_or_asked(world):
    world.document = world.document.model_copy(update={"monitoring": MonitoringDocument()})
    job, _ = ran(world)
    world.pass_by(1200, 30.0)
    assert world.runs(job) == [] and world.urls == []


def test_a_requeued_job_has_two_runs(world):
    job = world.slurm.submit(runs_s=600.0, limit_s=3600.0)
    world.pass_by(60, 5.0)
    world.slurm.requeue(job)
    world.until(lambda: world.slurm.jobs[job].done, every_s=5.0)
    world.tick()
    first, second = world.runs(job)
    assert first.start_s < first.end_s <= second.start_s < second.end_s
    assert first.end_s - first.start_s == pytest.approx(60, abs=15)


def test_an_array_task_is_asked_for_by_slurms_own_number(world, monkeypatch):
    task = naming.task_of_array(500, 3)
    observe = world.slurm.observe
    monkeypatch.setattr(world.slurm, "observe", lambda: replace(observe(), numbers={task: 507}))
    ran(world, id=task, called="500_3")
    world.pass_by(120, 5.0)
    (run,) = world.runs(task)
    assert (run.number, run.called) == (507, "500_3") and set(world.prometheus.asked) == {507}


def test_slices_are_noted_and_never_asked_for(world):
    """They have no number in DCGM's series: the figures would be those of somebody else on that GPU."""
    job, _ = ran(world, gpu_type="1g.10gb")
    world.pass_by(1200, 30.0)
    assert world.prometheus.asked == [] and world.runs(job)[0].slice and world.runs(job)[0].end_s


def test_after_a_restart_what_ran_and_what_was_to_be_asked_goes_on(world):
    running = world.slurm.submit(runs_s=900.0, limit_s=3600.0)
    over, _ = ran(world)
    world.tick()
    world.ledger.close()
    world.start()
    world.until(lambda: world.slurm.jobs[running].done, every_s=5.0)
    began = world.slurm.jobs[running].job.start_s
    world.prometheus.seen[running] = (began, began + 900)
    world.pass_by(300, 5.0)
    for job in (over, running):
        (run,) = world.runs(job)
        assert job_runs.measured(run) and run.ask_s is None
    assert world.runs(running)[0].end_s == pytest.approx(began + 900, abs=15)


# ---- a Prometheus that isn't there, or says no


def test_one_that_is_away_is_told_once_and_asked_again_until_it_is_back(world):
    world.prometheus.raises = MeasuredError("http://prometheus:9090 gives no answer: refused")
    job, _ = ran(world)
    world.pass_by(7200, 30.0)
    assert len([text for text in world.events("trouble") if "prometheus" in text]) == 1
    assert len(world.prometheus.asked) < 20  # less and less often
    world.prometheus.raises = None
    world.pass_by(1000, 30.0)
    assert job_runs.measured(world.runs(job)[0])


def test_behind_its_retention_nobody_asks_any_more(world):
    world.prometheus.raises = MeasuredError("away")
    job, _ = ran(world)
    world.pass_by(job_runs.KEPT_S + 5 * 3600, 3600.0)
    (run,) = world.runs(job)
    assert (run.ask_s, run.figures) == (None, None)
    asked = len(world.prometheus.asked)
    world.pass_by(7200, 600.0)
    assert len(world.prometheus.asked) == asked


@pytest.mark.parametrize("error", [QueryRefused("too many samples"), ZeroDivisionError("a bug of ours")])
def test_a_run_that_can_not_be_asked_for_keeps_no_other_waiting(world, error):
    real = world.prometheus.query
    bad, _ = ran(world)

    def query(expression, at_s):
        if f'"{bad}"' in expression:
            raise error
        return real(expression, at_s)

    world.prometheus.query = query
    good, _ = ran(world)
    world.pass_by(900, 10.0)
    assert job_runs.measured(world.runs(good)[0]) and not job_runs.measured(world.runs(bad)[0])
    assert any(str(error) in text for text in world.events("trouble"))
    world.pass_by(3 * 86400, 1800.0)
    assert world.runs(bad)[0].ask_s is None  # and some day that is given up


def test_samples_that_come_late_are_taken_up_and_those_that_never_come_are_not_waited_for(world):
    """A rented node that was cut off sends what it kept when it is back; one that ended at once never does."""
    late, began = ran(world)
    world.prometheus.seen[late] = (began, began + 300)
    lost, lost_began = ran(world)
    world.prometheus.seen[lost] = (lost_began, lost_began + 300)
    world.pass_by(120, 10.0)
    assert job_runs.measured(world.runs(late)[0]).to_s == pytest.approx(began + 300, abs=1)
    world.prometheus.seen[late] = (began, began + 600)
    world.pass_by(7200, 60.0)
    assert job_runs.measured(world.runs(late)[0]).to_s == pytest.approx(began + 600, abs=1)
    world.pass_by(3 * 86400, 1800.0)
    (run,) = world.runs(lost)
    assert run.ask_s is None and job_runs.measured(run).to_s == pytest.approx(lost_began + 300, abs=1)


def test_no_tick_waits_for_one_that_hangs(tmp_path):
    """It takes the connection and the question, and never answers."""
    with socket.socket() as hung:
        hung.bind(("127.0.0.1", 0))
        hung.listen(8)
        world = Measured(tmp_path, home=2)
        url = f"http://127.0.0.1:{hung.getsockname()[1]}"
        world.controller.job_runs = runs = JobRuns(lambda _: Prometheus(url, timeout_s=30))
        world.waits = False
        ran(world)
        took = []
        for _ in range(60):
            began = time.monotonic()
            world.tick()
            took.append(time.monotonic() - began)
        assert runs._asker.works and max(took) < 5  # the ticks go on while the question is open


def test_a_run_costs_its_part_of_its_nodes(world):
    world.fill_home(limit_s=3600)
    job = world.slurm.submit(limit_s=600, runs_s=300)
    world.until(lambda: world.slurm.jobs[job].done)
    world.tick()
    (run,) = world.runs(job)
    lease = next(each for each in world.ledger.leases(open_only=False) if each.node == run.nodes)
    assert run.usd == pytest.approx(lease.usd_per_hour * (run.end_s - run.start_s) / 3600)
    assert world.runs(job - 1)[0].usd is None  # what home's GPUs cost isn't declared


def test_a_run_that_no_scrape_can_have_seen_is_not_asked_for(world):
    job, _ = ran(world, runs_s=20.0)
    world.pass_by(900, 30.0)
    (run,) = world.runs(job)
    assert (run.ask_s, run.asked, world.prometheus.asked) == (None, 0, [])


def test_from_the_queue_to_what_is_printed(tmp_path, monkeypatch, capsys):
    """The whole way: Slurm's queue, a real Prometheus with the exporter's series, the ledger, `ironburst job`."""
    world = Measured(tmp_path, home=1)
    monkeypatch.setenv("IRONBURST_LEDGER", str(world.path))
    world.prometheus.raises = MeasuredError("not yet")
    job, began = ran(world, runs_s=1800.0)
    load = Load(int(began), int(began) + 1800, (job,), 0.8, 0.6, 0.3, 40_000, 500.0)
    gpus = [
        Gpu("dgx01", index, [load] if index else [replace(load, busy=0.0, sm=0.0, watts=80.0)]) for index in range(8)
    ]
    folder = tmp_path / "prometheus"
    folder.mkdir()
    with prometheus.serving(folder, dcgm.openmetrics(gpus, int(began) - 600, int(began) + 3600)) as url:
        world.controller.job_runs = JobRuns(lambda _: Prometheus(url))
        world.pass_by(300, 30.0)
    assert cli.main(["job", str(job), "--json"]) == 0
    (run,) = json.loads(capsys.readouterr().out)["runs"]
    assert (run["state"], run["figures"]["gpus"], run["figures"]["unused"], run["complete"]) == ("measured", 8, 1, True)
    assert run["figures"]["kwh"] == pytest.approx((7 * 500 + 80) * 1800 / 3.6e6, rel=0.02)
    assert run["figures"]["busy"] == pytest.approx(0.8 * 7 / 8, rel=0.02)
    assert [each["text"][:6] for each in run["advice"]] == ["1 of 8"]
