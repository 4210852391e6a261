"""Node objects and the record as nodes in the policy's words."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from ironburst.adapters.kubernetes import objects, pods
from ironburst.adapters.kubernetes.nodes import NodesRecord, nodes_of
from ironburst.burst import drains
from ironburst.ports import Resources
from tests.fakes.kube_objects import CREATED_S, GATED, SITE, node, owner, pod, rented_taint, uid

NOW = CREATED_S + 3600
RENTED = rented_taint("00000000-0000-4000-8000-00000000aaaa.0")


ASKED = NodesRecord(frozenset(("p5-1",)))


def shown(*raw_nodes, on=(), record=ASKED, now=NOW):
    views = {raw["metadata"]["name"]: objects.read_node(raw) for raw in raw_nodes}
    found = nodes_of(views, [pods.read_pod(raw, SITE) for raw in on], record, SITE, now)
    return {each.name: each for each in found}


def p5(**more):
    more = {"gate": "True", "taints": [RENTED]} | more
    return shown(node("p5-1", **more))["p5-1"]


def test_a_declared_node_without_a_node_object_is_off_and_can_be_launched():
    it = shown(record=NodesRecord())["p5-2"]
    assert it.states == ("CLOUD", "DRAIN", "IDLE", "POWERED_DOWN")
    assert it.launchable
    assert (it.partitions, it.total, it.reason) == (("burst-p5",), Resources(8, 96, 1_000_000), "no lease")


def test_one_that_was_asked_for_powers_up():
    it = shown()["p5-1"]
    assert it.has("POWERING_UP", "NOT_RESPONDING", "DRAIN")
    assert not it.launchable


@pytest.mark.parametrize(
    "more", [{"gate": None}, {"gate": "False"}, {"ready": "False"}, {"ready": "Unknown"}, {"gpus": 0}, {"gpus": 7}]
)
def test_until_its_gate_has_passed_and_its_gpus_are_there_it_still_comes(more):
    assert p5(taints=[GATED], **more).has("POWERING_UP", "DRAIN")


def test_then_it_waits_behind_its_drain_for_a_job():
    it = p5(taints=[GATED])
    assert it.states == ("CLOUD", "DRAIN", "IDLE")
    assert it.reason == "no lease"  # the word by which a lost ledger knows that it waits
    assert not it.held_by_person
    assert it.address == "10.0.0.7"


def test_a_node_that_lost_its_own_taint_is_never_taken_for_one_in_service():
    assert p5(taints=[]).has("DRAIN")


def test_in_service_it_takes_jobs_and_shows_what_services_leave():
    it = p5()
    assert (it.states, it.open, it.total) == (("CLOUD", "IDLE"), True, Resources(8, 95, 1_024_000))
    agent = pod("agent", gpus=0, node="p5-1", owner=owner("DaemonSet", "agent", uid()))
    busy = shown(node("p5-1", gate="True", taints=[RENTED]), on=[pod("a", node="p5-1", gpus=4), agent])["p5-1"]
    assert busy.has("MIXED")
    assert busy.total == Resources(8, 91, 1_024_000 - 65536)
    full = shown(node("p5-1", gate="True", taints=[RENTED]), on=[pod("a", node="p5-1")])["p5-1"]
    assert full.has("ALLOCATED")


@pytest.mark.parametrize(("ago_s", "open"), [(30, True), (590, True), (620, False)])
def test_a_gates_last_word_does_not_count_for_ever(ago_s, open):
    raw = node("p5-1", gate="True", taints=[RENTED])
    said = datetime.fromtimestamp(NOW - ago_s, UTC)
    raw["status"]["conditions"][1]["lastHeartbeatTime"] = f"{said:%Y-%m-%dT%H:%M:%SZ}"
    it = shown(raw)["p5-1"]
    assert it.open == open
    assert it.reason == ("" if open else "ironburst: its gate stopped passing: no word for 10 min")


def test_one_whose_gate_stopped_passing_takes_no_more():
    it = p5(gate="False")
    assert (it.open, it.has("POWERING_UP"), it.held_by_person) == (False, False, False)
    assert "8 GPUs, 4 links" in it.reason


def test_silence_is_not_responding_and_down_after_five_minutes():
    at = {"since": "2026-11-23T07:30:00Z", "ready": "Unknown"}
    raw = node("p5-1", gate="True", taints=[RENTED], **at)
    soon, late = (shown(raw, now=CREATED_S + 1800 + seconds)["p5-1"] for seconds in (299, 301))
    assert (soon.has("NOT_RESPONDING"), soon.has("DOWN"), soon.has("IDLE")) == (True, False, True)
    assert (soon.silent_s, late.silent_s) == (None, CREATED_S + 1800)
    assert (late.has("DOWN"), late.has("IDLE"), late.has("POWERED_DOWN"), late.held_by_person) == (
        True,
        False,
        False,
        False,
    )


def test_what_is_left_of_a_lease_is_healed_not_kept():
    raw = node("p5-1", gate="True", taints=[RENTED], ready="Unknown")
    it = shown(raw, record=NodesRecord())["p5-1"]
    assert it.has("POWERED_DOWN", "DOWN")
    assert not it.launchable
    assert not it.held_by_person


def test_whose_a_cordon_is():
    person = p5(unschedulable=True)
    assert person.held_by_person
    for words in ("release", "no lease", f"{drains.PREFIX}spot interruption"):
        assert not p5(unschedulable=True, notes={"ironburst.io/drain": words}).held_by_person
    told = p5(unschedulable=True, notes={"ironburst.io/drain": "new cables"})  # by `drain`, in a person's words
    assert (told.held_by_person, told.reason) == (True, "new cables")
    assert p5(notes={"ironburst.io/drain": "new cables"}).open  # uncordoned by a person: the note is old


def test_a_node_that_is_being_deleted_powers_down():
    raw = node("p5-1", gate="True", taints=[RENTED])
    raw["metadata"]["deletionTimestamp"] = "2026-11-23T07:30:00Z"
    assert shown(raw)["p5-1"].has("POWERING_DOWN", "DRAIN")


def test_homes_own_nodes():
    plain, gpu = (
        node("dgx01"),
        node("dgx02", taints=[{"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}]),
    )
    head = node("head", taints=[{"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"}])
    found = shown(plain, gpu, head, node("dgx03", unschedulable=True))
    assert [found[name].partitions for name in ("dgx01", "dgx02", "dgx03", "head")] == [("home",)] * 3 + [()]
    assert (found["dgx01"].open, found["dgx03"].open) == (True, False)
    assert "CLOUD" not in found["dgx01"].states


def test_a_node_that_cannot_be_read_takes_no_job():
    raw = node("dgx01")
    raw["status"]["allocatable"]["cpu"] = "many"
    it = shown(raw)["dgx01"]
    assert (it.states, it.open) == (("UNKNOWN",), False)


@pytest.mark.parametrize(
    ("labels", "gpus"),
    [
        ({}, 80),
        ({"nvidia.com/gpu.replicas": "1", "nvidia.com/gpu.sharing-strategy": "none"}, 80),
        ({"nvidia.com/gpu.replicas": "10", "nvidia.com/gpu.sharing-strategy": "time-slicing"}, 8),
        ({"nvidia.com/gpu.replicas": "10", "nvidia.com/gpu.product": "NVIDIA-A10G-SHARED"}, 8),
    ],
)
def test_replicas_of_time_slicing_are_no_gpus(labels, gpus):
    """NVIDIA's device plugin announces each GPU as often as it is shared, and feature discovery says so."""
    raw = node("dgx01", gpus=80)
    raw["metadata"]["labels"] |= labels
    view = objects.read_node(raw)
    (shown,) = nodes_of({"dgx01": view}, [], NodesRecord(), replace(SITE, pools=()), CREATED_S)
    assert (view.gpus, shown.total.gpus) == (gpus, gpus)
