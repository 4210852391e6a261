"""What happens to jobs after sbatch, on a live Slurm, is decided on. What is asked at sbatch: test_researcher_table."""

from contextlib import closing
from types import SimpleNamespace

import pytest

from ironburst.adapters.slurm.scheduler import Slurm
from ironburst.burst import Decision, Launch
from ironburst.controller.comments import Comments
from ironburst.controller.ledger import Ledger
from ironburst.ports import SchedulerError
from lab.system import wait_for
from tests.lab import researcher
from tests.lab.researcher import ONE, RENTED, SLEEP, alice, full_hall, seen_on

pytestmark = [pytest.mark.lab, pytest.mark.slow, pytest.mark.usefixtures("converged")]

# what neither home nor a pool could ever take: why
NOBODYS = {
    f"sbatch --gres=gpu:a100:1 {SLEEP}": "no pool can. It asks for 1 node, 1 GPU of type a100 a node",
    f"sbatch {ONE} --mem=90G {SLEEP}": "no pool can. It asks for 1 node, 1 GPU a node, 92160 MiB a node, 0-00:09",
    f"sbatch --gres=gpu:1 --time=UNLIMITED {SLEEP}": "no pool can. It asks for 1 node, 1 GPU a node, UNLIMITED",
    f"sbatch --nodes=4 --gres=gpu:8 {SLEEP}": "no pool can. It asks for 4 nodes, 8 GPUs a node",
    f"sbatch --nodes=3 {SLEEP}": "it asks for no GPU, and only nodes with GPUs are rented. It asks for 3 nodes",
    "srun --gpus=25 true": "no pool can. It asks for 1 node, 25 GPUs",
    "salloc --nodes=3 --gres=gpu:8 -C fast true": "it insists on --constraint=fast, which a rented node can't promise",
}


@pytest.fixture
def full(site):
    with full_hall(site) as busy:
        yield busy


def decided(inside, name):
    """The codes, without the market."""
    return {code.partition(",")[0] for code in researcher.decided(*seen_on(inside), name)}


def test_what_home_can_never_run_waits_where_it_is_rented_for(site, full):
    """Admitted by Slurm, with a reason, and no job of home's waits behind it."""
    larger = alice(site, f"sbatch --parsable --nodes=3 {ONE} {SLEEP}")
    alice(site, f"sbatch --job-name=small {ONE} {SLEEP}")
    shown = ["burst-any", "PENDING", "PartitionDown"]

    def seen():
        return site.ssh("head", f"squeue -h -j {larger} -o '%P %T %r'").stdout.replace("home,", "").split() == shown

    wait_for(seen, 60, "its reason", pause=1)
    site.ssh("head", f"scancel {full}")

    def starts():
        return site.ssh("head", "squeue -h -u alice -n small -o %T").stdout.strip() == "RUNNING"

    wait_for(starts, 90, "a small job at home", pause=1)
    assert seen()


@pytest.mark.parametrize("line", NOBODYS)
def test_what_nobody_could_ever_run_is_refused_with_the_reason(site, line):
    done = site.ssh("head", f"cd /shared/alice && exec runuser -u alice -- {line}", check=False)
    assert done.returncode and "Requested node configuration is not available" in done.stderr
    assert f"home can never run this job, and {NOBODYS[line]}" in done.stderr
    assert "; home has 2 nodes of h100:8, " in done.stderr and "; pool p5 has 3 nodes of h100:8, " in done.stderr


def test_what_an_admin_does_to_a_job_is_decided_on(site, inside, full):
    job = alice(site, f"sbatch --parsable --job-name=admins {ONE} {SLEEP}")
    site.ssh("head", f"scontrol hold {job}")
    assert decided(inside, "admins") == {"held"}
    alice(site, f"scontrol release {job}")
    assert decided(inside, "admins") == {"held"}, "by an admin, so its user can't"
    site.ssh("head", f"scontrol release {job} && scontrol update jobid={job} priority=5000")
    assert site.ssh("head", f"squeue -h -j {job} -o %Q").stdout.strip() == "5000"
    assert decided(inside, "admins") == {RENTED}
    site.ssh("head", f"scontrol update jobid={job} nice=1000")
    assert decided(inside, "admins") == {RENTED}
    alice(site, f"sbatch --job-name=self --priority=90000 {ONE} {SLEEP}")
    assert int(site.ssh("head", "squeue -h -u alice -n self -o %Q").stdout) < 90000, "only an operator may"
    assert decided(inside, "self") == {RENTED}


def test_a_job_that_is_put_back_waits_for_its_time(site, inside, full):
    site.ssh("head", f"scontrol update jobid={full} requeue=1 && scontrol requeue {full}")
    wait_for(lambda: "Restarts=1" in site.ssh("head", f"scontrol show job {full}").stdout, 60, "a restart", pause=0.5)
    assert decided(inside, "busy") == {"begin"}


def test_a_job_that_its_user_changes_is_decided_on_anew(site, inside, full):
    job = alice(site, f"sbatch --parsable --job-name=changed {ONE} {SLEEP}")
    assert decided(inside, "changed") == {RENTED}
    alice(site, f"scontrol update jobid={job} reqnodelist=dgx01")
    assert decided(inside, "changed") == {"demands"}
    alice(site, f"scontrol hold {job}")
    assert decided(inside, "changed") == {"held"}


def test_a_comment_is_shown_beside_the_job_and_leaves_the_users_own(site, inside, full):
    job = alice(site, f"sbatch --parsable --comment data=c4 --job-name=told {ONE} {SLEEP}")
    slurm, text = Slurm(inside.argv(*inside.head_prefix())), "ironburst: being rented for it: p5-1 (spot); it's 'late'"
    try:
        slurm.comment({job: text, "99999999": "ironburst: gone"})
    except SchedulerError as error:
        pytest.fail(str(error))
    assert slurm.observe().comments[int(job)] == text
    shown = [line.strip() for line in alice(site, f"scontrol show job {job}").splitlines()]
    assert f"AdminComment={text}" in shown and "Comment=data=c4" in shown


def test_a_comment_of_the_queue_gives_way_when_the_tasks_start(site, inside, tmp_path):
    site.ssh("head", "scancel -u alice", check=False)
    slurm = Slurm(inside.argv(*inside.head_prefix()))
    array = alice(site, f"sbatch --parsable --hold --array=0-1 -w dgx01 --gres=gpu:4 -c 1 --time=9 {SLEEP}")
    slurm.comment({f"{array}_[0-1]": f"ironburst: {array}_0 and 1 more: it may start on dgx01 or at home"})
    alice(site, f"scontrol release {array}")

    def run():
        return site.ssh("head", f"squeue -h -j {array} -t R -o %i").stdout.split()

    wait_for(lambda: len(run()) == 2, 60, "both tasks", pause=0.5)
    rented = Launch("p5", ("a",), "spot", ("dgx01",), (), 40.0, 2e9, 1.0, "as if it were rented")
    with closing(Ledger(tmp_path / "ledger.sqlite")) as ledger:
        ledger.add_launch("one", rented, "p5.48xlarge", "ami-1", 60.0, 1, 1.0)
        at = SimpleNamespace(scheduler=slurm, ledger=ledger, now=1000.0)
        Comments().say(at, slurm.observe(), Decision())
    for task in (0, 1):
        shown = alice(site, f"scontrol show job {array}_{task}")
        assert "AdminComment=ironburst: on dgx01, rented at $20.00 an hour (estimate)" in shown
    site.ssh("head", "scancel -u alice", check=False)
