"""Notations, what pods ask for, one pod as a job of the policy, and what pods are alike in."""

from dataclasses import replace

import pytest

from ironburst.adapters.kubernetes import pods
from ironburst.adapters.kubernetes.quantities import quantity, seconds
from ironburst.adapters.kubernetes.taints import toleration
from ironburst.ports import Resources
from tests.adapters.kubernetes.seen import jobs_of, only, seen
from tests.fakes.kube_objects import (
    CREATED_S,
    SITE,
    UNSCHEDULABLE,
    gang,
    job,
    near,
    owner,
    pod,
    pods_of,
    uid,
)

# ---- notations


@pytest.mark.parametrize(
    ("text", "value"),
    [("500m", 0.5), ("64Gi", 64 * 2**30), ("1e3", 1000), ("2", 2), (3, 3), (".5", 0.5), ("100k", 1e5), ("1E", 1e18)],
)
def test_quantities(text, value):
    assert quantity(text) == pytest.approx(value)


@pytest.mark.parametrize("text", ["", "1 Gi", "Gi", "1.2.3", "0x10"])
def test_what_is_no_quantity_is_refused(text):
    with pytest.raises(ValueError, match="no quantity"):
        quantity(text)


def test_times():
    assert seconds("2026-11-23T07:00:00Z") == seconds("2026-11-23T07:00:00.000000Z") == CREATED_S


# ---- resources, as kube-scheduler sums them


def container(cpu, gpus=0, always=False):
    asked = {"cpu": cpu} | ({"nvidia.com/gpu": gpus} if gpus else {})
    return {"name": "c", "resources": {"requests": asked}, **({"restartPolicy": "Always"} if always else {})}


def test_the_largest_init_container_counts_where_it_is_larger():
    spec = {"containers": [container("1", 1), container("2")], "initContainers": [container("5"), container("1", 4)]}
    assert pods.requests(spec) == {"cpu": 5, "nvidia.com/gpu": 4}


def test_a_sidecar_runs_beside_the_containers_and_beside_later_init_containers():
    spec = {
        "containers": [container("2")],
        "initContainers": [container("3"), container("2", always=True), container("3")],
    }
    assert pods.requests(spec) == {"cpu": 5}  # 2 + 3 while the last one initialises; 2 + 2 afterwards
    spec["initContainers"] = spec["initContainers"][:2]
    assert pods.requests(spec) == {"cpu": 4}


def test_what_the_pod_asks_for_as_a_whole_counts_instead_and_the_overhead_comes_on_top():
    spec = {"containers": [container("2", 1)], "resources": {"requests": {"cpu": "6"}}, "overhead": {"cpu": "250m"}}
    assert pods.requests(spec) == {"cpu": 6.25, "nvidia.com/gpu": 1}


# ---- one pod


def test_a_pod_of_a_job():
    raw = job("train")
    (it,) = pods_of(raw, 1)
    found = only([it], [raw])
    assert (found.name, found.state, found.nodes, found.account) == ("team-a/train", "PENDING", 1, "team-a")
    assert found.each == Resources(8, 4, 65536)
    assert (found.time_limit_s, found.submit_s, found.partitions, found.excluded) == (3600, CREATED_S, ("home",), ())
    assert (found.held, found.demands, found.requeue) == (False, "", True)
    assert found.reason.startswith("Unschedulable: 0/3 nodes are available: 3 Insufficient nvidia.com/gpu")
    assert found.reason_word == "Unschedulable"


def test_its_id_is_its_owners_for_as_long_as_that_lives_and_has_52_bits():
    raw = job("train")
    first, again = only(pods_of(raw, 1), [raw]), only(pods_of(raw, 1), [raw])
    other = job("train")
    assert first.id == again.id != only(pods_of(other, 1), [other]).id
    assert 0 < first.id < 2**52


@pytest.mark.parametrize(
    ("conditions", "more", "says"),
    [
        ([{**UNSCHEDULABLE, "reason": "SchedulingGated"}], {"schedulingGates": [{"name": "x"}]}, "SchedulingGated"),
        ([{**UNSCHEDULABLE, "reason": "SchedulerError"}], {}, "SchedulerError"),
        ([{"type": "Ready", "status": "False"}], {}, "Waiting"),
        ([UNSCHEDULABLE], {"nominated": "dgx01"}, "Nominated"),
    ],
)
def test_only_what_the_scheduler_calls_unschedulable_is_ours(conditions, more, says):
    found = only([pod("a", conditions=conditions, **more)])
    assert found.held
    assert found.reason_word == says


def test_a_bare_pod_is_never_made_anew_and_one_of_a_job_is_as_long_as_it_has_tries():
    assert not only([pod("bare")]).requeue
    tired = job("tired", backoffLimit=2, status={"failed": 2})
    assert not only(pods_of(tired, 1), [tired]).requeue
    ignores = [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}]
    spared = job("spared", backoffLimit=0, podFailurePolicy={"rules": ignores})
    assert only(pods_of(spared, 1), [spared]).requeue
    assert only([pod("web-0", owner=owner("StatefulSet", "web", uid()))]).requeue


def test_a_job_that_is_not_known_yet_is_not_requeued():
    assert not only(pods_of(job("new"), 1)).requeue


@pytest.mark.parametrize(("own", "of_job", "limit"), [(60, None, 60), (None, 90, 90), (60, 90, 60), (None, None, None)])
def test_the_time_limit_is_the_shorter_of_the_pods_and_its_jobs(own, of_job, limit):
    raw = job("train", limit=of_job)
    more = {"activeDeadlineSeconds": own} if own else {}
    assert only(pods_of(raw, 1, **more), [raw]).time_limit_s == limit


def test_a_running_job_ends_by_the_jobs_clock_that_has_run_since_it_was_submitted():
    raw = job("train", limit=3600)
    found = only(pods_of(raw, 1, node="dgx01"), [raw])
    assert (found.state, found.on, found.start_s, found.end_s) == (
        "RUNNING",
        ("dgx01",),
        CREATED_S + 600,
        CREATED_S + 3600,
    )


def test_a_pod_that_is_being_deleted_completes_and_one_that_never_had_a_node_is_gone():
    leaving, never = pod("a", node="dgx01"), pod("b")
    for raw in (leaving, never):
        raw["metadata"]["deletionTimestamp"] = "2026-11-23T07:11:00Z"
    assert [(found.name, found.state) for found in jobs_of([leaving, never])] == [("team-a/a", "COMPLETING")]


def test_pods_without_gpus_are_no_jobs_but_on_a_rented_node():
    web, agent = (
        pod("web", gpus=0, node="p5-1"),
        pod("agent", gpus=0, node="p5-1", owner=owner("DaemonSet", "agent", uid())),
    )
    assert [found.name for found in jobs_of([web, agent, pod("db", gpus=0, node="dgx01")])] == ["team-a/web"]


def test_the_account_may_be_a_label():

    site = replace(SITE, account_label="team", user_label="who")
    found = only([pod("a", labels={"team": "vision", "who": "alice"})], site=site)
    assert (found.account, found.user) == ("vision", "alice")
    assert only([pod("a")], site=site).account == "team-a"


def test_a_pod_that_cannot_be_read_keeps_its_node_and_is_told():
    raw = pod("odd", node="p5-1")
    raw["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "many"
    found = only([raw])
    assert found.on == ("p5-1",)
    waiting = pod("odd")
    del waiting["spec"]["containers"]
    assert jobs_of([waiting]) == []  # it may ask for no GPU at all
    assert "'containers'" in seen([waiting]).pods["team-a/odd"].error


# ---- what pods are alike in


def alike(name="a", **more):
    raw = job(name)
    (it,) = pods_of(raw, 1, **more)
    return only([it], [raw]).alike


def test_jobs_of_one_manifest_are_alike_whatever_they_are_called():
    assert alike("train-1", affinity=near("train-1")) == alike("train-2", affinity=near("train-2")) != ""
    claims = [[{"name": "d", "persistentVolumeClaim": {"claimName": name}}] for name in ("one", "two")]
    assert len({alike(volumes=each) for each in claims}) == 1


@pytest.mark.parametrize(
    "more",
    [
        {"gpus": 4},
        {"cpu": "5"},
        {"nodeSelector": {"rack": "r1"}},
        {"affinity": near("other")},
        {"tolerations": [{"key": "x", "operator": "Exists"}]},
        {"runtimeClassName": "gvisor"},
        {"volumes": [{"name": "d", "hostPath": {"path": "/dev/shm"}}]},
    ],
)
def test_what_decides_where_they_start_tells_them_apart(more):
    assert alike(**more) != alike()


def test_it_is_the_same_when_it_runs():
    raw, its = gang("train", 2)
    waits = only(its, [raw]).alike
    for n, each in enumerate(its):
        each["spec"]["nodeName"] = f"p5-{n + 1}"
        each["spec"]["tolerations"].append(toleration("x.0"))
    assert only(its, [raw]).alike == waits
