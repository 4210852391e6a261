"""A job that asks for GPUs and names no memory, as slurmctld 24.11 showed it in the lab while it waited."""

import json
from pathlib import Path

import pytest

from ironburst.adapters import slurm_defaults, slurm_json

PARTITIONS = (
    "PartitionName=home AllowGroups=ALL JobDefaults=DefCpuPerGPU=2,DefMemPerGPU=125 DefMemPerNode=UNLIMITED\n"
    "PartitionName=big AllowGroups=ALL JobDefaults=(null) DefMemPerNode=UNLIMITED\n"
)
CONFIG = "HealthCheckInterval     = 0 sec\nJobDefaults             = DefMemPerGPU=200\nJobFileAppend           = 0\n"
UNSET = {"set": False, "infinite": False, "number": 0}
NONE = {"set": True, "infinite": False, "number": 0}
QUEUE = json.loads((Path(__file__).parent / "slurm_fixtures/24.11/squeue.json").read_text())
WAITS = next(raw for raw in QUEUE["jobs"] if raw["job_state"] == ["PENDING"] and "gres/gpu" in raw["tres_req_str"])


def memory(per_gpu, **changes):
    """MiB that the policy sees of a waiting job of two GPUs."""
    raw = WAITS | {
        "partition": "home",
        "tres_req_str": "cpu=1,mem=1000M,node=1,billing=1,gres/gpu=2",
        "tres_alloc_str": "",
        "memory_per_node": NONE,
        "memory_per_cpu": UNSET,
        "memory_per_tres": "",
        **changes,
    }
    return slurm_json.jobs(slurm_defaults.applied({"jobs": [raw]}, per_gpu))[0].each.memory_mb


def test_the_shares_of_partitions_and_of_the_cluster():
    assert slurm_defaults.shares(PARTITIONS, CONFIG) == {"home": 125, slurm_defaults.EVERYWHERE: 200}
    assert slurm_defaults.shares("PartitionName=home JobDefaults=(null)\n", "JobDefaults = (null)\n") == {}


def test_a_waiting_job_will_get_its_partitions_share():
    shares = slurm_defaults.shares(PARTITIONS, CONFIG)
    assert memory(shares) == 250
    assert memory(shares, partition="home,burst-p5") == 250
    assert memory(shares, partition="big") == 400


@pytest.mark.parametrize(
    "changes",
    [
        {"memory_per_node": {"set": True, "infinite": False, "number": 1000}},
        {"memory_per_cpu": {"set": True, "infinite": False, "number": 1000}},
        {"memory_per_tres": "gres/gpu:500"},
        {"tres_alloc_str": "cpu=1,mem=1000M,node=1,gres/gpu=2"},
    ],
)
def test_what_is_asked_for_or_given_stays(changes):
    assert memory({"home": 125}, **changes) == 1000


def test_without_such_a_default_slurm_gives_the_whole_node():
    assert memory({}) == 1000 and memory({"other": 125}) == 1000


@pytest.mark.parametrize("answer", [None, [], {"jobs": None}, {"jobs": [7, {}, {"partition": None}]}])
def test_rows_of_unknown_shapes_stay_as_they_are(answer):
    assert slurm_defaults.applied(answer, {"home": 125}) == answer
