"""GPUs in a Kubernetes cluster: what can't be installed together, or on this version, and what rented nodes need."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ironburst import catalog
from ironburst.config import software as declared_software
from ironburst.config.checks.common import At, Findings, cloud_nodes, owned_nodes, schedulers
from ironburst.config.finding import Finding, path_of
from ironburst.config.gpu_support_models import GpuSupport
from ironburst.config.models import ClusterConfig
from ironburst.config.scheduler_models import Kubernetes
from ironburst.nodes.naming import NOT_READY_TAINT, RENTED_TAINT
from ironburst.software.solve import Solution

GPU_CLUSTER_MIN = "1.34"  # of the GPU operator's GPUCluster (its documentation: 1.34.2)
CLAIMS_DRIVER_MIN = 580  # NVIDIA/cloud-native-docs:gpu-operator (2026-08-21)
BUILT_IN = ("default", "kube-system", "kube-public", "kube-node-lease")


def gpu_support(config: ClusterConfig) -> Findings:
    """Only where a scheduler is Kubernetes."""
    for at, declared in schedulers(config):
        if isinstance(declared, Kubernetes):
            yield from _of_cluster(config, at, declared)


def _of_cluster(config: ClusterConfig, at: At, declared: Kubernetes) -> Findings:
    support, path = declared.gpu_support, at("gpu_support")
    if declared.namespace in BUILT_IN:
        message = f"{declared.namespace} is the cluster's own; give the controller a namespace of its own"
        yield Finding(at("namespace"), declared.namespace, "namespace", message)
    if support.anything and not (declared.admin_kubeconfig or declared.hosted):
        message = "is to be installed, and Pulumi isn't let in: give the cluster's admin_kubeconfig, or leave this out"
        yield Finding(path, None, "admin-kubeconfig", message)
    if declared.gate_rule and not declared.admin_kubeconfig:
        message = "is to be declared, and Pulumi isn't let in: give the cluster's admin_kubeconfig, or leave this out"
        yield Finding(at("gate_rule"), None, "admin-kubeconfig", message)
    yield from _together(config, at, support)
    for name in support.charts:
        yield from _version(_kubernetes(config), support, name)
    if _rents(config) and not declared.hosted:  # there the cluster's own tolerate every taint
        message = (
            f"rented nodes register with the taint {NOT_READY_TAINT}, later {RENTED_TAINT}: let the cluster's own "
            "DaemonSets that a node needs, its network (CNI) first, tolerate both, or no rented node gets ready"
        )
        yield Finding(at("kind"), declared.kind, "tolerations", message, "warning")


def drivers(config: ClusterConfig, solution: Solution) -> Findings:
    """Claims that hand out GPUs need a driver branch; `solution` has each group's."""
    for at, declared in schedulers(config):
        if isinstance(declared, Kubernetes) and declared.gpu_support.dra == "gpus":
            yield from _drivers(at, config, solution)


def _drivers(at: At, config: ClusterConfig, solution: Solution) -> Findings:
    wishes = {group.name: group.wish for group in declared_software.groups(config)}
    its = (name for name, asked in wishes.items() if asked.scheduler == "kubernetes")
    by_name = {name: driver for name in its if (driver := solution.sets[name].driver)}
    old = [f"{name} ({driver})" for name, driver in by_name.items() if _key(driver)[0] < CLAIMS_DRIVER_MIN]
    if old:
        needs = f"needs driver {CLAIMS_DRIVER_MIN} or newer, and these have an older one: {', '.join(old)}"
        message = f"is gpus, which {needs}; write another driver, or compute-domains"
        yield Finding(at("gpu_support", "dra"), "gpus", "claims-driver", message)


def _together(config: ClusterConfig, at: At, support: GpuSupport) -> Findings:
    path, dra = at("gpu_support", "dra"), support.dra
    strategy = at("gpu_support", "mig_strategy")
    if dra == "gpus" and support.plugin == "device-plugin":
        message = "is gpus beside the device plugin, and both would hand out the same ones: write compute-domains"
        yield Finding(path, dra, "gpus-twice", message)
    if dra == "gpus" and _rents(config):
        message = (
            "is gpus, and a rented node is in service only when it shows nvidia.com/gpu, which claims don't: write "
            "compute-domains, or declare no pools"
        )
        yield Finding(path, dra, "gpus-by-claim", message)
    if support.device_taints and dra != "gpus":
        message = f"is yes, and dra is {dra}: only GPUs that claims hand out can be tainted; write dra: gpus, or no"
        yield Finding(at("gpu_support", "device_taints"), True, "taints-without-claims", message)
    if dra == "gpus" and support.mig_strategy != "none":
        message = "is the device plugin's, and with dra: gpus a claim asks for its MIG instance: leave it out"
        yield Finding(strategy, support.mig_strategy, "mig-by-claim", message)
    if support.plugin == "device-plugin" and not support.gpus_by_mount:
        message = (
            "is envvar, so a pod of a CUDA image that asks for no GPU sees all of its node's: converge the nodes and "
            "bake the images once, then write volume-mounts"
        )
        yield Finding(at("gpu_support", "device_list"), support.device_list, "gpus-by-envvar", message, "warning")
    if support.rdma_resource and not support.network_operator:
        message = "is the network operator's to hand out: write network_operator: yes, or leave it out"
        yield Finding(at("gpu_support", "rdma_resource"), support.rdma_resource, "rdma-without-operator", message)
    if support.sharing and (support.plugin == "none" or dra == "gpus"):
        message = "is the device plugin's, which isn't installed: declare plugin, or leave it out"
        yield Finding(at("gpu_support", "sharing"), support.sharing.by, "sharing-without-plugin", message)
    for name in sorted(set(support.values) - set(support.charts)):
        message = f"are of a chart that isn't installed; those that are: {', '.join(support.charts) or 'none'}"
        yield Finding(at("gpu_support", "values", name), name, "values-unused", message)
    divided = list(_divided(config))
    if support.plugin != "none" and dra != "gpus" and support.mig_strategy == "none" and divided:
        message = (
            f"is none, so pods get no MIG instance, and these nodes have some: {', '.join(divided)}; write single (as "
            "nvidia.com/gpu) or mixed (by their profiles)"
        )
        yield Finding(strategy, support.mig_strategy, "mig-unused", message, "warning")


def _rents(config: ClusterConfig) -> bool:
    """Whether there are pools of the cluster."""
    return any(config.scheduler_of(pool) is config.kubernetes for pool in config.pools)


def _divided(config: ClusterConfig) -> Iterator[str]:
    """What of the cluster has MIG instances, by name; of owned nodes the first of each range."""
    its = ((nodes.names[0], nodes) for _, _, nodes in owned_nodes(config))
    also = ((nodes.name, nodes) for _, nodes in cloud_nodes(config))
    for name, nodes in (*its, *also):
        if nodes.mig and config.scheduler_of(nodes) is config.kubernetes:
            yield name


def _kubernetes(config: ClusterConfig) -> str | None:
    """The declared version of the nodes, else the profile's."""
    profile = catalog.profiles().get(config.software.profile or "", {})
    return config.software.kubernetes or profile.get("kubernetes")


def _version(kubernetes: str | None, support: GpuSupport, name: str) -> Findings:
    """Nothing can be said without a declared version."""
    if not kubernetes:
        return
    chart, path = catalog.chart(name), path_of("software", "kubernetes")
    by_claims = name == "gpu-operator" and support.dra == "gpus"
    oldest = max(GPU_CLUSTER_MIN if by_claims else "", chart.kubernetes_min or "", key=_key)
    said = f"{name} {chart.version}"
    if oldest and _key(kubernetes) < _key(oldest):
        message = f"{said} needs Kubernetes {oldest} or newer, and {kubernetes} is declared; leave it out or upgrade"
        yield Finding(path, kubernetes, "chart-too-new", message)
    elif chart.kubernetes_max and _key(kubernetes) > _key(chart.kubernetes_max):
        message = f"{said} is supported by its vendor up to Kubernetes {chart.kubernetes_max}, not on {kubernetes}"
        yield Finding(path, kubernetes, "chart-too-old", message, "warning")


def _key(version: str) -> tuple[int, ...]:
    """Major and minor of a version; empty is before all."""
    return tuple(int(part) for part in re.findall(r"\d+", version)[:2])
