"""What is scraped: the declared hosts, as files of Prometheus' file_sd, and the settings that read them. Rented nodes
are none of them: they come and go, and one that has gone would be silent for ever.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ironburst.config.models import ClusterConfig, Nodes

NODE, DCGM = 9100, 9400
"""ports, as role metrics has them"""
CONTROLLER = "127.0.0.1:8643"
"""where `ironburst run` has its metrics, unless told otherwise"""
JOBS = ("node", "dcgm", "ironburst")
OF_EACH_CPU = {
    "source_labels": ["__name__", "mode"],
    "regex": "node_(cpu_guest|cpu_scaling|cpu_frequency|cpu_core|cpu_package|schedstat|softnet)_.+;.*"
    "|node_cpu_seconds_total;(iowait|irq|nice|softirq|steal|system|user)",
    "action": "drop",
}
"""What no rule and no picture needs: with 224 CPUs three quarters of all that a node has, and of the disk that it takes
(benchmarks.watch). What a CPU is idle stays: busy is the rest.
"""
Targets = list[dict[str, Any]]
"""[{"targets": ["address:port"], "labels": {"node": ..., "hall": ..., "rack": ..., "role": ...}}]"""


def of(config: ClusterConfig, controller: str = CONTROLLER) -> dict[str, Targets]:
    """{job: its targets}; every job is there, if with none. `role` is head, login or gpu; `controller`: host:port."""
    found: dict[str, Targets] = {job: [] for job in JOBS}
    head = config.scheduler.head_node
    for hall, nodes, name, address in _owned(config):
        labels = {"node": name, "hall": hall, "role": nodes.role} | ({"rack": nodes.rack} if nodes.rack else {})
        found["node"].append({"targets": [f"{address}:{NODE}"], "labels": labels})
        if nodes.role == "gpu":
            found["dcgm"].append({"targets": [f"{address}:{DCGM}"], "labels": labels})
        if name == head and config.cloud and config.cloud.pools:
            found["ironburst"].append({"targets": [controller], "labels": labels})
    return found


def _owned(config: ClusterConfig) -> Iterator[tuple[str, Nodes, str, str]]:
    for hall in config.halls:
        for nodes in hall.nodes:
            if nodes.managed:
                for name, address in zip(nodes.names, nodes.addresses, strict=True):
                    yield hall.name, nodes, name, address


def prometheus(cluster: str, folder: str, alertmanager: str) -> dict[str, Any]:
    """Settings of a Prometheus. `folder`: where rules and targets lie; `alertmanager`: host:port."""
    scraped = [
        # labels of a sample itself win: the head's exporter has files about other nodes
        {"job_name": job, "honor_labels": True, "file_sd_configs": [{"files": [f"{folder}/targets/{job}.json"]}]}
        for job in JOBS
    ]
    scraped[0]["metric_relabel_configs"] = [OF_EACH_CPU]
    servers = [
        {"job_name": "prometheus", "static_configs": [{"targets": ["localhost:9090"]}]},
        {"job_name": "alertmanager", "static_configs": [{"targets": [alertmanager]}]},
    ]
    return {
        "global": {
            "scrape_interval": "30s",
            "evaluation_interval": "30s",
            "external_labels": {"cluster": cluster},
        },
        "rule_files": [f"{folder}/ironburst-alerts.yml"],
        "alerting": {"alertmanagers": [{"static_configs": [{"targets": [alertmanager]}]}]},
        "scrape_configs": [*scraped, *servers],
    }
