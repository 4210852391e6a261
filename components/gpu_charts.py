"""Values of the Helm charts that make GPUs usable, as pure functions. A list in them takes the place of the chart's
own, so each repeats what the chart has.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

from ironburst import catalog
from ironburst.config.scheduler_models import GpuSupport
from ironburst.nodes.naming import GATE_TAINT, NOT_READY_TAINT, RENTED_TAINT

Values = dict[str, Any]


class Release(NamedTuple):
    """One Helm release."""

    chart: catalog.Chart
    values: Values


def _tolerates(*keys: str) -> list[dict[str, str]]:
    return [{"key": key, "operator": "Exists", "effect": "NoSchedule"} for key in keys]


GPU_TAINT, CONTROL_PLANE = "nvidia.com/gpu", "node-role.kubernetes.io/control-plane"
ON_GPU_NODES = _tolerates(GPU_TAINT, NOT_READY_TAINT, RENTED_TAINT, GATE_TAINT)
EVERYWHERE = [*_tolerates(CONTROL_PLANE), *ON_GPU_NODES]
HAS_GPUS = {
    "nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [
                {"matchExpressions": [{"key": key, "operator": "In", "values": ["true"]}]}
                for key in ("feature.node.kubernetes.io/pci-10de.present", "nvidia.com/gpu.present")
            ]
        }
    }
}
"""what feature discovery, or the GPU operator, says of a node with GPUs"""


def releases(declared: GpuSupport) -> Iterator[Release]:
    """What is to be installed, in order."""
    operator = declared.plugin == "gpu-operator"
    if operator:
        yield Release(catalog.chart("gpu-operator"), gpu_operator(declared))
    if declared.plugin == "device-plugin":
        yield Release(catalog.chart("device-plugin"), device_plugin(declared))
    if declared.dra != "none" and not (operator and declared.dra == "gpus"):
        yield Release(catalog.chart("dra-driver"), dra_driver(declared))
    if declared.dcgm_exporter and not operator:
        yield Release(catalog.chart("dcgm-exporter"), dcgm_exporter(declared))
    if declared.network_operator:
        yield Release(catalog.chart("network-operator"), network_operator(declared))


def device_plugin(declared: GpuSupport) -> Values:
    """With GPU feature discovery, and the node feature discovery that it stands on."""
    return {
        "migStrategy": declared.mig_strategy,
        "runtimeClassName": declared.runtime_class,
        "tolerations": ON_GPU_NODES,
        "gfd": {"enabled": True},
        "nfd": {"worker": {"tolerations": EVERYWHERE}},
    }


def gpu_operator(declared: GpuSupport) -> Values:
    """Without what the hosts have: driver, container toolkit, and MIG, which the operator's manager would put back to
    no instances at all. ClusterPolicy, or GPUCluster where claims hand out the GPUs; the chart refuses both.
    """
    by_claims = declared.dra == "gpus"
    return {
        "driver": {"enabled": False},
        "toolkit": {"enabled": False},
        "migManager": {"enabled": False},
        "mig": {"strategy": declared.mig_strategy},
        "clusterPolicy": {"deployCR": not by_claims},
        "gpuCluster": {"deployCR": by_claims},
        "dcgmExporter": {"enabled": declared.dcgm_exporter},
        "operator": {"runtimeClass": declared.runtime_class},
        "daemonsets": {"tolerations": ON_GPU_NODES},
        "node-feature-discovery": {"worker": {"tolerations": EVERYWHERE}},
    }


def dra_driver(declared: GpuSupport) -> Values:
    """For GPUs only where no device plugin hands out the same ones."""
    gpus = declared.dra == "gpus"
    return {
        "nvidiaDriverRoot": "/",
        "resources": {"gpus": {"enabled": gpus}, "computeDomains": {"enabled": True}},
        "gpuResourcesEnabledOverride": gpus,
        "kubeletPlugin": {"tolerations": ON_GPU_NODES},
    }


def dcgm_exporter(declared: GpuSupport) -> Values:
    """Without a ServiceMonitor: its kind is there only with Prometheus' operator."""
    return {
        "serviceMonitor": {"enabled": False},
        "runtimeClassName": declared.runtime_class,
        "tolerations": EVERYWHERE,
        "affinity": HAS_GPUS,
    }


def network_operator(declared: GpuSupport) -> Values:
    """A cluster has one node feature discovery: the GPU support's, where that brings one."""
    own = declared.plugin == "none"
    return {
        "nfd": {"enabled": own, "deployNodeFeatureRules": True},
        "operator": {"tolerations": EVERYWHERE},
        "node-feature-discovery": {"worker": {"tolerations": EVERYWHERE}},
    }
