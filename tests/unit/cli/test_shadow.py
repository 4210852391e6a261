"""`run --shadow` and `report --shadow`: a week of looking, and what it comes to."""

import json
from pathlib import Path
from random import Random

import numpy as np
import pytest

from ironburst import cli
from ironburst.burst import Job, Resources, Snapshot
from ironburst.cli import run
from ironburst.controller.ledger import Ledger
from ironburst.controller.recorder import ticks
from ironburst.document import of_stack
from ironburst.replay import seen
from ironburst.replay.formats import TraceError
from tests.fakes import FakeClock, FakeSlurm
from tests.fakes.world import World

HOURS = 16
STACK = Path(__file__).parents[3] / "stacks/Pulumi.lab-beside.yaml"


@pytest.fixture
def site(tmp_path, monkeypatch):
    """A document whose home nodes are declared, and a queue; `cloud` would be a call of AWS."""
    clock = FakeClock()
    slurm = FakeSlurm(clock)
    raw = of_stack.document(STACK).model_dump(mode="json")
    raw["scheduler"]["home_partition"] = "home"
    raw["hosts"] = [host | {"partition": "home"} for host in raw["hosts"]]
    raw["burst"]["tick_s"] = 60
    path = tmp_path / "cluster.json"
    path.write_text(json.dumps(raw))
    monkeypatch.setenv("IRONBURST_DOCUMENT", str(path))
    monkeypatch.setenv("IRONBURST_LEDGER", str(tmp_path / "ledger.sqlite"))
    monkeypatch.delenv("IRONBURST_SLURM_PREFIX", raising=False)
    monkeypatch.setattr(run.clouds.CloudConnection, "follow", None)
    monkeypatch.setattr(run, "SystemClock", lambda: clock)
    monkeypatch.setattr(cli.run.schedulers, "Slurm", lambda prefix, jobs=0: slurm)
    return type("Site", (), {"clock": clock, "slurm": slurm, "folder": tmp_path})


def watched(site, monkeypatch, hours=HOURS):
    """Run in shadow for so long, with jobs that come; [job]."""
    rng, jobs, end = Random(1), [], site.clock.now() + hours * 3600

    def wait(seconds):
        site.clock.at += 60
        if rng.random() < 0.07 and site.clock.now() < end - 4 * 3600:
            jobs.append(site.slurm.submit(limit_s=3600.0, runs_s=rng.uniform(300, 3000), account=rng.choice("ab")))
        return False

    monkeypatch.setattr(site.clock, "wait", wait)
    monkeypatch.setattr(FakeClock, "stopped", property(lambda clock: clock.now() > end), raising=False)
    assert cli.main(["run", "--shadow"]) == 0
    return jobs


def test_a_week_of_looking_becomes_a_report(site, monkeypatch, capsys):
    jobs = watched(site, monkeypatch)
    out = capsys.readouterr()
    assert "nothing is rented or changed" in out.err and "would_rent: job" in out.out
    assert not (site.folder / "ledger.sqlite").exists()
    ledger = Ledger(site.folder / "shadow" / "ledger.sqlite", read_only=True)
    assert ledger.leases(open_only=False) == [] and site.slurm.permits == set()
    assert cli.main(["report", "--shadow", "--json", "--out", str(site.folder / "out")]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["jobs"] == len(jobs) > 30 and said["left_out"] == {}
    assert said["waits"]["mean_h"] < said["recorded"]["waits"]["mean_h"] and said["usd"]["total"] > 0
    # it was played as it was: home alone is what was recorded, to a tick
    assert said["home_only"]["waits"]["mean_h"] == pytest.approx(said["recorded"]["waits"]["mean_h"], rel=0.05)
    assert sum(row["jobs"] for row in said["accounts"]) == len(jobs)
    assert sum(row["rented_jobs"] for row in said["accounts"]) == said["rented_jobs"] > 0
    assert "<svg" in (site.folder / "out" / "shadow.html").read_text()
    assert cli.main(["report", "--shadow"]) == 0
    text = capsys.readouterr().out
    assert "as recorded" in text and "account" in text and "rented for" in text


def test_explain_says_of_a_job_what_shadow_would_rent(site, monkeypatch, capsys):
    watched(site, monkeypatch, hours=8)
    ledger = site.folder / "shadow" / "ledger.sqlite"
    job = next(event.job for event in Ledger(ledger, read_only=True).events() if event.kind == "would_rent")
    capsys.readouterr()
    assert cli.main(["explain", str(job), "--ledger", str(ledger)]) == 0
    assert "1 node of p5" in capsys.readouterr().out


def test_what_was_seen_is_what_was_there(site, monkeypatch):
    jobs = watched(site, monkeypatch)
    found = seen.trace((tick.snapshot for tick in ticks(site.folder / "shadow" / "ticks")), "home")
    real = sorted((site.slurm.jobs[job] for job in jobs), key=lambda each: each.job.submit_s)
    assert np.allclose(found.submit_s, [each.job.submit_s for each in real])
    assert np.allclose(found.start_s, [each.started[0][0] for each in real])
    assert np.allclose(found.duration_s, [each.runs_s for each in real], atol=65)  # a tick, and Slurm's own look
    assert found.gpus.tolist() == [8] * len(jobs) and set(found.queue) == {"a", "b"}


def snapshot(at_s, *jobs):
    return Snapshot(at_s, jobs, (), (), ())


def job(id, on=(), gpus=8, **more):
    state = "RUNNING" if on else "PENDING"
    each = Resources(gpus, 1, 1)
    return Job(id, "", "u", state, 0.0, 1, each, 600.0, ("home",), on=on, start_s=5.0 if on else None, **more)


def test_what_did_not_run_to_its_end_is_counted():
    days = [
        snapshot(0.0, job(1), job(2), job(3), job(4, gpus=0)),
        snapshot(5.0, job(1, ("dgx01",)), job(2), job(3), job(4, ("dgx01",), gpus=0)),
        snapshot(100.0, job(3)),
    ]
    found = seen.trace(days, "home")
    assert len(found) == 1 and found.duration_s.tolist() == [95.0]
    assert found.left_out == {"cancelled while it waited": 1, "no GPU": 1, "not at its end yet": 1}
    with pytest.raises(TraceError, match=r"no job of partition home .*left out: 1 \(not at its end yet\)"):
        seen.trace(days[2:], "home")


def test_a_ledger_that_rents_is_not_shadows(site, capsys):
    world = World(site.folder)
    world.fill_home()
    world.slurm.submit(limit_s=600)
    world.tick()
    assert world.ledger.leases()
    world.ledger.close()
    path = world.path
    assert cli.main(["run", "--shadow", "--ledger", str(path)]) == 2
    assert "is the ledger of a controller that rents: give another --ledger, or none" in capsys.readouterr().err


def test_a_stack_file_is_enough(site, monkeypatch, capsys):
    """Before anything is in a cloud, there is no document."""
    monkeypatch.delenv("IRONBURST_DOCUMENT")
    end = site.clock.now() + 60
    monkeypatch.setattr(FakeClock, "stopped", property(lambda clock: clock.now() > end), raising=False)
    monkeypatch.setattr(site.clock, "wait", lambda seconds: setattr(site.clock, "at", site.clock.at + 60))
    assert cli.main(["run", "--shadow", "--config", str(STACK)]) == 0
    assert list(ticks(site.folder / "shadow" / "ticks"))
    assert cli.main(["run", "--config", str(STACK)]) == 2
    assert "--config is for --shadow" in capsys.readouterr().err


def test_no_ticks_are_a_sentence(site, capsys):
    assert cli.main(["report", "--shadow"]) == 2
    assert "there are no ticks in" in capsys.readouterr().err
