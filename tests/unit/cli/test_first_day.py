"""What a new user meets at the controller's verbs: tasks of arrays, a dry run beside a controller, a silent one."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ironburst import cli
from ironburst.burst import Job, Resources
from ironburst.cli import reap, run, status, tick
from ironburst.controller import copies, lock
from ironburst.controller.ledger import Ledger
from ironburst.controller.tick import Controller
from ironburst.nodes import naming
from ironburst.ports import LaunchRequest
from tests.fakes import FakeClock, FakeCloud, FakeSlurm, connect_to, document


@pytest.fixture
def site(tmp_path, monkeypatch):
    """A document, a ledger path, and the verbs wired to in-memory ports."""
    clock = FakeClock()
    slurm = FakeSlurm(clock)
    cloud = FakeCloud(clock, slurm)
    path = tmp_path / "cluster.json"
    path.write_text(document().model_dump_json())
    monkeypatch.setenv("IRONBURST_DOCUMENT", str(path))
    monkeypatch.setenv("IRONBURST_LEDGER", str(tmp_path / "ledger.sqlite"))
    monkeypatch.delenv("IRONBURST_SLURM_PREFIX", raising=False)
    connect_to(cloud, monkeypatch)
    for module in (tick, run, reap):
        monkeypatch.setattr(module, "SystemClock", lambda: clock)
    monkeypatch.setattr(status.schedulers, "Slurm", lambda prefix, jobs=0: slurm)
    monkeypatch.setattr(f"{status.__name__}.time.time", clock.now)
    return type("Site", (), {"clock": clock, "slurm": slurm, "cloud": cloud, "ledger": tmp_path / "ledger.sqlite"})


@pytest.fixture
def array(site):
    """Tasks 1 to 3 of array 8, 83 (a job of its own), and 90 and 91, the parts of a heterogeneous job."""
    called = {naming.task_of_array(8, task): f"8_{task}" for task in (1, 2, 3)} | {83: "", 90: "90+0", 91: "90+1"}
    each = ("ann", "PENDING", 0.0, 1, Resources(8), 600.0, ("home",))
    jobs = [Job(id, f"job{id}", *each, called=name) for id, name in called.items()]
    ledger = Ledger(site.ledger)
    ledger.saw_jobs(jobs, 1.0)
    ledger.close()


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ("8_1", ["8_1"]),
        ("8_2", ["8_2"]),
        ("8_3", ["8_3"]),
        ("8", ["8_1", "8_2", "8_3"]),
        ("83", ["83"]),
        ("90+1", ["90+1"]),
        ("90", ["90+0", "90+1"]),
        ("8_[1-3]", ["8_1", "8_2", "8_3"]),
    ],
)
def test_explain_takes_slurms_numbers_of_tasks_and_parts(array, capsys, asked, told):
    assert cli.main(["explain", asked]) == 0
    said = capsys.readouterr().out
    assert [line.split(" ")[1] for line in said.splitlines() if line.startswith("job ")] == told


def test_explain_of_what_home_or_nobody_has_room_for_and_of_a_burst_partition(site, capsys):
    site.slurm.submit(nodes=2, limit_s=7200, runs_s=7200)
    beyond_home, beyond_all = (site.slurm.submit(nodes=nodes, limit_s=600) for nodes in (3, 50))
    direct = site.slurm.submit(limit_s=600, partitions=("burst-p5",))
    ledger = Ledger(site.ledger)
    Controller(site.slurm, site.cloud, ledger, site.clock).tick(document())
    ledger.close()
    for job, words in (
        (beyond_home, "it can never start at home: it needs 3 nodes of 8 GPUs, home has 2"),
        (
            beyond_all,
            "home has 2; but it needs 50 nodes together, pool p5 has max_nodes 3",
        ),
        (direct, "it was submitted to burst-p5, where only the controller sends jobs: submit it to home"),
    ):
        assert cli.main(["explain", str(job)]) == 0
        assert words in capsys.readouterr().out


def test_explain_gives_all_tasks_as_json(array, capsys):
    assert cli.main(["explain", "8", "--json"]) == 0
    assert [job["called"] for job in json.loads(capsys.readouterr().out)["jobs"]] == ["8_1", "8_2", "8_3"]


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ("8_9", "job 8_9 was never seen by the controller of this ledger; of job 8 it saw 8_1, 8_2, 8_3"),
        ("8_", "'8_' is no job's number: write N, a task of an array as N_M, or a part of a heterogeneous job as N+M"),
        ("8_1_2", "is no job's number"),
        ("8_1,8_2", "is no job's number"),
        ("83+1", "job 83+1 was never seen by the controller of this ledger; nor any part of 83"),
        ("8.1", "no job '8.1' was seen"),
        ("\u0668", "no job '\u0668' was seen"),
    ],
)
def test_explain_refuses_what_is_no_number(array, capsys, asked, words):
    assert cli.main(["explain", asked]) == 2
    assert words in capsys.readouterr().err


def test_a_dry_run_of_reap_beside_a_controller_tells_and_writes_nothing(site, capsys):
    site.cloud.launch(
        LaunchRequest("ib-x", "lost", "lab", "p5", "us-east-1a", "spot", 1, {}, "ami-1", '{"nodes": ["p5-3"]}')
    )
    Ledger(site.ledger).close()
    before = site.ledger.read_bytes()
    with lock.held(site.ledger):
        assert cli.main(["reap", "--grace", "0", "--dry-run"]) == 0
        assert "i-1 would be ended" in capsys.readouterr().out
        assert cli.main(["reap", "--grace", "0"]) == 4  # that one acts
    assert len(site.cloud.alive()) == 1 and site.ledger.read_bytes() == before


def test_a_dry_run_of_reap_beside_a_process_that_writes_the_ledger(site, capsys):
    Ledger(site.ledger).close()
    code = (
        f"import sys; sys.path.insert(0, {str(Path.cwd())!r})\n"
        "from ironburst.controller import lock\nfrom ironburst.controller.ledger import Ledger\n"
        f"with lock.held({str(site.ledger)!r}):\n"
        f"    ledger = Ledger({str(site.ledger)!r})\n"
        "    with ledger.transaction():\n"
        "        ledger.event('x', 'y', 1.0); print('held', flush=True); sys.stdin.read()\n"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"held\n"
        assert cli.main(["reap", "--grace", "0", "--dry-run"]) == 0
        assert cli.main(["reap", "--grace", "0"]) == 4
        assert f"process {process.pid} " in capsys.readouterr().err
        process.stdin.close()
    assert process.returncode == 0 and cli.main(["reap", "--grace", "0"]) == 0


def test_status_says_that_the_controller_is_silent(site, capsys):
    ledger = Ledger(site.ledger)
    Controller(site.slurm, site.cloud, ledger, site.clock).tick(document())
    ledger.close()
    assert cli.main(["status"]) == 0 and capsys.readouterr().err == ""
    site.clock.at += 3600
    assert cli.main(["status"]) == 5
    said = capsys.readouterr()
    assert "the controller has not ticked for 1 h" in said.err and "has not ticked for 1 h" in said.out
    assert cli.main(["status", "--json"]) == 5
    assert json.loads(capsys.readouterr().out)["late_s"] == pytest.approx(3600, abs=1)


@pytest.mark.parametrize(
    ("age_s", "said", "first"),
    [
        (9 * 3600, "the ledger was copied on head2 9 h ago", False),
        (3 * 86400, "the ledger was copied on head2 3 d ago: look at `systemctl status ironburst-backup` there", True),
        (None, "there is no copy of the ledger on head2: `systemctl start ironburst-backup` makes one", True),
    ],
)
def test_status_says_how_old_the_newest_copy_is(site, tmp_path, capsys, monkeypatch, age_s, said, first):
    monkeypatch.setattr(copies.socket, "gethostname", lambda: "head2")
    (folder := tmp_path / "copies").mkdir()
    if age_s is not None:
        (copy := folder / "ledger-20261128T020000Z.sqlite").touch()
        os.utime(copy, (site.clock.at - age_s,) * 2)
    ledger = Ledger(site.ledger)
    Controller(site.slurm, site.cloud, ledger, site.clock, backup=folder).tick(document())
    ledger.close()
    assert cli.main(["status"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert said in lines and (said == lines[1]) == first


def test_a_user_who_may_not_read_the_ledger_is_told_what_slurm_shows(site, array, monkeypatch, capsys):
    """As root everybody may read everything, so the refusal is the test's."""

    def refuses(path):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("ironburst.controller.ledger.Path.exists", refuses)
    monkeypatch.setattr("ironburst.cli.explain.explain_own.one", lambda asked, as_json: print("Slurm's", asked) or 0)
    assert cli.main(["explain", "83"]) == 0
    assert capsys.readouterr().out == "Slurm's 83\n"
    assert cli.main(["status"]) == 2
    assert "is for the controller's group alone" in capsys.readouterr().err
