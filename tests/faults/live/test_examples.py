"""The jobs of examples/slurm on rented nodes: each to its end, and those with checkpoints past the loss of a node."""

import re

import pytest

from tests.example_jobs import ALSO, RESUMED, SUBMITTED, put
from tests.faults.live.live import NODES, until

pytestmark = [pytest.mark.lab, pytest.mark.slow]
ENDS = {"COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL", "OUT_OF_MEMORY"}


@pytest.fixture
def examples(live):
    """The folder that they are submitted from."""
    folder = put(live.site)
    for path in folder.glob("out-*.txt"):
        path.unlink()
    return folder


def submit(live, line):
    verb, options = line.split(maxsplit=1)
    return live.head.alice(f"{verb} --parsable --time=9 --output=out-%A-%a.txt {options}").strip()


def says(folder, pattern):
    printed = "".join(path.read_text() for path in sorted(folder.glob("out-*.txt")))
    return re.search(pattern, printed, re.MULTILINE), printed


def ended(live, job):
    """Where it ran, once it (all its tasks) has ended well."""

    def look():
        shown = live.head.root(f"sacct -n -X -P -j {job} -o State,NodeList").split()
        return shown and {each.split("|")[0] for each in shown} <= ENDS, shown

    rows = until(look, 240, f"the end of job {job}")[1]
    assert {row.split("|")[0] for row in rows} == {"COMPLETED"}, rows
    names = live.head.root(f"scontrol show hostnames {','.join(row.split('|')[1] for row in rows)}")
    assert set(names.split()) <= set(NODES)


@pytest.mark.parametrize("line", SUBMITTED | ALSO)
def test_on_rented_nodes(live, examples, line):
    job = submit(live, line)
    ended(live, job)
    found, printed = says(examples, (SUBMITTED | ALSO)[line])
    assert found, printed
    until(live.left_over, 120, "nothing left over")


@pytest.mark.parametrize("line", RESUMED)
def test_it_goes_on_from_its_checkpoint_when_aws_takes_a_node_back(live, examples, line):
    job = submit(live, f"{line} --steps 400 --step-seconds 0.05")
    until(lambda: says(examples, r"^\d ranks on p5-"), 240, f"job {job} trains")
    lease = next(lease for lease in live.leases() if lease.market == "spot" and lease.state == "ready")
    live.cloud("POST", "/lab/interrupt", instance_id=lease.instance_id, notice_s=30)
    until(lambda: live.job_state(job) == "PENDING", 120, f"job {job} back in the queue")
    live.head.alice(f"scontrol update jobid={job} starttime=now")  # Slurm lets a requeued job wait two minutes
    printed = until(lambda: says(examples, "^done: 400 steps, loss "), 240, f"the end of job {job}")[1]
    saved = re.findall(r"^saved at step (\d+) because of SIGTERM$", printed, re.MULTILINE)
    assert len(saved) == 1 and 0 < int(saved[0]) < 400, printed
    assert re.findall(r"ranks on .*, from step (\d+)$", printed, re.MULTILINE) == ["0", *saved]
    until(live.left_over, 120, "nothing left over")


def test_an_interactive_job(live, examples):
    assert live.head.alice("bash interactive.sh hostname").strip() in NODES
    until(live.left_over, 120, "nothing left over")


def test_a_notebook_answers_by_the_name_of_its_node(live, examples):
    """What `ssh -L` does on the head, where the user's ssh ends: it looks the node's name up there."""
    job = live.head.alice("sbatch --parsable --export=ALL,JUPYTER=jupyter_server --time=30 jupyter.sbatch").strip()
    output = examples / f"jupyter-{job}.out"

    def address():
        return re.search(r"http://127\.0\.0\.1:(\d+)/\S*\?token=(\w+)", output.read_text() if output.exists() else "")

    port, token = until(address, 240, "its address").groups()
    forwarded = re.search(rf"-L {port}:(p5-\d:{port})", output.read_text())[1]
    fetch = "import sys, urllib.request as u; print(u.urlopen(sys.argv[1], timeout=9).status)"
    said = live.head.root(f"python3 -c '{fetch}' 'http://{forwarded}/api/status?token={token}'")
    live.head.root(f"scancel {job}")
    assert said.strip() == "200"
    until(live.left_over, 120, "nothing left over")
