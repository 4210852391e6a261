"""What pods insist on that no rented node can promise."""

from dataclasses import replace

import pytest

from ironburst.adapters.kubernetes import KubernetesPool, KubernetesSite, pods
from ironburst.ports import Resources
from tests.adapters.kubernetes.seen import only
from tests.fakes.kube_objects import SITE, gang, job, near, pod, pods_of, uid


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
