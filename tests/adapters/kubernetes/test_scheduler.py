"""The adapter as the controller uses it, against a server that refuses what the real one refuses."""

from dataclasses import replace

import pytest

from ironburst import kubernetes_rights as rights
from ironburst.adapters.kubernetes import Kubernetes, KubernetesPool, scheduler
from ironburst.ports import Quota, Resources, Scheduler, SchedulerError, TeamShare
from ironburst.shares.kubernetes import quotas_of
from lab.system import wait_for
from tests.fakes.kube_api import Refusal
from tests.fakes.kube_objects import (
    GATED,
    READY,
    SITE,
    budget,
    csr,
    gang,
    job,
    may,
    node,
    owner,
    pem,
    pod,
    pods_of,
    rented_taint,
    uid,
)

BUDGETS = "policy/v1 poddisruptionbudgets"
REQUESTS = "certificates.k8s.io/v1 certificatesigningrequests"
P5 = ("p5-1", "p5-2", "p5-3")


@pytest.fixture
def kube(api, client, monkeypatch):
    monkeypatch.setattr(scheduler, "_SETTLE_S", 0.0)
    api.allowed = may
    it = Kubernetes(client, SITE, first_s=10.0, deliver=str)
    yield it
    it.close()


def until(true):
    return wait_for(true, 10.0, "what was waited for", pause=0.01)


def join(api, *names, gate="True"):
    for name in names:
        api.put("v1 nodes", node(name, gate=gate, taints=[GATED]))


def submit(api, raw, its):
    api.put("batch/v1 jobs", raw)
    for each in its:
        api.put("v1 pods", each)


def one_pod_job(api, name="train", **more):
    raw = job(name)
    submit(api, raw, pods_of(raw, 1, **more))
    return raw


def bind(api, name, on, ns="team-a"):
    def change(raw):
        raw["spec"]["nodeName"] = on
        raw["status"] = {"phase": "Running", "startTime": "2026-11-23T07:20:00Z", "conditions": [READY]}

    api.edit("v1 pods", ns, name, change)


def ids(kube, count=1):
    """Ids by name, once so many jobs are seen."""
    found = until(lambda: (jobs := kube.observe().jobs) and len(jobs) == count and jobs)
    return {each.name.partition("/")[2]: each.id for each in found}


def in_service(kube, api, *names):
    join(api, *names)
    kube.put_permit(names)
    kube.power_up(names)
    until(lambda: all((it := kube.observe().node(name)) and not it.has("POWERING_UP") for name in names))
    kube.resume(names)


def tolerates(api, pod_name, node_name, ns="team-a"):
    (taint,) = [each for each in api.get("v1 nodes", "", node_name)["spec"]["taints"] if "rented" in each["key"]]
    values = [each.get("value") for each in api.get("v1 pods", ns, pod_name)["spec"]["tolerations"]]
    return taint["value"] in values


def test_it_is_a_scheduler(client):
    it: Scheduler = Kubernetes(client, SITE)  # mypy holds `connect` to it
    assert all(callable(getattr(it, name)) for name in ("observe", "claim", "place", "beat"))


def test_an_empty_cluster_has_its_declared_nodes(kube):
    seen = kube.observe()
    assert (seen.jobs, seen.permits, seen.unreadable) == ((), frozenset(), ())
    assert sorted(each.name for each in seen.nodes if each.launchable) == ["g6-1", *P5]


def test_only_nodes_that_are_on_their_way_are_let_in(api, kube):
    kube.put_permit(["p5-1", "p5-2"])
    join(api, "p5-2")
    until(lambda: kube.observe().node("p5-2").address)
    for name in P5:
        api.put(REQUESTS, csr(f"node-csr-{name}", pem(f"system:node:{name}")))
    said = kube.admit()
    assert ["p5-2" in said[0], "p5-3" in said[1]] == [True, True] and len(said) == 2
    kube.remove_permit(["p5-1"])
    api.put(REQUESTS, csr("late", pem("system:node:p5-1")))
    (late,) = kube.admit()
    assert "p5-1 was not asked for, or no more" in late and kube.admit() == []


def test_a_node_has_one_request_also_after_the_controller_was_started_anew(api, kube, client):
    kube.put_permit(["p5-1"])
    api.put(REQUESTS, csr("first", pem("system:node:p5-1")))
    assert kube.admit() == []
    anew = Kubernetes(client, SITE, first_s=10.0, deliver=str)
    api.put(REQUESTS, csr("second", pem("system:node:p5-1")))
    (said,) = anew.admit()
    assert "second of system:bootstrap:abcdef is denied: another one is for node p5-1" in said
    anew.put_permit(["p5-2"])  # leaves what was given
    api.put(REQUESTS, csr("third", pem("system:node:p5-1")))
    assert len(anew.admit()) == 1
    anew.remove_permit(["p5-1"])
    anew.put_permit(["p5-1"])  # the next lease of that name: what was denied stays denied
    api.put(REQUESTS, csr("fourth", pem("system:node:p5-1")))
    assert anew.admit() == []
    shown = {name: api.get(REQUESTS, "", name)["status"]["conditions"][0]["type"] for name in ("second", "fourth")}
    assert shown == {"second": "Denied", "fourth": "Approved"}
    anew.close()


def test_what_another_document_says_of_pools_counts_from_then_on(api, kube):
    """Also for pods that were read before."""
    one_pod_job(api)
    ids(kube)
    other = KubernetesPool("burst-a3", ("a3-1",), Resources(8, 96, 1000000), "h200")
    kube.declare(replace(SITE, pools=(*SITE.pools, other)))
    until(lambda: kube.observe().node("a3-1"))
    kube.power_up(["a3-1"])
    assert kube.observe().node("a3-1").has("POWERING_UP") and len(kube.observe().jobs) == 1
    with pytest.raises(SchedulerError, match="no pool declares a4-1"):
        kube.power_up(["a4-1"])
    lists = len(api.verbs("list"))
    kube.declare(replace(SITE, pools=(*SITE.pools, other)))  # the same again: nothing is read anew
    kube.observe()
    assert len(api.verbs("list")) == lists


def test_an_idle_tick_lists_nothing(api, kube):
    one_pod_job(api)
    ids(kube)
    kube.claim("me", "words", 600.0)
    lists = len(api.verbs("list"))
    for _ in range(20):
        kube.claim("me", "words", 600.0)
        kube.observe()
    assert len(api.verbs("list")) == lists


def test_the_whole_way_of_a_rented_node(api, kube):
    one_pod_job(api)
    (train,) = ids(kube).values()
    kube.put_permit(["p5-1"])
    kube.power_up(["p5-1"])
    seen = kube.observe()
    assert seen.permits == {"p5-1"}
    assert seen.node("p5-1").has("POWERING_UP", "DRAIN")
    join(api, "p5-1", gate=None)
    until(lambda: kube.observe().node("p5-1").address)
    with pytest.raises(SchedulerError, match="node p5-1 isn't ready for jobs: Ready is True, its gate is unheard"):
        kube.resume(["p5-1"])
    with pytest.raises(SchedulerError, match="can't be let on p5-1: not in service"):
        kube.place(train, ["home", "burst-p5"], ["p5-2", "p5-3"])
    join(api, "p5-1")
    until(lambda: kube.observe().node("p5-1").states == ("CLOUD", "DRAIN", "IDLE"))
    kube.resume(["p5-1"])
    assert kube.observe().node("p5-1").open
    kube.place(train, ["home", "burst-p5"], ["p5-2", "p5-3"])
    placed = kube.observe().job(train)
    assert (placed.partitions, placed.excluded) == (("home", "burst-p5"), ("p5-2", "p5-3"))
    assert tolerates(api, "train-0", "p5-1")
    bind(api, "train-0", "p5-1")
    until(lambda: kube.observe().on("p5-1"))
    kube.beat({"p5-1": 3600}, 1_800_000_000.5)
    assert (
        api.get("v1 nodes", "", "p5-1")["metadata"]["annotations"]["ironburst.io/beat"]
        == "ironburst,at=1800000000,left=3600"
    )
    kube.release(["p5-1"])
    kube.release(["p5-1"])
    assert kube.observe().node("p5-1").has("DRAIN", "ALLOCATED")  # its job goes on
    api.remove("v1 pods", "team-a", "train-0")
    until(lambda: not kube.observe().on("p5-1"))
    kube.release(["p5-1"])
    kube.remove_permit(["p5-1"])
    assert kube.observe().node("p5-1").launchable
    assert kube.observe().permits == frozenset()


def test_the_gates_taint_goes_in_the_same_write_that_brings_the_leases(api, kube):
    in_service(kube, api, "p5-1")
    it = api.get("v1 nodes", "", "p5-1")
    assert it["spec"]["taints"] == [rented_taint(f"{it['metadata']['uid']}.0")]
    patches = len(api.verbs("patch"))
    kube.resume(["p5-1"])
    assert len(api.verbs("patch")) == patches  # nothing is left to be done


def test_conflicts_on_every_write_are_read_again(api, kube):
    one_pod_job(api)
    (train,) = ids(kube).values()
    api.conflicts = 4
    in_service(kube, api, "p5-1")
    api.conflicts = 3
    kube.drain(["p5-1"], "ironburst: x")
    kube.place(train, ["home", "burst-p5"], ["p5-2", "p5-3"])
    assert tolerates(api, "train-0", "p5-1")


# ---- place


def test_a_gang_is_let_on_all_of_its_nodes(api, kube):
    submit(api, *gang("train", 2))
    (train,) = ids(kube).values()
    in_service(kube, api, "p5-1", "p5-2")
    kube.place(train, ["home", "burst-p5"], ["p5-3"])
    assert all(tolerates(api, f"train-{n}", name) for n in range(2) for name in ("p5-1", "p5-2"))
    assert kube.observe().job(train).excluded == ("p5-3",)


def test_a_gang_is_open_to_a_node_only_when_all_of_its_pods_are(api, kube):
    submit(api, *gang("train", 2))
    (train,) = ids(kube).values()
    in_service(kube, api, "p5-1")
    api.fail(Refusal(500, "InternalError", "no"), when=lambda call: call[0] == "patch" and call[4] == "train-1")
    with pytest.raises(SchedulerError, match="patch pods train-1"):
        kube.place(train, ["home", "burst-p5"], ["p5-2", "p5-3"])
    assert kube.observe().job(train).partitions == ("home",)
    kube.place(train, ["home", "burst-p5"], ["p5-2", "p5-3"])  # the next tick does the rest
    assert kube.observe().job(train).partitions == ("home", "burst-p5")
    values = [
        each["value"] for each in api.get("v1 pods", "team-a", "train-0")["spec"]["tolerations"] if "value" in each
    ]
    assert len(values) == 1


def test_what_was_given_is_taken_back_by_the_nodes_taint_and_left_to_the_others(api, kube):
    for name in ("one", "two"):
        one_pod_job(api, name)
    found = ids(kube, 2)
    in_service(kube, api, "p5-1")
    for each in found.values():
        kube.place(each, ["home", "burst-p5"], ["p5-2", "p5-3"])
    assert tolerates(api, "one-0", "p5-1")
    kube.place(found["one"], ["home"], [], begin_now=True)
    assert not tolerates(api, "one-0", "p5-1")
    assert tolerates(api, "two-0", "p5-1")
    seen = kube.observe()
    assert seen.job(found["one"]).partitions == ("home",)
    assert seen.job(found["two"]).partitions == ("home", "burst-p5")
    kube.place(found["one"], ["home", "burst-p5"], ["p5-2", "p5-3"])
    assert tolerates(api, "one-0", "p5-1")


def test_an_old_toleration_is_worth_nothing_on_the_next_node_of_the_name(api, kube):
    one_pod_job(api)
    (train,) = ids(kube).values()
    in_service(kube, api, "p5-1")
    kube.place(train, ["home", "burst-p5"], ["p5-2", "p5-3"])
    kube.abandon(["p5-1"], "given up")
    in_service(kube, api, "p5-1")
    assert not tolerates(api, "train-0", "p5-1")
    assert kube.observe().job(train).partitions == ("home",)


def test_only_pending_jobs_of_the_queue_are_placed(api, kube):
    one_pod_job(api)
    (train,) = ids(kube).values()
    in_service(kube, api, "p5-1")
    with pytest.raises(SchedulerError, match="job 5 isn't in the queue"):
        kube.place(5, ["home"], [])
    bind(api, "train-0", "dgx01")
    until(lambda: kube.observe().job(train).on)
    with pytest.raises(SchedulerError, match=r"job \d+ \(team-a/train\) isn't pending"):
        kube.place(train, ["home", "burst-p5"], ["p5-2", "p5-3"])


def test_a_pod_of_the_same_name_that_was_made_since_is_not_let_on(api, kube):
    raw = one_pod_job(api)
    (train,) = ids(kube).values()
    in_service(kube, api, "p5-1")
    api.muted = True  # the watch is late
    api.remove("v1 pods", "team-a", "train-0")
    api.put("v1 pods", pods_of(raw, 1)[0])
    with pytest.raises(SchedulerError, match="testing value"):
        kube.place(train, ["home", "burst-p5"], ["p5-2", "p5-3"])
    assert not tolerates(api, "train-0", "p5-1")


def test_a_pod_without_tolerations(api, kube):
    raw = one_pod_job(api)
    api.edit("v1 pods", "team-a", "train-0", lambda pod: pod["spec"].pop("tolerations"))
    (train,) = ids(kube).values()
    in_service(kube, api, "p5-1")
    until(lambda: not kube.objects().pods["team-a/train-0"].lists_tolerations)
    kube.place(train, ["home", "burst-p5"], ["p5-2", "p5-3"])
    assert tolerates(api, "train-0", "p5-1"), raw


# ---- nodes


def test_a_persons_cordon_stays_a_persons(api, kube):
    in_service(kube, api, "p5-1")
    api.edit("v1 nodes", "", "p5-1", lambda raw: raw["spec"].update(unschedulable=True))
    until(lambda: kube.observe().node("p5-1").held_by_person)
    kube.drain(["p5-1"], "ironburst: spot interruption")
    assert kube.observe().node("p5-1").held_by_person
    kube.resume(["p5-1"])
    assert kube.observe().node("p5-1").open


def test_our_drain_has_its_reason_and_is_lifted(api, kube):
    api.put("v1 nodes", node("dgx01"))
    until(lambda: kube.observe().node("dgx01"))
    kube.drain(["dgx01"], "ironburst: converge")
    it = kube.observe().node("dgx01")
    assert (it.open, it.reason, it.held_by_person) == (False, "ironburst: converge", False)
    kube.resume(["dgx01"])
    assert kube.observe().node("dgx01").open
    assert "ironburst.io/drain" not in api.get("v1 nodes", "", "dgx01")["metadata"]["annotations"]


def test_a_node_that_is_off_is_behind_its_drain_anyway_and_an_unknown_one_is_refused(api, kube):
    kube.drain(["p5-1"], "no lease")
    with pytest.raises(SchedulerError, match='nodes "dgx09" not found'):
        kube.drain(["dgx09"], "x")
    with pytest.raises(SchedulerError, match="no pool declares dgx09"):
        kube.power_up(["dgx09"])


def test_a_release_waits_for_pods_that_the_watch_has_not_told_of_yet(api, kube):
    in_service(kube, api, "p5-1")
    kube.observe()
    api.muted = True
    api.put("v1 pods", pod("late", node="p5-1"))
    api.put("v1 pods", pod("agent", gpus=0, node="p5-1", owner=owner("DaemonSet", "agent", uid())))
    for _ in range(3):
        kube.release(["p5-1"])
    assert api.get("v1 nodes", "", "p5-1")["spec"]["unschedulable"]
    api.remove("v1 pods", "team-a", "late")
    kube.release(["p5-1"])
    assert api.get("v1 nodes", "", "p5-1") is None


def test_a_node_is_not_deleted_in_the_call_that_cordons_it(api, kube):
    in_service(kube, api, "p5-1")
    kube.release(["p5-1"])
    assert api.get("v1 nodes", "", "p5-1")
    kube.release(["p5-1"])
    assert api.get("v1 nodes", "", "p5-1") is None
    kube.release(["p5-1"])  # and once more is fine
    assert kube.observe().node("p5-1").launchable


def test_abandoned_is_gone_with_its_pods_but_not_its_daemons(api, kube):
    one_pod_job(api)
    in_service(kube, api, "p5-1")
    bind(api, "train-0", "p5-1")
    api.put("v1 pods", pod("agent", gpus=0, node="p5-1", owner=owner("DaemonSet", "agent", uid())))
    kube.abandon(["p5-1", "p5-2"], "given up")
    assert api.get("v1 nodes", "", "p5-1") is None
    assert api.get("v1 pods", "team-a", "train-0")["metadata"]["deletionTimestamp"]
    assert "deletionTimestamp" not in api.get("v1 pods", "team-a", "agent")["metadata"]
    assert kube.observe().node("p5-1").has("POWERED_DOWN")


def test_one_that_fails_keeps_no_other_and_is_told(api, kube):
    in_service(kube, api, "p5-1", "p5-2", "p5-3")
    api.fail(Refusal(500, "InternalError", "boom"), when=lambda call: call[0] == "patch" and call[4] == "p5-2")
    with pytest.raises(SchedulerError, match=r"patch nodes p5-2 is refused \(500\): boom"):
        kube.beat(dict.fromkeys(P5, 60), 1.0)
    beats = [
        (api.get("v1 nodes", "", name)["metadata"].get("annotations") or {}).get("ironburst.io/beat") for name in P5
    ]
    assert beats == ["ironburst,at=1,left=60", None, "ironburst,at=1,left=60"]


def test_what_is_left_over_is_healed(api, kube):
    stale = node("p5-1", gate="True", taints=[rented_taint("x.0")], ready="Unknown", since="2026-11-20T00:00:00Z")
    api.put("v1 nodes", stale)
    api.put("v1 pods", pod("stuck", node="p5-1"))
    until(lambda: (it := kube.observe().node("p5-1")) and it.has("DOWN", "POWERED_DOWN"))
    kube.heal(["p5-1"])
    assert kube.observe().node("p5-1").launchable
    assert api.get("v1 pods", "team-a", "stuck")["metadata"]["deletionTimestamp"]


def test_a_gate_that_stops_passing_closes_the_node_at_the_next_heartbeat(api, kube):
    in_service(kube, api, "p5-1")

    def fails(raw):
        raw["status"]["conditions"][1]["status"] = "False"

    api.edit("v1 nodes", "", "p5-1", fails)
    until(lambda: not kube.observe().node("p5-1").open)
    assert not api.get("v1 nodes", "", "p5-1")["spec"].get("unschedulable")
    kube.beat({"p5-1": 60}, 2.0)
    assert api.get("v1 nodes", "", "p5-1")["spec"]["unschedulable"]
    assert not kube.observe().node("p5-1").held_by_person


# ---- requeue


def running(api, kube, name="train", count=1, **more):
    raw, its = gang(name, count, **more) if count > 1 else (one := job(name), pods_of(one, 1, **more))
    submit(api, raw, its)
    until(lambda: len(kube.observe().jobs) == 1)
    for each in its:
        bind(api, each["metadata"]["name"], f"p5-{1 + its.index(each)}")
    return until(lambda: (jobs := kube.observe().jobs) and len(jobs[0].on) == count and jobs[0].id)


def leaves(api, name):
    return bool(api.get("v1 pods", "team-a", name)["metadata"].get("deletionTimestamp"))


def test_pods_that_are_made_anew_are_evicted(api, kube):
    train = running(api, kube)
    assert kube.requeue(train) == {}
    assert leaves(api, "train-0")
    assert kube.requeue() == {}


def test_a_bare_pod_is_never_evicted_and_what_is_gone_is_told(api, kube):
    api.put("v1 pods", pod("bare", node="p5-1"))
    (bare,) = ids(kube).values()
    refused = kube.requeue(bare, 5)
    assert refused[bare] == f"job {bare} (team-a/bare): nothing would make its pods anew"
    assert "isn't in the queue" in refused[5]
    assert not leaves(api, "bare")


def test_a_disruption_budget_is_honoured_and_its_reason_told(api, kube):
    train = running(api, kube, labels={"app": "train"})
    api.put(BUDGETS, budget("train", 0, app="train"))
    (said,) = kube.requeue(train).values()
    assert "would violate the pod's disruption budget. (The disruption budget train needs 1 healthy pods" in said
    assert not leaves(api, "train-0")
    api.put(BUDGETS, budget("train", 1, app="train"))
    assert kube.requeue(train) == {}


def test_none_of_a_gang_is_evicted_where_one_may_not_be(api, kube):
    train = running(api, kube, count=2)
    api.edit("v1 pods", "team-a", "train-1", lambda raw: raw["metadata"]["labels"].update(app="kept"))
    api.put(BUDGETS, budget("kept", 0, app="kept"))
    assert list(kube.requeue(train)) == [train]
    assert not leaves(api, "train-0")
    api.put(BUDGETS, budget("kept", 1, app="kept"))
    assert kube.requeue(train) == {}
    assert leaves(api, "train-0")
    assert leaves(api, "train-1")


@pytest.mark.parametrize(("allowed", "goes"), [(0, False), (1, False), (2, False), (3, True)])
def test_a_gang_goes_as_a_whole_within_its_budget_or_not_at_all(api, kube, allowed, goes):
    """A PodDisruptionBudget of maxUnavailable: 1, as people give it to all that they run: each pod may go, not all."""
    train = running(api, kube, count=3)
    api.put(BUDGETS, budget("train", allowed, **{"job-name": "train"}))
    api.put(BUDGETS, budget("others", 0, app="other"))
    refused = kube.requeue(train)
    assert [leaves(api, f"train-{n}") for n in range(3)] == [goes] * 3
    assert (refused == {}) == goes
    if allowed in (1, 2):
        assert (
            f"the disruption budget train allows {allowed} of its pods to go, and all 3 would have to" in refused[train]
        )


def test_a_pod_that_is_not_ready_needs_no_budget(api, kube):
    train = running(api, kube, count=2)
    api.edit("v1 pods", "team-a", "train-1", lambda raw: raw["status"].update(conditions=[]))
    api.put(BUDGETS, budget("train", 1, **{"job-name": "train"}))
    assert kube.requeue(train) == {}
    assert leaves(api, "train-0") and leaves(api, "train-1")


def test_a_missing_right_to_evict_is_no_refusal_of_a_job(api, kube):
    train = running(api, kube)
    api.allowed = lambda *call: call[2] != "pods/eviction" and may(*call)
    with pytest.raises(SchedulerError, match="no right to create pods/eviction train-0 in namespace team-a"):
        kube.requeue(train)


def test_one_job_that_the_server_refuses_keeps_no_other_from_the_queue(api, kube):
    in_service(kube, api, "p5-1")
    in_service(kube, api, "p5-2")
    for n, name in enumerate(("first", "second"), 1):
        one_pod_job(api, name)
        until(lambda n=n: len(kube.observe().jobs) == n)
        bind(api, f"{name}-0", f"p5-{n}")
    jobs = until(lambda: len(found := [each.id for each in kube.observe().jobs if each.on]) == 2 and found)
    api.allowed = lambda *call: call[2:] != ("pods/eviction", "team-a", "first-0") and may(*call)
    refused = kube.requeue(*jobs)
    assert len(refused) == 1 and leaves(api, "second-0") and not leaves(api, "first-0")


# ---- rights


def test_every_right_is_used_and_no_call_is_beyond_them(api, kube):
    """All of the adapter's calls were made under `may`: here those that the rules give are held against those made."""
    test_the_whole_way_of_a_rented_node(api, kube)
    in_service(kube, api, "p5-2")
    submit(api, *gang("again", 2, gpus=4))
    until(lambda: kube.observe().jobs)
    for n in range(2):
        bind(api, f"again-{n}", "p5-2")
    again = until(lambda: next((each.id for each in kube.observe().jobs if each.on), None))
    kube.requeue(again)
    kube.abandon(["p5-2"], "given up")
    kube.claim("me", "words", 600.0)
    kube.claim("me", "words", 600.0)
    kube.put_permit(["p5-3"])
    api.put(REQUESTS, csr("node-csr-1", pem("system:node:p5-3")))
    assert kube.admit() == []
    shares, now = [TeamShare("team-a", 8)], {"team-a": Quota(8, 8)}
    for each in quotas_of(shares, {}, now):
        api.put("v1 resourcequotas", each)
    kube.limit(shares, {"team-a": Quota(4, 4, short=4)}, 8)
    made = {(verb, group, resource) for verb, group, resource, _, _ in api.calls}
    made |= {("approve", "certificates.k8s.io", "signers")}  # asked for by the API server itself: test_joining
    rules = [*rights.CLUSTER, *rights.TOKENS, *rights.namespaced(SITE.object_name)]
    given = {(verb, rule.group, resource) for rule in rules for resource in rule.resources for verb in rule.verbs}
    assert made - given == set()
    assert given - made == set()


def test_rules_are_rendered_as_rbac_has_them():
    assert rights.rendered(rights.namespaced("ironburst-lab"))[1] == {
        "apiGroups": [""],
        "resources": ["configmaps"],
        "verbs": ["get", "update"],
        "resourceNames": ["ironburst-lab"],
    }
