"""Clusters of an operator that grow: KubeRay's autoscaler adds a worker when somebody waits for it, and takes it away
when nobody does. The pods are as KubeRay makes them (test_launchers.ray); here they are made later than the first ones.
"""

import copy

import pytest

from tests.adapters.kubernetes.seen import jobs_of, only
from tests.adapters.kubernetes.test_launchers import P5, asks, at_home, kept_together, ray
from tests.fakes.kube_objects import node, pod, rented_taint, uid
from tests.fakes.kube_world import PODS, fill_home

REPLICA = "ray.io/worker-group-replica-name"


def added(like, name, created="2026-11-23T08:00:00Z", **labels):
    """A worker of the same group; the first ones are of 07:00 and run since 07:10."""
    raw = copy.deepcopy(like)
    raw["metadata"] |= {"name": name, "uid": uid(), "creationTimestamp": created}
    raw["metadata"]["labels"] |= labels
    return raw


def on(raw, name):
    at_home(raw)["spec"]["nodeName"] = name
    return raw


def grown(*, together=False, where="dgx01", more=1):
    """(what runs, what was added)."""
    head, workers = ray()
    if together:
        kept_together(workers, "ray.io/node-type", "worker")
    late = [added(workers[0], f"late-{n}") for n in range(more)]
    return [at_home(head), *(on(raw, where) for raw in workers)], late


def named(*args, **more):
    return {each.name: each for each in jobs_of(*args, site=P5, **more)}


def test_each_worker_that_is_added_is_a_job_by_itself():
    before, late = grown(more=2)
    found = named([*before, *late])
    assert set(found) == {"team-a/rayjob-x7k2p", "team-a/late-0", "team-a/late-1"}
    runs, new = found["team-a/rayjob-x7k2p"], found["team-a/late-0"]
    assert (runs.state, runs.nodes, runs.reason) == ("RUNNING", 1, "")
    assert (new.pending, new.held, new.demands, new.nodes, new.each.gpus) == (True, False, "", 1, 8)
    again = named([*before, on(late[0], "p5-1"), late[1]])
    assert again["team-a/late-0"].id == new.id and again["team-a/late-0"].on == ("p5-1",)
    assert set(named(before)) == {"team-a/rayjob-x7k2p"}, "it was taken away"


def test_hosts_of_a_replica_are_added_together():
    before, late = grown(more=2)
    for raw in late:
        raw["metadata"]["labels"][REPLICA] = "gpus-af03d"
    kept_together(late, REPLICA, "gpus-af03d")
    new = named([*before, *late])["team-a/gpus-af03d"]
    assert (new.nodes, new.held, new.demands) == (2, False, "")


@pytest.mark.parametrize("where", ["dgx01", "p5-1"])
def test_who_has_to_be_where_the_others_are_is_rented_for_there_alone(where):
    before, late = grown(together=True, where=where)
    there = [node("p5-1", gate="True", taints=[rented_taint("x.0")])]
    new = named([*before, *late], nodes=there)["team-a/late-0"]
    home = "its side of others of its kind, by required pod affinity, and they run at home"
    assert new.demands == (home if where == "dgx01" else "")


@pytest.mark.parametrize("created", ["2026-11-23T07:00:50Z", "2026-11-23T07:09:00Z"])
def test_what_was_made_with_the_others_or_before_they_ran_is_their_gang(created):
    before, _ = grown()
    (first, *_) = [raw for raw in before if "worker" in raw["metadata"]["name"]]
    late = added(first, "late", created)
    del late["spec"]["nodeName"]
    late["status"] = pod("x")["status"]
    found = only([*before, late], site=P5)
    assert found.state == "RUNNING" and "of its 4 pods have a node" in found.reason


def test_a_cluster_that_waits_as_a_whole_is_one_job_whenever_its_workers_were_added():
    head, workers = ray()
    kept_together(workers, "ray.io/node-type", "worker")
    late = added(workers[0], "late")
    assert only([at_home(head), *workers, late], site=P5).nodes == 3


def test_a_worker_that_is_added_is_rented_for_and_its_node_goes_with_it(world):
    """Both within the ceiling, as any job."""
    fill_home(world, runs_s=9e6)
    _, (first, second) = ray()
    for raw in (first, second):
        asks(raw, **{"nvidia.com/gpu": "8", "cpu": "1", "memory": "500Mi"})
        raw["spec"]["activeDeadlineSeconds"] = 36000
        world.runs_s["rayjob-x7k2p"] = float("inf")
    world.api.put(PODS, world.fresh(first))
    world.until(lambda: len(on_rented(world)) == 1)
    world.pass_by(600, every_s=60)
    world.api.put(PODS, world.fresh(second))
    world.until(lambda: len(on_rented(world)) == 2)
    assert len(set(on_rented(world))) == len(world.ledger.leases()) == 2
    world.api.remove(PODS, "team-a", second["metadata"]["name"])
    world.until(lambda: len(world.ledger.leases()) == 1, 3600.0, 60.0)
    assert len(on_rented(world)) == 1


def on_rented(world):
    names = [raw["spec"].get("nodeName", "") for raw in world.of(PODS) if "worker" in raw["metadata"]["name"]]
    return [name for name in names if name.startswith("p5-")]
