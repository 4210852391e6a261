"""What serves, and has no end of its own: rented for by an annotation, renewed hour by hour, given back when it goes.

Kubernetes refuses activeDeadlineSeconds in the templates of ReplicaSets and StatefulSets (pkg/apis/apps/validation), so
no manifest of a Deployment, a StatefulSet or a LeaderWorkerSet has it.
"""

import pytest

from ironburst.adapters.kubernetes import scheduler
from ironburst.adapters.kubernetes.quantities import duration
from ironburst.burst.eligibility import not_rentable
from ironburst.controller import renewing
from tests.adapters.kubernetes.seen import only, seen
from tests.fakes.kube_objects import near, owner, pod, uid
from tests.fakes.kube_world import PODS, KubeWorld, fill_home
from tests.fakes.snapshots import POLICY

HOUR = 3600.0
USD = 55.04
LIMIT = "ironburst.io/time-limit"


@pytest.fixture
def made(api, client, tmp_path, monkeypatch):
    monkeypatch.setattr(scheduler, "_SETTLE_S", 0.0)
    worlds = []

    def make(usd_per_month=1e6):
        more = {"idle_s": 60, "tick_s": 30, "markets": ["on-demand"]}
        worlds.append(KubeWorld(tmp_path, api, client, usd_per_month=usd_per_month, **more))
        return worlds[-1]

    yield make
    for world in worlds:
        world.kube.close()


def left_s(world):
    (lease,) = world.ledger.leases()
    return lease.committed_until_s - world.clock.at


def test_a_service_is_renewed_hour_by_hour_and_its_node_goes_when_it_is_scaled_down(made):
    world = made()
    fill_home(world, runs_s=9e6)
    world.serve("vllm", {LIMIT: "1h"})
    world.until(lambda: "vllm" in world.started)
    assert left_s(world) <= HOUR + 600
    for _ in range(6):
        world.pass_by(HOUR, every_s=600)
        assert world.states() == ["ready"]
        assert 0 < left_s(world) <= HOUR + renewing.AHEAD_S
    assert not world.events("needs_a_person")
    world.api.remove(PODS, "team-a", "vllm-0")
    world.until(lambda: not world.ledger.leases(), HOUR, 60.0)
    assert not world.cloud.alive()


def test_who_can_not_pay_for_another_hour_is_told_before_it_ends(made):
    world = made(usd_per_month=6 * USD)
    fill_home(world, runs_s=9e6)
    world.serve("vllm", {LIMIT: "1h"})
    world.until(lambda: "vllm" in world.started)
    world.until(lambda: world.events("needs_a_person"), 8 * HOUR, 60.0)
    (said,) = world.events("needs_a_person")
    assert "team-a/vllm-0 runs there without an end" in said and "can't pay for another hour" in said
    assert world.states() == ["ready"] and left_s(world) > 0
    world.until(lambda: not world.ledger.leases(), 8 * HOUR, 60.0)
    assert not world.cloud.alive()


def test_what_has_a_limit_is_not_renewed(made):
    world = made()
    fill_home(world, runs_s=9e6)
    world.submit("train", runs_s=9e6, limit_s=2 * HOUR)
    world.until(lambda: "train" in world.started)
    (lease,) = world.ledger.leases()
    world.pass_by(2 * HOUR - 300, every_s=600)
    assert world.ledger.leases()[0].committed_until_s == lease.committed_until_s


# ---- the limits that pods have


def namespace(text, name="team-a"):
    return {"metadata": {"name": name, "uid": uid(), "resourceVersion": "1", "annotations": {LIMIT: text}}}


@pytest.mark.parametrize("kind", ["PyTorchJob", "RayCluster", "ReplicaSet", "StatefulSet"])
def test_the_annotation_counts_while_it_waits_and_then_it_has_no_end(kind):
    waits = only([pod("serve-0", notes={LIMIT: "8h"}, owner=owner(kind, "serve", uid()))])
    runs = only([pod("serve-0", node="p5-1", notes={LIMIT: "8h"}, owner=owner(kind, "serve", uid()))])
    assert (waits.time_limit_s, waits.held) == (8 * HOUR, False)
    assert (runs.time_limit_s, runs.end_s) == (None, None)


def test_a_namespace_may_say_it_for_all_of_its_pods():
    its = [pod("serve-0", owner=owner("StatefulSet", "serve", uid()))]
    assert only(its, namespaces=[namespace("4h")]).time_limit_s == 4 * HOUR
    assert only(its, namespaces=[namespace("4h", "team-b")]).time_limit_s is None
    own = [pod("serve-0", notes={LIMIT: "30m"}, owner=owner("StatefulSet", "serve", uid()))]
    assert only(own, namespaces=[namespace("4h")]).time_limit_s == HOUR / 2


def test_a_limit_of_kubernetes_own_is_harder():
    found = only([pod("a", notes={LIMIT: "8h"}, activeDeadlineSeconds=60)])
    assert found.time_limit_s == 60


@pytest.mark.parametrize("text", ["", "0", "8 h", "8x", "-1h", "forever"])
def test_what_is_no_duration_is_said(text):
    found = only([pod("serve-0", notes={LIMIT: text})])
    assert found.held and f"its annotation {LIMIT}: {text!r} is no duration" in found.held_by
    unreadable = seen([], namespaces=[namespace(text)]).namespaces["team-a"]
    assert unreadable.error.startswith(f"namespace team-a: its annotation {LIMIT}")


@pytest.mark.parametrize(
    ("text", "value"), [("8h", 28800), ("1h30m", 5400), ("2d", 172800), ("90", 90), ("1.5h", 5400)]
)
def test_durations(text, value):
    assert duration(text) == value


def test_without_any_limit_the_sentence_says_what_pods_may_have():
    code, text = not_rentable(only([pod("serve-0", owner=owner("StatefulSet", "serve", uid()))]), POLICY)
    assert code == "no_time_limit" and LIMIT in text and "--time" not in text


def test_a_group_of_a_leader_worker_set():
    """lws, docs/examples/leaderworkerset/basic/vllm.yaml: leader and worker of 8 GPUs, memory 1124Gi, 125 CPUs. The
    affinity of a group to itself, by matchLabelKeys, is in its pods' label selector when the API server shows them.
    """
    key = "leaderworkerset.sigs.k8s.io"
    labels = {f"{key}/name": "vllm", f"{key}/group-index": "0", f"{key}/group-key": "a1", "job-name": "a1"}
    notes = {f"{key}/size": "2"}
    owners = [owner("StatefulSet", "vllm", uid()), owner("StatefulSet", "vllm-0", uid())]
    its = [
        pod(name, labels=labels, notes={**notes, LIMIT: "1h"}, owner=of, affinity=near("a1"))
        for name, of in zip(("vllm-0", "vllm-0-1"), owners, strict=True)
    ]
    found = only(its)
    assert (found.nodes, found.time_limit_s, found.demands, found.requeue) == (2, HOUR, "", True)


def test_what_is_told_names_the_pods_as_kubectl_does(made):
    from ironburst.cli.tick import lines

    world = made()
    fill_home(world, runs_s=9e6)
    world.serve("vllm", {LIMIT: "1h"})
    said = []
    for _ in range(60):
        said += lines(world.tick())
        if "vllm" in world.started:
            break
        world.clock.wait(30)
    rent = [line for line in said if line.startswith("  rent:")]
    assert rent and all("job team-a/vllm-0 " in line for line in rent)
    assert not [line for line in said if str(world.kube.observe().jobs[-1].id) in line]
