"""The demo's refused gang: what counts as refused everywhere, in time, and nothing left."""

import subprocess
from types import SimpleNamespace

import pytest

from ironburst.burst.snapshot import Node, Resources
from ironburst.controller.records import EventRow
from lab.demo import refusal
from lab.demo.refusal import Refusal
from lab.demo.summary import Summary, as_json, text

BOTH = frozenset({"us-east-1a", "us-east-1b"})


def seen(**other):
    well = {"zones": BOTH, "refused": BOTH, "looks_s": [0.03, 0.05], "submits_s": [0.06, 0.04]}
    return Refusal(**(well | other))


def test_every_place_was_refused_in_time_and_nothing_is_left():
    assert seen().good()
    assert seen().as_json() == {
        "zones": {"us-east-1a": True, "us-east-1b": True},
        "answers": 4,
        "slowest_squeue_s": 0.05,
        "slowest_sbatch_s": 0.06,
        "rented": 0,
        "left": [],
        "survived": True,
    }
    assert seen().text() == (
        "a gang of 2 in 2 of 2 zones; Slurm's slowest of 4 answers: squeue 0.05 s, sbatch 0.06 s; 0 instances"
    )


@pytest.mark.parametrize(
    "wrong",
    [
        {"zones": frozenset()},
        {"refused": frozenset({"us-east-1a"})},
        {"looks_s": [], "submits_s": []},
        {"looks_s": [0.03, 1.0]},
        {"submits_s": [10.2, 0.04]},
        {"rented": 1},
        {"left": ("node p5-0001 IDLE+CLOUD",)},
    ],
)
def test_one_thing_that_is_wrong_is_enough(wrong):
    assert not seen(**wrong).good() and not seen(**wrong).as_json()["survived"]


def test_only_a_lack_of_capacity_counts_as_refused():
    def event(kind, text):
        return EventRow(1.0, kind, "launch", "", None, text)

    lack = "(InsufficientInstanceCapacity) There is no Spot capacity"
    events = [
        event("refused", f"spot in us-east-1a: {lack}"),
        event("refused", "on-demand in us-east-1c: (VcpuLimitExceeded) too many"),
        event("requested", "2 spot in us-east-1b, attempt 2"),
    ]
    assert refusal.refused(events, ["InsufficientInstanceCapacity"]) == {"us-east-1a"}


def test_a_rentable_node_is_off_for_good_and_a_node_of_the_hall_takes_jobs():
    def node(name, *states):
        return Node(name, ("home",), Resources(8, 16, 1000), states)

    well = [
        node("dgx01", "IDLE"),
        node("dgx02", "MIXED", "COMPLETING"),
        node("p5-1", "IDLE", "CLOUD", "DRAIN", "POWERED_DOWN"),
    ]
    assert refusal.wrong(well, {"p5-1"}) == ()
    drained, going = node("dgx01", "IDLE", "DRAIN"), node("p5-1", "IDLE", "CLOUD", "DRAIN", "POWERING_DOWN")
    undrained = node("p5-2", "IDLE", "CLOUD", "POWERED_DOWN")
    assert refusal.wrong([drained, node("dgx02", "DOWN"), going, undrained], {"p5-1", "p5-2"}) == (
        "node dgx01 IDLE+DRAIN",
        "node dgx02 DOWN",
        "node p5-1 IDLE+CLOUD+DRAIN+POWERING_DOWN",
        "node p5-2 IDLE+CLOUD+POWERED_DOWN",
    )


def test_the_probe_times_both_and_takes_its_job_back(tmp_path):
    """Run by a shell with commands that wait instead of Slurm's."""
    for name, does in {
        "squeue": "sleep 0.2",
        "sbatch": "sleep 0.4; echo 17",
        "scancel": f'echo "$@" > {tmp_path}/cancelled',
    }.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{does}\n")
        (tmp_path / name).chmod(0o755)
    run = ["sh", "-c", refusal.PROBE]
    done = subprocess.run(run, env={"PATH": f"{tmp_path}:/usr/bin:/bin"}, text=True, capture_output=True, timeout=60)
    assert done.returncode == 0, done.stderr
    squeue, sbatch = (int(number) / 1e9 for number in done.stdout.split())
    assert squeue >= 0.2 and sbatch >= 0.4
    assert (tmp_path / "cancelled").read_text() == "17\n"


def test_a_script_fills_two_nodes():
    said = refusal.script("full-hall", 60)
    assert "--nodes=2 --ntasks-per-node=1 --gres=gpu:8 --time=60" in said and said.endswith("sleep 3600\n")


def test_the_summary_has_it_and_is_not_good_without():
    job = SimpleNamespace(fate="home", gpu_hours=1.0)
    told = SimpleNamespace(jobs=[job], run_twice=0, spent_usd=0.0, leases=())
    figures = {"rent_to_request_s": 0, "tick_s": 2, "joined_to_running_s": 0, "disk_peak_mb": 1, "memory_peak_mb": 1}
    good = Summary("engine", history=told, leftovers={"cloud": 0}, figures=figures, refused=seen())
    assert good.good() and as_json(good)["refused"] == seen().as_json()
    assert "refused     survived: a gang of 2 in 2 of 2 zones" in text(good, "page")
    good.refused = seen(left=("job 7",))
    assert (
        not good.good() and "refused     NOT survived: " in text(good, "page") and "LEFT: job 7" in text(good, "page")
    )
    good.refused = None
    assert not good.good() and as_json(good)["refused"] is None
