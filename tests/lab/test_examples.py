"""The jobs of examples/slurm, as an ordinary user submits them: copied, and with options of sbatch for nodes whose GPUs
PyTorch can't use. Each says itself whether it was tried here.
"""

import re

import pytest

from lab.system import LabError, wait_for
from tests.example_jobs import ALSO, JOBS, ONE, SUBMITTED, put


@pytest.fixture(scope="module")
def folder(site, converged):
    """/shared/alice with the examples, /shared/env with an environment, as the machine's user sees the former."""
    folder = put(site)
    site.ssh("head", "scontrol update nodename=dgx01,dgx02 state=resume", check=False)

    def idle():
        return site.ssh("head", "sinfo -h -N -n dgx01,dgx02 -p home -o %T").stdout.split() == ["idle", "idle"]

    try:
        wait_for(idle, 60, "both nodes idle, after the tests before", pause=2)
    except LabError:
        pytest.fail(site.ssh("head", "sinfo -N -R; squeue; sinfo -N -l").stdout)
    return folder


def alice(site, line, **options):
    return site.ssh("head", f"cd /shared/alice && exec runuser -u alice -- {line}", timeout=120, **options).stdout


def ended(site, job):
    """Slurm's states of it and of its tasks, once all have ended."""
    states = set(site.ssh("head", f"squeue -h -r -t all -j {job} -o %T").stdout.split())
    return states if states and not states & {"PENDING", "CONFIGURING", "RUNNING", "COMPLETING"} else None


def played(site, folder, line, expected):
    verb, options = line.split(maxsplit=1)
    job = alice(site, f"{verb} --parsable --time=3 --output=out-%A-%a.txt {options}").strip()
    states = wait_for(lambda: ended(site, job), 120, f"the end of job {job}", pause=0.3)
    printed = "".join(path.read_text() for path in sorted(folder.glob("out-*.txt")))
    for path in folder.glob("out-*.txt"):
        path.unlink()
    assert states == {"COMPLETED"} and re.search(expected, printed, re.MULTILINE), printed


@pytest.mark.lab
@pytest.mark.parametrize("line", SUBMITTED)
def test_two_nodes_train_together(site, folder, line):
    played(site, folder, line, SUBMITTED[line])


@pytest.mark.lab
@pytest.mark.slow
@pytest.mark.parametrize("line", ALSO)
def test_every_other_job_runs(site, folder, line):
    played(site, folder, line, ALSO[line])


@pytest.mark.lab
def test_a_requeued_job_goes_on_from_the_step_that_it_saved(site, folder):
    line = f"sbatch --parsable {ONE} --time=5 ddp-srun.sbatch --steps 200 --step-seconds 0.05"
    job = alice(site, line).strip()
    output = folder / f"slurm-{job}.out"

    def says(pattern):
        return re.search(pattern, output.read_text() if output.exists() else "", re.MULTILINE)

    wait_for(lambda: says("^2 ranks on "), 60, "the first start", pause=0.2)
    alice(site, f"scontrol requeue {job}")
    wait_for(lambda: "PENDING" in site.ssh("head", f"squeue -h -j {job} -o %T").stdout, 60, "its place in the queue")
    alice(site, f"scontrol update jobid={job} starttime=now")  # Slurm lets a requeued job wait two minutes
    saved = wait_for(lambda: says(r"^saved at step (\d+) because of SIGTERM$"), 60, "a checkpoint", pause=0.2)
    wait_for(lambda: says("^done: 200 steps, loss "), 120, "the end", pause=0.2)
    assert 0 < int(saved[1]) < 200
    assert re.findall(r"from step (\d+)$", output.read_text(), re.MULTILINE) == ["0", saved[1]]


@pytest.mark.lab
@pytest.mark.slow
def test_an_interactive_job_has_a_node(site, folder):
    assert alice(site, "bash interactive.sh hostname") in ("dgx01\n", "dgx02\n")


@pytest.mark.lab
@pytest.mark.slow
def test_a_notebook_answers_through_ssh_to_whom_it_told_its_token(site, folder):
    job = alice(site, "sbatch --parsable --export=ALL,JUPYTER=jupyter_server jupyter.sbatch").strip()
    output = folder / f"jupyter-{job}.out"

    def address():
        return re.search(r"http://127\.0\.0\.1:(\d+)/\S*\?token=(\w+)", output.read_text() if output.exists() else "")

    port, token = wait_for(address, 60, f"its address (see {output})", pause=0.2).groups()
    forwarded = re.search(rf"-L {port}:(\w+:{port})", output.read_text())
    fetch = "import sys, urllib.request as u; print(u.urlopen(sys.argv[1], timeout=9).status)"
    # as through the tunnel: the head asks the node by the name that the user is told
    api = f"http://{forwarded[1]}/api/status"
    asked = [site.ssh("head", ["python3", "-c", fetch, url], check=False) for url in (api, f"{api}?token={token}")]
    site.ssh("head", f"scancel {job}")
    assert "HTTP Error 403" in asked[0].stderr and asked[1].stdout == "200\n"


def test_each_example_says_what_it_needs_and_whether_it_was_tried():
    played_here = {word for line in (SUBMITTED | ALSO) for word in line.split() if word.endswith(".sbatch")}
    played_here |= {"interactive.sh", "jupyter.sbatch"}
    for file in [*JOBS.glob("*.sbatch"), *JOBS.glob("*.sh")]:
        head = file.read_text().splitlines()[1:4]
        assert [line.split(" ")[1] for line in head[1:]] == ["Needs:", "Tried:"], file
        assert head[2].startswith("# Tried: lab, ") == (file.name in played_here), file
