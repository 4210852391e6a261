"""Home nodes in a converge: what is waited for, what is moved, what stays."""

import math
from dataclasses import replace

import pytest

from ironburst.adapters.kubernetes import Kubernetes, KubernetesNodes, scheduler
from ironburst.adapters.kubernetes.quantities import moment
from ironburst.ports.service import NodeService
from lab.system import wait_for
from tests.fakes.kube_objects import GATED, SITE, budget, job, may, node, owner, pod, pods_of, uid

STARTED_S = moment("2026-11-23T07:10:00Z")


@pytest.fixture
def home(api, client, monkeypatch):
    monkeypatch.setattr(scheduler, "_SETTLE_S", 0.0)
    api.allowed = may
    api.put("v1 nodes", node("dgx01"))
    api.put("v1 nodes", node("dgx02"))
    it = KubernetesNodes(Kubernetes(client, SITE, first_s=10.0), SITE)
    yield it
    it.close()


def put(api, *raws):
    for raw in raws:
        api.put("batch/v1 jobs" if raw["kind"] == "Job" else "v1 pods", raw)


def until(home, true):
    return wait_for(lambda: true(home.occupancy()), 10.0, "what was waited for", pause=0.01)


def test_it_is_a_node_service(home):
    it: NodeService = home
    assert {name: (seen.busy, seen.drained, seen.available, seen.joined) for name, seen in it.occupancy().items()} == {
        "dgx01": (False, False, True, True),
        "dgx02": (False, False, True, True),
    }


def test_a_pod_with_gpus_is_waited_for_and_never_evicted(api, home):
    train = job("train", limit=None)
    (its,) = pods_of(train, 1, node="dgx01", activeDeadlineSeconds=3600)
    put(api, train, its)
    seen = until(home, lambda nodes: nodes["dgx01"].busy and nodes["dgx01"])
    assert (seen.jobs, seen.end_s) == (("team-a/train-0",), STARTED_S + 3600)
    home.drain(["dgx01"], "ironburst converge: a driver")
    drained = until(home, lambda nodes: nodes["dgx01"].drained and nodes["dgx01"])
    assert drained.reason == "ironburst converge: a driver" and drained.busy
    assert api.get("v1 pods", "team-a", "train-0")["metadata"].get("deletionTimestamp") is None
    api.remove("v1 pods", "team-a", "train-0")
    api.remove("batch/v1 jobs", "team-a", "train")
    until(home, lambda nodes: not nodes["dgx01"].busy)
    home.resume(["dgx01"])
    until(home, lambda nodes: nodes["dgx01"].available)


def test_services_without_gpus_move_and_what_goes_with_the_node_stays(api, home):
    daemon = pod("exporter-x", gpus=0, node="dgx01", owner=owner("DaemonSet", "exporter", uid()))
    served, kept = (
        pod(name, gpus=0, node="dgx01", labels={"app": name}, owner=owner("ReplicaSet", name, uid()))
        for name in ("web", "etcd")
    )
    elsewhere = pod("api", gpus=0, node="dgx02", owner=owner("ReplicaSet", "api", uid()))
    bare = pod("notebook", gpus=0, node="dgx01")
    put(api, daemon, served, kept, elsewhere, bare)
    api.put("policy/v1 poddisruptionbudgets", budget("etcd", 0, app="etcd"))
    until(home, lambda nodes: len(nodes["dgx01"].jobs) == 3)
    home.drain(["dgx01"], "ironburst converge: a driver")

    def going(name):
        return bool(api.get("v1 pods", "team-a", name)["metadata"].get("deletionTimestamp"))

    assert {name: going(name) for name in ("exporter-x", "web", "etcd", "api", "notebook")} == {
        "exporter-x": False,
        "web": True,
        "etcd": False,
        "api": False,
        "notebook": False,
    }
    api.remove("v1 pods", "team-a", "web")
    seen = until(home, lambda nodes: len(nodes["dgx01"].jobs) == 2 and nodes["dgx01"])
    assert seen.busy and seen.jobs == ("team-a/etcd", "team-a/notebook") and seen.end_s == math.inf
    assert not going("etcd")
    api.put("policy/v1 poddisruptionbudgets", budget("etcd", 1, app="etcd"))  # another one runs elsewhere by now
    until(home, lambda nodes: going("etcd"))
    assert not any(map(going, ("exporter-x", "api", "notebook")))


def test_a_persons_cordon_and_a_rented_node_are_shown_as_what_they_are(api, home):
    api.put("v1 nodes", node("dgx02", unschedulable=True))
    api.put("v1 nodes", node("p5-1", taints=[GATED]))
    nodes = until(home, lambda nodes: "p5-1" in nodes and nodes["dgx02"].drained and nodes)
    assert nodes["dgx02"].reason == "cordoned" and nodes["p5-1"].partitions == ("burst-p5",)
    assert "p5-2" not in nodes  # no Node object: nothing to converge
    home.drain(["dgx02"], "ironburst converge: a driver")
    assert home.occupancy()["dgx02"].reason == "cordoned"


def test_nodes_of_eks_are_called_as_they_are_declared(api, client, monkeypatch):
    """Their objects have the names of their instances."""
    monkeypatch.setattr(scheduler, "_SETTLE_S", 0.0)
    api.allowed = may
    api.put("v1 nodes", node("i-0abc"))
    api.put("v1 nodes", node("i-0def"))
    site = replace(SITE, ours={"i-0abc": "fixed-1"})
    it = KubernetesNodes(Kubernetes(client, site, first_s=10.0), site)
    try:
        put(api, pod("train", node="i-0abc"))
        assert until(it, lambda nodes: nodes["fixed-1"].busy and nodes).keys() >= {"fixed-1", "i-0def"}
        it.drain(["fixed-1"], "ironburst converge: a driver")
        until(it, lambda nodes: nodes["fixed-1"].drained)
        assert api.get("v1 nodes", "", "i-0abc")["spec"]["unschedulable"] is True
        it.resume(["fixed-1"])
        until(it, lambda nodes: not nodes["fixed-1"].drained)
        api.remove("v1 pods", "team-a", "train")
        until(it, lambda nodes: nodes["fixed-1"].available)
    finally:
        it.close()
