"""A job that asks for GPUs without a type (`--gpus=8`, `--gres=gpu:8`: what most people paste) means such as home's."""

from dataclasses import replace

import pytest

from ironburst.burst import Node, Resources, decide
from ironburst.nodes.gpus import NodeGpu
from tests.fakes.snapshots import FULL, POLICY, code_of, job, lease, pool, running, snapshot, text_of

# memory and NVLink as NVIDIA's data sheets and EC2's instance tables have them
H100, A100, A100_40 = (
    NodeGpu("H100 SXM5 80GB", 80, True),
    NodeGpu("A100 SXM4 80GB", 80, True),
    NodeGpu("A100 SXM4 40GB", 40, True),
)
L40S, L4, A100_PCIE = NodeGpu("L40S", 48, False), NodeGpu("L4", 24, False), NodeGpu("A100 PCIe 80GB", 80, False)
RTX, UNKNOWN = (
    NodeGpu("RTX PRO 6000 Blackwell Server Edition", 96, False),
    NodeGpu("H100 SXM5 94/96/64GB variants", None, True),
)


def home(*gpus, partitions=("home",), total=FULL):
    return [Node(f"dgx{n}", partitions, total, ("ALLOCATED",), gpu=gpu) for n, gpu in enumerate(gpus, 1)]


def g6e(gpu=L40S, **more):
    return pool("g6e", gpu_type="l40s", gpu=gpu, **more)


def decided(at_home, pools, *, leases=(), **asked):
    jobs = [running(90, [node.name for node in at_home], 10 * 3600), job(**asked)]
    return decide(snapshot(jobs, nodes=at_home, pools=pools, leases=leases), POLICY)


def rented(*arguments, **asked):
    return [launch.pool for launch in decided(*arguments, **asked).launches]


def test_an_untyped_job_of_an_h100_hall_is_rented_no_l40s():
    decision = decided(home(H100, H100), [g6e()])
    assert decision.launches == () and code_of(decision, 1) == "lesser_gpu"
    said = text_of(decision, 1)
    assert "it asks for GPUs without a type, which means at least H100 SXM5 80GB here: pool g6e has L40S 48 GB" in said
    assert "--gres=gpu:l40s:8" in said  # how to say that they will do


def test_it_is_rented_the_dearer_pool_that_is_as_good():
    dear = pool("p5", gpu=H100, usd_per_hour={"spot": 90.0, "on-demand": 99.0})
    assert rented(home(H100, H100), [g6e(), dear]) == ["p5"]


@pytest.mark.parametrize(
    ("asked", "pools"),
    [
        ({"gpu_type": "l40s"}, [g6e()]),  # it says that they will do
        ({}, [g6e(untyped=True)]),  # the site says it, for all
    ],
)
def test_what_is_said_is_rented(asked, pools):
    assert rented(home(H100, H100), pools, **asked) == ["g6e"]


def test_a_rented_node_of_a_lesser_pool_is_not_given_to_it():
    idle = replace(lease("g6e-1", market="spot"), pool="g6e", usd_per_hour=1.0)
    decision = decided(home(H100, H100), [g6e()], leases=[idle])
    assert decision.assigns == () and decision.widen == ()
    assert decided(home(H100, H100), [g6e()], leases=[idle], gpu_type="l40s").assigns


ONE = Resources(1, 1, 100)


@pytest.mark.parametrize(
    ("at_home", "offered", "each", "may"),
    [
        ((H100,), H100, FULL, True),
        ((H100,), A100, FULL, True),
        ((H100,), A100_40, FULL, False),
        ((A100_PCIE,), A100, FULL, True),
        ((A100,), A100_PCIE, FULL, False),  # without NVLink
        ((A100,), A100_PCIE, ONE, True),  # which one GPU has no use for
        ((A100_PCIE,), RTX, FULL, True),
        ((H100, A100_40), A100_40, FULL, True),  # at home it might get these
        ((A100_PCIE, A100_40), RTX, FULL, True),  # as good as one of them
        ((A100_40, H100), L40S, FULL, False),
        ((UNKNOWN,), UNKNOWN, FULL, True),
        ((UNKNOWN,), H100, FULL, False),
        ((H100,), UNKNOWN, FULL, False),
        ((UNKNOWN, L4), L40S, FULL, True),
        ((H100,), replace(H100, memory_gb=10, nvlink=False), ONE, False),  # parted by MIG
        ((), L4, FULL, True),  # nothing at home to hold it against
        ((H100,), None, FULL, True),  # a document of before says nothing
    ],
)
def test_as_good_as_the_least_at_home(at_home, offered, each, may):
    nodes = home(*at_home) or [Node("dgx1", ("home",), FULL, ("ALLOCATED",))]
    assert bool(rented(nodes, [g6e(offered)], each=each)) == may


def test_only_nodes_count_that_the_job_could_get():
    small = [*home(H100), Node("t1", ("home",), Resources(2, 1, 100), ("ALLOCATED",), gpu=L4)]
    assert rented(small, [g6e()]) == []  # eight to a node: never on the small one
    assert rented(small, [g6e()], each=ONE) == ["g6e"]
    theirs = [*home(H100), Node("t1", ("own-nlp",), FULL, ("ALLOCATED",), gpu=L4)]
    assert rented(theirs, [g6e()]) == []
    assert rented(theirs, [g6e()], partitions=("home", "own-nlp")) == ["g6e"]
    excluded = home(H100, L4)
    assert rented(excluded, [g6e()], excluded=("dgx2",)) == []
    halves = home(H100, total=Resources(4, 1, 1000))
    assert rented(halves, [g6e()]) == []  # larger than any node at home: it means such GPUs all the same


def test_a_pool_of_its_own_partition_does_not_lower_what_it_means():
    """A job that was widened lists the rented partition, too."""
    assert rented(home(H100), [g6e()], partitions=("home", "burst-g6e")) == []


def test_what_the_cluster_leaves_it_is_no_choice_of_the_jobs():
    """Pods that a zone or a volume binds to one pool: its GPU type is what is left, not what they ask for."""
    assert rented(home(H100), [g6e()], gpu_type="l40s", gpu_by_place=True) == []
