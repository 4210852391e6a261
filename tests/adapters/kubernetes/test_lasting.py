"""Pods that never start, never end, or wait for room that never comes: nothing is paid for them without end."""

import pytest

from ironburst.adapters.kubernetes import pods, scheduler
from ironburst.controller import karpenter
from ironburst.nodes.state_times import POD
from tests.fakes.kube_objects import SITE, owner, pod
from tests.fakes.kube_world import PODS, KubeWorld, fill_home, stamp

HOUR = 3600.0
USD = 55.04
IMAGE = "Back-off pulling image nvcr.io/nvidia/pytroch:26.10"
NEVER = sorted(name for name, row in POD.items() if not row.again)


@pytest.fixture
def world(api, client, tmp_path, monkeypatch):
    monkeypatch.setattr(scheduler, "_SETTLE_S", 0.0)
    it = KubeWorld(tmp_path, api, client, usd_per_month=1e6, idle_s=60, tick_s=30, markets=["on-demand"])
    yield it
    it.kube.close()


def waits(reason, message="", *, init=False):
    said = {"name": "main", "state": {"waiting": {"reason": reason, **({"message": message} if message else {})}}}
    main = {"name": "main", "state": {"waiting": {"reason": "PodInitializing"}}}
    return {
        "phase": "Pending",
        **({"initContainerStatuses": [said]} if init else {}),
        "containerStatuses": [main if init else said],
    }


def spent(world):
    return karpenter.budget_of(world.controller.site(world.document)).spent_usd


def told(world):
    return [text for text in world.events("needs_a_person") if "has been" in text]


def edit(world, how):
    """The pod of the job `train`."""
    (name,) = [name for raw in world.of(PODS) if (name := raw["metadata"]["name"]).startswith("train")]
    world.api.edit(PODS, "team-a", name, how)


@pytest.mark.parametrize("reason", NEVER)
def test_a_pod_that_never_starts_costs_what_the_table_allows_and_is_not_rented_for_again(world, reason):
    fill_home(world, runs_s=9e6)
    world.begin_as["train"] = waits(reason, IMAGE, init=reason == "CrashLoopBackOff")
    world.submit("train", 2)
    world.until(lambda: "train" in world.started)
    before, began = spent(world), world.clock.at
    world.until(lambda: not world.ledger.leases(), 6 * HOUR, 60.0)
    assert not world.cloud.alive()
    allowed_s = POD[reason].steps[-1][0] + 120 + 30 + 4 * 60
    assert spent(world) - before <= 2 * allowed_s / HOUR * USD
    assert world.clock.at - began > POD[reason].steps[-1][0]
    assert reason in told(world)[0] and IMAGE in told(world)[0] and "nothing more is rented for it" in told(world)[-1]
    world.pass_by(12 * HOUR, every_s=600)
    assert len(world.cloud.requests) == 1
    assert world.ledger.decisions()[-1].code == "unstarted"


def test_a_reason_of_a_later_kubelet_is_ended_like_a_container_that_is_created(world):
    fill_home(world, runs_s=9e6)
    world.begin_as["train"] = waits("SomethingNewError")
    world.submit("train")
    world.until(lambda: "train" in world.started)
    world.until(lambda: not world.ledger.leases(), 6 * HOUR, 120.0)
    assert told(world) and not world.cloud.alive()


@pytest.mark.parametrize("init", [True, False])
def test_what_starts_in_time_is_left_alone(world, init):
    """A large image, then an init container that stages data for an hour, or work."""
    fill_home(world, runs_s=9e6)
    world.begin_as["train"] = waits("ContainerCreating")
    world.submit("train", runs_s=6 * HOUR)
    world.until(lambda: "train" in world.started)
    world.pass_by(40 * 60, every_s=300)
    stages = {"initContainerStatuses": [{"name": "stage", "state": {"running": {}}}]}
    now = {**waits("PodInitializing"), **stages} if init else {"phase": "Running", "containerStatuses": []}
    edit(world, lambda raw: raw["status"].update(now))
    world.pass_by(70 * 60, every_s=300)
    assert world.states() == ["ready"] and not told(world)


def test_a_pod_that_crashes_between_its_tries_is_one_that_crashes(world):
    fill_home(world, runs_s=9e6)
    world.submit("train", runs_s=9e6)
    world.until(lambda: "train" in world.started)
    began, turn = world.clock.at, 0
    while world.ledger.leases() and world.clock.at < began + 12 * HOUR:
        turn += 1
        state = {"waiting": {"reason": "CrashLoopBackOff"}} if turn % 3 else {"running": {}}
        edit(world, lambda raw, state=state: raw["status"].update(containerStatuses=[{"state": state}]))
        world.pass_by(150)
    assert not world.cloud.alive() and "CrashLoopBackOff" in told(world)[0]


@pytest.mark.parametrize("grace_s", [30.0, 3 * HOUR])
def test_a_pod_that_never_ends_is_ended_after_its_grace_period(world, grace_s):
    fill_home(world, runs_s=9e6)
    world.submit("train", runs_s=9e6)
    world.until(lambda: "train" in world.started)
    until = stamp(world.clock.at + grace_s)
    world.lingers.add("train")
    edit(world, lambda raw: raw["metadata"].update(deletionTimestamp=until))
    began = world.clock.at
    world.pass_by(grace_s + 500, every_s=100)
    assert world.states() == ["ready"], "it saves"
    world.until(lambda: len(world.cloud.requests) > 1 or not world.ledger.leases(), 2 * HOUR, 60.0)
    assert world.clock.at - began <= grace_s + 2400 and "COMPLETING" in told(world)[0]


def test_a_pod_whose_room_at_home_never_comes_is_rented_for(world):
    fill_home(world, runs_s=9e6)
    world.submit("train")
    edit(world, lambda raw: raw["status"].update(nominatedNodeName="dgx09"))
    world.pass_by(1500, every_s=100)
    assert not world.cloud.requests
    assert "dgx09" in world.ledger.decisions()[-1].text
    world.until(lambda: "train" in world.started, HOUR, 60.0)
    assert "Nominated: dgx09" in told(world)[0]


@pytest.mark.parametrize("what", ["memory-pressure", "disk-pressure", "pid-pressure", "network-unavailable"])
def test_a_node_under_pressure_takes_no_job(world, what):
    fill_home(world, runs_s=9e6)
    world.submit("train", runs_s=3 * HOUR)
    world.until(lambda: "train" in world.started)
    taint = {"key": f"node.kubernetes.io/{what}", "effect": "NoSchedule"}
    world.api.edit("v1 nodes", "", "p5-1", lambda raw: raw["spec"]["taints"].append(taint))
    world.until(lambda: world.states() == ["releasing"], HOUR, 60.0)
    assert "FAIL" in told(world)[0] and len(world.started["train"]) == 1


# ---- what pods are


def view(name="web-1", of="rs-1", image="nginx", **status):
    raw = pod(name, node="p5-1", owner=owner("ReplicaSet", "web", of))
    raw["spec"]["containers"][0]["image"] = image
    raw["status"] = {"phase": "Pending", **status}
    return pods.read_pod(raw, SITE)


def test_what_one_controller_makes_again_and_again_has_one_origin():
    assert view("web-1").origin == view("web-2").origin != view("web-1", image="nginx:2").origin
    assert view("web-1").origin != view("web-1", of="rs-2").origin
    assert pods.read_pod(pod("bare"), SITE).origin == ""
