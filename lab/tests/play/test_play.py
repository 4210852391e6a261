"""Playing on a kept lab, without one: what is refused, what is listed, prices, and GPUs that fall off and come back."""

import contextlib
import json
import os
import re
import subprocess
import sys

import pytest

from lab import __main__ as program
from lab import names
from lab.demo import kept
from lab.demo.burst import Head
from lab.demo.frame import Stage, play
from lab.demo.history import History, JobHistory, Run
from lab.demo.summary import Summary
from lab.hosts import hardware
from lab.hosts.box import Box
from lab.play import faults, jobs, state
from lab.play.kept_lab import BadInput
from lab.system import CHECKOUT, LabError


def test_a_job_asks_for_what_was_wanted():
    script = jobs.Wanted("hostname", nodes=2, gpus=4, limit_s=90, name="one").script()
    assert "--job-name=one --nodes=2 --ntasks-per-node=1 --gres=gpu:4\n" in script
    assert "--time=2 --requeue" in script and script.endswith("\nhostname\n")
    assert "gres" not in jobs.Wanted(gpus=0).script()


@pytest.mark.parametrize(
    "wanted", [jobs.Wanted(nodes=0), jobs.Wanted(gpus=9), jobs.Wanted(name="a b"), jobs.Wanted(name="x; rm -rf")]
)
def test_what_no_job_can_have_is_refused(wanted):
    with pytest.raises(BadInput, match="--"):
        wanted.script()


def test_times():
    assert [jobs.seconds(text) for text in ("90s", "20m", "1h")] == [90, 1200, 3600]
    with pytest.raises(BadInput, match="write 90s, 20m or 1h"):
        jobs.seconds("5")


class Slurm:
    """The head's answers about a job and an array, as Slurm 24.11.5 gives them: tasks that wait aren't in sacct yet."""

    def __init__(self, states):
        self.states = states  # {as Slurm calls it: state}
        self.head = Head(self)

    head_prefix = list

    def run(self, argv):
        return "".join(map(self.answer, argv[0].split("; ")))

    def answer(self, line):
        given = re.search(r"-j (\S+)|--name=(many)", line)
        asked = {"31"} if given and given[2] else set(given[1].split(",")) if given else set()
        rows = {job: state for job, state in self.states.items() if not given or {job, job.partition("_")[0]} & asked}
        if "-t running" in line:
            return "".join(f"{job} dgx01\n" for job, state in rows.items() if state == "RUNNING")
        gone = "COMPLETED" if line.startswith("squeue") else "PENDING"
        said = {"%i ": "{}", "'%i %T'": "{} {}", "JobID ": "{}", "JobID,State ": "{}|{}"}
        (form,) = (form for fields, form in said.items() if f"-o {fields}" in line + " ")
        return "".join(form.format(job, state) + "\n" for job, state in rows.items() if state != gone)

    @contextlib.contextmanager
    def ledger(self):
        yield type("Ledger", (), {"events": lambda *_: []})


@pytest.mark.parametrize(
    ("asked", "until", "states", "said"),
    [
        ("30", "done", ["COMPLETED"] * 4, "job 30 COMPLETED"),
        (
            "31",
            "running",
            ["RUNNING", "COMPLETED", "RUNNING", "PENDING"],
            "3 tasks of job 31 1 COMPLETED, 1 RUNNING, 1 PENDING on dgx01",
        ),
        ("many", "done", ["RUNNING", "COMPLETED", "COMPLETED", "COMPLETED"], "3 tasks of job 31 3 COMPLETED"),
        ("31_1", "running", ["RUNNING", "COMPLETED", "RUNNING", "PENDING"], "job 31_1 RUNNING on dgx01"),
    ],
)
def test_an_array_is_waited_for(asked, until, states, said):
    lab = Slurm(dict(zip(("30", "31_0", "31_1", "31_2"), states, strict=True)))
    assert jobs.wait(lab, asked, until, 0, print) == said


def test_an_array_that_is_over_will_not_run_any_more():
    lab = Slurm(dict.fromkeys(("31_0", "31_1"), "COMPLETED"))
    with pytest.raises(LabError, match=r"2 tasks of job 31 are over \(2 COMPLETED\)"):
        jobs.wait(lab, "31", "running", 0, print)
    with pytest.raises(BadInput, match="Slurm knows no job '7'"):
        jobs.wait(lab, "7", "running", 0, print)


def test_a_gpu_falls_off_the_bus_and_comes_back(tmp_path):
    of = hardware.HGX_H100
    hardware.write(tmp_path, of, "dgx01", names.serial_of("dgx01"), names.uuid_of("dgx01"), "10.78.0.11")
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    fell = hardware.remove_gpu(tmp_path, 3)
    assert hardware.gpus_of(of) - hardware.gpus_on_the_bus(tmp_path) == {fell}
    hardware.repair_gpus(tmp_path, of)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before
    hardware.set_link(tmp_path, "mlx5_2", up=False)
    assert hardware.links_down(tmp_path) == ["mlx5_2"]
    hardware.set_link(tmp_path, "mlx5_2", up=True)
    assert hardware.links_down(tmp_path) == []


class Up(Box):
    """A box that is up, as far as it says."""

    def is_up(self):
        return True


def test_a_second_demo_is_refused_and_says_why(tmp_path):
    kept.refuse_second(Box("second", tmp_path))
    box = Up("second", tmp_path)
    with pytest.raises(LabError, match=r"is up already.*make clean-lab LAB_PREFIX=second"):
        kept.refuse_second(box)
    assert not kept.is_kept(box)
    (box.dir / "run").mkdir(parents=True)
    (box.dir / "run" / kept.MARK).write_text(json.dumps({"engine": "an engine"}))
    assert kept.is_kept(box) and kept.engine_of(box) == "an engine"
    with pytest.raises(LabError, match="is kept from an earlier demo"):
        kept.refuse_second(box)


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["submit", "--prefix", "t-nobody", "--gpus", "9"], 2, "0 to 8 GPUs"),
        (["submit", "--prefix", "t-nobody", "--", "sleep", "1"], 1, "is not up: `make demo KEEP=1`"),
        (["shell", "--prefix", "t-nobody", "head"], 1, "is not up"),
        (["fault", "--prefix", "t-nobody", "throttle"], 1, "is not up"),
        (["fault", "--clear", "throttle"], 2, "takes no kind"),
        (["price", "--prefix", "Bad Name", "x", "1"], 1, "use a lower-case letter"),
    ],
)
def test_one_sentence_for_what_cannot_be(words, code, said, capsys):
    assert program.main(words) == code
    error = capsys.readouterr().err
    assert said in error and len(error.splitlines()) == 1


def test_faults_are_listed_with_what_they_do(capsys):
    assert program.main(["fault"]) == 0
    listed = capsys.readouterr().out
    assert all(f"  {kind} " in listed and of.does in listed for kind, of in faults.KINDS.items())


def test_the_status_of_no_lab(capsys):
    assert program.main(["status", "t-nobody", "--json"]) == 3
    assert json.loads(capsys.readouterr().out)["up"] is False
    assert program.main(["status", "t-nobody"]) == 3
    assert "make demo KEEP=1" in capsys.readouterr().out


def test_the_status_names_rented_nodes_prices_and_faults():
    instance = {
        "node": "p5-1",
        "instance_id": "i-1",
        "instance_type": "p5.48xlarge",
        "market": "spot",
        "zone": "us-east-1b",
        "state": "running",
        "address": "10.90.0.7",
    }
    said = {
        "prefix": "lab",
        "up_s": 3725,
        "engine": "e",
        "document_serial": 2,
        "controller": "active",
        "hosts": [{"name": "head", "state": "on", "address": "10.78.0.10", "kind": "bare_metal"}],
        "instances": [instance],
        "prices": [{"pool": "p5", "instance_type": "p5.48xlarge", "market": "spot", "usd": 26.4}],
        "faults": ["throttle: RunInstances, met 3 times"],
        "log": "l",
    }
    text = "\n".join(state.lines(said))
    assert "up for 1 h 2 min; controller active, document serial 2" in text
    assert "p5.48xlarge spot us-east-1b i-1" in text and "p5.48xlarge spot: $26.4" in text and "met 3 times" in text


def ironburst(*words, **env):
    return subprocess.run(
        [sys.executable, "-m", "ironburst.cli", "lab", *words],
        text=True,
        capture_output=True,
        env=os.environ | {"PYTHONPATH": str(CHECKOUT)} | env,
    )


def test_the_products_verb_is_the_labs_program():
    assert "usage: ironburst lab" in ironburst("--help").stdout
    refused = ironburst("submit", "--name", "a b", "--", "sleep", "1")
    assert refused.returncode == 2 and refused.stderr.startswith("lab: --name 'a b'")


def test_a_wheel_has_no_lab(tmp_path, monkeypatch, capsys):
    from ironburst import cli
    from ironburst.cli import lab

    monkeypatch.setattr(lab, "CHECKOUT", tmp_path)
    assert cli.main(["lab", "status"]) == 2
    error = capsys.readouterr().err
    assert "it comes with a checkout of ironburst" in error and len(error.splitlines()) == 1


def story(fate):
    """A whole story of one job, as a demo tells it."""

    def tell(_steps, result):
        result.figures = {"tick_s": 2.0, "rent_to_request_s": 1.0, "joined_to_running_s": 1.0}
        result.faults = {"one": {"injected": "i", "met": 1, "survived": True}}
        run = Run(1.0, 5.0, ("dgx01",), False, "COMPLETED")
        return History(16, 8, (JobHistory(1, "a", 8, 1, 0.0, (run,), fate),), (), (), 0, 100.0)

    return tell


def stopped(_steps, _result):
    raise KeyboardInterrupt


def failed(_steps, _result):
    raise LabError("a step")


@pytest.mark.parametrize(
    ("keep", "tell", "code", "ends"),
    [
        (True, story("home"), 0, 0),
        (True, story("lost"), 1, 0),
        (True, stopped, 130, 1),
        (True, failed, 1, 1),
        (False, story("home"), 1, 1),  # nobody looked what is left
    ],
)
def test_a_lab_is_kept_only_if_its_story_came_to_the_end(tmp_path, keep, tell, code, ends):
    ended = []
    stage = Stage(Box("t-frame", tmp_path), lambda: ended.append(True), [], "title", keep)
    assert play(stage, Summary(engine="e", kept=keep), tell) == code
    assert len(ended) == ends
    told = tmp_path / "t-frame" / "report" / "summary.json"
    assert not told.exists() or json.loads(told.read_text())["kept"] is keep
