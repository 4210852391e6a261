"""Teams' shares in a real Slurm: what a job is tried in, what ends for a guarantee, and that a team that is gone has no
rights. Three teams on the hall's sixteen GPUs, as the role slurm_head tells Slurm of them.
"""

import pytest

from benchmarks import share_table
from ironburst import document
from ironburst.shares import TeamShare, quotas, slurm
from lab.kubernetes import binaries
from lab.system import wait_for
from tests.playbooks import sample
from tests.sites import NAMES, converge, munge_key

pytestmark = [pytest.mark.lab, pytest.mark.slow]
VISION = {"account": "vision", "guaranteed_gpus": 8, "over_quota": True, "weight": 2, "max_gpus": None, "nodes": []}
NLP = VISION | {"account": "nlp", "guaranteed_gpus": 4, "weight": 1}
FREE = VISION | {"account": "free", "guaranteed_gpus": 0, "weight": 1}
TEAMS = ("vision", "nlp", "free")
ALLOCATED_S = 60
REQUEUED_S = 121 + ALLOCATED_S  # Slurm keeps what was put back for as long as a credential may live, and a second


def publish(inside, *shares, serial):
    """The lab's document with these shares."""
    plain = sample.lab_document(munge_key=munge_key(inside.site), names=NAMES)
    given = [document.Share(**share) for share in shares]
    own = {node: f"own-{share.account}" for share in given for node in share.nodes}
    hosts = [host.model_copy(update={"partition": own.get(host.name, host.partition)}) for host in plain.hosts]
    changed = plain.model_copy(update={"shares": given, "hosts": hosts, "serial": serial})
    inside.document.write_text(changed.model_dump_json())


@pytest.fixture(scope="module")
def head(site, inside, converged):
    """The head with the three shares; alice is in all three teams."""
    publish(inside, VISION, NLP, FREE, serial=100)
    converge(inside, "--limit", "head")
    for team in TEAMS:
        site.ssh("head", f"sacctmgr -i add user alice account={team}")
    yield site.host("head")
    site.ssh("head", "scancel -u alice", check=False)
    publish(inside, serial=200)
    converge(inside, "--limit", "head")


@pytest.fixture(autouse=True)
def empty(head):
    yield
    head.ssh("scancel -u alice")
    wait_for(lambda: not head.ssh("squeue -h").stdout.strip(), 120, "an empty queue", pause=0.5)


def alice(head, line):
    done = head.ssh(f"cd /shared/alice && exec runuser -u alice -- {line}", check=False)
    return done.stdout.strip() if done.returncode == 0 else f"refused: {done.stderr.strip()}"


def submit(head, team, gpus, *options, seconds=500):
    job = alice(
        head, f"sbatch --parsable -A {team} --gres=gpu:{gpus} --time=9 {' '.join(options)} --wrap 'sleep {seconds}'"
    )
    assert job.isdigit(), job
    return job


def look(head, job):
    """(state, QOS) of a job."""
    return tuple(head.ssh(f"squeue -h -j {job} -o '%T %q'").stdout.split())


def runs(head, job, qos, within_s=ALLOCATED_S):
    wait_for(lambda: look(head, job) == ("RUNNING", qos), within_s, f"job {job} in {qos}", pause=0.5)


def test_the_second_run_changes_nothing(inside, head):
    receipt = converge(inside, "--limit", "head", "--always")
    assert {name: each["changed"] for name, each in receipt["hosts"].items() if each.get("changed")} == {}


def test_a_job_is_within_the_guarantee_then_over_quota(head):
    first, second = submit(head, "vision", 8), submit(head, "vision", 8)
    runs(head, first, "vision-guaranteed")
    runs(head, second, "vision-over")


def test_a_guarantee_ends_work_over_quota_which_comes_back_in_either(head):
    sure = submit(head, "vision", 8)
    runs(head, sure, "vision-guaranteed")
    over = submit(head, "vision", 8)
    runs(head, over, "vision-over")
    mine = submit(head, "nlp", 4)
    runs(head, mine, "nlp-guaranteed")
    assert look(head, sure) == ("RUNNING", "vision-guaranteed")
    assert look(head, over)[0] == "PENDING"
    wait = submit(head, "nlp", 8)  # more than what is left of the guarantee: idle GPUs alone
    head.ssh(f"scancel {sure}")
    runs(head, over, "vision-guaranteed", REQUEUED_S)
    assert look(head, wait)[0] == "PENDING" and look(head, mine)[0] == "RUNNING"


def test_what_cannot_be_put_back_is_never_over_quota_by_itself(head):
    first = submit(head, "vision", 8)
    runs(head, first, "vision-guaranteed")
    kept = submit(head, "vision", 4, "--no-requeue")
    asked = submit(head, "vision", 4, "--no-requeue", "--qos=vision-over")
    runs(head, asked, "vision-over")
    state, qos = look(head, kept)
    assert (state, qos) == ("PENDING", "vision-guaranteed")


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("sbatch -A research --wrap true", "account research has no share of partition home"),
        ("sbatch -A vision --qos=nlp-guaranteed --wrap true", "Invalid qos"),
        ("sbatch -A vision --qos=normal --wrap true", "QOS normal is none of partition home: leave --qos out"),
        ("sbatch -A vision -p home,burst-p5 --wrap true", "takes no jobs"),
    ],
)
def test_nobody_uses_anothers_share(head, line, words):
    said = alice(head, line)
    assert said.startswith("refused") and words in said


def test_a_job_cannot_be_moved_into_another_share(head):
    job = submit(head, "free", 1, "--hold")
    said = alice(head, f"scontrol update jobid={job} qos=vision-guaranteed")
    assert said.startswith("refused")


def test_limits_follow_the_nodes(head):
    """As a controller would write them."""
    shares = [TeamShare.of(each) for each in (VISION, NLP, FREE)]

    def shown():
        show = "sacctmgr --noheader --parsable2 show qos format=Name,Description,Priority,GrpTRES,Preempt"
        return slurm.shown_qos(head.ssh(show).stdout.splitlines())

    promised = slurm.qos_of(shares)
    assert shown() == promised
    try:
        for line in slurm.limits(shares, quotas(shares, 6, []), shown()):
            head.ssh(line)
        assert shown()["vision-guaranteed"].gpus == 4
        runs(head, submit(head, "vision", 4), "vision-guaranteed")
        runs(head, submit(head, "vision", 4), "vision-over")
    finally:
        for name, qos in promised.items():
            head.ssh(["sacctmgr", "-i", "modify", "qos", "where", f"Name={name}", "set", *qos.settings()])
    assert shown() == promised


@pytest.mark.skipif(not binaries.built(), reason="the lab's Kubernetes isn't built: make kubernetes")
def test_both_schedulers_reach_the_same_shares(inside, head):
    """The same workload in Slurm and in Kubernetes, nine minutes: the table of benchmarks.share_table."""
    found = share_table.measured(share_table.workload(), inside.site.prefix)
    assert found["largest_difference"] <= share_table.ASKED, found["parts"]


def test_a_team_that_is_gone_has_no_rights(inside, head):
    publish(inside, NLP, FREE, serial=110)
    try:
        converge(inside, "--limit", "head")
        names = head.ssh("sacctmgr --noheader --parsable2 show qos format=Name").stdout.split()
        assert not [name for name in names if name.startswith("vision")]
        shown = head.ssh("sacctmgr --noheader --parsable2 show associations account=vision format=User,QOS").stdout
        assert shown.split() and {line.partition("|")[2] for line in shown.split()} == {"normal"}
        assert "vision has no share" in alice(head, "sbatch -A vision --wrap true")
        runs(head, submit(head, "nlp", 4), "nlp-guaranteed")
    finally:
        publish(inside, VISION, NLP, FREE, serial=120)
        converge(inside, "--limit", "head")
