"""The demo's own pure parts: the trace slice, the step list, the history's curves and the report page."""

import io
import re
import subprocess
from html.parser import HTMLParser

import pytest

from ironburst.controller.records import EventRow
from lab.demo import boot, figures, history, report, trace
from lab.demo.history import History, JobHistory, LeaseHistory, Mark, Run
from lab.demo.steps import Steps
from lab.pulumi import binary
from lab.system import LabError


def test_the_slice_has_gangs_and_starts_at_zero():
    jobs = trace.jobs()
    assert len(jobs) == 14
    assert jobs[0].submit_s == 0 and [j.submit_s for j in jobs] == sorted(j.submit_s for j in jobs)
    assert [job.nodes for job in jobs if job.nodes > 1] == [2, 2]
    assert all(job.limit_minutes * 60 > job.run_s for job in jobs)
    assert trace.jobs(compression=900)[0].run_s == pytest.approx(jobs[0].run_s / 2)


def test_a_job_leaves_one_checked_result(tmp_path):
    """The script, run by a shell with an srun that runs in place."""
    job = trace.TraceJob(3, 0.0, 0.1, 16, "vc")
    srun = tmp_path / "srun"
    srun.write_text('#!/bin/sh\nshift\nexec "$@"\n')
    srun.chmod(0o755)
    env = {
        "PATH": f"{tmp_path}:/usr/bin:/bin",
        "SLURM_JOB_ID": "7",
        "SLURM_JOB_NODELIST": "a",
        "SLURM_NODEID": "0",
        "SLURMD_NODENAME": "a",
    }
    done = subprocess.run(["bash"], input=trace.script(job), cwd=tmp_path, env=env, text=True, capture_output=True)
    assert done.returncode == 0, done.stderr
    text, checksum = (tmp_path / "result-philly-03").read_text().splitlines()
    assert text == "job=7 name=philly-03 gpus=16 nodes=a restarts=0"
    assert trace.checksum(text) == checksum
    assert (tmp_path / "runs-philly-03").read_text() == "7\n"


def test_the_script_asks_for_whole_nodes_of_a_gang():
    text = trace.script(trace.TraceJob(1, 0.0, 49.1, 16, "vc"))
    assert "--nodes=2 --ntasks-per-node=1 --gres=gpu:8" in text
    assert "--time=1 " in text


@pytest.fixture
def past():
    home = Run(1.0, 5.0, ("dgx01",), False, "COMPLETED")
    first, second = Run(3.0, 6.0, ("p5-1",), True, "PREEMPTED"), Run(8.0, 12.0, ("p5-2",), True, "COMPLETED")
    return History(
        home_gpus=16,
        gpus_per_node=8,
        jobs=(
            JobHistory(1, "a", 8, 1, 0.0, (home,), "home"),
            JobHistory(2, "b<script>", 4, 1, 2.0, (first, second), "rented"),
        ),
        leases=(LeaseHistory("p5-1", "p5.48xlarge", "us-east-1a", "spot", 2.0, 7.0, 1.5, "interrupted"),),
        marks=(Mark(2.0, "rent", "job 2 would wait 60 s & more"),),
        run_twice=0,
        budget_usd=100,
    )


def test_curves(past):
    assert history.queue(past) == [(0.0, 1.0), (1.0, 0.0), (2.0, 1.0), (3.0, 0.0), (6.0, 1.0), (8.0, 0.0)]
    assert history.gpus_in_use(past, rented=False) == [(0.0, 0.0), (1.0, 8.0), (5.0, 0.0)]
    assert history.gpus_in_use(past, rented=True) == [(0.0, 0.0), (3.0, 4.0), (6.0, 0.0), (8.0, 4.0), (12.0, 0.0)]
    assert history.gpus_leased(past)[-1] == (7.0, 0.0)
    assert past.end == 12.0 and past.spent_usd == 1.5


def test_a_job_that_never_ran_waits_to_the_end(past):
    lost = JobHistory(3, "c", 1, 1, 4.0, (), "lost")
    assert history.queue(History(**{**past.__dict__, "jobs": (*past.jobs, lost)}))[-1] == (12.0, 0.0)


class Checker(HTMLParser):
    def __init__(self):
        super().__init__()
        self.tags, self.fetched = [], []

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.fetched += [value for key, value in attributes if key in ("src", "href") and value]


def test_the_page_is_self_contained_and_escapes(past):
    page = report.page(past, "demo")
    checker = Checker()
    checker.feed(page)
    assert checker.fetched == [] and "script" not in checker.tags
    assert checker.tags.count("svg") == 6
    assert "2.0 s: job 2 would wait 60 s &amp; more" in page
    numbers = [float(x) for x in re.findall(r'(?:x|width|cx)="([-0-9.]+)"', page)]
    assert all(0 <= number <= report.WIDTH for number in numbers)


def test_plain_lines_without_a_terminal():
    out = io.StringIO()
    steps = Steps(out)
    with steps.step("one", "First"):
        steps.say("a fact")
    with pytest.raises(ValueError, match="x"), steps.step("two", "Second"):
        raise ValueError("x")
    text = out.getvalue()
    assert "\x1b" not in text and "\r" not in text
    assert [line.strip().split("  ")[-1] for line in text.splitlines()][:2] == ["1. First", "a fact"]
    assert "failed after" in text and list(steps.seconds) == ["one", "two"]


def test_the_pulumi_cli_is_that_on_path_or_the_labs(monkeypatch):
    monkeypatch.delenv("ENGINE", raising=False)
    monkeypatch.setattr("shutil.which", lambda name: "/opt/pulumi")
    assert str(binary.path()) == "/opt/pulumi" and "on PATH" in binary.name(binary.path())
    monkeypatch.setenv("ENGINE", "built")
    assert binary.path().parent == binary.folder() and "built by the lab" in binary.name(binary.path())
    monkeypatch.setenv("ENGINE", "terraform")
    with pytest.raises(LabError, match="ENGINE='terraform' is not known"):
        binary.path()


def test_the_slowest_reaction_counts():
    def event(at, kind, launch, job=None):
        return EventRow(at, kind, launch, "", job, "")

    class Told:
        def events(self, since):
            return [
                event(100.0, "rent", "a", 7),
                event(101.5, "requested", "a"),
                event(104.0, "joined", "a"),
                event(105.0, "joined", "a"),
                event(110.0, "rent", "b", 8),
                event(110.5, "requested", "b"),
                event(111.0, "requested", "b"),
            ]

    run = Run(start=7.0, end=20.0, nodes=("p5-1", "p5-2"), rented=True, state="COMPLETED")
    told = History(
        home_gpus=16,
        gpus_per_node=8,
        jobs=(JobHistory(7, "a", 16, 2, 0.0, (run,), "rented"), JobHistory(8, "b", 4, 1, 0.0, (), "lost")),
        leases=(),
        marks=(),
        run_twice=0,
        budget_usd=1.0,
    )
    said = figures.reaction(Told(), told, began=100.0, tick_s=2)
    assert said == {"tick_s": 2, "rent_to_request_s": 1.5, "joined_to_running_s": 2.0}


def test_the_critical_path_of_a_boot():
    chain = """The time when unit became active or started is printed after the "@" character.
The time the unit took to start is printed after the "+" character.

slurmd.service +212ms
└─ironburst-gate.service @1min 1.501s +2.304s
  └─ironburst-join.service @903ms +598ms
    └─network-online.target @890ms
      └─systemd-networkd-wait-online.service @300ms +50ms
"""
    expected = (("ironburst-join.service", 0.6), ("ironburst-gate.service", 2.3), ("slurmd.service", 0.21))
    assert boot.path_of(chain) == expected
    assert boot.seconds_of("1min 2.500s") == 62.5 and boot.path_of("") == ()
