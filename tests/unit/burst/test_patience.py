"""No job waits for ever: a site is played tick by tick against arrivals that are meant to starve somebody."""

import math
from dataclasses import replace

import numpy as np
import pytest

from ironburst.burst import Budget, Job, Node, Policy, Pool, Resources, Snapshot, decide
from ironburst.burst.lateness import DOUBT_S
from ironburst.burst.limits import Limits, WaitTarget

NOW, HOUR, TICK = 1_795_262_400.0, 3600.0, 60.0
EACH = Resources(8, 8, 8000)
OFF = ("CLOUD", "DRAIN", "IDLE", "POWERED_DOWN")
BY_SIZE = Limits(WaitTarget.of_mean(0.05))


def play(policy, seed, boot_s, hours=3.0, slack_s=None):
    """(job, seconds that it waited so far) of every job, and how many were rented for. Two owned nodes, room to rent
    for all, a scheduler that starts by priority what fits. Who comes later has the higher priority, and comes most of
    all just before a node is free.
    """
    rng = np.random.default_rng(seed)
    names = tuple(f"p-{n}" for n in range(300))
    pool = Pool(
        "p",
        "burst-p",
        nodes=names,
        instance_type="p5.48xlarge",
        each=EACH,
        gpu_type="h100",
        markets=("on-demand",),
        usd_per_hour={"on-demand": 9.0},
        zones=("a",),
        boot_s=boot_s,
        idle_s=300.0,
        max_run_s=86400.0,
    )
    used, rented, now = 0, {}, NOW
    waiting: dict[int, Job] = {}
    on: dict[int, tuple[Job, int]] = {}  # job and its home node
    starts: dict[int, tuple[Job, float]] = {}
    for number in range(int(hours * HOUR / TICK)):
        on = {id: (job, node) for id, (job, node) in on.items() if job.end_s > now}
        soon = any(job.end_s <= now + boot_s for job, _ in on.values())
        for _ in range(int(rng.integers(0, 4 if soon else 2))):
            id = 1 + len(starts) + len(waiting)
            gpus, limit_s = int(rng.choice([1, 4, 8, 8])), float(rng.integers(5, 120)) * 60
            deadline_s = None if slack_s is None else now + boot_s + limit_s + float(rng.integers(slack_s))
            waiting[id] = Job(
                id,
                name="j",
                user="u",
                state="PENDING",
                submit_s=now,
                nodes=1,
                each=Resources(gpus),
                time_limit_s=limit_s,
                partitions=("home",),
                priority=number,
                deadline_s=deadline_s,
            )
        for job in sorted(waiting.values(), key=lambda job: -job.priority):
            free = [8 - sum(other.each.gpus for other, at in on.values() if at == node) for node in (0, 1)]
            if job.each.gpus <= max(free):
                node = free.index(max(free))
                run = replace(job, state="RUNNING", on=(f"h{node}",), start_s=now, end_s=now + job.time_limit_s)
                on[job.id], starts[job.id] = (run, node), (job, now)
                del waiting[job.id]
        nodes = [Node(f"h{n}", ("home",), EACH, ("IDLE",)) for n in (0, 1)] + [
            Node(n, ("burst-p",), EACH, OFF) for n in names[used:]
        ]
        jobs = (*(job for job, _ in on.values()), *waiting.values())
        shot = Snapshot(
            now, jobs, tuple(nodes), (replace(pool, nodes=names[used:]),), budget=Budget(1e9, 0.0, 0.0, now + 86400)
        )
        for launch in decide(shot, policy).launches:
            used += len(launch.nodes)
            for id in launch.jobs:
                rented[id] = starts[id] = (waiting.pop(id), now + boot_s)
        now += TICK
    waits = [(job, at - job.submit_s) for job, at in starts.values()] + [
        (job, now - job.submit_s) for job in waiting.values()
    ]
    return waits, len(rented)


@pytest.mark.parametrize(
    ("policy", "boot_s"),
    [
        (Policy("home", HOUR), 120.0),
        (Policy("home", HOUR, settle_s=30.0), 900.0),
        (Policy("home", HOUR, BY_SIZE), 900.0),
    ],
)
def test_every_job_that_may_be_rented_for_starts_within_the_stated_bound(policy, boot_s):
    waits, rented = play(policy, 1, boot_s)
    assert len(waits) > 100 and rented > 10
    for job, waited in waits:
        size = job.each.gpus * job.time_limit_s / HOUR
        limit = (
            HOUR if policy.limits is None else BY_SIZE.timer_s(size) if BY_SIZE.small(size) else BY_SIZE.hard_s(size)
        )
        assert waited <= max(limit, policy.settle_s) + max(boot_s, DOUBT_S) + TICK + boot_s, (job, waited)


def test_without_renting_the_same_arrivals_do_starve_somebody():
    waits, rented = play(Policy("home", math.inf), 1, 120.0)
    assert rented == 0 and max(waited for _, waited in waits) > 2.5 * HOUR


@pytest.mark.parametrize("boot_s", [120.0, 900.0])
def test_every_deadline_that_a_rented_node_could_meet_is_met(boot_s):
    """Nobody is rented for by the wait limit here, and who comes later goes first."""
    waits, rented = play(Policy("home", math.inf), 3, boot_s, hours=2.5, slack_s=7200)
    assert len(waits) > 80 and 10 < rented < len(waits)
    missed = [job for job, waited in waits if job.submit_s + waited + job.time_limit_s > job.deadline_s]
    assert missed == []
    assert max(waited for _, waited in waits) > HOUR  # it is no wait limit
