"""The plan of the queue: holes before jobs that wait for more GPUs, ties, run times that are known better than
limits.
"""

import numpy as np
import pytest

from ironburst.burst import Node, Resources
from ironburst.burst.packing import Plan
from ironburst.burst.snapshot import jobs_on
from tests.fakes import snapshots as base
from tests.fakes.snapshots import home, job, running

NOW = base.NOW


def plan_of(nodes, running, *more, **named):
    """With these jobs on them."""
    return Plan(NOW, nodes, jobs_on(running), *more, **named)


def gpus(count):
    return Resources(count, 0, 0)


def busy_by_the_gpu(ends):
    """A node of 8 GPUs, each taken by its own job for so many seconds."""
    return [base.running(100 + n, ["dgx1"], end, each=gpus(1)) for n, end in enumerate(ends)]


def test_a_hole_before_a_whole_node_job_begins_for_each_gpu_at_its_own_time():
    plan = plan_of(base.home(1), busy_by_the_gpu([1000, 2000, 3000, 4000, 5000, 6000, 7000, 8000]))
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
    plan = plan_of(nodes, running)
    assert [plan.earliest(base.job(each=gpus(n))).rows for n in (3, 4, 7)] == [((0, (1,)),), ((0, (2,)),), ((0, (0,)),)]
    assert plan.earliest(base.job(nodes=2, each=gpus(3))).rows == ((0, (1, 2)),)


def test_a_copy_is_changed_apart():
    plan = plan_of(base.home(2), [])
    copied, queued = plan.copy(), base.job(each=gpus(8))
    for _ in range(2):
        copied.place(queued, copied.earliest(queued))
    assert copied.earliest(queued).start == NOW + 7200 and plan.earliest(queued).start == NOW


def test_known_run_times_stand_in_for_limits():
    running = [base.running(9, ["dgx1"], 7200, each=gpus(8))]  # since a minute, for 7260 s at most
    plan = plan_of(base.home(1), running, run_s={9: 600.0, 1: 100.0})
    queued = base.job(1, each=gpus(8))
    assert plan.earliest(queued).start == NOW - 60 + 600
    plan.place(queued, plan.earliest(queued))
    assert plan.earliest(base.job(2, each=gpus(8))).start == NOW + 540 + 100


@pytest.mark.parametrize("seed", range(10))
def test_with_single_gpus_it_is_the_plain_list_schedule(seed):
    """Single-GPU jobs leave no holes: each begins when the next GPU is free, whatever the nodes."""
    rng = np.random.default_rng(seed)
    free = np.sort(rng.integers(60, 5000, 16)).astype(float)
    ends = rng.permutation(free)
    running = [base.running(100 + n, [f"dgx{n // 8 + 1}"], end, each=gpus(1)) for n, end in enumerate(ends)]
    plan = plan_of(base.home(2), running)
    for n in range(60):
        queued = base.job(n, each=gpus(1), limit_s=float(rng.integers(1, 4000)))
        placement = plan.earliest(queued)
        first = int(free.argmin())
        assert placement.start == NOW + free[first]
        plan.place(queued, placement)
        free[first] += queued.time_limit_s


def test_the_prediction_respects_gangs_and_cpus_and_memory():
    nodes = home(3)
    profile = plan_of(nodes, [running(9, ["dgx1"], 100), running(8, ["dgx2"], 300)])
    assert profile.earliest(job()).start == NOW
    assert profile.earliest(job(nodes=2)).start == NOW + 100
    assert profile.earliest(job(nodes=3)).start == NOW + 300
    assert profile.earliest(job(nodes=4)) is None
    assert profile.earliest(job(each=Resources(1, 3, 1))) is None
    half = plan_of(home(1), [running(9, ["dgx1"], 100, each=Resources(4, 1, 500))])
    assert half.earliest(job(each=Resources(4, 1, 510))).start == NOW  # little over the share of four GPUs
    assert half.earliest(job(each=Resources(4, 1, 520))).start == NOW + 100
    assert half.earliest(job(each=Resources(0, 0, 0))).start == NOW


def test_a_later_job_fills_a_gap_but_moves_nobody():
    profile = plan_of(home(2), [running(9, ["dgx1"], 100)])
    gang = job(nodes=2)
    profile.place(gang, profile.earliest(gang))  # at 100, on both
    assert profile.earliest(job(limit_s=100.0)).start == NOW  # fits before
    assert profile.earliest(job(limit_s=101.0)).start == NOW + 100 + 7200


@pytest.mark.parametrize("seed", range(40))
def test_what_is_planned_never_overlaps(seed):
    """Nodes of two kinds: at no moment more GPUs of a node are planned than it has, and no job before its turn could
    start sooner alone.
    """
    rng = np.random.default_rng(seed)
    nodes = [Node(f"a{n}", ("home",), Resources(8, 64, 800), ("IDLE",)) for n in range(3)]
    nodes += [Node(f"b{n}", ("home",), Resources(4, 32, 400), ("IDLE",)) for n in range(2)]
    ends = {name: float(rng.integers(1, 500)) for name in ("a0", "a2", "b1")}
    held = {"a0": Resources(5, 1, 1), "a2": Resources(8, 1, 1), "b1": Resources(2, 1, 1)}
    busy = [running(900 + n, [name], ends[name], each=held[name]) for n, name in enumerate(ends)]
    plan = plan_of(nodes, busy)
    empty = plan_of(nodes, busy)
    used = [(NOW, NOW + ends[name], name, held[name].gpus) for name in ends]
    for n in range(30):
        queued = job(
            n,
            nodes=int(rng.choice([1, 1, 1, 2, 3])),
            each=Resources(int(rng.integers(1, 9)), 1, 1),
            limit_s=float(rng.integers(1, 400)),
        )
        placement = plan.earliest(queued)
        if placement is None:
            assert sum(queued.each.within(node.total) for node in nodes) < queued.nodes
            continue
        assert placement.start >= empty.earliest(queued).start
        chosen = [("ab"[kind] + str(row)) for kind, rows in placement.rows for row in rows]
        assert len(set(chosen)) == queued.nodes
        used += [(placement.start, placement.start + queued.time_limit_s, name, queued.each.gpus) for name in chosen]
        plan.place(queued, placement)
    for moment in {start for start, *_ in used}:
        for node in nodes:
            taken = sum(gpus for start, end, name, gpus in used if name == node.name and start <= moment < end)
            assert taken <= node.total.gpus, (node.name, moment - NOW, taken)


def test_an_overdue_job_ends_soon():
    assert plan_of(home(1), [running(9, ["dgx1"], -50)], 30).earliest(job()).start == NOW + 30
