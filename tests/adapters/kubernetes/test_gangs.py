"""Pods that start together, and where they may start, as jobs of the policy."""

import copy

from ironburst.adapters.kubernetes import objects, queue
from ironburst.adapters.kubernetes.taints import toleration
from ironburst.ports import Resources
from tests.adapters.kubernetes.seen import jobs_of, only, seen
from tests.fakes.kube_objects import (
    SITE,
    gang,
    job,
    near,
    node,
    owner,
    pod,
    pods_of,
    rented_taint,
    uid,
)

# ---- gangs


def test_an_indexed_job_that_starts_all_at_once_is_one_job():
    raw, its = gang("train", 3)
    found = only(its, [raw])
    assert (found.name, found.nodes, found.each, found.demands) == ("team-a/train", 3, Resources(8, 4, 65536), "")


def test_a_gang_that_was_evicted_once_was_started_anew_once_however_many_pods_it_has():
    raw, its = gang("train", 4)
    raw["status"]["failed"] = 4
    again = only(its, [raw])
    assert (again.restarts, again.requeue) == (1, False)  # 4 more would be over its backoffLimit of 6
    raw["spec"]["backoffLimit"] = 8
    assert only(its, [raw]).requeue


def test_pods_that_share_a_node_make_fewer_nodes():
    raw, its = gang("train", 16, gpus=1)
    only_p5 = [
        {**it, "spec": {**it["spec"], "nodeSelector": {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"}}}
        for it in its
    ]
    found = only(only_p5, [raw])
    assert (found.nodes, found.each) == (2, Resources(8, 32, 8 * 65536))
    assert only(its, [raw]).nodes == 2  # by the pool that holds most, not 16 nodes of any


def test_a_gang_without_all_of_its_pods_is_held():
    raw, its = gang("train", 3)
    found = only(its[:2], [raw])
    assert found.held
    assert found.reason == "Incomplete: 2 of its 3 pods are there"


def test_a_gang_of_which_some_run_is_running_and_says_how_many():
    raw, its = gang("train", 3)
    its[0]["spec"]["nodeName"], its[0]["status"]["phase"] = "dgx01", "Running"
    found = only(its, [raw])
    assert (found.state, found.on, found.nodes, found.reason) == (
        "RUNNING",
        ("dgx01",),
        1,
        "Incomplete: 1 of its 3 pods have a node",
    )


def test_a_gang_that_nothing_keeps_on_one_side_is_not_rented_for():
    raw = job("train", parallelism=2, completions=2, indexed=True)
    said = only(pods_of(raw, 2), [raw]).demands
    assert said.startswith("2 pods together, and nothing keeps them on one side")


def test_a_topology_that_a_pool_does_not_declare():
    raw = job("train", parallelism=2, completions=2, indexed=True)
    its = pods_of(raw, 2, affinity=near("train", "topology.kubernetes.io/zone"))
    assert only(its, [raw]).demands == "the topology topology.kubernetes.io/zone, which pool burst-g6 doesn't declare"


def test_pods_of_a_parallel_job_work_each_for_itself():
    raw = job("many", parallelism=3, completions=9)
    assert [(found.nodes, found.demands) for found in jobs_of(pods_of(raw, 3), [raw])] == [(1, "")] * 3
    indexed = job("sweep", parallelism=2, completions=9, indexed=True)
    first = {found.name: found.id for found in jobs_of(pods_of(indexed, 2), [indexed])}
    assert first == {found.name: found.id for found in jobs_of(pods_of(indexed, 2), [indexed])}  # pods are made anew


def test_a_jobset_is_one_job_and_waits_for_all_of_its_jobs():
    labels = {"jobset.sigs.k8s.io/jobset-name": "llm", "jobset.sigs.k8s.io/global-replicas": "2"}
    its = [job(f"llm-w-{n}", parallelism=2, completions=2, indexed=True, labels=labels) for n in range(2)]
    each = [pods_of(raw, 2, labels=labels, affinity=near("x")) for raw in its]
    assert only([*each[0], *each[1]], its).nodes == 4
    assert only(each[0], its[:1]).held


def test_groups_of_a_leader_worker_set():
    def group(index, count):
        labels = {"leaderworkerset.sigs.k8s.io/name": "serve", "leaderworkerset.sigs.k8s.io/group-index": str(index)}
        notes = {"leaderworkerset.sigs.k8s.io/size": "2"}
        return [
            pod(f"serve-{index}-{n}", labels=labels, notes=notes, owner=owner("StatefulSet", "serve", uid()))
            for n in range(count)
        ]

    whole, part = jobs_of([*group(0, 2), *group(1, 1)])
    assert (whole.nodes, whole.held, whole.requeue, part.held) == (2, False, True, True)


def test_a_native_pod_group():
    of = owner("Job", "w", uid())
    its = [pod(f"w-{n}", schedulingGroup={"podGroupName": "g"}, owner=of) for n in range(2)]
    assert only(its).held  # before its PodGroup is there the scheduler starts none
    meta = {"name": "g", "namespace": "team-a", "uid": uid(), "resourceVersion": "1"}
    gang_policy = {"schedulingPolicy": {"gang": {"minCount": 2}}}
    site = {"schedulingConstraints": {"topology": [{"key": "ironburst.io/site"}]}}
    found = only(its, groups=[{"metadata": meta, "spec": gang_policy | site}])
    assert (found.nodes, found.held, found.demands) == (2, False, "")
    apart = only(its, groups=[{"metadata": meta, "spec": gang_policy}])
    assert "nothing keeps them on one side" in apart.demands
    basic = jobs_of(its, groups=[{"metadata": meta, "spec": {"schedulingPolicy": {"basic": {}}}}])
    assert len(basic) == 1  # both are of one Job that isn't known yet


def test_all_pods_of_an_operators_own_kind_are_together_and_never_requeued():
    of = owner("PyTorchJob", "llm", uid())
    found = only([pod(f"llm-{n}", owner=of) for n in range(2)])
    assert (found.nodes, found.requeue) == (2, False)


def between_tries(raw, its):
    spec = copy.deepcopy(its[0]["spec"])
    asked = spec["containers"][0]["resources"]
    asked["limits"] = {"nvidia.com/gpu": asked["requests"].pop("nvidia.com/gpu")}  # as it was written, without defaults
    raw["spec"]["template"] = {"metadata": {"labels": its[0]["metadata"]["labels"]}, "spec": spec}
    raw["status"] |= {"active": 0, "failed": len(its)}
    return raw


def test_a_job_between_two_tries_still_waits():
    """Its pods were evicted, and its controller makes them anew after a pause."""
    single = job("one")
    for raw, its in (gang("train", 3), (single, pods_of(single, 1))):
        before = only(its, [raw])
        now = only([], [between_tries(raw, its)])
        shapes = {(each.id, each.name, each.nodes, each.each, each.time_limit_s) for each in (before, now)}
        assert len(shapes) == 1
        assert (now.state, now.held, now.on) == ("PENDING", True, ())
    done = between_tries(*gang("train", 3))
    done["status"]["conditions"] = [{"type": "Failed", "status": "True"}]
    assert jobs_of([], [done]) == []


def test_two_jobs_with_the_same_id_are_both_held(monkeypatch):
    monkeypatch.setattr("ironburst.adapters.kubernetes.gangs.Gang.id", property(lambda self: 7))
    its = seen([pod("a"), pod("b")])
    assert [each.held for each in queue.jobs_of(its, SITE)] == [True, True]
    assert its.gangs[1] == {7}


def test_what_is_kept_from_the_last_time_changes_nothing():
    """Against a queue that is read from nothing each time, while pods come, go, start and are let on nodes."""
    memo, nodes = queue.Memo(), [node("p5-1", gate="True", taints=[rented_taint("x.0")])]
    raw, its = gang("train", 2)
    lone = pod("lone")
    let = copy.deepcopy(lone)
    let["spec"]["tolerations"].append(toleration("x.0"))
    its_later = [copy.deepcopy(its[0]), its[1]]
    its_later[0]["spec"]["nodeName"] = "dgx01"
    views = seen([lone, *its], [raw], nodes)
    steps = [views, views, seen([let, *its], [raw], nodes), seen([let, *its_later], [raw]), seen([let], [])]
    for step in steps:
        assert queue.jobs_of(step, SITE, memo) == queue.jobs_of(step, SITE)
    again = queue.jobs_of(views, SITE, memo)
    assert all(one is other for one, other in zip(again, queue.jobs_of(views, SITE, memo), strict=True))
    taken = [node("p5-1", gate="True", taints=[rented_taint("x.1")])]
    for there in (nodes, taken, []):
        step = queue.Objects(
            steps[2].pods, {n["metadata"]["name"]: objects.read_node(n) for n in there}, *[views.jobs, {}, {}, {}]
        )
        assert queue.jobs_of(step, SITE, memo) == queue.jobs_of(step, SITE)


# ---- where it may start


def test_a_toleration_of_a_nodes_own_taint_is_its_partition():
    value = "00000000-0000-4000-8000-00000000aaaa.0"
    there = node("p5-1", gate="True", taints=[rented_taint(value)])
    it = pod("a")
    it["spec"]["tolerations"].append(toleration(value))
    found = only([it], nodes=[there])
    assert (found.partitions, found.excluded) == (("home", "burst-p5"), ("p5-2", "p5-3"))
    assert only([it]).partitions == ("home",)  # its node is gone, so is what it tolerated
    again = node("p5-1", gate="True", taints=[rented_taint(value.replace("aaaa", "bbbb"))])
    assert only([it], nodes=[again]).partitions == ("home",)


def test_a_running_one_keeps_what_it_started_by_when_the_taints_number_is_raised():
    value = "00000000-0000-4000-8000-00000000aaaa"
    it = pod("a", node="p5-1")
    it["spec"]["tolerations"].append(toleration(f"{value}.0"))
    found = only([it], nodes=[node("p5-1", gate="True", taints=[rented_taint(f"{value}.3")])])
    assert (found.partitions, found.excluded) == (("home", "burst-p5"), ("p5-2", "p5-3"))


def test_who_tolerates_everything_is_seen_as_nobody_that_was_placed():
    it = pod("a", node="p5-1", tolerations=[{"operator": "Exists"}])
    found = only([it], nodes=[node("p5-1", gate="True", taints=[rented_taint("x.0")])])
    assert (found.partitions, found.excluded) == (("home", "burst-p5"), ())
