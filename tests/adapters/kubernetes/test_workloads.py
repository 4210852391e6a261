"""Workloads as Kueue 0.19.2 showed them (kueue_recorded.json), as jobs; and which of them home has room for."""

import copy
import json
from dataclasses import replace
from pathlib import Path

import pytest

from ironburst.adapters.kubernetes import KubernetesPool, KubernetesSite, quota_room
from ironburst.adapters.kubernetes.blockers import blockers
from ironburst.adapters.kubernetes.kueue_views import read_check, read_flavor, read_queue, read_workload
from ironburst.adapters.kubernetes.objects import read_default, read_node
from ironburst.adapters.kubernetes.pods import read_pod
from ironburst.adapters.kubernetes.workloads import Queued, jobs_of
from ironburst.ports import Resources
from tests.fakes import kube_objects
from tests.fakes.kube_objects import pod

RECORDED = json.loads((Path(__file__).parent / "kueue_recorded.json").read_text())
POOL = KubernetesPool(
    "burst-p5", ("p5-1", "p5-2"), Resources(8, 96, 1_000_000), "h100", {"ironburst.io/site": "burst-p5"}
)
SITE = KubernetesSite("lab", (POOL,))
GPU = "nvidia.com/gpu"


def node(name, **has):
    """Of home: the recorded flavor asks for this label."""
    labels = {"ironburst.io/site": "home", **has.pop("labels", {})}
    return kube_objects.node(name, labels=labels, **has)


HOME = node("home-1", gpus=64)


def recorded(state, **spec):
    raw = copy.deepcopy(RECORDED["workloads"][state])
    raw["spec"] |= spec
    return raw


def seen(*workloads, queues=(RECORDED["queue"],), cohorts=(), flavors=RECORDED["flavors"], nodes=(), pods=()):
    views = [read_workload(each, SITE) for each in workloads]
    return Queued(
        **{key: {} for key in ("jobs", "groups", "claims", "volumes")},
        nodes={each["metadata"]["name"]: read_node(each) for each in nodes},
        pods={view.key: view for view in (read_pod(each, SITE) for each in pods)},
        workloads={each.key: each for each in views},
        queues={view.key: view for view in map(read_queue, queues)},
        cohorts={view.key: view for view in map(read_queue, cohorts)},
        flavors={view.key: view for view in (read_flavor(each, SITE) for each in flavors)},
        checks={"ironburst-lab": read_check(RECORDED["check"])},
        check="ironburst-lab",
    )


@pytest.mark.parametrize(
    ("state", "held", "reason"),
    [
        ("unasked", True, "Kueue hasn't asked yet"),
        ("held", False, "held for rented nodes"),
        ("let_on", False, "let on rented nodes"),
        ("being_taken_back", True, "Kueue takes it back"),
        ("home_with_an_old_entry", True, "it has quota at home"),
        ("home", True, "it has quota at home"),
        ("parent", True, "concurrentAdmissionPolicy"),
    ],
)
def test_what_waits_for_us_is_what_kueue_asks_us_of(state, held, reason):
    (job,) = jobs_of(seen(recorded(state)), SITE)
    assert (job.pending, job.held) == (True, held)
    assert reason in job.reason


def test_who_waits_for_quota_shows_kueues_own_words():
    (job,) = jobs_of(seen(recorded("in_the_queue_again")), SITE)
    assert job.held
    assert "Evicted due to AdmissionCheck in Retry state" in job.reason


def test_a_held_gang_has_its_shape_its_limit_and_its_time():
    (job,) = jobs_of(seen(recorded("held")), SITE)
    assert (job.name, job.nodes, job.each.gpus, job.each.cpus, job.time_limit_s) == ("team-a/two", 2, 8, 4, 3600.0)
    assert (job.account, job.requeue, job.demands, job.gpu_type) == ("team-a", True, "", "")
    assert job.since_s == job.eligible_s >= job.submit_s


def test_finished_and_deactivated_workloads_are_no_jobs():
    assert jobs_of(seen(recorded("finished"), recorded("held", active=False)), SITE) == []


def test_a_workload_with_variants_is_one_job():
    jobs = jobs_of(seen(recorded("parent"), recorded("variant_held"), recorded("variant_waits")), SITE)
    assert [each.name for each in jobs] == ["team-a/ca2"]


def test_the_limit_is_what_is_left_of_it():
    raw = recorded("held")
    raw["status"]["accumulatedPastExecutionTimeSeconds"] = 600
    (job,) = jobs_of(seen(raw), SITE)
    assert job.time_limit_s == 3000.0


def test_no_limit_no_rent():
    raw = recorded("held")
    del raw["spec"]["maximumExecutionTimeSeconds"]
    (job,) = jobs_of(seen(raw), SITE)
    assert job.time_limit_s is None


def test_the_labels_of_its_flavor_count():
    flavors = copy.deepcopy(RECORDED["flavors"])
    next(each for each in flavors if each["metadata"]["name"] == "cloud")["spec"] = {"nodeLabels": {"zone": "other"}}
    (job,) = jobs_of(seen(recorded("held"), flavors=flavors), SITE)
    assert "no pool has" in job.demands


def test_what_cant_be_read_is_told_and_held():
    raw = recorded("held")
    del raw["spec"]["podSets"][0]["template"]
    view = read_workload(raw, SITE)
    assert view.error == "Workload team-a/job-two-e161f of Kueue can't be read: no field 'template'"
    assert jobs_of(seen(raw), SITE) == []


# ---- room at home


def queue(name="team-a", *, home=8, used=0, cohort="", **limits):
    raw = copy.deepcopy(RECORDED["queue"])
    raw["metadata"]["name"] = name
    (quota,) = [each for each in raw["spec"]["resourceGroups"][0]["flavors"][0]["resources"] if each["name"] == GPU]
    quota |= {"nominalQuota": str(home), **{key: str(value) for key, value in limits.items()}}
    if cohort:
        raw["spec"]["cohortName"] = cohort
    reserved = [{"name": GPU, "total": str(used)}, {"name": "cpu", "total": "0"}, {"name": "memory", "total": "0"}]
    raw["status"]["flavorsReservation"] = [{"name": "home", "resources": reserved}]
    return raw


def sent(*workloads, nodes=(HOME,), **more):
    return [each.name for each in quota_room.start_at_home(seen(*workloads, nodes=nodes, **more), SITE)]


def cohort(name="all", *, home=0, parent=""):
    resources = [{"name": GPU, "nominalQuota": str(home)}] + [
        {"name": each, "nominalQuota": "1M"} for each in ("cpu", "memory")
    ]
    spec = {"resourceGroups": [{"coveredResources": [GPU], "flavors": [{"name": "home", "resources": resources}]}]}
    return {"metadata": {"name": name, "uid": name}, "spec": {**spec, "parentName": parent}}


@pytest.mark.parametrize(
    ("queues", "cohorts", "fits"),
    [
        ([queue(home=16)], [], True),
        ([queue(home=15)], [], False),
        ([queue(home=16, used=1)], [], False),
        ([queue(home=8, cohort="all")], [cohort(home=8)], True),
        ([queue(home=8, cohort="all", borrowingLimit=4)], [cohort(home=8)], False),
        ([queue(home=8, cohort="all"), queue("other", home=8, cohort="all")], [], True),
        ([queue(home=8, cohort="all"), queue("other", home=8, cohort="all", used=8)], [], False),
        ([queue(home=8, cohort="all"), queue("other", home=8, cohort="all", lendingLimit=4)], [], False),
        ([queue(home=8, cohort="all"), queue("other", home=8, cohort="else")], [], False),
        (
            [queue(home=8, cohort="one"), queue("other", home=8, cohort="two")],
            [cohort("one", parent="top"), cohort("two", parent="top")],
            True,
        ),
    ],
)
def test_home_has_room_by_quota(queues, cohorts, fits):
    """For two pods of 8 GPUs."""
    assert bool(sent(recorded("held"), queues=queues, cohorts=cohorts)) is fits


@pytest.mark.parametrize(
    ("nodes", "pods", "fits"),
    [
        ([node("home-1", gpus=16)], [], True),
        ([node("home-1", gpus=8)], [], False),
        ([node("home-1", gpus=16, unschedulable=True)], [], False),
        ([node("home-1", gpus=16, ready="False")], [], False),
        ([node("home-1", gpus=8), node("p5-1", gpus=8)], [], False),
        ([node("home-1", gpus=16)], [pod("there", node="home-1", gpus=1)], False),
        ([node("home-1", gpus=17)], [pod("there", node="home-1", gpus=1)], True),
    ],
)
def test_home_has_room_by_its_nodes(nodes, pods, fits):
    """Kueue's quota stays what it is when a node is drained."""
    assert bool(sent(recorded("held"), queues=[queue(home=99)], nodes=nodes, pods=pods)) is fits


RACKED = [node(f"home-{at}", gpus=8, labels={"rack": f"r{at % 2}"}) for at in range(1, 5)]


@pytest.mark.parametrize(
    ("nodes", "pods", "request_", "fits"),
    [
        ([node("a", gpus=4), node("b", gpus=4), node("c", gpus=8)], [], {}, False),  # 16 GPUs, and room for one pod
        ([node("a", gpus=12), node("b", gpus=12)], [], {}, True),
        ([node("a", gpus=8), node("b", gpus=8)], [pod("there", node="a", gpus=1)], {}, False),
        (RACKED, [], {"required": "rack"}, True),
        (RACKED, [pod("there", node="home-1", gpus=8)], {"required": "rack"}, True),
        (RACKED, [pod(f"there-{at}", node=f"home-{at}", gpus=8) for at in (1, 2)], {"required": "rack"}, False),
        (RACKED, [pod(f"there-{at}", node=f"home-{at}", gpus=8) for at in (1, 2)], {"preferred": "rack"}, True),
        (RACKED, [], {"required": "block"}, False),  # a level that home's nodes don't say
        ([kube_objects.node("a", gpus=16)], [], {}, False),  # without the label that Kueue makes the pods select by
    ],
)
def test_home_has_room_on_a_node_for_each_pod(nodes, pods, request_, fits):
    """For two pods of 8 GPUs. The requests: Kueue's annotations podset-required-topology and podset-preferred-topology
    (its documentation of Topology Aware Scheduling), as a Workload has them.
    """
    raw = recorded("held")
    raw["spec"]["podSets"][0]["topologyRequest"] |= request_
    assert bool(sent(raw, queues=[queue(home=99)], nodes=nodes, pods=pods)) is fits


def test_room_on_nodes_is_given_away_once():
    first, second = recorded("held"), recorded("held", priority=3)
    second["metadata"] |= {"name": "second", "uid": "second"}
    nodes = [node(name, gpus=12) for name in "abc"]
    assert sent(first, second, queues=[queue(home=99)], nodes=nodes) == ["second"]  # 36 GPUs, and 3 pods of 8 fit


def test_room_is_given_away_once_and_in_kueues_order():
    first, second = recorded("held"), recorded("held", priority=3)
    second["metadata"] |= {"name": "second", "uid": "second"}
    assert sent(first, second, queues=[queue(home=24)]) == ["second"]


def test_nobody_is_sent_to_a_home_that_his_selector_excludes():
    raw = recorded("held")
    raw["spec"]["podSets"][0]["template"]["spec"]["nodeSelector"] = {"ironburst.io/site": "burst-p5"}
    assert not sent(raw, queues=[queue(home=16)])


@pytest.mark.parametrize("state", ["let_on", "being_taken_back", "home", "unasked"])
def test_only_who_is_held_is_sent_home(state):
    assert not sent(recorded(state), queues=[queue(home=99)])


# ---- who holds quota that nothing is rented for


def behind(name, said):
    """A workload that waits for quota, in Kueue's words (pkg/scheduler/flavorassigner)."""
    raw = recorded("in_the_queue_again")
    raw["metadata"] |= {"name": f"job-{name}", "uid": f"uid-{name}", "namespace": "team-b"}
    raw["metadata"]["ownerReferences"][0] |= {"name": name, "uid": f"owner-{name}"}
    conditions = {each["type"]: each for each in raw["status"]["conditions"]}
    conditions["QuotaReserved"]["message"] = said
    return raw


SHORT = "couldn't assign flavors to pod set main: insufficient unused quota for cpu in flavor {}, 8 more needed"


def test_who_holds_the_clouds_quota_for_ever_is_named_to_those_behind():
    endless = recorded("held")
    del endless["spec"]["maximumExecutionTimeSeconds"]
    waits, other = behind("next", SHORT.format("cloud")), behind("other", SHORT.format("special"))
    view = seen(endless, waits, other)
    ((_, _, said),) = blockers(view, jobs_of(view, SITE))
    assert "workload team-a/two holds quota of flavor cloud" in said and "it has no time limit" in said
    assert "team-b/next wait" in said and "other" not in said and "ironburst.io/time-limit" in said
    good = seen(recorded("held"), waits)
    assert (blockers(good, jobs_of(good, SITE))) == []
    alone = seen(endless, other)
    assert (blockers(alone, jobs_of(alone, SITE))) == []


def test_a_default_is_the_limit_of_a_workload_without_one():
    """Its LocalQueue's before its namespace's."""
    endless = recorded("held")
    del endless["spec"]["maximumExecutionTimeSeconds"]
    view = replace(seen(endless), namespaces={"team-a": default("2h", "team-a")})
    (job,) = jobs_of(view, SITE)
    assert job.time_limit_s == 7200.0
    assert blockers(view, [job]) == []
    others = {"team-a/others": default("1h", "others", namespace="team-a")}
    assert jobs_of(replace(view, local_queues=others), SITE)[0].time_limit_s == 7200.0
    its = {"team-a/gpus": default("30m", "gpus", namespace="team-a")}
    assert jobs_of(replace(view, local_queues=its), SITE)[0].time_limit_s == 1800.0
    assert jobs_of(replace(seen(recorded("held")), local_queues=its), SITE)[0].time_limit_s == 3600.0


def default(limit, name, **meta):
    """A LocalQueue or a Namespace with the annotation."""
    return read_default(
        {"metadata": {"name": name, "uid": "u", "annotations": {"ironburst.io/time-limit": limit}, **meta}}
    )


def test_a_default_that_is_no_time_is_told():
    said = default("soon", "gpus", namespace="team-a").error
    assert said.startswith("queue team-a/gpus: its annotation ironburst.io/time-limit: 'soon' is no duration")
    assert default("soon", "team-a").error.startswith("namespace team-a: ")
