"""A stranger's first hour, as a script: the wheel, saved answers of their Slurm and its accounting, no network; from
`init` to a report on what renting would have made of their own history.
"""

import json
import os
import random
import shlex
import subprocess

import pytest

from tests.unit.initial.test_init import SITES

# Who opens a connection anywhere, fails
NO_NETWORK = """
import socket
def connect(self, address):
    if self.family != socket.AF_UNIX:
        raise OSError(f"the first hour needs no network, and this wants {address}")
    return real(self, address)
real, socket.socket.connect = socket.socket.connect, connect
"""
JOBS = 400
COMMANDS = (
    (
        "init --from-slurm answers --name site --head 10.0.0.5 --region us-east-1 --budget 20000 {flags} "
        "--output Pulumi.site.yaml"
    ),
    "lock Pulumi.site.yaml",
    "validate Pulumi.site.yaml --no-secrets",
    "fit jobs.txt --config Pulumi.site.yaml --out fitted",
    "simulate jobs.txt --config Pulumi.site.yaml --bound-seconds 3 --out simulated",
    "size jobs.txt --config Pulumi.site.yaml --owned-usd-per-gpu-hour 2.10 --out sized",
    "slurm snippet Pulumi.site.yaml --folder snippet",
)


def history(jobs=JOBS):
    """As `sacct --parsable2` prints it, of a home that is too small at times; nobody's real jobs."""
    rng, at_s = random.Random(7), 1_790_000_000
    yield "JobIDRaw|Submit|Start|End|ElapsedRaw|TimelimitRaw|AllocTRES|ReqTRES|User|Partition|Account|State"
    for number in range(jobs):
        at_s += rng.randint(900, 3600)
        waited, ran, gpus = rng.randint(0, 7200), rng.randint(3600, 40_000), rng.choice((1, 2, 4, 8, 8, 16))
        tres = f"billing=8,cpu=8,gres/gpu={gpus},mem=64G,node={max(1, gpus // 8)}"
        times = f"{at_s}|{at_s + waited}|{at_s + waited + ran}|{ran}|{ran // 60 + 60}"
        yield f"{number}|{times}|{tres}|{tres}|u{number % 5}|gpu|lab{number % 3}|COMPLETED"


# `init` of the others has quick tests of its own (tests/unit/initial/test_init.py)
QUICK = "new shapes"


@pytest.mark.parametrize(
    "site", [QUICK, *(pytest.param(site, marks=pytest.mark.slow) for site in SITES if site != QUICK)]
)
def test_the_first_hour(alone, tmp_path, site):
    make, flags = SITES[site]
    make(tmp_path / "answers")
    (tmp_path / "jobs.txt").write_text("\n".join(history()) + "\n")
    (tmp_path / "sitecustomize.py").write_text(NO_NETWORK)
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "PYTHONPATH": str(tmp_path)}
    program = "import sys, ironburst.cli; sys.exit(ironburst.cli.main())"
    said = {}
    assert len(COMMANDS) <= 10
    for line in COMMANDS:
        words = shlex.split(line.format(flags=shlex.join(flags)))
        argv = [alone, "-P", "-c", program, *words]
        done = subprocess.run(argv, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, f"{line}: {done.stdout}{done.stderr}"
        said[words[0]] = done.stdout
    assert "as recorded" in said["simulate"] and "with rent" in said["simulate"]
    found = json.loads((tmp_path / "simulated/simulation.json").read_text())
    assert found["jobs"] == JOBS and found["recorded"]["jobs"] == JOBS
    assert "Keep the defaults: " in said["fit"] or "Fitted: burst.hours_per_gpu_hour: " in said["fit"]
    for page in ("fitted/fit.html", "simulated/simulation.html", "sized/size.html"):
        assert "<svg" in (tmp_path / page).read_text()
    assert "NodeName=" in (tmp_path / "snippet/slurm.conf").read_text()


def test_who_wants_the_network_fails(alone, tmp_path):
    """The guard itself."""
    (tmp_path / "sitecustomize.py").write_text(NO_NETWORK)
    argv = [alone, "-c", "import socket; socket.create_connection(('127.0.0.1', 9))"]
    done = subprocess.run(argv, env={"PYTHONPATH": str(tmp_path)}, capture_output=True, text=True, timeout=60)
    assert "the first hour needs no network" in done.stderr
