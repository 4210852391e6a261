"""The plan of the queue: holes before jobs that wait for more GPUs, ties, run times that are known better than
limits.
"""

import numpy as np
import pytest

from ironburst.burst import Resources
from ironburst.burst.packing import Plan
from tests.fakes import snapshots as base

NOW = base.NOW


def gpus(count):
    return Resources(count, 0, 0)


def busy_by_the_gpu(ends):
    """A node of 8 GPUs, each taken by its own job for so many seconds."""
    return [base.running(100 + n, ["dgx1"], end, each=gpus(1)) for n, end in enumerate(ends)]


def test_a_hole_before_a_whole_node_job_begins_for_each_gpu_at_its_own_time():
    plan = Plan(NOW, base.home(1), busy_by_the_gpu([1000, 2000, 3000, 4000, 5000, 6000, 7000, 8000]))
    whole = base.job(1, each=gpus(8))
    plan.place(whole, plan.earliest(whole))  # at 8000
    assert plan.earliest(base.job(2, each=gpus(1), limit_s=7000.0)).start == NOW + 1000
    assert plan.earliest(base.job(2, each=gpus(1), limit_s=7001.0)).start == NOW + 8000 + 7200
    three = base.job(3, each=gpus(3), limit_s=5000.0)
    assert plan.earliest(three).start == NOW + 3000
    plan.place(three, plan.earliest(three))
    # of the rest of the hole: three GPUs again when that job is over, fewer of those that come free after it began
    assert plan.earliest(base.job(4, each=gpus(1), limit_s=2000.0)).start == NOW + 1000
    assert plan.earliest(base.job(4, each=gpus(2), limit_s=1500.0)).start == NOW + 5000


def test_of_nodes_that_are_free_the_fullest_is_taken():
    nodes = base.home(3)
    running = [base.running(9, ["dgx2"], 500, each=gpus(5)), base.running(8, ["dgx3"], 500, each=gpus(2))]
    plan = Plan(NOW, nodes, running)
    assert [plan.earliest(base.job(each=gpus(n))).rows for n in (3, 4, 7)] == [((0, (1,)),), ((0, (2,)),), ((0, (0,)),)]
    assert plan.earliest(base.job(nodes=2, each=gpus(3))).rows == ((0, (1, 2)),)


def test_a_copy_is_changed_apart():
    plan = Plan(NOW, base.home(2), [])
    other, one = plan.copy(), base.job(each=gpus(8))
    for _ in range(2):
        other.place(one, other.earliest(one))
    assert other.earliest(one).start == NOW + 7200 and plan.earliest(one).start == NOW


def test_known_run_times_stand_in_for_limits():
    running = [base.running(9, ["dgx1"], 7200, each=gpus(8))]  # since a minute, for 7260 s at most
    plan = Plan(NOW, base.home(1), running, run_s={9: 600.0, 1: 100.0})
    one = base.job(1, each=gpus(8))
    assert plan.earliest(one).start == NOW - 60 + 600
    plan.place(one, plan.earliest(one))
    assert plan.earliest(base.job(2, each=gpus(8))).start == NOW + 540 + 100


@pytest.mark.parametrize("seed", range(10))
def test_with_single_gpus_it_is_the_plain_list_schedule(seed):
    """Single-GPU jobs leave no holes: each begins when the next GPU is free, whatever the nodes."""
    rng = np.random.default_rng(seed)
    free = np.sort(rng.integers(60, 5000, 16)).astype(float)
    ends = rng.permutation(free)
    running = [base.running(100 + n, [f"dgx{n // 8 + 1}"], end, each=gpus(1)) for n, end in enumerate(ends)]
    plan = Plan(NOW, base.home(2), running)
    for n in range(60):
        one = base.job(n, each=gpus(1), limit_s=float(rng.integers(1, 4000)))
        placement = plan.earliest(one)
        first = int(free.argmin())
        assert placement.start == NOW + free[first]
        plan.place(one, placement)
        free[first] += one.time_limit_s
