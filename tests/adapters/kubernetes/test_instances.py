"""Rented nodes of EKS: their objects are called as their instances are, and each is the node that the record says."""

from dataclasses import replace

import pytest

from ironburst.adapters.kubernetes import Kubernetes, objects, record, scheduler
from ironburst.adapters.kubernetes.instances import gone, joined
from ironburst.adapters.kubernetes.nodes import NodesRecord
from lab.system import wait_for
from tests.fakes.kube_objects import GATED, SITE, job, may_on_eks, node, pods_of

ON_EKS = replace(SITE, by_instance=True)
FIRST, SECOND = "i-0123456789abcdef0", "i-0fedcba9876543210"


def says(raw, name):
    raw["metadata"]["labels"]["ironburst.io/node"] = name
    return raw


def views(*raws):
    return {raw["metadata"]["name"]: objects.read_node(raw) for raw in raws}


def test_the_first_that_says_so_is_the_node_that_was_asked_for():
    new, odd = joined(views(says(node(FIRST), "p5-1"), node("dgx01")), {"p5-1", "p5-2"}, ON_EKS)
    assert (new, odd) == ({"p5-1": FIRST}, [])


@pytest.mark.parametrize(
    ("raws", "permits", "words"),
    [
        ([says(node(FIRST), "p5-1")], set(), "which was not asked for, or is there already"),
        ([says(node("p5-1"), ""), says(node(FIRST), "p5-1")], {"p5-1"}, "or is there already"),
        ([says(node("ip-10-0-0-1.ec2.internal"), "p5-1")], {"p5-1"}, "which was not asked for"),
        ([says(node(FIRST), "dgx01")], {"p5-1"}, "says that it is dgx01"),
        ([says(node(FIRST), "p5-1"), says(node(SECOND), "p5-1")], {"p5-1"}, "both say that they are p5-1"),
    ],
)
def test_who_is_not_believed_is_told(raws, permits, words):
    new, (odd,) = joined(views(*raws), permits, ON_EKS)
    assert new == {} and words in odd


def test_what_was_given_back_is_nobodys():
    kept = NodesRecord(frozenset({"p5-1", "p5-2"}), objects={"p5-1": FIRST, "p5-2": SECOND})
    assert gone(kept, {"p5-1"}) == NodesRecord(frozenset({"p5-2"}), objects={"p5-2": SECOND})


@pytest.fixture
def cluster(api, client, monkeypatch):
    monkeypatch.setattr(scheduler, "_SETTLE_S", 0.0)
    api.allowed = may_on_eks
    it = Kubernetes(client, ON_EKS, first_s=10.0)  # it could hand out no token, and needs none
    yield it
    it.close()


def state(cluster, name):
    return next((each for each in cluster.observe().nodes if each.name == name), None)


def test_a_rented_node_lives_under_its_declared_name(api, client, cluster):
    cluster.put_permit(["p5-1"])
    cluster.power_up(["p5-1"])
    assert state(cluster, "p5-1").has("POWERING_UP")
    api.put("v1 nodes", says(node(FIRST, gate="True", taints=[GATED]), "p5-1"))
    wait_for(lambda: FIRST in cluster.objects().nodes, 10, "the node")
    assert state(cluster, "p5-1").has("POWERING_UP") and cluster.admit() == []
    wait_for(
        lambda: "IDLE" in state(cluster, "p5-1").states and not state(cluster, "p5-1").has("POWERING_UP"), 10, "it"
    )
    assert record.read(client, ON_EKS).objects == {"p5-1": FIRST}
    cluster.resume(["p5-1"])
    assert [each["key"] for each in api.get("v1 nodes", "", FIRST)["spec"]["taints"]] == ["ironburst.io/rented"]
    cluster.beat({"p5-1": 600}, 7.0)
    assert api.get("v1 nodes", "", FIRST)["metadata"]["annotations"]["ironburst.io/beat"].endswith("at=7,left=600")
    assert cluster.admit() == []

    train = job("train")
    (its,) = pods_of(train, 1)
    api.put("batch/v1 jobs", train)
    api.put("v1 pods", its)
    (waiting,) = wait_for(lambda: cluster.observe().jobs, 10, "the job")
    cluster.place(waiting.id, ["burst-p5"], [name for name in ON_EKS.pools[0].nodes if name != "p5-1"])
    bound = api.get("v1 pods", "team-a", its["metadata"]["name"])
    value = api.get("v1 nodes", "", FIRST)["spec"]["taints"][0]["value"]
    assert value in [each.get("value") for each in bound["spec"]["tolerations"]]

    api.put("v1 pods", {**bound, "spec": {**bound["spec"], "nodeName": FIRST}})
    wait_for(lambda: [each for each in cluster.observe().jobs if "p5-1" in each.on], 10, "the job on the node")
    cluster.abandon(["p5-1"], "its lease has ended")
    assert api.get("v1 nodes", "", FIRST) is None
    assert record.read(client, ON_EKS).objects == {}
    wait_for(lambda: state(cluster, "p5-1").has("POWERED_DOWN"), 10, "the node gone")


def test_after_a_restart_it_is_still_the_same_node(api, client, cluster):
    cluster.put_permit(["p5-1"])
    api.put("v1 nodes", says(node(FIRST, gate="True", taints=[GATED]), "p5-1"))
    wait_for(lambda: FIRST in cluster.objects().nodes, 10, "the node")
    cluster.admit()
    again = Kubernetes(client, ON_EKS, first_s=10.0)
    try:
        assert "p5-1" in again.objects().nodes and FIRST not in again.objects().nodes
    finally:
        again.close()


def test_one_that_nobody_asked_for_is_told_and_takes_no_job(api, cluster):
    cluster.put_permit(["p5-2"])
    api.put("v1 nodes", says(node(FIRST, gate="True", taints=[GATED]), "p5-1"))
    wait_for(lambda: FIRST in cluster.objects().nodes, 10, "the node")
    (odd,) = cluster.admit()
    assert FIRST in odd and "p5-1" in odd
    assert state(cluster, FIRST).partitions == () and state(cluster, "p5-1").has("POWERED_DOWN")
