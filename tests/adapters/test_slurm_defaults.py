"""Jobs that ask for GPUs, as slurmctld 24.11 showed them while they waited: DefMemPerGPU=125, nodes of 1000 MiB."""

import json
from pathlib import Path

import pytest

from ironburst.adapters.slurm import answers as slurm_json
from ironburst.adapters.slurm import defaults as slurm_defaults
from ironburst.ports import Node, Resources

NODES = [
    Node("dgx01", ("home",), Resources(8, 16, 1000), ("IDLE",)),
    Node("dgx02", ("home",), Resources(8, 16, 2000), ()),
]
QUEUE = json.loads((Path(__file__).parent / "slurm_fixtures/24.11/squeue.json").read_text())
WAITS = next(raw for raw in QUEUE["jobs"] if raw["job_state"] == ["PENDING"] and "gres/gpu" in raw["tres_req_str"])


def memory(per_tres, asked, nodes=NODES, **changes):
    """MiB that the policy sees of a waiting job of two GPUs."""
    row = {
        "partition": "home",
        "tres_req_str": f"cpu=1,mem={asked},node=1,billing=1,gres/gpu=2",
        "tres_alloc_str": "",
        "memory_per_tres": per_tres,
    }
    return slurm_json.jobs(slurm_defaults.applied({"jobs": [WAITS | row | changes]}, nodes))[0].each.memory_mb


def test_a_job_that_names_no_memory_will_get_its_share():
    assert memory("gpu:125", "1000M") == 250
    assert memory("gpu:125", "1000M", partition="home,burst-p5") == 250


@pytest.mark.parametrize(
    ("per_tres", "asked", "told"), [("gpu:125", "300M", 300), ("gres/gpu:50", "100M", 100), ("gpu:125", "10M", 10)]
)
def test_what_is_asked_for_stays(per_tres, asked, told):
    """--mem=300, --mem-per-gpu=50, --mem-per-cpu=10."""
    assert memory(per_tres, asked) == told


def test_without_such_a_default_slurm_gives_the_whole_node():
    assert memory("", "1000M") == 1000


def test_what_a_running_job_was_given_stays():
    assert memory("gpu:125", "1000M", tres_alloc_str="cpu=1,mem=1000M,node=1,gres/gpu=2") == 1000


@pytest.mark.parametrize("answer", [None, [], {"jobs": None}, {"jobs": [7, {}, {"partition": None}]}])
def test_rows_of_unknown_shapes_stay_as_they_are(answer):
    assert slurm_defaults.applied(answer, NODES) == answer
