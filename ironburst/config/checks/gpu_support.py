"""GPUs in a Kubernetes cluster: what can't be installed together, or on this version, and what rented nodes need."""

from __future__ import annotations

import re

from ironburst import catalog
from ironburst.config.checks.common import Findings
from ironburst.config.load import Finding, path_of
from ironburst.config.models import ClusterConfig
from ironburst.config.scheduler_models import GpuSupport, Kubernetes
from ironburst.naming import NOT_READY_TAINT, RENTED_TAINT

GPU_CLUSTER_MIN = "1.34"  # of the GPU operator's GPUCluster (its documentation: 1.34.2)
BUILT_IN = ("default", "kube-system", "kube-public", "kube-node-lease")


def gpu_support(config: ClusterConfig) -> Findings:
    """Only where the scheduler is Kubernetes."""
    declared = config.scheduler
    if not isinstance(declared, Kubernetes):
        return
    support, path = declared.gpu_support, path_of("scheduler", "gpu_support")
    if declared.namespace in BUILT_IN:
        message = f"{declared.namespace} is the cluster's own; give the controller a namespace of its own"
        yield Finding(path_of("scheduler", "namespace"), declared.namespace, "namespace", message)
    if support.anything and not declared.admin_kubeconfig:
        message = "is to be installed, and Pulumi isn't let in: give scheduler.admin_kubeconfig, or leave this out"
        yield Finding(path, None, "admin-kubeconfig", message)
    yield from _together(config, support)
    for name in _charts(support):
        yield from _version(_kubernetes(config), support, name)
    if config.cloud and config.cloud.pools:
        message = (
            f"rented nodes register with the taint {NOT_READY_TAINT}, later {RENTED_TAINT}: let the cluster's own "
            "DaemonSets that a node needs, its network (CNI) first, tolerate both, or no rented node gets ready"
        )
        yield Finding(path_of("scheduler", "kind"), declared.kind, "tolerations", message, "warning")


def _together(config: ClusterConfig, support: GpuSupport) -> Findings:
    path, dra = path_of("scheduler", "gpu_support", "dra"), support.dra
    if dra == "gpus" and support.plugin == "device-plugin":
        message = "is gpus beside the device plugin, and both would hand out the same ones: write compute-domains"
        yield Finding(path, dra, "gpus-twice", message)
    if dra == "gpus" and config.cloud and config.cloud.pools:
        message = (
            "is gpus, and a rented node is in service only when it shows nvidia.com/gpu, which claims don't: write "
            "compute-domains, or declare no pools"
        )
        yield Finding(path, dra, "gpus-by-claim", message)
    if dra == "gpus" and support.mig_strategy != "none":
        message = "is the device plugin's, and with dra: gpus a claim asks for its MIG instance: leave it out"
        yield Finding(
            path_of("scheduler", "gpu_support", "mig_strategy"), support.mig_strategy, "mig-by-claim", message
        )


def _charts(support: GpuSupport) -> list[str]:
    wanted = {
        "device-plugin": support.plugin == "device-plugin",
        "gpu-operator": support.plugin == "gpu-operator",
        "dra-driver": support.dra != "none",
        "dcgm-exporter": support.dcgm_exporter,
        "network-operator": support.network_operator,
    }
    return [name for name, is_wanted in wanted.items() if is_wanted]


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
