"""Values of the Helm charts that make GPUs usable, as pure functions. A list in them takes the place of the chart's
own, so each repeats what the chart has.
"""

import json
from typing import Any, NamedTuple

from ironburst import catalog
from ironburst.config.gpu_support_models import GpuSupport
from ironburst.nodes.naming import GATE_TAINT, NOT_READY_TAINT, RENTED_TAINT

Values = dict[str, Any]


class Release(NamedTuple):
    """One Helm release. `after`: those, by their charts' names, that bring kinds of which it makes objects."""

    chart: catalog.Chart
    values: Values
    after: tuple[str, ...] = ()


def _tolerates(*keys: str) -> list[dict[str, str]]:
    return [{"key": key, "operator": "Exists", "effect": "NoSchedule"} for key in keys]


GPU_TAINT, MASTER, CONTROL_PLANE = (
    "nvidia.com/gpu",
    "node-role.kubernetes.io/master",
    "node-role.kubernetes.io/control-plane",
)
ON_GPU_NODES = [
    {"key": "CriticalAddonsOnly", "operator": "Exists"},
    *_tolerates(GPU_TAINT, NOT_READY_TAINT, RENTED_TAINT, GATE_TAINT),
]
EVERYWHERE = [*_tolerates(MASTER, CONTROL_PLANE), *ON_GPU_NODES]
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
HOSTENGINE = [{"name": "DCGM_REMOTE_HOSTENGINE_INFO", "value": "localhost:5555"}]
"""of DCGM's exporter: the host's nv-hostengine, which listens there alone"""
PULLED_BY_NAME = ("gpu-operator", "network-operator")
"""charts whose lists of pull secrets are of names; the others', and feature discovery's, are of objects"""


def releases(declared: GpuSupport) -> list[Release]:
    """What is to be installed, in order."""
    makers = {
        "gpu-operator": gpu_operator,
        "device-plugin": device_plugin,
        "dra-driver": dra_driver,
        "dcgm-exporter": dcgm_exporter,
        "network-operator": network_operator,
    }
    found = list[Release]()
    for name in declared.charts:
        needs = catalog.chart_facts(name).needs
        after = tuple(each.chart.name for each in found if needs & set(catalog.chart_facts(each.chart.name).crds))
        its = makers[name](declared) if name in makers else {"tolerations": ON_GPU_NODES}  # a fabric's device plugin
        values = _merged(its, _from_registry(name, declared), declared.values.get(name, {}))
        chart = catalog.chart(name)
        chart = chart.kept_in(declared.chart_repository) if declared.chart_repository else chart
        found.append(Release(chart, values, after))
    return found


def _merged(*given: Values) -> Values:
    """Maps key by key, anything else from the last that has it."""
    found: Values = {}
    for values in given:
        for key, value in values.items():
            before = found.get(key)
            inner = isinstance(before, dict) and isinstance(value, dict)
            found[key] = _merged(before or {}, value) if inner else value
    return found


def _at(path: str, value: Any) -> Values:
    first, _, rest = path.partition(".")
    return {first: _at(rest, value) if rest else value}


def _from_registry(name: str, declared: GpuSupport) -> Values:
    """Where its images are, and by which secrets they are pulled."""
    facts, secrets = catalog.chart_facts(name), declared.pull_secrets
    found: Values = {}
    if declared.registry:
        for key, repository in facts.images.items():
            found = _merged(found, _at(key, mirrored(declared.registry, repository)))
    for key in facts.values:
        if secrets and key.endswith("imagePullSecrets"):
            own = name in PULLED_BY_NAME and not key.startswith("node-feature-discovery.")
            found = _merged(found, _at(key, list(secrets) if own else [{"name": secret} for secret in secrets]))
    return found


def mirrored(registry: str, repository: str) -> str:
    """The same path in another registry."""
    return f"{registry}/{repository.partition('/')[2]}"


def device_plugin(declared: GpuSupport) -> Values:
    """With GPU feature discovery, and the node feature discovery that it stands on."""
    values = {
        "migStrategy": declared.mig_strategy,
        "deviceListStrategy": declared.device_list,
        "runtimeClassName": declared.runtime_class,
        "tolerations": ON_GPU_NODES,
        "gfd": {"enabled": True},
        "nfd": {"worker": {"tolerations": EVERYWHERE}},
    }
    return values | ({"config": {"map": _sharing(declared), "default": "default"}} if declared.sharing else {})


def _sharing(declared: GpuSupport) -> dict[str, str]:
    """Configurations of the device plugin, by what a node's label nvidia.com/device-plugin.config says."""
    assert declared.sharing
    kind = {"time-slicing": "timeSlicing", "mps": "mps"}[declared.sharing.by]
    resources = [{"name": "nvidia.com/gpu", "replicas": declared.sharing.replicas}]
    shared = {"version": "v1", "sharing": {kind: {"renameByDefault": True, "resources": resources}}}
    return {"default": json.dumps({"version": "v1"}), "shared": json.dumps(shared)}


def gpu_operator(declared: GpuSupport) -> Values:
    """Without what the hosts have: driver, container toolkit, and MIG, which the operator's manager would put back to
    no instances at all. ClusterPolicy, or GPUCluster where claims hand out the GPUs; the chart refuses both. With CDI a
    container gets the GPUs that its pod asked for, whatever its image says.
    """
    by_claims = declared.dra == "gpus"
    values: Values = {
        "driver": {"enabled": False},
        "toolkit": {"enabled": False},
        "migManager": {"enabled": False},
        "mig": {"strategy": declared.mig_strategy},
        "cdi": {"enabled": True},
        "clusterPolicy": {"deployCR": not by_claims},
        "gpuCluster": {"deployCR": by_claims},
        "dcgmExporter": {"enabled": declared.dcgm_exporter},
        "operator": {"runtimeClass": declared.runtime_class},
        "daemonsets": {"tolerations": ON_GPU_NODES},
        "node-feature-discovery": {"worker": {"tolerations": EVERYWHERE}},
    }
    if declared.dcgm_hostengine == "host":
        values["dcgmExporter"] |= {"env": HOSTENGINE, "hostNetwork": True}
    if declared.sharing:
        named = {"create": True, "name": "ironburst-device-plugin", "default": "default", "data": _sharing(declared)}
        values["devicePlugin"] = {"config": named}
    return values


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
    values = {
        "serviceMonitor": {"enabled": False},
        "runtimeClassName": declared.runtime_class,
        "tolerations": EVERYWHERE,
        "affinity": HAS_GPUS,
    }
    return values | ({"hostNetwork": True, "extraEnv": HOSTENGINE} if declared.dcgm_hostengine == "host" else {})


def network_operator(declared: GpuSupport) -> Values:
    """A cluster has one node feature discovery: the GPU support's, where that brings one."""
    return {
        "nfd": {"enabled": declared.plugin == "none", "deployNodeFeatureRules": True},
        "operator": {"tolerations": EVERYWHERE},
        "node-feature-discovery": {"worker": {"tolerations": EVERYWHERE}},
    }


NIC_VENDOR = "15b3"


def nic_cluster_policy(declared: GpuSupport) -> Values:
    """The spec of the NicClusterPolicy that shares every NVIDIA NIC of a node among its pods. No driver: the hosts have
    it.
    """
    repository, version = "nvcr.io/nvidia/mellanox", f"network-operator-v{catalog.chart('network-operator').version}"
    shared = {"resourceName": declared.rdma_resource, "rdmaHcaMax": 63, "selectors": {"vendors": [NIC_VENDOR]}}
    plugin: Values = {
        "image": "k8s-rdma-shared-dev-plugin",
        "repository": mirrored(declared.registry, repository) if declared.registry else repository,
        "version": version,
        "config": json.dumps({"configList": [shared]}),
    }
    if declared.pull_secrets:
        plugin["imagePullSecrets"] = list(declared.pull_secrets)
    return {"rdmaSharedDevicePlugin": plugin, "tolerations": ON_GPU_NODES}
