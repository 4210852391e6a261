"""Recorded ticks decided again: by the verb `replay` and by the pure part under it."""

import html
import json
import xml.etree.ElementTree as ET
from dataclasses import replace
from types import SimpleNamespace

import pytest

from ironburst import cli
from ironburst.burst import Budget, Job, Lease, Node, Policy, Pool, Resources, Snapshot, decide
from ironburst.controller.ledger import Ledger
from ironburst.controller.recorder import Recorder
from ironburst.controller.tick import Controller
from ironburst.replay import ticks
from tests.fakes import FakeClock, FakeCloud, FakeSlurm, document

NOW, HOUR = 1_795_262_400.0, 3600.0  # 2026-11-21 12:00:00Z
PATIENT, HASTY = Policy("home", 4 * HOUR), Policy("home", HOUR)
NODE = Resources(8, 96, 1_000_000)
OFF = ("CLOUD", "DRAIN", "IDLE", "POWERED_DOWN")
STACK = "stacks/Pulumi.prod.yaml"


def job(number, state="PENDING", submit_h=0.0, hours=2.0, **more):
    return Job(number, "train", "a", state, NOW + submit_h * HOUR, 1, Resources(8), hours * HOUR, ("home",), **more)


def running(number, ends_h, start_h=-1.0):
    return job(number, "RUNNING", start_h, on=("dgx01",), start_s=NOW + start_h * HOUR, end_s=NOW + ends_h * HOUR)


def shot(at_h, *jobs, leases=()):
    nodes = (Node("dgx01", ("home",), NODE, ("ALLOCATED",)), Node("p5-1", ("burst-p5",), NODE, OFF))
    pool = Pool(
        "p5",
        "burst-p5",
        nodes=("p5-1",),
        instance_type="p5.48xlarge",
        each=NODE,
        gpu_type="h100",
        markets=("on-demand",),
        usd_per_hour={"on-demand": 50.0},
        zones=("a",),
        boot_s=600.0,
        idle_s=600.0,
        max_run_s=9e5,
    )
    return Snapshot(NOW + at_h * HOUR, jobs, nodes, (pool,), leases, budget=Budget(1e6, 0.0, 0.0, NOW + 1e6))


def recorded(*snapshots, policy=PATIENT):
    return [
        SimpleNamespace(at_s=each.now_s, snapshot=each, decision=decide(each, policy), policy=policy)
        for each in snapshots
    ]


def test_the_same_policy_finds_no_difference():
    comparison = ticks.compare(
        recorded(shot(0, running(1, 3), job(2)), shot(3, job(2, "RUNNING", on=("dgx01",), start_s=NOW + 3 * HOUR)))
    )
    assert (comparison.ticks, comparison.differ, comparison.first, comparison.jobs) == (2, 0, None, ())
    assert comparison.recorded.usd == comparison.replayed.usd == 0 and comparison.hours == ticks.Hours()


def test_a_candidate_that_rents_what_the_record_let_wait_says_what_it_costs_and_saves():
    # job 2 starts at home after 3 h; the candidate rents for it at once, and a node boots in 10 minutes
    history = recorded(
        shot(0, running(1, 3), job(2)), shot(1, running(1, 3), job(2)), shot(3, replace(running(2, 5, 3), submit_s=NOW))
    )
    comparison = ticks.compare(history, HASTY)
    assert comparison.first.job == 2 and comparison.first.at_s == NOW and not comparison.first.between
    assert (comparison.first.recorded.kind, str(comparison.first.replayed)) == (ticks.WAIT, "rent 1 x p5 on-demand")
    assert comparison.replayed.rents == 1 and comparison.recorded.rents == 0  # once, though both ticks say so
    assert comparison.replayed.usd == pytest.approx(50 * (600 + 2 * HOUR + 600) / HOUR) and comparison.recorded.usd == 0
    assert comparison.hours.saved_h == pytest.approx(3 - 600 / HOUR) and comparison.hours.unknown == 0


def test_a_candidate_that_waits_where_the_record_rented_saves_money_and_nobody_knows_the_wait():
    lease = Lease("l1", "a", "p5-1", "p5", "a", "on-demand", "coming", (2,), 50.0, NOW + 9 * HOUR)
    comparison = ticks.compare(
        recorded(shot(0, running(1, 3), job(2)), shot(0.1, running(1, 3), job(2), leases=(lease,)), policy=HASTY),
        PATIENT,
    )
    assert comparison.recorded.rents == 1 and comparison.replayed.rents == 0 and comparison.hours.unknown == 1
    assert comparison.recorded.usd > 0 == comparison.replayed.usd and [one.job for one in comparison.jobs] == [2]


def test_between_two_ticks_it_looks_when_it_asked_to():
    # home is down, so nothing is predicted: job 2 waits for 4 h by the record, for half an hour by the candidate
    down = replace(
        shot(0, job(2)), nodes=(Node("dgx01", ("home",), NODE, ("DOWN",)), Node("p5-1", ("burst-p5",), NODE, OFF))
    )
    comparison = ticks.compare(recorded(down, replace(down, now_s=NOW + 50 * 60)), replace(HASTY, wait_limit_s=1790.0))
    assert comparison.first.between and comparison.first.at_s == NOW + 1791.0 and comparison.looks >= 1
    later = ticks.compare(recorded(down, replace(down, now_s=NOW + 5 * HOUR)), replace(HASTY, wait_limit_s=1.5 * HOUR))
    assert later.looks == 0 and later.first is None  # an hour after a tick it stops looking; after 5 h both rent


def test_ticks_of_a_clock_that_went_back_are_replayed_and_counted():
    comparison = ticks.compare(recorded(shot(1, job(2)), shot(0, job(2)), shot(2, job(2))))
    assert (comparison.ticks, comparison.clock_back, comparison.from_s, comparison.to_s) == (3, 1, NOW, NOW + 2 * HOUR)


# ---- the verb


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Ticks of a controller: one job fills home, one is rented for, one can't be."""
    clock = FakeClock()
    slurm = FakeSlurm(clock)
    cloud, ledger = FakeCloud(clock, slurm), Ledger(tmp_path / "ledger.sqlite")
    slurm.submit(nodes=2, limit_s=7200, runs_s=7200)
    slurm.submit(limit_s=600, runs_s=300)
    slurm.submit(limit_s=None)
    controller = Controller(slurm, cloud, ledger, clock, Recorder(tmp_path / "ticks"))
    for _ in range(12):
        controller.tick(document())
        clock.at += 2
    ledger.close()
    monkeypatch.setenv("IRONBURST_LEDGER", str(tmp_path / "ledger.sqlite"))
    return tmp_path / "ticks"


def test_replay_of_the_controllers_own_ticks_says_that_nothing_changed(folder, capsys):
    assert cli.main(["replay", str(folder), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["ticks"] >= 3 and said["ticks_that_differ"] == 0 and said["first_difference"] is None
    assert said["recorded"] == said["replayed"] and said["recorded"]["launched_for"] == 1
    assert said["recorded"]["committed_usd"] > 0
    assert said["mb_a_day"] > 0
    assert cli.main(["replay"]) == 0  # of the ledger's folder
    out = capsys.readouterr().out
    assert "MB a day" in out and "nothing would have been decided otherwise" in out


def test_replay_by_a_candidates_policy_tells_the_first_difference(folder, capsys):
    # it lets jobs wait for 4 h instead of a minute
    assert cli.main(["replay", str(folder), "--config", STACK, "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    first = said["first_difference"]
    assert first["job"] == 2 and first["recorded"]["kind"] == "rent" and first["replayed"]["kind"] == "wait"
    assert said["committed_usd_difference"] == pytest.approx(-said["recorded"]["committed_usd"])
    assert said["hours"]["unknown"] == 1
    assert cli.main(["replay", str(folder), "--config", STACK]) == 0
    out = capsys.readouterr().out
    assert "job 2: rent 1 x p5 spot ($" in out and "committed usd" in out


def test_replay_writes_a_page_as_simulate_does(folder, tmp_path, capsys):
    out = tmp_path / "out"
    assert cli.main(["replay", str(folder), "--config", STACK, "--out", str(out)]) == 0
    printed = capsys.readouterr().out.splitlines()
    page, svg = ((out / f"replay.{kind}").read_text() for kind in ("html", "svg"))
    ET.fromstring(svg)
    assert svg in page and "● recorded" in svg and "● replayed" in svg and "src=" not in page
    assert all(html.escape(line) in page for line in printed)
    said = json.loads((out / "replay.json").read_text())
    assert said["committed_usd_difference"] < 0 and "job 2: rent 1 x p5 spot" in page
    (folder.parent / "file").write_text("")
    assert cli.main(["replay", str(folder), "--out", str(folder.parent / "file")]) == 2
    assert "can't be written" in capsys.readouterr().err


def test_a_damaged_file_is_told_and_the_others_are_replayed(folder, capsys):
    (path,) = folder.iterdir()
    bad = folder / "ticks-20990101T000000Z-000.jsonl.gz"
    bad.write_bytes(path.read_bytes()[:-20])
    assert cli.main(["replay", str(folder), "--json"]) == 2
    out = capsys.readouterr()
    assert json.loads(out.out)["ticks"] > 3 and f"{bad} is damaged" in out.err and out.err.count("\n") == 1
    path.unlink()
    bad.write_bytes(b"not a tick")
    assert cli.main(["replay", str(folder)]) == 2
    out = capsys.readouterr()
    assert out.out == "no tick could be read\n" and "none of its ticks can be read" in out.err
    bad.write_bytes(b"")
    assert cli.main(["replay", str(folder)]) == 2
    assert capsys.readouterr().err.startswith(f"ironburst: there is no tick in {folder} yet: ")


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        (["replay", "{tmp}/nowhere"], "there are no ticks in "),
        (
            ["replay", "{tmp}/ticks", "--config", "{tmp}/no.yaml"],
            "can't be read: No such file or directory; give the path of a stack file",
        ),
        (["replay", "{tmp}/ticks", "--config", "README.md"], "README.md"),
    ],
)
def test_bad_input_of_replay_is_one_sentence(folder, capsys, argv, says):
    assert cli.main([each.format(tmp=folder.parent) for each in argv]) == 2
    err = capsys.readouterr().err
    assert says in err and err.startswith("ironburst: ") and err.count("\n") == 1
