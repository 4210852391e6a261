"""Quota follows real capacity: drained nodes, and what is rented."""

from dataclasses import replace

import pytest

from ironburst.burst import Job, Node, Resources
from ironburst.shares import Quota, TeamShare
from ironburst.shares.model import GUARANTEED, OVER, OWN
from ironburst.shares.observed import quotas_now

SHARES = [TeamShare("a", 8), TeamShare("b", 8)]


def node(name, *states, partition="home"):
    return Node(name, (partition,), Resources(8), states or ("IDLE",))


def job(id, account, *on, gpus=8, state="RUNNING"):
    return Job(
        id, f"j{id}", "u", "RUNNING" if on else state, id, 1, Resources(gpus), 3600, ("home",), account=account, on=on
    )


def now(nodes, jobs, kinds=None):
    return quotas_now(SHARES, "home", nodes, jobs, kinds or {})[0]


def test_nodes_in_service_are_what_there_is():
    nodes = [node("n1"), node("n2"), node("n3"), node("p5-1", partition="burst-p5")]
    assert now(nodes, []) == {"a": Quota(8, 24), "b": Quota(8, 24)}


def test_a_drained_node_is_away_and_a_guarantee_shrinks():
    assert now([node("n1"), node("n2", "IDLE", "DRAIN")], []) == {"a": Quota(4, 8, 4), "b": Quota(4, 8, 4)}


def test_what_runs_on_a_drained_node_is_still_there():
    nodes = [node("n1"), node("n2", "ALLOCATED", "DRAIN")]
    assert now(nodes, [job(1, "a", "n2")]) == {"a": Quota(8, 8), "b": Quota(8, 8)}


def test_what_is_rented_counts_beside_home():
    """The scheduler counts it against the same limit, and it takes nothing from anybody."""
    nodes = [node("n1"), node("n2"), node("p5-1", partition="burst-p5"), node("p5-2", partition="burst-p5")]
    jobs = [job(1, "a", "n1"), job(2, "b", "n2"), job(3, "a", "p5-1"), job(4, "b", "p5-2")]
    assert now(nodes, jobs, {3: OVER, 4: GUARANTEED}) == {"a": Quota(8, 8), "b": Quota(16, 0)}


@pytest.mark.parametrize("partitions", [("home",), ("own-a",)])  # as Kubernetes' adapter has it, and Slurm's
def test_what_is_on_a_teams_own_nodes_is_no_part_of_it(partitions):
    nodes = [node("n1"), node("n2"), node("own", partition="own-a")]
    jobs = [replace(job(1, "a", "own"), partitions=partitions), replace(job(2, "a"), partitions=partitions)]
    assert now(nodes, jobs, {1: OWN, 2: OWN}) == now(nodes, [])


def test_who_waits_over_quota_leaves_the_guarantee_alone():
    """In Kubernetes a pod says once which it is."""
    waits = job(1, "a", state="PENDING")
    nodes = [node("n1"), node("n2")]
    assert now(nodes, [waits])["b"].over == 8 and now(nodes, [waits], {1: OVER})["b"].over == 8
    second = job(2, "a", state="PENDING")
    assert now(nodes, [waits, second], {1: OVER, 2: OVER})["b"].over == 0


def test_what_is_to_begin_later_asks_for_nothing_yet():
    waits = job(1, "a", state="PENDING")
    assert now([node("n1"), node("n2")], [waits, replace(waits, id=2)])["b"].over == 0
    later = replace(waits, id=2, reason="BeginTime")
    assert now([node("n1"), node("n2")], [waits, later])["b"].over == 8


def test_a_pod_that_is_to_be_made_asks_already():
    held = replace(job(1, "a", state="PENDING"), held=True)
    other = replace(held, id=2)
    nodes = [node("n1"), node("n2")]
    for reason, over in (("Waiting: the scheduler hasn't looked at it yet", 0), ("Nominated: n1", 0), ("Held", 16)):
        jobs = [replace(each, reason=reason) for each in (held, other)]
        assert now(nodes, jobs)["b"].over == over


def test_others_and_held_jobs_ask_for_nothing():
    jobs = [job(1, "nobody"), job(2, "a", state="COMPLETED")]
    assert now([node("n1"), node("n2")], jobs) == {"a": Quota(8, 16), "b": Quota(8, 16)}
