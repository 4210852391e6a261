"""Kueue as the queue: the adapter against a server that refuses what Kueue 0.19.2 refuses, with recorded workloads."""

import copy
import time

import pytest

from ironburst import kubernetes_rights as rights
from ironburst.adapters.kubernetes import Access, KubernetesPool, KubernetesSite, Kueue, connect
from ironburst.adapters.kubernetes.client import Client
from ironburst.ports import Resources, SchedulerError
from lab.system import wait_for
from tests.fakes.kube_api import RESOURCES, kubeconfig_of
from tests.fakes.kube_objects import GATED, may, node, pod
from tests.fakes.kueue_api import CHECK, CHECKS, FLAVORS, LOCAL_QUEUES, QUEUES, RECORDED, WORKLOADS, KueueApi

NODES = tuple(f"p5-{number}" for number in range(1, 13))
LABELS = {"ironburst.io/site": "burst-p5"}
SITE = KubernetesSite(
    "lab", (KubernetesPool("burst-p5", NODES, Resources(8, 96, 1_000_000), "h100", LABELS),), queue="kueue"
)


def may_answer(verb, group, resource, namespace, name):
    mine = rights.cluster("kueue", SITE.object_name)
    if any(
        (rule.group, verb in rule.verbs, resource in rule.resources) == (group, True, True)
        and (not rule.names or name in rule.names)
        for rule in mine
    ):
        return True
    return bool(namespace) and resource != "pods" and may(verb, group, resource, namespace, name)


@pytest.fixture
def api():
    server = KueueApi()
    server.allowed = may_answer
    yield server
    server.close()


@pytest.fixture
def at():
    """The adapter's clock, in seconds."""
    return [0.0]


@pytest.fixture
def kube(api, client, at):
    it = Kueue(client, SITE, first_s=10.0, deliver=str, clock=lambda: at[0])
    yield it
    it.close()


def until(true):
    return wait_for(true, 10.0, "what was waited for", pause=0.01)


def jobs(kube):
    return {each.name: each for each in kube.observe().jobs}


def job(kube, name, **has):
    """Once it is seen, and is as `has` says."""
    return until(
        lambda: (it := jobs(kube).get(f"team-a/{name}")) and all(getattr(it, k) == v for k, v in has.items()) and it
    )


def in_service(api, kube, *names):
    for name in names:
        api.put("v1 nodes", node(name, gate="True", taints=[GATED]))
    until(lambda: all((it := kube.observe().node(name)) and not it.has("POWERING_UP") for name in names))
    kube.resume(names)


def place(kube, name, *nodes):
    kube.place(job(kube, name).id, ["home", "burst-p5"], [each for each in NODES if each not in nodes])


def claim(kube):
    kube.claim("me", "words", 600.0)


def values(api, name):
    (update,) = api.state(name)["podSetUpdates"]
    return {each["value"] for each in update["tolerations"]}


def taint(api, name):
    return next(
        each["value"]
        for each in api.get("v1 nodes", "", name)["spec"]["taints"]
        if each["key"] == "ironburst.io/rented"
    )


def test_the_stack_says_whose_the_queue_is(api, tmp_path):
    access = Access(kubeconfig_of(api, tmp_path / "kubeconfig"))
    assert isinstance(connect(access, SITE, str), Kueue)
    assert not isinstance(connect(access, KubernetesSite("lab"), str), Kueue)


def test_only_the_holder_of_the_site_answers(api, kube):
    kube.claim("", "", 600.0)
    assert "status" not in api.get(CHECKS, "", CHECK)
    claim(kube)
    (condition,) = api.get(CHECKS, "", CHECK)["status"]["conditions"]
    assert (condition["type"], condition["status"]) == ("Active", "True")
    until(lambda: kube.objects().checks[CHECK].active)
    writes = len(api.verbs("patch"))
    claim(kube)
    assert len(api.verbs("patch")) == writes


def test_another_ones_claim_is_no_leave_to_answer(api, kube):
    kube.claim("other", "words", 600.0)
    until(lambda: kube.objects().checks[CHECK].active)
    api.submit("waits")
    job(kube, "waits", held=False)
    api.reserve("home", 0)
    until(lambda: not kube.objects().queues["team-a"].reserved["home", "nvidia.com/gpu"])
    kube.claim("me", "words", 600.0)
    assert api.state("waits")["state"] == "Pending"


def test_a_held_workload_is_let_on_its_nodes_alone(api, kube):
    api.submit("train", count=2)
    held = job(kube, "train", held=False)
    assert (held.nodes, held.each.gpus, held.partitions, held.demands) == (2, 8, ("home",), "")
    in_service(api, kube, "p5-1", "p5-2", "p5-3")
    place(kube, "train", "p5-1", "p5-2")
    assert api.state("train")["state"] == "Ready"
    assert values(api, "train") == {taint(api, "p5-1"), taint(api, "p5-2")}
    assert api.state("train")["podSetUpdates"][0]["nodeSelector"] == LABELS
    seen = job(kube, "train", partitions=("home", "burst-p5"))
    assert set(seen.excluded) == set(NODES) - {"p5-1", "p5-2"}
    writes = len(api.verbs("patch"))
    place(kube, "train", "p5-1", "p5-2")
    assert len(api.verbs("patch")) == writes


def test_an_answer_is_taken_back_with_the_quota(api, kube):
    """Kueue refuses another answer in the place of Ready."""
    api.submit("train")
    in_service(api, kube, "p5-1", "p5-2")
    place(kube, "train", "p5-1")
    place(kube, "train", "p5-2")
    assert api.state("train")["state"] == "Retry"
    assert "podSetUpdates" not in api.state("train")


def test_who_is_taken_back_isnt_answered(api, kube):
    """Its check is Pending again while its pods still end."""
    api.submit("train")
    in_service(api, kube, "p5-1", "p5-2")
    place(kube, "train", "p5-1")
    kube.place(job(kube, "train").id, ["home"], [])
    api.evict("train")
    until(lambda: any(each.evicted for each in kube.objects().workloads.values()))  # held it is since our Retry
    job(kube, "train", held=True)
    with pytest.raises(SchedulerError, match="Kueue takes it back"):
        place(kube, "train", "p5-2")
    api.held_again("train")
    job(kube, "train", held=False)
    place(kube, "train", "p5-2")
    assert values(api, "train") == {taint(api, "p5-2")}


def test_what_changed_since_it_was_read_isnt_answered(api, kube, monkeypatch):
    api.submit("train")
    in_service(api, kube, "p5-1")
    job(kube, "train", held=False)
    old = kube.objects()
    api.edit(WORKLOADS, "team-a", "job-train", lambda raw: raw["status"].pop("admission"))
    monkeypatch.setattr(kube, "objects", lambda: old)
    with pytest.raises(SchedulerError, match="team-a/job-train has changed"):
        kube.place(next(iter(old.gangs[0])).id, ["burst-p5"], NODES[1:])
    assert api.state("train")["state"] == "Pending"


def test_other_controllers_answers_stay(api, kube):
    other = {"name": "other", "state": "Ready", "message": "", "lastTransitionTime": "2026-11-23T07:00:00Z"}
    api.submit("train")
    api.edit(WORKLOADS, "team-a", "job-train", lambda raw: raw["status"]["admissionChecks"].insert(0, other))
    in_service(api, kube, "p5-1")
    until(lambda: "other" in kube.objects().workloads["team-a/job-train"].checks)
    api.conflicts = 2
    place(kube, "train", "p5-1")
    assert api.get(WORKLOADS, "team-a", "job-train")["status"]["admissionChecks"][0] == other
    assert api.state("train")["state"] == "Ready"


def test_a_gang_of_more_nodes_than_tolerations_gets_one_value(api, kube):
    api.submit("wide", count=10)
    in_service(api, kube, *NODES)
    place(kube, "wide", *NODES[:10])
    (value,) = values(api, "wide")
    assert {taint(api, name) for name in NODES[:10]} == {value}
    assert value not in {taint(api, name) for name in NODES[10:]}
    assert set(job(kube, "wide", partitions=("home", "burst-p5")).excluded) == {"p5-11", "p5-12"}


def test_a_job_is_requeued_by_kueue(api, kube):
    api.submit("train")
    in_service(api, kube, "p5-1")
    place(kube, "train", "p5-1")
    assert kube.requeue(job(kube, "train").id) == {}
    assert api.state("train")["state"] == "Retry"
    assert not [call for call in api.calls if "eviction" in call[2]]


def test_room_at_home_gives_the_quota_back(api, kube, at):
    api.submit("first", count=1, priority=5)
    api.submit("second", count=1)
    job(kube, "second", held=False)
    claim(kube)
    assert api.state("first")["state"] == api.state("second")["state"] == "Pending"  # home is full
    api.reserve("home", 0)
    until(lambda: not kube.objects().queues["team-a"].reserved["home", "nvidia.com/gpu"])
    claim(kube)
    assert (api.state("first")["state"], api.state("second")["state"]) == ("Retry", "Pending")  # room for one


def test_a_vain_try_is_repeated_later_and_later(api, kube, at):
    api.submit("train")
    job(kube, "train", held=False)
    api.reserve("home", 0)
    until(lambda: not kube.objects().queues["team-a"].reserved["home", "nvidia.com/gpu"])

    def sent():
        claim(kube)
        if api.state("train")["state"] != "Retry":
            return False
        api.evict("train")
        api.held_again("train")
        version = int(api.get(WORKLOADS, "team-a", "job-train")["metadata"]["resourceVersion"])
        until(lambda: kube.objects().workloads["team-a/job-train"].version == version)
        return True

    assert sent()
    times = []
    for second in range(0, 400, 20):
        at[0] = float(second)
        if sent():
            times.append(second)
    assert times == [60, 180]  # and then after 4 minutes


def test_nodes_that_went_before_a_pod_started_are_asked_for_anew(api, kube):
    api.submit("train")
    in_service(api, kube, "p5-1")
    place(kube, "train", "p5-1")
    claim(kube)
    assert api.state("train")["state"] == "Ready"
    kube.abandon(["p5-1"], "gone")
    claim(kube)
    assert api.state("train")["state"] == "Retry"


def test_pods_of_a_workload_arent_counted_twice(api, kube):
    """With its pods on nodes, as recorded."""
    api.put(WORKLOADS, copy.deepcopy(RECORDED["workloads"]["let_on"]))
    api.put("batch/v1 jobs", copy.deepcopy(RECORDED["job"]))
    for each in RECORDED["pods"]:
        api.put("v1 pods", copy.deepcopy(each))
    until(lambda: len(kube.objects().pods) == 2)
    (only,) = until(lambda: found if len(found := kube.observe().jobs) == 1 else None)
    assert (only.name, only.state, only.nodes, only.on) == ("team-a/two", "RUNNING", 2, ("p5-1", "p5-2"))
    assert only.end_s == pytest.approx(only.start_s + 3600.0, abs=5.0)


def test_pods_beside_the_queue_run_at_home_and_get_nothing(api, kube):
    api.put("v1 pods", pod("runs", node="home-1", activeDeadlineSeconds=60))
    api.put("v1 pods", pod("waits", activeDeadlineSeconds=60))
    waits = job(kube, "waits")
    assert "beside Kueue's queue" in waits.demands
    assert job(kube, "runs").state == "RUNNING"
    in_service(api, kube, "p5-1")
    with pytest.raises(SchedulerError, match="isn't in Kueue's queue"):
        place(kube, "waits", "p5-1")


def test_a_second_owner_of_launching_is_told_and_nothing_is_answered(api, kube):
    api.put(
        CHECKS, {"metadata": {"name": "autoscaler"}, "spec": {"controllerName": "kueue.x-k8s.io/provisioning-request"}}
    )
    entry = {"name": "autoscaler", "state": "Pending", "message": "", "lastTransitionTime": "2026-11-23T07:00:00Z"}
    api.submit("train")
    api.edit(WORKLOADS, "team-a", "job-train", lambda raw: raw["status"]["admissionChecks"].append(entry))
    assert "two controllers launch for it: ironburst and autoscaler" in job(kube, "train", held=True).reason


def test_our_check_in_other_hands_is_told_and_left_alone(api, kube):
    api.edit(CHECKS, "", CHECK, lambda raw: raw["spec"].update(controllerName="somebody/else"))
    until(lambda: kube.objects().checks[CHECK].controller == "somebody/else")
    claim(kube)
    assert "status" not in api.get(CHECKS, "", CHECK)
    assert any("belongs to somebody/else, not to ironburst.io/lab" in said for said in kube.observe().unreadable)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda spec: spec["admissionChecksStrategy"]["admissionChecks"][0].pop("onFlavors"), "so it holds home, too"),
        (lambda spec: spec["resourceGroups"][0]["flavors"].reverse(), "tries flavor cloud before home"),
        (lambda spec: spec.update(concurrentAdmissionPolicy={}), None),
        (
            lambda spec: spec.update(concurrentAdmissionPolicy={"migration": {"mode": "RetainFirstAdmission"}}),
            "has a concurrentAdmissionPolicy",
        ),
    ],
)
def test_what_is_wrong_with_a_queue_is_told(api, kube, change, said):
    assert kube.observe().unreadable == ()
    api.edit(QUEUES, "", "team-a", lambda raw: change(raw["spec"]))
    version = api.get(QUEUES, "", "team-a")["metadata"]["resourceVersion"]
    until(lambda: kube.objects().queues["team-a"].version == int(version))
    told = kube.observe().unreadable
    assert (said in told[0] and len(told) == 1) if said else told == ()


DELAYING = {
    "metadata": {"name": "placed-later"},
    "spec": {
        "controllerName": "kueue.x-k8s.io/provisioning-request",
        "parameters": {"apiGroup": "kueue.x-k8s.io", "kind": "ProvisioningRequestConfig", "name": "placed-later"},
    },
}


def told_of(api, kube, placed, delayed):
    """What is said where these flavors have a topologyName, as in Kueue's sample-queues.yaml of its tas examples, and
    these a check of ProvisioningRequests.
    """
    api.put(CHECKS, copy.deepcopy(DELAYING))
    for name in placed:
        api.edit(FLAVORS, "", name, lambda raw: raw["spec"].update(topologyName="default"))
    if delayed:
        more = {"name": "placed-later", "onFlavors": delayed}
        api.edit(
            QUEUES, "", "team-a", lambda raw: raw["spec"]["admissionChecksStrategy"]["admissionChecks"].append(more)
        )
    until(lambda: {name for name, each in kube.objects().flavors.items() if each.topology} == set(placed))
    until(lambda: ("placed-later" in kube.objects().queues["team-a"].checks) is bool(delayed))
    return kube.observe().unreadable


@pytest.mark.parametrize(
    ("placed", "delayed", "starts"),
    [
        (["home"], [], ["ClusterQueue team-a: flavor home has a topologyName and cloud has none"]),
        (["home"], ["cloud"], ["ClusterQueue team-a: flavor home has a topologyName and cloud has none"]),
        (
            ["cloud"],
            [],
            [
                "ClusterQueue team-a: flavor cloud has a topologyName and home has none",
                "ClusterQueue team-a: flavor cloud has a topologyName, so Kueue gives it only when its nodes are there",
            ],
        ),
        (["home", "cloud"], ["home"], ["ClusterQueue team-a: flavor cloud has a topologyName, so Kueue gives it only"]),
        (["home", "cloud"], ["cloud"], []),
        ([], ["cloud"], []),
    ],
)
def test_topologies_that_keep_work_from_home_or_from_the_cloud_are_told(api, kube, placed, delayed, starts):
    told = told_of(api, kube, placed, delayed)
    assert len(told) == len(starts)
    assert all(each.startswith(start) for each, start in zip(told, starts, strict=True)), told


@pytest.mark.parametrize(
    "words",
    [
        'Flavor "cloud" does not support TopologyAwareScheduling',
        'Flavor "cloud" does not contain the requested level',
    ],
)
def test_a_workload_that_may_not_burst_has_a_sentence(api, kube, words):
    """The words: Kueue 0.19.2, checkPodSetAndFlavorMatchForTAS."""
    api.submit("train", "in_the_queue_again")
    said = f"couldn't assign flavors to pod set main: insufficient unused quota in flavor home, 8 more needed, {words}"

    def change(raw):
        (of_quota,) = [each for each in raw["status"]["conditions"] if each["type"] == "QuotaReserved"]
        of_quota["message"] = said

    api.edit(WORKLOADS, "team-a", "job-train", change)
    seen = until(lambda: (it := jobs(kube)["team-a/train"]) and "4 more" not in it.reason and said in it.reason and it)
    assert seen.held
    workload = kube.objects().workloads["team-a/job-train"]
    assert kube.objects().waits(workload).endswith("never rents: it asks for a topology that flavor cloud doesn't have")


def test_a_check_for_which_kueue_only_waits_launches_nothing_beside_us(api, kube):
    """Its entry, where its ProvisioningRequestConfig manages no resource of the workload."""
    api.put(CHECKS, copy.deepcopy(DELAYING))
    entry = {"name": "placed-later", "state": "Ready", "message": "the provisioning request is not needed"}
    entry["lastTransitionTime"] = "2026-11-23T07:00:00Z"
    api.submit("train")
    api.edit(WORKLOADS, "team-a", "job-train", lambda raw: raw["status"]["admissionChecks"].append(entry))
    in_service(api, kube, "p5-1")
    job(kube, "train", held=False)
    place(kube, "train", "p5-1")
    assert api.state("train")["state"] == "Ready"


def test_who_holds_the_clouds_quota_for_ever_is_named_where_its_users_look(api, kube, at):
    api.submit("endless")
    api.edit(WORKLOADS, "team-a", "job-endless", lambda raw: raw["spec"].pop("maximumExecutionTimeSeconds"))
    behind = copy.deepcopy(RECORDED["workloads"]["in_the_queue_again"])
    behind["metadata"] |= {"name": "job-next", "uid": "uid-next"}
    conditions = {each["type"]: each for each in behind["status"]["conditions"]}
    conditions["QuotaReserved"]["message"] = (
        "insufficient unused quota for nvidia.com/gpu in flavor cloud, 8 more needed"
    )
    api.put(WORKLOADS, behind)
    told = until(lambda: [each for each in kube.observe().unreadable if "holds quota of flavor cloud" in each])

    def events():
        return [raw for key, raw in api.objects.items() if key[0] == "v1 events"]

    assert events() == []  # who only looks writes nothing
    for _ in range(2):
        claim(kube)
    assert {each["involvedObject"]["uid"] for each in events()} == {"uid-endless", "uid-next"}
    assert {each["message"] for each in events()} == set(told)
    assert len(events()) == len([call for call in api.verbs("create") if call[2] == "events"]) == 2
    at[0] = 3600.0
    claim(kube)  # the cluster still has them: nothing is wrong
    assert not [each for each in kube.observe().unreadable if "isn't answered" in each]


def test_a_queues_default_that_is_no_time_is_told(api, kube):
    notes = {"ironburst.io/time-limit": "soon"}
    api.put(LOCAL_QUEUES, {"metadata": {"name": "gpus", "namespace": "team-a", "annotations": notes}})
    until(lambda: [each for each in kube.observe().unreadable if each.startswith("queue team-a/gpus: ")])


def test_a_cluster_without_kueue_is_told_at_once(api, kubeconfig):
    api.resources = RESOURCES
    it, began_s = Kueue(Client(Access(kubeconfig)), SITE, first_s=30.0), time.monotonic()
    try:
        with pytest.raises(SchedulerError, match=r"no Kueue that this ironburst knows .*install Kueue 0.15 or newer"):
            it.observe()
        assert time.monotonic() - began_s < 10.0
    finally:
        it.close()


def test_an_idle_tick_asks_for_nothing_of_kueue(api, kube):
    api.submit("train")
    job(kube, "train", held=False)
    claim(kube)
    until(lambda: kube.objects().checks[CHECK].active)

    def asked(verb=""):
        return [call[2] for call in api.calls if "kueue" in call[1] and call[0].startswith(verb)]

    until(lambda: set(asked("watch")) == set(asked("list")))  # what was listed is watched a moment later
    before = len(asked())
    for _ in range(10):
        claim(kube)
        kube.observe()
    assert len(asked()) == before
