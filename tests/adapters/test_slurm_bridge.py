"""slurm-bridge's jobs in Slurm's JSON. The rows are a real Slurm's, changed as slurm-bridge's documents and source
(1.2) and slurmctld's (25.11) say that its jobs look: fixtures by the book, not recorded.
"""

import copy
import json
import stat
from pathlib import Path

import pytest

from ironburst.adapters.bridged import SlurmQueue
from ironburst.adapters.slurm import answers as slurm_json
from ironburst.adapters.slurm import bridge as slurm_bridge
from ironburst.adapters.slurm.scheduler import Slurm
from ironburst.burst.eligibility import not_in_pool, not_rentable
from ironburst.ports import WrongShape
from tests.fakes import snapshots
from tests.fakes.snapshots import POLICY

FIXTURES = Path(__file__).parent / "slurm_fixtures"
VERSIONS = ("25.05", "26.05")
POOLS = {"burst-p5": frozenset(("p5-1", "p5-2")), "burst-g6": frozenset(("g6-1",))}
RENTED = "p5-1,p5-2,g6-1"


def queue(version, *rows):
    """A queue with one job of slurm-bridge (17) for each of the changes, behind what was there."""
    answer = json.loads((FIXTURES / version / "squeue.json").read_text())
    base = next(raw for raw in answer["jobs"] if raw["job_id"] == 4)
    more = {
        "job_id": 17,
        "name": "train",
        "user_name": "slurm",
        "admin_comment": '{"pods":["team-a/train-0"]}',
        "flags": ["EXTERNAL_JOB"],
        "batch_flag": False,
        "requeue": True,
        "partition": "home,burst-p5,burst-g6",
        "required_nodes": "dgx01,dgx02",
        "excluded_nodes": RENTED,
        "shared": ["none"],
        "command": "",
        "tres_per_node": "gres/gpu=2",
    }
    return {**answer, "jobs": [*answer["jobs"], *(copy.deepcopy(base) | more | row for row in rows)]}


def read(version, pools=POOLS, **changes):
    """Job 17 as it is told."""
    found = slurm_bridge.read_jobs(queue(version, changes), pools)
    assert found.unreadable == ()
    return next(job for job in found.items if job.id == 17)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_job_of_pods_has_their_name_and_may_be_rented_for(version):
    job = read(version)
    assert (job.name, job.user, job.each.gpus, job.nodes) == ("team-a/train-0", "slurm", 2, 1)
    assert (job.partitions, job.excluded, job.demands) == (("home",), (), "")
    assert not_rentable(job, POLICY) is None
    assert job.batch and not job.requeue, "never on spot: Slurm can't put it back into the queue"


@pytest.mark.parametrize("version", VERSIONS)
def test_jobs_of_others_read_as_before(version):
    before = slurm_json.read_jobs(json.loads((FIXTURES / version / "squeue.json").read_text()))
    assert slurm_bridge.read_jobs(queue(version, {}), POOLS).items[:-1] == before.items


@pytest.mark.parametrize(
    ("excluded", "partitions", "shown"),
    [
        (RENTED, ("home",), ()),
        ("p5-2,g6-1", ("home", "burst-p5"), ("p5-2",)),
        ("g6-1", ("home", "burst-p5"), ()),
        ("", ("home", "burst-p5", "burst-g6"), ()),
        ("dgx07,p5-[1-2],g6-1", ("home",), ("dgx07",)),
    ],
)
def test_the_nodes_that_it_must_not_have_say_its_partitions(excluded, partitions, shown):
    job = read("26.05", excluded_nodes=excluded)
    assert (job.partitions, job.excluded) == (partitions, shown)
    again = slurm_bridge.excluded(POOLS, partitions, shown)
    assert again == sorted(slurm_json.expand(excluded)), "and back"


def test_a_running_one_is_where_it_is():
    job = read("26.05", job_state=["RUNNING"], nodes="p5-1", partition="burst-p5", excluded_nodes="p5-2,g6-1")
    assert (job.on, job.partitions) == (("p5-1",), ("burst-p5",))


def test_what_else_it_asks_for_still_counts():
    assert "the features ib" in read("26.05", features="ib").demands
    job = read("26.05", time_limit={"set": True, "infinite": True, "number": 0})
    assert not_rentable(job, POLICY)[0] == "no_time_limit"


def test_one_that_only_home_is_open_to_says_what_to_change():
    job = read("26.05", partition="home", excluded_nodes="")
    _, text = not_rentable(job, POLICY)
    assert "insists on partition home alone (slurm-bridge must submit to the burst partitions, too" in text


def test_gpus_by_a_device_class_are_another_type_than_a_pools():
    job = read("26.05", tres_per_node="gres/gpu:gpu.nvidia.com=2")
    assert not_in_pool(job, snapshots.pool(), ())[0] == "gpu_type"


@pytest.mark.parametrize(
    "comment",
    ["", None, "ask bob", "{}", "[]", "7", '{"pods": []}', '{"pods": "a/b"}', '{"pods": [7]}', '{"pods": ["a"]}', "{"],
)
def test_other_comments_of_an_administrator_are_none(comment):
    raw = {"admin_comment": comment, "flags": ["EXTERNAL_JOB"]}
    assert slurm_bridge.pods_of(raw) == ()


def test_a_gangs_pods_are_all_known():
    its = '{"pods":["team-a/g-0","team-a/g-1"]}'
    found = queue("26.05", {"admin_comment": its, "node_count": {"set": True, "infinite": False, "number": 2}})
    assert slurm_bridge.placeholders(found) == {17: ("team-a/g-0", "team-a/g-1")}
    assert read("26.05", admin_comment=its, node_count={"set": True, "infinite": False, "number": 2}).nodes == 2


def test_an_answer_that_isnt_understood_is_still_refused():
    with pytest.raises(WrongShape, match="no list 'jobs'"):
        slurm_bridge.read_jobs({"meta": {}}, POOLS)
    with pytest.raises(WrongShape):
        slurm_bridge.read_jobs([], POOLS)


@pytest.fixture
def head(tmp_path):
    """A head node that answers with a queue, and notes what it is told."""
    (tmp_path / "squeue.json").write_text(json.dumps(queue("26.05", {})))
    (tmp_path / "nodes.json").write_text((FIXTURES / "26.05/nodes.json").read_text())
    script = tmp_path / "prefix"
    script.write_text(
        f"""#!/bin/sh
case "$*" in
  "squeue --json") cat {tmp_path}/squeue.json ;;
  "scontrol show node --all --json") cat {tmp_path}/nodes.json ;;
  find*|"scontrol show"*|squeue*) ;;
  *) echo "$*" >>{tmp_path}/log ;;
esac
"""
    )
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    return tmp_path


def told(head):
    return (head / "log").read_text().splitlines()


def test_what_slurm_is_told_of_it(head):
    slurm = SlurmQueue([str(head / "prefix")])
    slurm.pools = POOLS
    jobs = {job.id: job for job in slurm.observe().jobs}
    assert jobs[17].name == "team-a/train-0" and slurm.pods == {17: ("team-a/train-0",)}
    slurm.exclude(17, ["g6-1", "p5-2"], begin_now=False)
    slurm.exclude(17, [], begin_now=True)
    slurm.cancel([17])
    assert told(head) == [
        "scontrol update jobid=17 excnodelist=g6-1,p5-2",
        "scontrol update jobid=17 excnodelist= starttime=now",
        "scancel 17",
    ]


def test_where_no_bridge_is_declared_its_jobs_are_told_and_not_rented_for(head):
    jobs = {job.id: job for job in Slurm([str(head / "prefix")]).observe().jobs}
    assert jobs[17].name == "team-a/train-0"
    _, text = not_rentable(jobs[17], POLICY)
    assert "slurm-bridge's job for pods, and the stack has no scheduler.bridge" in text
