"""The kinds of workloads that platform teams run, at a real API server with its scheduler and controllers: each is
rented for, and its nodes are given back when it goes; or it is refused with a true sentence.

Deployments, StatefulSets and Jobs are made by Kubernetes' own controllers. Of the operators (JobSet, LeaderWorkerSet,
MPI operator, KubeRay) only the kind is there; what they make of their own examples is written here as they make it,
owned by the object, so that Kubernetes' garbage collector takes it when that is deleted. Nodes are kwok's.
"""

from types import SimpleNamespace

import pytest

from ironburst.adapters.kubernetes import Access, Client, Kubernetes
from ironburst.burst import eligibility
from ironburst.controller import records
from ironburst.controller.ledger import Ledger
from ironburst.controller.tick import Controller
from ironburst.document import parse
from ironburst.nodes.naming import NOT_READY_TAINT
from ironburst.wiring import schedulers
from lab.kubernetes.access import Refused
from lab.kubernetes.nodes import NodeSpec
from lab.system import wait_for
from tests import planes
from tests.adapters.kubernetes.test_both_live import RealClock, Shown, passes_its_gate
from tests.fakes import FakeCloud, FakeSlurm
from tests.fakes.both import CLUSTER
from tests.fakes.site import document as slurms
from tests.fakes.snapshots import POLICY

pytestmark = [pytest.mark.slow, planes.BUILT]
LIMIT_S = 90
SITE_LABEL = "ironburst.io/site"
LIMIT = {"ironburst.io/time-limit": "1h"}
ROOM = {"cpu": "8", "memory": "64Gi", "pods": "110", "nvidia.com/gpu": "8"}
KINDS = {  # operator's kind: its group, version and plural
    "JobSet": ("jobset.x-k8s.io", "v1alpha2", "jobsets"),
    "LeaderWorkerSet": ("leaderworkerset.x-k8s.io", "v1", "leaderworkersets"),
    "MPIJob": ("kubeflow.org", "v2beta1", "mpijobs"),
    "RayCluster": ("ray.io", "v1", "rayclusters"),
}


@pytest.fixture(scope="module")
def plane():
    with planes.running("kinds") as plane:
        api = plane.api()
        meta = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ironburst-system"}}
        api.call("POST", "/api/v1/namespaces", meta)
        for kind, (group, version, plural) in KINDS.items():
            schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
            served = {"name": version, "served": True, "storage": True, "schema": schema}
            names = {"kind": kind, "plural": plural, "singular": kind.lower()}
            spec = {"group": group, "scope": "Namespaced", "names": names, "versions": [served]}
            path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
            body = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}
            api.call("POST", path, {**body, "metadata": {"name": f"{plural}.{group}"}, "spec": spec})
        cpus = {"cpu": "8", "memory": "64Gi", "pods": "110"}
        plane.add_node(NodeSpec("cpu1", labels={SITE_LABEL: "home"}, allocatable=cpus))
        yield plane


def document():
    raw = slurms(boot_s=600, idle_s=1, tick_s=5).model_dump(mode="json")
    return parse(raw | {"scheduler": CLUSTER})


@pytest.fixture(scope="module")
def site(plane, tmp_path_factory):
    clock, said = RealClock(), document()
    slurm = FakeSlurm(clock)
    cloud = FakeCloud(clock, Shown(slurm))
    slurm.cloud = cloud
    kube = Kubernetes(Client(Access(plane.layout().kubeconfig("admin"))), schedulers.site_of(said), deliver=str)
    controller = Controller(kube, cloud, Ledger(tmp_path_factory.mktemp("site") / "ledger.sqlite"), clock)
    yield SimpleNamespace(plane=plane, api=plane.api(), document=said, kube=kube, cloud=cloud, controller=controller)
    kube.close()


# ---- what people and operators make

NS = "/namespaces/default"


def template(gpus, labels=None, notes=None, near=None, cpu="1", **spec):
    asks = {"cpu": cpu, "memory": "500Mi"} | ({"nvidia.com/gpu": str(gpus)} if gpus else {})
    container = {"name": "c", "image": "x", "resources": {"requests": asks, "limits": asks}}
    if near:
        term = {"labelSelector": {"matchLabels": near}, "topologyKey": SITE_LABEL}
        required = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
        spec["affinity"] = {"podAffinity": required}
    meta = {"labels": labels or {}, "annotations": notes or {}}
    return {"metadata": meta, "spec": {"containers": [container], **spec}}


def serving(api, kind, name, replicas=1):
    labels = {"app": name}
    spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template(8, labels, LIMIT)}
    more = {"serviceName": name} if kind == "StatefulSet" else {}
    path = f"/apis/apps/v1{NS}/{kind.lower()}s"
    api.call("POST", path, {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name}, "spec": spec | more})
    return f"{path}/{name}"


def owner(api, kind, name):
    """The operator's object; its path, and how what it makes names it."""
    group, version, plural = KINDS[kind]
    path = f"/apis/{group}/{version}{NS}/{plural}"
    made = api.call("POST", path, {"apiVersion": f"{group}/{version}", "kind": kind, "metadata": {"name": name}})
    of = {"apiVersion": f"{group}/{version}", "kind": kind, "name": name, "uid": made["metadata"]["uid"]}
    return f"{path}/{name}", of | {"controller": True}


def pod(api, name, of, made):
    meta = {**made["metadata"], "name": name, "ownerReferences": [of]}
    api.call("POST", f"/api/v1{NS}/pods", {"apiVersion": "v1", "kind": "Pod", **made, "metadata": meta})


def job(api, name, of, made, count=1, limit=None, labels=None):
    indexed = {"parallelism": count, "completions": count, "completionMode": "Indexed"}
    spec = {**indexed, "template": made, **({"activeDeadlineSeconds": limit} if limit else {})}
    spec["template"]["spec"]["restartPolicy"] = "Never"
    meta = {"name": name, "ownerReferences": [of], "labels": labels or {}}
    api.call(
        "POST", f"/apis/batch/v1{NS}/jobs", {"apiVersion": "batch/v1", "kind": "Job", "metadata": meta, "spec": spec}
    )


def jobset(api):
    path, of = owner(api, "JobSet", "js")
    labels = {"jobset.sigs.k8s.io/jobset-name": "js", "jobset.sigs.k8s.io/global-replicas": "2"}
    job(api, "js-driver-0", of, template(0, labels), limit=3600, labels=labels)
    workers = {**labels, "jobset.sigs.k8s.io/replicatedjob-name": "workers"}
    near = {"jobset.sigs.k8s.io/replicatedjob-name": "workers"}
    job(api, "js-workers-0", of, template(8, workers, near=near), 2, 3600, labels)
    return path


def leader_worker_set(api):
    key, notes = "leaderworkerset.sigs.k8s.io", {"leaderworkerset.sigs.k8s.io/size": "2", **LIMIT}
    path, of = owner(api, "LeaderWorkerSet", "vllm")
    labels = {f"{key}/name": "vllm", f"{key}/group-index": "0", f"{key}/group-key": "g0"}
    for name in ("vllm-0", "vllm-0-1"):  # the first of a StatefulSet of the LWS, the other of the leader's
        pod(api, name, of, template(8, labels, notes, {f"{key}/group-key": "g0"}))
    return path


def mpi_job(api):
    path, of = owner(api, "MPIJob", "nccl")
    labels = {"training.kubeflow.org/job-name": "nccl", "training.kubeflow.org/job-role": "worker"}
    job(api, "nccl-launcher", of, template(0), limit=666)
    for n in range(2):
        pod(api, f"nccl-worker-{n}", of, template(8, labels, near=labels))
    return path


def ray_job(api):
    path, of = owner(api, "RayCluster", "ray")
    pod(api, "ray-head", of, template(0, {"ray.io/node-type": "head"}, LIMIT))
    labels = {"ray.io/cluster": "ray", "ray.io/node-type": "worker"}
    for n in range(2):
        pod(api, f"ray-worker-{n}", of, template(8, labels, LIMIT, near=labels))
    return path


MAKES = {
    "Deployment": (lambda api: serving(api, "Deployment", "web"), 1),
    "JobSet": (jobset, 2),
    "LeaderWorkerSet": (leader_worker_set, 2),
    "MPIJob": (mpi_job, 2),
    "RayJob": (ray_job, 2),
    "StatefulSet": (lambda api: serving(api, "StatefulSet", "llm"), 1),
}


# ---- rented for, and given back


def pods_on(site):
    """Node of each pod with GPUs, by name."""
    found = site.api.call("GET", f"/api/v1{NS}/pods")["items"]
    asks = {raw["metadata"]["name"]: raw["spec"]["containers"][0]["resources"]["requests"] for raw in found}
    return {
        raw["metadata"]["name"]: raw["spec"].get("nodeName", "")
        for raw in found
        if "nvidia.com/gpu" in asks[raw["metadata"]["name"]]
    }


def join(site):
    """What the instances do that were launched: they register, and pass their gate."""
    for lease in site.controller.ledger.leases():
        if lease.state == records.LAUNCHED:
            try:
                site.api.call("GET", f"/api/v1/nodes/{lease.node}")
            except Refused:
                labels = {SITE_LABEL: site.document.pools[0].partition}
                taints = [f"{NOT_READY_TAINT}=:NoSchedule"]
                site.plane.add_node(NodeSpec(lease.node, labels, ROOM, taints, devices_after_s=0.2))
            passes_its_gate(site.api, lease.node)


def ticked(site, condition):
    site.controller.tick(site.document)
    join(site)
    return condition()


@pytest.mark.parametrize("kind", sorted(MAKES))
def test_rented_for_and_given_back(site, kind):
    make, nodes = MAKES[kind]
    path = make(site.api)

    def works():
        on = pods_on(site)
        return len(on) == nodes and all(each.startswith("p5-") for each in on.values())

    wait_for(lambda: ticked(site, works), LIMIT_S, f"the pods of the {kind} on rented nodes", 0.3)
    assert len(site.controller.ledger.leases()) == nodes  # none for a launcher, a head, a driver
    site.api.call("DELETE", f"{path}?propagationPolicy=Background")

    def gone():
        leases = site.controller.ledger.leases()
        names = [raw["metadata"]["name"] for raw in site.api.call("GET", "/api/v1/nodes")["items"]]
        return not leases and not site.cloud.alive() and names == ["cpu1"]

    wait_for(lambda: ticked(site, gone), 2 * LIMIT_S, f"the nodes of the {kind} given back", 0.3)


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet"])
def test_kubernetes_takes_no_deadline_of_what_serves(site, kind):
    """Why there is an annotation."""
    labels = {"app": "x"}
    made = template(8, labels, activeDeadlineSeconds=3600)
    spec = {"selector": {"matchLabels": labels}, "template": made, "serviceName": "x"}
    body = {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": "x"}, "spec": spec}
    with pytest.raises(Refused, match="activeDeadlineSeconds"):
        site.api.call("POST", f"/apis/apps/v1{NS}/{kind.lower()}s", body)


def test_as_it_is_pasted_it_is_refused_with_what_is_missing(site):
    """mpi-operator's example has no affinity, a StatefulSet no annotation."""
    path, of = owner(site.api, "MPIJob", "pasted")
    job(site.api, "pasted-launcher", of, template(0), limit=666)
    for n in range(2):
        pod(site.api, f"pasted-worker-{n}", of, template(8))

    def why():
        jobs = {each.name: each for each in site.kube.observe().jobs}
        found = jobs.get("default/pasted")
        return found and not found.held and eligibility.not_rentable(found, POLICY)

    code, text = wait_for(why, LIMIT_S, "the reason", 0.2)
    assert code == "demands" and "2 pods together, and nothing keeps them on one side" in text
    site.api.call("DELETE", f"{path}?propagationPolicy=Background")
    wait_for(lambda: not pods_on(site), LIMIT_S, "its end", 0.2)
