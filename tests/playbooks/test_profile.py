"""DCGM gives the counters to a job that profiles, and has them back whatever happens.

Sources: a prolog's SLURM_JOB_COMMENT is the credential's comment (Slurm's src/slurmd/slurmd, prep environment). `dcgmi
profile --pause` and `--resume` are of the whole host engine; GPUs from Hopper on give profiling metrics by NVML's GPM,
without the exclusive counters (DCGM's API reference, Profiling). Of a user's notes: with Nsight Compute "a driver
resource was unavailable. Ensure that no other tool (like DCGM) is concurrently collecting profiling data"; pausing the
host engine doesn't free what an exporter with an engine of its own holds; a resume right after a profiler failed once
with "The third-party Profiling module returned an unrecoverable error", and worked some seconds later.
"""

import os
import subprocess
import sys

import pytest
from programs import PLAYBOOKS, load

profile = load("roles/metrics/files/ironburst-profile.py")
DCGMI = """#!/bin/sh
# refuses a state that it has already, as nobody needs it to; as often as there are lines in `fails`
echo "$*" >> {folder}/dcgmi
if [ -s {folder}/fails ]; then
  sed -i 1d {folder}/fails
  echo "Error: unable to resume profiling metrics: The third-party Profiling module returned an unrecoverable error."
  exit 247
fi
echo "Successfully ${{2#--}}d profiling."
"""
SCONTROL = """#!/bin/sh
[ -e {folder}/running/$2 ] && {{ echo "PID JOBID STEPID LOCALID GLOBALID"; echo "11 $2 batch 0 0"; exit 0; }}
[ -e {folder}/silent ] && {{ echo "scontrol: error: Unable to contact slurmd"; exit 1; }}
echo "scontrol: error: Job $2 does not exist on this node."; exit 1
"""


class Node:
    def __init__(self, folder, monkeypatch):
        self.folder, self.profiling = folder, folder / "profiling"
        (folder / "bin").mkdir()
        (folder / "running").mkdir()
        for name, text in (("dcgmi", DCGMI), ("scontrol", SCONTROL)):
            self.tool(name, text.format(folder=folder))
        self.gpus("8.0", "8.0")
        monkeypatch.setenv("PATH", f"{folder}/bin:/usr/bin:/bin")
        monkeypatch.setattr(profile, "PAUSE", 0)

    def tool(self, name, text):
        (self.folder / "bin" / name).write_text(text)
        (self.folder / "bin" / name).chmod(0o755)

    def gpus(self, *capabilities):
        said = "".join(f"echo {each}\n" for each in capabilities)
        self.tool("nvidia-smi", f'#!/bin/sh\n[ "$1" = --query-gpu=compute_cap ] || exit 2\n{said}')

    def start(self, job, comment=""):
        (self.folder / "running" / str(job)).touch()
        environment = {"SLURM_JOB_ID": str(job)} | ({"SLURM_JOB_COMMENT": comment} if comment else {})
        profile.main("start", environment, str(self.profiling))

    def stop(self, job):
        (self.folder / "running" / str(job)).unlink(missing_ok=True)
        profile.main("stop", {"SLURM_JOB_ID": str(job)}, str(self.profiling))

    def asked(self):
        """What dcgmi was told so far."""
        path = self.folder / "dcgmi"
        return path.read_text().split("\n")[:-1] if path.exists() else []

    def old(self, job):
        """Its prolog was long ago."""
        os.utime(self.profiling / str(job), (1, 1))


@pytest.fixture
def node(tmp_path, monkeypatch):
    return Node(tmp_path, monkeypatch)


PAUSE, RESUME = "profile --pause", "profile --resume"


@pytest.mark.parametrize("comment", ["profile=nsys", "profile=ncu", "paper 7, profile=nsys", "a profile=ncu;b"])
def test_the_counters_are_the_jobs_while_it_runs(node, comment):
    node.start(7, comment)
    assert node.asked() == [PAUSE]
    assert (node.profiling / "7").read_text().strip() in comment
    assert (node.profiling / "7").stat().st_mode & 0o777 == 0o644
    node.stop(7)
    assert node.asked() == [PAUSE, RESUME] and profile.jobs(str(node.profiling)) == []


@pytest.mark.parametrize(
    "comment", ["", "profile=", "profile=vtune", "myprofile=nsys", "profile=nsysx", "nsys", "data=c4,profile=nsys"]
)
def test_others_leave_no_trace(node, comment):
    node.start(7, comment)
    node.stop(7)
    assert node.asked() == [] and not node.profiling.exists()


@pytest.mark.parametrize("kind", ["torch", "dcgm"])
def test_what_needs_no_counters_pauses_nothing(node, kind):
    node.start(7, f"profile={kind}")
    assert node.asked() == [] and (node.profiling / "7").read_text() == f"{kind}\n"
    node.stop(7)
    assert node.asked() == []


@pytest.mark.parametrize(
    ("capabilities", "paused"),
    [
        (("9.0", "9.0"), False),
        (("10.0",), False),
        (("8.0",), True),
        (("9.0", "8.9"), True),
        ((), True),
        (("[N/A]",), True),
    ],
)
def test_from_hopper_on_nothing_is_paused_and_in_doubt_it_is(node, capabilities, paused):
    node.gpus(*capabilities)
    node.start(7, "profile=nsys")
    node.stop(7)
    assert node.asked() == ([PAUSE, RESUME] if paused else [])


def test_the_last_of_several_gives_them_back(node):
    """The host engine is paused for the whole node."""
    node.start(7, "profile=nsys")
    node.start(8, "profile=ncu")
    node.stop(7)
    assert node.asked() == [PAUSE]
    node.start(9)
    node.stop(9)
    assert node.asked() == [PAUSE]
    node.stop(8)
    assert node.asked() == [PAUSE, RESUME]


def test_a_job_whose_epilog_never_came_is_found_by_the_next(node):
    node.start(7, "profile=nsys")
    (node.folder / "running/7").unlink()
    node.start(8)  # young: it may have no process yet
    assert node.asked() == [PAUSE]
    node.old(7)
    node.start(9)
    assert node.asked() == [PAUSE, RESUME]


@pytest.mark.parametrize("alive", ["running", "silent"])
def test_a_job_that_may_still_be_there_keeps_them(node, alive):
    node.start(7, "profile=nsys")
    node.old(7)
    if alive == "silent":
        (node.folder / "running/7").unlink()
        (node.folder / "silent").touch()
    node.start(8)
    assert node.asked() == [PAUSE]


def test_a_resume_that_fails_is_tried_again_now_and_later(node, capsys):
    node.start(7, "profile=nsys")
    (node.folder / "fails").write_text("1\n2\n")
    node.stop(7)
    assert node.asked() == [PAUSE, RESUME, RESUME, RESUME] and not (node.profiling / profile.PAUSED).exists()
    node.start(8, "profile=nsys")
    (node.folder / "fails").write_text("1\n2\n3\n")
    node.stop(8)
    assert "unrecoverable error" in capsys.readouterr().err and (node.profiling / profile.PAUSED).exists()
    node.start(9)
    assert node.asked()[-1] == RESUME and not (node.profiling / profile.PAUSED).exists()


def test_a_program_that_ended_between_is_made_good_by_the_next(node, monkeypatch):
    """Killed right behind the pause: the mark was there before."""
    monkeypatch.setattr(profile, "dcgm", lambda word: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        node.start(7, "profile=nsys")
    monkeypatch.undo()
    monkeypatch.setenv("PATH", f"{node.folder}/bin:/usr/bin:/bin")
    node.stop(7)
    assert node.asked() == [RESUME]


def test_whatever_happens_no_job_fails(node):
    program = PLAYBOOKS / "roles/metrics/files/ironburst-profile.py"
    for name in ("dcgmi", "nvidia-smi", "scontrol"):
        (node.folder / "bin" / name).unlink()
    node.profiling.write_text("a file where the folder should be")
    text = program.read_text().replace("/run/ironburst/profiling", str(node.profiling))
    environment = {"SLURM_JOB_ID": "7", "SLURM_JOB_COMMENT": "profile=nsys", "PATH": f"{node.folder}/bin"}
    done = subprocess.run([sys.executable, "-c", text, "start"], env=environment, capture_output=True, text=True)
    assert done.returncode == 0 and "ironburst-profile:" in done.stderr
    node.profiling.unlink()
    done = subprocess.run([sys.executable, "-c", text, "start"], env=environment, capture_output=True, text=True)
    assert done.returncode == 0 and (node.profiling / "7").exists()


@pytest.mark.parametrize(("name", "word"), [("ironburst-prolog", "start"), ("ironburst-epilog", "stop")])
def test_slurms_programs_call_it(tmp_path, name, word):
    text = (PLAYBOOKS / "roles/node_health/files" / name).read_text()
    text = text.replace("/usr/local/sbin/", f"{tmp_path}/").replace("/run/ironburst", str(tmp_path))
    (tmp_path / "gate.ok").touch()
    for program in ("ironburst-health", "ironburst-profile"):
        (tmp_path / program).write_text(f"#!/bin/sh\necho noise $1 >> {tmp_path}/{program}.called; exit 3\n")
        (tmp_path / program).chmod(0o755)
    done = subprocess.run(["sh", "-c", text], capture_output=True, text=True, timeout=30)
    assert (done.returncode, done.stdout) == (0, "")
    assert (tmp_path / "ironburst-profile.called").read_text() == f"noise {word}\n"


def test_the_exporter_shares_the_engine_that_is_paused():
    unit = (PLAYBOOKS / "roles/metrics/templates/dcgm-exporter.conf.j2").read_text()
    assert " -r localhost:5555 " in unit
