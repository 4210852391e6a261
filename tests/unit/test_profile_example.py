"""examples/slurm/profile.sh and profiled.py: the wish of a job becomes a profiler around its program, for one range of
steps. Stand-ins for the profilers print how they were called.
"""

import os
import runpy
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples/slurm"


@pytest.fixture
def job(tmp_path):
    """Runs profile.sh in a job that asked so; what the program prints and its exit status."""
    (tmp_path / "bin").mkdir()
    for name in ("nsys", "ncu", "dcgmi"):
        loop = "\nexec sleep 60" if name == "dcgmi" else ""
        (tmp_path / "bin" / name).write_text(f'#!/bin/sh\necho {name} "$@"{loop}\n')
        (tmp_path / "bin" / name).chmod(0o755)
    run_folder = tmp_path / "run"
    (run_folder / "profiling").mkdir(parents=True)
    (run_folder / "gpu-jobs").mkdir()
    text = (EXAMPLES / "profile.sh").read_text().replace("/run/ironburst", str(run_folder))
    (tmp_path / "profile.sh").write_text(text)

    def run(kind, *program, procid="0", localid="0", **environment):
        if kind:
            (run_folder / "profiling/4711").write_text(f"{kind}\n")
        given = {"SLURM_JOB_ID": "4711", "SLURM_PROCID": procid, "SLURM_LOCALID": localid, "SLURMD_NODENAME": "dgx01"}
        path = {"PATH": f"{tmp_path}/bin:{os.environ['PATH']}"}
        done = subprocess.run(
            ["bash", "profile.sh", *(program or ("echo", "the", "program"))],
            cwd=tmp_path,
            env=given | path | environment,
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.stderr == ""
        return done.stdout.strip(), done.returncode

    run.folder = tmp_path
    return run


def test_without_a_wish_the_program_runs_as_it_is(job):
    assert job("") == ("the program", 0)
    assert job("", "sh", "-c", "exit 5") == ("", 5)
    assert not (job.folder / "profile-4711").exists()


def test_nsys_is_told_when_to_begin_by_the_program(job):
    said, code = job("nsys", "python", "train.py", procid="3")
    assert said.startswith("nsys profile") and said.endswith("--output profile-4711/nsys-rank3 python train.py")
    assert "--capture-range=cudaProfilerApi --capture-range-end=stop" in said and code == 0
    assert (job.folder / "profile-4711").is_dir()


def test_ncu_takes_one_rank(job):
    assert job("ncu", procid="0", PROFILE_TO="out")[0].endswith("--export out/ncu-rank0 echo the program")
    assert job("ncu", procid="1") == ("the program", 0)


def test_dcgm_watches_the_gpus_of_the_job_once_a_node_and_ends_with_it(job):
    for index, owner in enumerate(("4711", "12", "4711")):
        (job.folder / "run/gpu-jobs" / str(index)).write_text(f"{owner}\n")
    wait = f"until grep -qs dmon {job.folder}/profile-4711/dcgm-dgx01.txt; do sleep 0.05; done; echo ran; exit 3"
    assert job("dcgm", "sh", "-c", wait) == ("ran", 3)
    written = (job.folder / "profile-4711/dcgm-dgx01.txt").read_text()
    assert written == "dcgmi dmon -e 1001,1002,1004,1005,1009,1010,1011,1012 -d 100 -i 0,2\n"
    assert job("dcgm", localid="1") == ("the program", 0)


def test_a_site_without_ironburst_names_it_itself(job):
    assert job("", PROFILE="nsys")[0].startswith("nsys profile")


class Torch:
    """What is called of torch, in its order."""

    def __init__(self):
        self.calls = []
        its = ("start", "stop", "export_chrome_trace")
        call = {name: lambda *given, name=name: self.calls.append((name, *given)) for name in its}
        self.cuda = SimpleNamespace(is_available=lambda: False, profiler=SimpleNamespace(**call))
        self.profiler = SimpleNamespace(profile=lambda **options: SimpleNamespace(**call))


@pytest.fixture
def torch(monkeypatch):
    fake = Torch()
    monkeypatch.setitem(sys.modules, "torch", fake)
    return fake


def steps(monkeypatch, tmp_path, kind, steps, until=6):
    for name, value in (("PROFILE", kind), ("PROFILE_STEPS", steps), ("PROFILE_TO", str(tmp_path / "to"))):
        monkeypatch.setenv(name, value)
    profiled = runpy.run_path(str(EXAMPLES / "profiled.py"))["Profiled"](1)
    for number in range(1, until + 1):
        profiled.step(number)
        sys.modules["torch"].calls.append(number)
    profiled.end()
    return sys.modules["torch"].calls


@pytest.mark.parametrize(
    ("wished", "calls"),
    [
        ("2-3", [1, ("start",), 2, 3, ("stop",), 4, 5, 6]),
        ("5", [1, 2, 3, 4, ("start",), 5, ("stop",), 6]),
        ("6-9", [1, 2, 3, 4, 5, ("start",), 6, ("stop",)]),
        ("7-9", [1, 2, 3, 4, 5, 6]),
    ],
)
def test_one_range_of_steps(monkeypatch, tmp_path, torch, wished, calls):
    assert steps(monkeypatch, tmp_path, "nsys", wished) == calls


def test_torchs_trace_is_written_once_a_rank(monkeypatch, tmp_path, torch):
    calls = steps(monkeypatch, tmp_path, "torch", "2-3")
    assert calls == [
        1,
        ("start",),
        2,
        3,
        ("stop",),
        ("export_chrome_trace", f"{tmp_path}/to/torch-rank1.json"),
        4,
        5,
        6,
    ]


@pytest.mark.parametrize("kind", ["", "dcgm"])
def test_others_need_nothing_of_the_program(monkeypatch, tmp_path, torch, kind):
    assert steps(monkeypatch, tmp_path, kind, "2-3") == [1, 2, 3, 4, 5, 6]
