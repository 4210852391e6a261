"""The same for Prometheus' operator in a Kubernetes cluster: objects of monitoring.coreos.com."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import yaml

from ironburst.monitoring import rules
from ironburst.monitoring.targets import OF_EACH_CPU, Targets
from ironburst.nodes.naming import NODE_LABEL, SITE_LABEL, burst_partition

Object = dict[str, Any]

DCGM_PODS = {
    "dcgm-exporter": {"app.kubernetes.io/name": "dcgm-exporter"},
    "gpu-operator": {"app": "nvidia-dcgm-exporter"},
}
"""chart: labels of its exporter's pods"""
_POD = "(namespace|pod|container|endpoint)"
_NODE, _SITE = (
    f"__meta_kubernetes_node_label_{name.replace('.', '_').replace('/', '_')}" for name in (NODE_LABEL, SITE_LABEL)
)


def objects(targets: Mapping[str, Targets], namespace: str, labels: Mapping[str, str]) -> list[Object]:
    """To be applied. `targets`: as those of file_sd; `labels`: by which the site's Prometheus selects such objects."""

    def made(kind: str, name: str, spec: Object, version: str = "v1") -> Object:
        metadata = {"name": f"ironburst-{name}", "namespace": namespace, "labels": {**labels}}
        return {"apiVersion": f"monitoring.coreos.com/{version}", "kind": kind, "metadata": metadata, "spec": spec}

    found = [made("PrometheusRule", "alerts", yaml.safe_load(rules.text()))]
    found += [made("PodMonitor", name, _dcgm(pods)) for name, pods in DCGM_PODS.items()]
    for job in ("node", "dcgm"):
        if targets[job]:
            found.append(made("ScrapeConfig", job, _owned(job, targets[job]), "v1alpha1"))
    if targets["ironburst"]:
        found += _service([each["targets"][0] for each in targets["ironburst"]], namespace)
        spec = {"selector": {"matchLabels": _CONTROLLER}, "endpoints": [_endpoint("metrics", "ironburst")]}
        found.append(made("ServiceMonitor", "controller", spec))
    return found


def text(found: list[Object]) -> str:
    """For `kubectl apply -f`."""
    return yaml.safe_dump_all(found, sort_keys=False)


def _endpoint(port: str, job: str, *relabelings: Object) -> Object:
    """One that is called as rules and dashboards call it. A metric's own labels count more than its target's."""
    named = {"targetLabel": "job", "replacement": job}
    return {"port": port, "interval": "30s", "honorLabels": True, "relabelings": [named, *relabelings]}


def _dcgm(pods: Mapping[str, str]) -> Object:
    """DCGM's exporter says which pod has a GPU; of a GPU that nobody has its own pod's name would be taken for that."""
    relabelings: list[Object] = [
        {"sourceLabels": ["__meta_kubernetes_pod_node_name"], "targetLabel": "node"},
        {"sourceLabels": [_NODE], "regex": "(.+)", "targetLabel": "node"},  # EKS calls nodes by their instances
        {"sourceLabels": [_SITE], "regex": f"{burst_partition('')}.+", "targetLabel": "rented", "replacement": "true"},
        {"action": "labeldrop", "regex": _POD},
    ]
    return {
        "namespaceSelector": {"any": True},
        "selector": {"matchLabels": {**pods}},
        "attachMetadata": {"node": True},
        "podMetricsEndpoints": [_endpoint("metrics", "dcgm", *relabelings)],
    }


def _owned(job: str, targets: Targets) -> Object:
    """Exporters of hosts, which are no pods."""
    spec: Object = {
        "scrapeInterval": "30s",
        "honorLabels": True,
        "staticConfigs": [{"targets": each["targets"], "labels": each["labels"]} for each in targets],
        "relabelings": [{"targetLabel": "job", "replacement": job}],
    }
    if job == "node":
        rule = {"sourceLabels": OF_EACH_CPU["source_labels"], "regex": OF_EACH_CPU["regex"], "action": "drop"}
        spec["metricRelabelings"] = [rule]
    return spec


_CONTROLLER = {"app.kubernetes.io/name": "ironburst-controller"}


def _service(controllers: Sequence[str], namespace: str) -> list[Object]:
    """The controller runs on a host, or on one of two: a Service without pods."""
    metadata = {"name": "ironburst-controller", "namespace": namespace, "labels": _CONTROLLER}
    subsets = [
        {"addresses": [{"ip": address}], "ports": [{"name": "metrics", "port": int(port), "protocol": "TCP"}]}
        for address, _, port in (controller.rpartition(":") for controller in controllers)
    ]
    ports = subsets[0]["ports"]
    return [
        {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": {"clusterIP": "None", "ports": ports}},
        {
            # the cluster makes an EndpointSlice of it: the operator reads either
            "apiVersion": "v1",
            "kind": "Endpoints",
            "metadata": metadata,
            "subsets": subsets,
        },
    ]
