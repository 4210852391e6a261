"""Gangs with pods that ask for no GPU beside those that do: MPI launchers, Ray heads, drivers. Their dollars are those
of packing by hand: the nodes of the pods with GPUs.

The pods are as the projects' controllers make them of their own examples; each says which.
"""

import copy
from dataclasses import replace

import pytest

from ironburst.adapters.kubernetes import KubernetesPool, queue
from ironburst.adapters.kubernetes.taints import toleration
from ironburst.ports import Resources
from tests.adapters.kubernetes.seen import only, seen
from tests.adapters.kubernetes.test_workloads import SITE as KUEUES
from tests.adapters.kubernetes.test_workloads import recorded
from tests.adapters.kubernetes.test_workloads import seen as queued
from tests.fakes.kube_objects import SITE, job, node, owner, pod, pods_of, rented_taint, uid

P5 = replace(SITE, pools=(KubernetesPool("burst-p5", ("p5-1", "p5-2", "p5-3"), Resources(8, 192, 2_000_000), "h100"),))


def asks(raw, **requests):
    raw["spec"]["containers"][0]["resources"] = {"requests": requests}
    return raw


def kept_together(raws, label, value):
    """By required affinity, as ironburst asks for where Kueue isn't the queue."""
    term = {"labelSelector": {"matchLabels": {label: value}}, "topologyKey": "ironburst.io/site"}
    for raw in raws:
        raw["spec"]["affinity"] = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    return raws


def mpi_workers(count=2):
    """mpi-operator, examples/v2beta1/nccl-tests/nccl-tests.yaml: workers of 8 GPUs, owned by the MPIJob; the launcher's
    Job has runPolicy.activeDeadlineSeconds, 666, and asks for 50m and 128Mi.
    """
    of = owner("MPIJob", "nccl-tests", uid())
    labels = {"training.kubeflow.org/job-name": "nccl-tests", "training.kubeflow.org/job-role": "worker"}
    workers = [
        asks(pod(f"nccl-tests-worker-{n}", owner=of, labels=labels), **{"nvidia.com/gpu": "8"}) for n in range(count)
    ]
    launcher = job("nccl-tests-launcher", limit=666, of=of)
    it = pod(
        "nccl-tests-launcher-x",
        gpus=0,
        owner=owner("Job", "nccl-tests-launcher", launcher["metadata"]["uid"]),
        labels={**labels, "training.kubeflow.org/job-role": "launcher"},
    )
    return workers, asks(it, cpu="50m", memory="128Mi"), launcher


def ray(workers=2, limit=3600):
    """kuberay, ray-operator/config/samples/pytorch-mnist/ray-job.pytorch-mnist.yaml: a head of 1 CPU and 4Gi, here with
    GPUs for the workers; all are owned by the RayCluster.
    """
    of, labels = owner("RayCluster", "rayjob-x7k2p", uid()), {"ray.io/cluster": "rayjob-x7k2p"}
    head = pod("rayjob-x7k2p-head", gpus=0, owner=of, labels={**labels, "ray.io/node-type": "head"})
    its = [
        pod(f"rayjob-x7k2p-worker-{n}", owner=of, labels={**labels, "ray.io/node-type": "worker"})
        for n in range(workers)
    ]
    for raw in (head, *its):
        raw["spec"]["activeDeadlineSeconds"] = limit
    return asks(head, cpu="1", memory="4Gi"), its


def jobset(workers=4):
    """jobset, site/static/examples/startup-policy/startup-driver-ready.yaml, with the GPUs of
    examples/pytorch/gpu-training: a driver that has to be ready before the workers are made.
    """
    labels = {"jobset.sigs.k8s.io/jobset-name": "train", "jobset.sigs.k8s.io/global-replicas": "2"}
    driver = job("train-driver-0", labels=labels)
    gang = job("train-workers-0", labels=labels, parallelism=workers, completions=workers, indexed=True)

    def of(raw, name, gpus):
        owned = owner("Job", raw["metadata"]["name"], raw["metadata"]["uid"])
        return pod(name, gpus=gpus, labels=dict(labels), owner=owned)

    its = [of(gang, f"train-workers-0-{n}", 2) for n in range(workers)]
    return of(driver, "train-driver-0-0", 0), its, [driver, gang]


def at_home(raw):
    raw["spec"]["nodeName"] = "cpu01"
    raw["status"] = {"phase": "Running", "conditions": [], "startTime": "2026-11-23T07:10:00Z"}
    return raw


# ---- dollars, against packing by hand: nodes at one price for one time


def gang_of(what, started):
    """(pods, jobs, nodes by hand)."""
    if what == "RayJob":
        (launcher, workers), jobs, by_hand = ray(), [], 2
        kept_together(workers, "ray.io/node-type", "worker")
    elif what == "JobSet":
        launcher, workers, jobs = jobset()
        by_hand = 1  # four workers of two GPUs
        for raw in workers:
            raw["metadata"]["labels"]["job-name"] = "train-workers-0"
        kept_together(workers, "job-name", "train-workers-0")
    else:
        workers, launcher, launcher_job = mpi_workers()
        jobs, by_hand = [launcher_job], 2
        kept_together(workers, "training.kubeflow.org/job-role", "worker")
    return [at_home(launcher) if started else launcher, *workers], jobs, by_hand


@pytest.mark.parametrize("started", [False, True], ids=["launcher pending", "launcher at home"])
@pytest.mark.parametrize("what", ["JobSet", "MPIJob", "RayJob"])
def test_a_launcher_costs_no_node(what, started):
    """Home has CPUs, so the launcher mostly has started when the others wait."""
    pods, jobs, by_hand = gang_of(what, started)
    found = only(pods, jobs, site=P5)
    assert (found.state, found.held, found.demands) == ("PENDING", False, "")
    assert found.nodes / by_hand == 1.0
    assert found.each.gpus == 8 and found.on == () and found.time_limit_s is not None


def kueues(template, launcher):
    """A recorded workload of Kueue whose ClusterQueue covers CPUs, too, so that the launcher is given a flavor."""
    raw = recorded("held")
    (workers,) = raw["spec"]["podSets"]
    lead = copy.deepcopy(workers)
    lead |= {"name": "launcher", "count": 1}
    lead["template"]["spec"]["containers"][0]["resources"] = {"requests": launcher}
    workers["template"]["spec"]["containers"][0]["resources"] = {"requests": template}
    raw["spec"]["podSets"] = [lead, workers]
    (given,) = raw["status"]["admission"]["podSetAssignments"]
    first = copy.deepcopy(given) | {"name": "launcher", "count": 1, "flavors": {"cpu": "cloud"}}
    raw["status"]["admission"]["podSetAssignments"] = [first, given]
    return raw


@pytest.mark.parametrize("launcher", [{"cpu": "50m", "memory": "128Mi"}, {"cpu": "2"}, {}], ids=["mpi", "ray", "none"])
def test_a_launcher_that_kueue_sends_to_the_cloud_takes_room_that_is_left(launcher):
    from ironburst.adapters.kubernetes.workloads import jobs_of

    (found,) = jobs_of(queued(kueues({"nvidia.com/gpu": "8", "cpu": "90"}, launcher)), KUEUES)
    assert (found.nodes, found.each.gpus) == (2, 8)


# ---- what doesn't fit beside them


def test_a_launcher_that_fits_nowhere_gets_a_node():
    head, workers = ray()
    asks(head, cpu="150", memory="4Gi")
    for raw in workers:
        asks(raw, **{"nvidia.com/gpu": "8", "cpu": "100"})
    kept_together(workers, "ray.io/node-type", "worker")
    found = only([head, *workers], site=P5)
    assert (found.nodes, found.each.cpus) == (3, 150)


def test_what_is_asked_of_each_node_is_what_is_there_at_most():
    head, workers = ray()
    kept_together(workers, "ray.io/node-type", "worker")
    assert only([head, *workers], site=P5).each == Resources(8, 5, 65536 + 4096)


def test_pods_with_unlike_gpus_share_nodes():
    head, workers = ray(workers=4)
    for raw, gpus in zip(workers, ("6", "6", "2", "2"), strict=True):
        asks(raw, **{"nvidia.com/gpu": gpus, "cpu": "4"})
    kept_together(workers, "ray.io/node-type", "worker")
    assert only([head, *workers], site=P5).nodes == 2


def test_pods_that_share_no_node_with_their_own_kind_share_it_with_a_launcher():
    head, workers = ray(workers=2)
    for raw in workers:
        asks(raw, **{"nvidia.com/gpu": "1", "cpu": "4"})
    kept_together(workers, "ray.io/node-type", "worker")
    apart = {"labelSelector": {"matchLabels": {"ray.io/node-type": "worker"}}, "topologyKey": "kubernetes.io/hostname"}
    for raw in workers:
        raw["spec"]["affinity"]["podAntiAffinity"] = {"requiredDuringSchedulingIgnoredDuringExecution": [apart]}
    assert only([head, *workers], site=P5).nodes == 2


# ---- launchers that must stay at home, or keep the others there


def test_a_launcher_that_only_home_can_have_is_no_reason_to_refuse_the_others():
    head, workers = ray()
    kept_together(workers, "ray.io/node-type", "worker")
    head["spec"]["nodeSelector"] = {"node-role.kubernetes.io/cpu": ""}
    found = only([at_home(head), *workers], site=P5)
    assert (found.demands, found.nodes) == ("", 2)


def test_a_launcher_without_room_at_home_that_can_go_nowhere_else_is_named():
    head, workers = ray()
    kept_together(workers, "ray.io/node-type", "worker")
    head["spec"]["nodeSelector"] = {"node-role.kubernetes.io/cpu": ""}
    assert (
        "its pod rayjob-x7k2p-head, which asks for no GPU, on nodes that no pool has"
        in only([head, *workers], site=P5).demands
    )


def test_affinity_to_a_launcher_that_runs_at_home_keeps_the_others_there():
    head, workers = ray()
    kept_together(workers, "ray.io/cluster", "rayjob-x7k2p")
    waits = only([head, *workers], site=P5)
    runs = only([at_home(head), *workers], site=P5)
    assert waits.demands == ""
    assert "its pod rayjob-x7k2p-head runs at home, and required pod affinity keeps the others with it" in runs.demands


def test_as_they_are_pasted_nothing_keeps_the_workers_on_one_side():
    head, workers = ray()
    assert only([head, *workers], site=P5).demands.startswith("2 pods together, and nothing keeps them on one side")
    head, workers = ray(workers=1)
    assert only([head, *workers], site=P5).demands == ""  # one is on one side


def test_on_a_rented_node_a_launcher_keeps_it():
    head, workers = ray()
    head["spec"]["nodeName"] = "p5-1"
    head["spec"]["tolerations"].append(toleration("x.0"))
    found = only([head, *workers], nodes=[node("p5-1", gate="True", taints=[rented_taint("x.0")])], site=P5)
    assert found.on == ("p5-1",) and not found.pending


def test_the_workers_of_an_mpijob_end_with_its_launcher():
    workers, launcher, launcher_job = mpi_workers()
    assert only([*workers, launcher], [launcher_job], site=P5).time_limit_s == 666
    assert only([*workers], [], site=P5).time_limit_s is None


# ---- what kubelet and DaemonSets take of a node


def daemon(name, cpu, on="dgx01", **spec):
    """As NVIDIA's, which tolerate the taints of rented nodes."""
    spec.setdefault("tolerations", [{"key": "ironburst.io/rented", "operator": "Exists"}])
    it = pod(f"{name}-x", gpus=0, node=on, owner=owner("DaemonSet", name, uid()), **spec)
    return asks(it, cpu=cpu, memory="1Gi")


def test_what_daemonsets_take_of_a_node_is_left_out():
    whole = asks(pod("a"), **{"nvidia.com/gpu": "8", "cpu": "191"})
    assert only([whole], site=P5).demands == ""
    exporters = [daemon("dcgm-exporter", "500m"), daemon("cni", "700m")]
    found = only([whole, *exporters], site=P5)
    assert (
        "191 CPUs and 0 MiB of a node, of which kubelet and DaemonSets leave less (burst-p5: 190.8 CPUs"
        in found.demands
    )


def test_a_daemonset_that_does_not_go_to_rented_nodes_takes_nothing_of_them():
    whole = asks(pod("a"), **{"nvidia.com/gpu": "8", "cpu": "191"})
    others = [daemon("home", "4", tolerations=[]), daemon("labelled", "4", nodeSelector={"rack": "r1"})]
    assert only([whole, *others], site=P5).demands == ""


def test_what_kubelet_keeps_on_eks_is_left_out():
    whole = asks(pod("a"), **{"nvidia.com/gpu": "8", "cpu": "192"})
    assert only([whole], site=P5).demands == ""
    assert "of which kubelet and DaemonSets leave less" in only([whole], site=replace(P5, by_instance=True)).demands


def test_a_node_that_is_there_says_it_better():
    whole = asks(pod("a"), **{"nvidia.com/gpu": "8", "cpu": "190"})
    raw = node("p5-1", gate="True", taints=[rented_taint("x.0")])  # 95.5 CPUs
    assert "(burst-p5: 95.5 CPUs" in only([whole], nodes=[raw], site=P5).demands


def test_pods_are_packed_onto_what_is_left():
    head, workers = ray(workers=4)
    for raw in workers:
        asks(raw, **{"nvidia.com/gpu": "4", "cpu": "96"})
    kept_together(workers, "ray.io/node-type", "worker")
    its = [at_home(head), *workers]
    assert only(its, site=P5).nodes == 2
    assert only([*its, daemon("dcgm-exporter", "100m")], site=P5).nodes == 4


def test_what_daemonsets_and_kubelet_leave_is_what_jobs_are_offered():
    """Of 95.5 CPUs 95, so that no two are promised more than there are; who takes all 95.5 is offered them, too."""
    there = node("p5-1")  # 95500m
    view = seen([daemon("cni", "500m")], nodes=[there], site=P5)
    assert queue.for_jobs(view, P5)["burst-p5"].cpus == 95
    (it,) = pods_of(raw := job("whole"), 1, gpus=8)
    asks(it, **{"nvidia.com/gpu": "8", "cpu": "95500m"})
    assert only([it], [raw], nodes=[there], site=P5).each.cpus == 95
    asks(it, **{"nvidia.com/gpu": "8", "cpu": "94200m"})
    assert only([it], [raw], nodes=[there], site=P5).each.cpus == 95
