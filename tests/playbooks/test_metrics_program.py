"""The figures of Slurm and the controller: what is counted, what isn't understood, and what can't be asked."""

import json
import os
import subprocess
import sys

import pytest
from programs import PLAYBOOKS, load

metrics = load("roles/metrics/files/ironburst-metrics.py")
NODES = "home|dgx01|idle\nhome|dgx02|mixed+drain\nburst-p5|p5-1|idle~\nburst-p5|p5-2|idle~\n"
JOBS = """\
home|RUNNING|None
home|PENDING|Resources
home|PENDING|Resources
burst-p5|PENDING|ReqNodeNotAvail, UnavailableNodes:p5-1
"""
STATUS = {
    "leases": [{"state": "running", "market": "spot", "instance_type": "p5.48xlarge"}] * 2,
    "money": {"spent_usd": 12.5, "committed_usd": 3.0, "usd_per_month": 2000.0},
    "closed": [],
    "serial": 7,
    "last_tick": {"at_s": 1700000000.5},
    "queue": [{"state": "PENDING", "code": "wait"}, {"state": "PENDING", "code": ""}, {"state": "RUNNING", "code": ""}],
}


def values(lines):
    return dict(line.rsplit(" ", 1) for line in lines if not line.startswith("#"))


def test_slurm_is_counted():
    samples = values(metrics.slurm(NODES, JOBS))
    assert samples['slurm_nodes{partition="home",state="idle"}'] == "1"
    assert samples['slurm_nodes{partition="burst-p5",state="idle"}'] == "2"
    assert samples['slurm_nodes_drained{partition="home"}'] == "1"
    assert samples['slurm_jobs{partition="home",state="pending"}'] == "2"
    assert samples['slurm_jobs_pending{reason="ReqNodeNotAvail"}'] == "1"


@pytest.mark.parametrize(
    ("nodes", "jobs"),
    [("home|dgx01", JOBS), ("home|dgx01|purple", JOBS), (NODES, "home"), ("slurm_load_partitions: error", "")],
)
def test_what_is_not_understood_is_no_figure(nodes, jobs):
    with pytest.raises(ValueError):
        metrics.slurm(nodes, jobs)


def test_the_controller_is_counted():
    samples = values(metrics.controller(STATUS))
    assert samples['ironburst_leases{instance_type="p5.48xlarge",market="spot",state="running"}'] == "2"
    assert (samples["ironburst_usd_spent"], samples["ironburst_usd_budget"], samples["ironburst_document_serial"]) == (
        "12.5",
        "2000.0",
        "7",
    )
    assert (samples['ironburst_pending_jobs{code="wait"}'], samples['ironburst_pending_jobs{code="undecided"}']) == (
        "1",
        "1",
    )
    assert samples["ironburst_last_tick_seconds"] == "1700000000.5"
    with pytest.raises(KeyError):
        metrics.controller({key: value for key, value in STATUS.items() if key != "money"})


def test_labels_are_escaped():
    assert metrics.line("a", 1, b='x"y\\z\n') == 'a{b="x\\"y\\\\z\\n"} 1'


def run(tmp_path, *command):
    program = PLAYBOOKS / "roles/metrics/files/ironburst-metrics.py"
    argv = [sys.executable, str(program), "--folder", str(tmp_path / "out"), *command]
    done = subprocess.run(
        argv, env=os.environ | {"PATH": str(tmp_path / "bin")}, capture_output=True, text=True, timeout=30
    )
    return done, values((tmp_path / "out/ironburst.prom").read_text().splitlines())


@pytest.fixture
def folders(tmp_path):
    for name in ("bin", "out"):
        (tmp_path / name).mkdir()
    return tmp_path


def tool(folder, name, text, status=0):
    path = folder / "bin" / name
    path.write_text(f"#!/bin/sh\n/bin/cat <<'X'\n{text}X\nexit {status}\n")
    path.chmod(0o755)


def test_a_source_that_does_not_answer_is_said(folders):
    done, samples = run(folders)
    assert done.returncode == 1 and "metrics: slurm:" in done.stderr
    assert samples['ironburst_up{source="slurm"}'] == "0" and not any(name.startswith("slurm_") for name in samples)


def test_one_source_does_not_hide_the_other(folders):
    tool(folders, "sinfo", NODES)
    tool(folders, "squeue", JOBS)
    tool(folders, "ironburst", "oops\n", 2)
    done, samples = run(folders, "--", "ironburst", "status", "--json")
    assert done.returncode == 1
    assert (samples['ironburst_up{source="slurm"}'], samples['ironburst_up{source="controller"}']) == ("1", "0")
    tool(folders, "ironburst", json.dumps(STATUS) + "\n")
    done, samples = run(folders, "--", "ironburst", "status", "--json")
    assert done.returncode == 0 and samples['ironburst_up{source="controller"}'] == "1"
    assert "ironburst_usd_spent" in samples
