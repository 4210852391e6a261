"""Pods, Jobs and what belongs to them, as jobs of the policy."""

import copy
from dataclasses import replace

import pytest

from ironburst.adapters.kubernetes import KubernetesPool, KubernetesSite, objects, pods, queue
from ironburst.adapters.kubernetes.quantities import quantity, seconds
from ironburst.adapters.kubernetes.taints import toleration
from ironburst.ports import Resources
from tests.fakes.kube_objects import (
    CREATED_S,
    SITE,
    UNSCHEDULABLE,
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


def seen(raw_pods, jobs=(), nodes=(), groups=(), claims=(), volumes=(), namespaces=(), classes=(), site=SITE):
    def keyed(views):
        return {view.key: view for view in views}

    return queue.Objects(
        keyed(pods.read_pod(raw, site) for raw in raw_pods),
        keyed(map(objects.read_node, nodes)),
        keyed(objects.read_job(raw, site) for raw in jobs),
        keyed(map(objects.read_group, groups)),
        keyed(map(objects.read_claim, claims)),
        keyed(objects.read_volume(raw, site) for raw in volumes),
        namespaces=keyed(map(objects.read_default, namespaces)),
        classes=keyed(objects.read_storage_class(raw, site) for raw in classes),
    )


def jobs_of(*args, site=SITE, **more):
    return queue.jobs_of(seen(*args, site=site, **more), site)


def only(*args, **more):
    (found,) = jobs_of(*args, **more)
    return found


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
    from dataclasses import replace

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


# ---- what no rented node can promise


def demands(**more):
    return only([pod("a", **more)]).demands


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"schedulerName": "volcano"}, "the scheduler volcano"),
        ({"nodeSelector": {"rack": "r1"}}, "nodes that no pool has (rack=r1)"),
        ({"resourceClaims": [{"name": "gpu"}]}, "the resource claim gpu"),
        ({"volumes": [{"name": "d", "hostPath": {"path": "/data"}}]}, "the volume d (hostPath /data)"),
        ({"volumes": [{"name": "d", "iscsi": {}}]}, "the volume d (iscsi)"),
        (
            {"topologySpreadConstraints": [{"topologyKey": "rack", "whenUnsatisfiable": "DoNotSchedule"}]},
            "spread (rack)",
        ),
        ({"tolerations": [{"operator": "Exists"}]}, "every node whatever its taints"),
    ],
)
def test_a_demand_has_its_reason(more, says):
    assert says in demands(**more)


@pytest.mark.parametrize(
    "more",
    [
        {"nodeSelector": {"kubernetes.io/os": "linux"}},
        {"volumes": [{"name": "d", "hostPath": {"path": "/dev/shm"}}, {"name": "e", "emptyDir": {}}]},
        {"topologySpreadConstraints": [{"topologyKey": "rack", "whenUnsatisfiable": "ScheduleAnyway"}]},
        {"tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists"}]},
    ],
)
def test_what_every_rented_node_has_is_no_demand(more):
    assert demands(**more) == ""


def test_images_host_ports_and_strange_resources():
    raw = pod("a")
    main = raw["spec"]["containers"][0]
    main |= {
        "image": "registry.home.lan:5000/x",
        "ports": [{"containerPort": 80, "hostPort": 8080}, {"containerPort": 1}],
    }
    main["resources"]["requests"] |= {"vpc.amazonaws.com/efa": "4", "hugepages-2Mi": "1Gi"}
    said = only([raw]).demands
    assert said.split("; ") == [
        "the resource vpc.amazonaws.com/efa",
        "host ports (8080)",
        "an image of registry.home.lan:5000, which only home reaches",
    ]


EFA = "vpc.amazonaws.com/efa"
EFA_SITE = KubernetesSite(
    "lab", (KubernetesPool("burst-p5", ("p5-1",), Resources(8, 96, 1_000_000), resources={EFA: 4}),)
)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({EFA: "4"}, ""),
        ({EFA: "32"}, "32 of the resource vpc.amazonaws.com/efa (a rented node has 4)"),
        ({"rdma/rdma_shared_device_a": "1"}, "the resource rdma/rdma_shared_device_a"),
    ],
)
def test_a_fabric_is_rented_for_as_far_as_the_type_has_it(asked, said):
    """As in AWS's nccl-tests for EKS (requests of vpc.amazonaws.com/efa and hugepages-2Mi beside the GPUs), and in the
    network operator's example/rdma-gpu-test-pod1.yml.
    """
    raw = pod("a")
    raw["spec"]["containers"][0]["resources"]["requests"] |= {"hugepages-2Mi": "5120Mi", **asked}
    assert only([raw], site=EFA_SITE).demands == said


def test_parts_of_gpus_are_told_as_such():
    raw = pod("a", gpus=0)
    raw["spec"]["containers"][0]["resources"]["requests"]["nvidia.com/mig-1g.10gb"] = "2"
    found = only([raw])
    assert (found.each.gpus, found.demands) == (2, "a part of a GPU (nvidia.com/mig-1g.10gb)")


@pytest.mark.parametrize(
    ("expression", "allowed"),
    [
        ({"key": "nvidia.com/gpu.product", "operator": "In", "values": ["NVIDIA-L4"]}, {"burst-g6"}),
        ({"key": "nvidia.com/gpu.product", "operator": "NotIn", "values": ["NVIDIA-L4"]}, {"burst-p5"}),
        ({"key": "nvidia.com/gpu.product", "operator": "Exists"}, {"burst-p5", "burst-g6"}),
        ({"key": "rack", "operator": "DoesNotExist"}, {"burst-p5", "burst-g6"}),
        ({"key": "rack", "operator": "Gt", "values": ["3"]}, set()),
        ({"key": "kubernetes.io/hostname", "operator": "In", "values": ["p5-2"]}, {"burst-p5"}),
    ],
)
def test_node_affinity(expression, allowed):
    terms = {
        "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
    }
    assert pods.read_pod(pod("a", affinity={"nodeAffinity": terms}), SITE).pools == allowed


def test_labels_of_one_kind_of_gpu_are_its_type():
    found = only([pod("a", gpus=1, nodeSelector={"nvidia.com/gpu.product": "NVIDIA-L4"})])
    assert (found.gpu_type, found.demands) == ("l4", "")


@pytest.mark.parametrize(
    ("said", "chosen"),
    [
        ({}, False),
        ({"nvidia.com/gpu.product": "NVIDIA-L4"}, True),
        ({"node.kubernetes.io/instance-type": "g6.12xlarge"}, True),
        ({"ironburst.io/site": "burst-g6"}, True),
        ({"nvidia.com/gpu.present": "true"}, False),
        ({"topology.kubernetes.io/zone": "us-east-1a"}, False),
    ],
)
def test_who_names_gpus_and_who_only_asks_for_some(said, chosen):
    """By a node selector or by required affinity; a type that a zone or a volume leaves was never asked for."""
    terms = [{"matchExpressions": [{"key": key, "operator": "In", "values": [value]}]} for key, value in said.items()]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}} if terms else {}
    assert pods.read_pod(pod("a", gpus=1, nodeSelector=said), SITE).chooses_gpu == chosen
    assert pods.read_pod(pod("a", gpus=1, affinity={"nodeAffinity": required}), SITE).chooses_gpu == chosen


def test_a_type_is_asked_for_where_all_pools_have_it():
    """A hall of H100s with a pool of L4s alone: who selects L4s means them."""
    site = replace(SITE, pools=tuple(each for each in SITE.pools if each.gpu_type == "l4"))
    selects = pod("a", gpus=1, nodeSelector={"nvidia.com/gpu.product": "NVIDIA-L4"})
    assert only([selects], site=site).gpu_type == "l4" and not only([selects], site=site).gpu_by_place
    assert only([pod("a", gpus=1)], site=site).gpu_type == ""


def test_affinity_to_other_pods_is_a_demand_and_distance_to_its_own_kind_is_none():
    apart = {"labelSelector": {"matchLabels": {"app": "x"}}, "topologyKey": "kubernetes.io/hostname"}
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [apart]}}
    assert demands(labels={"app": "x"}, affinity=affinity) == ""
    assert demands(labels={"app": "y"}, affinity=affinity) == "pod anti-affinity (kubernetes.io/hostname)"
    assert demands(affinity=near("other")) == "pod affinity (ironburst.io/site)"


def claim(name, volume=""):
    meta = {"name": name, "namespace": "team-a", "uid": uid(), "resourceVersion": "1"}
    return {"metadata": meta, "spec": {"volumeName": volume}, "status": {"phase": "Bound" if volume else "Pending"}}


def volume(name, **spec):
    return {"metadata": {"name": name, "uid": uid(), "resourceVersion": "1"}, "spec": spec}


def test_volumes_that_are_bound_to_home():
    def with_claim(name):
        return pod("a", volumes=[{"name": "d", "persistentVolumeClaim": {"claimName": name}}])

    def zone(value):
        terms = [{"matchExpressions": [{"key": "topology.kubernetes.io/zone", "operator": "In", "values": [value]}]}]
        return {"required": {"nodeSelectorTerms": terms}}

    claims = [
        claim("far", "pv-far"),
        claim("home", "pv-home"),
        claim("local", "pv-local"),
        claim("p5", "pv-p5"),
        claim("new"),
    ]
    volumes = [
        volume("pv-far", nfs={"server": "x"}),
        volume("pv-home", nodeAffinity=zone("hall-1")),
        volume("pv-local", local={"path": "/x"}),
        volume("pv-p5", nodeAffinity=zone("us-east-1a")),
    ]
    said = {
        name: only([with_claim(name)], claims=claims, volumes=volumes).demands
        for name in ("far", "home", "local", "new", "p5", "missing")
    }
    assert said["far"] == said["p5"] == ""
    assert "bound to topology.kubernetes.io/zone hall-1, where no pool's nodes are for sure" in said["home"]
    assert "bound to home" in said["local"]
    assert "isn't bound yet" in said["new"]
    assert "isn't bound yet" in said["missing"]
    bound = only([with_claim("p5")], claims=claims, volumes=volumes)
    assert bound.gpu_type == "h100" and bound.gpu_by_place  # not that it asked for them


def storage_class(name, mode="WaitForFirstConsumer", provisioner="ebs.csi.aws.com", zones=()):
    """ebs.csi.aws.com: aws-ebs-csi-driver, examples/kubernetes/dynamic-provisioning/manifests/storageclass.yaml."""
    terms = (
        [{"matchLabelExpressions": [{"key": "topology.kubernetes.io/zone", "values": list(zones)}]}] if zones else []
    )
    meta = {"name": name, "uid": uid(), "resourceVersion": "1"}
    return {"metadata": meta, "provisioner": provisioner, "volumeBindingMode": mode, "allowedTopologies": terms}


@pytest.mark.parametrize(
    ("of", "says"),
    [
        (storage_class("ebs-sc"), ""),
        (storage_class("ebs-sc", zones=["us-east-1a"]), ""),
        (storage_class("ebs-sc", zones=["eu-west-1a"]), "whose class ebs-sc makes none there"),
        (storage_class("ebs-sc", "Immediate"), "isn't bound yet"),
        (storage_class("ebs-sc", provisioner="kubernetes.io/no-provisioner"), "isn't bound yet"),
    ],
)
@pytest.mark.parametrize("ephemeral", [False, True], ids=["claim", "generic ephemeral"])
def test_a_volume_that_is_made_where_its_pod_starts_is_no_demand(of, says, ephemeral):
    unbound = claim("a-scratch" if ephemeral else "data")
    unbound["spec"] = {"storageClassName": "ebs-sc"}
    spec = {"accessModes": ["ReadWriteOnce"], "storageClassName": "ebs-sc"}
    volume = (
        {"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": spec}}}
        if ephemeral
        else {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}
    )
    found = only([pod("a", volumes=[volume])], claims=[unbound], classes=[of])
    assert (found.demands == "") == (says == "") and says in found.demands
    if of["allowedTopologies"] and not says:
        assert found.gpu_type == "h100"  # of the pool in that zone


def spread(key, skew=1, app="a", when="DoNotSchedule"):
    selector = {"matchLabels": {"app": app}}
    return [{"maxSkew": skew, "topologyKey": key, "whenUnsatisfiable": when, "labelSelector": selector}]


@pytest.mark.parametrize(
    ("constraints", "says"),
    [
        (spread("kubernetes.io/hostname"), ""),
        (spread("topology.kubernetes.io/zone"), ""),
        (spread("topology.kubernetes.io/zone", app="b"), "spread (topology.kubernetes.io/zone) among other pods"),
        (spread("rack"), "spread (rack), a label that no pool declares"),
        (spread("rack", when="ScheduleAnyway"), ""),
    ],
)
def test_topology_spread_of_its_own_kind_leaves_new_nodes_open(constraints, says):
    """kubernetes.io/docs/concepts/scheduling-eviction/topology-spread-constraints: the first pod of a domain."""
    found = only([pod("a", labels={"app": "a"}, topologySpreadConstraints=constraints)])
    assert (found.demands == "") == (says == "") and says in found.demands


def test_a_gang_that_is_spread_over_nodes_has_so_many_of_them_and_over_zones_is_refused():
    raw, its = gang("train", 4, gpus=2)
    for each in its:
        each["spec"]["topologySpreadConstraints"] = spread("kubernetes.io/hostname", 2, "train")
        each["metadata"]["labels"]["app"] = "train"
    assert only(its, [raw]).nodes == 2
    for each in its:
        each["spec"]["topologySpreadConstraints"] = spread("topology.kubernetes.io/zone", 1, "train")
    assert "topology spread (topology.kubernetes.io/zone) of 4 pods" in only(its, [raw]).demands


@pytest.mark.parametrize("name", ["deviceclass.resource.kubernetes.io/gpu.nvidia.com"])
def test_gpus_that_are_claimed_as_a_resource_are_told(name):
    """DRAExtendedResource, on by default in Kubernetes 1.36: the name that every DeviceClass has."""
    raw = pod("a", gpus=0)
    raw["spec"]["containers"][0]["resources"]["requests"][name] = "1"
    assert only([raw]).demands == f"the resource {name}"


def test_where_no_pod_group_can_be_the_sentence_names_none():
    raw = job("train", parallelism=2, completions=2, indexed=True)
    assert "PodGroup" in only(pods_of(raw, 2), [raw]).demands
    assert "PodGroup" not in only(pods_of(raw, 2), [raw], site=replace(SITE, by_instance=True)).demands


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
