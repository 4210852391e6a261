"""What is scraped: the declared hosts, owned and fixed in the cloud, as files of Prometheus' file_sd, and the settings
that read them. Rented nodes are none of them: they come and go, and one that has gone would be silent for ever; they
push (receiving.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ironburst.document.model import Host, Scheduler
from ironburst.document.monitoring import CONTROLLER_PORT

NODE, DCGM = 9100, 9400
"""ports, as role metrics has them"""
CONTROLLER = f"127.0.0.1:{CONTROLLER_PORT}"
"""where `ironburst run` has its metrics, unless told otherwise"""
LATE = "2h"
"""what an agent keeps at most (role metrics), and the gate takes (receiving.py)"""
JOBS = ("node", "dcgm", "ironburst")
OF_EACH_CPU = {
    "source_labels": ["__name__", "mode"],
    "regex": "node_((cpu_guest|cpu_scaling|cpu_frequency|cpu_core|cpu_package|schedstat|softnet)_.+;.*"
    "|cpu_seconds_total;(iowait|irq|nice|softirq|steal|system|user))",
    "action": "drop",
}
"""What no rule and no picture needs: with 224 CPUs three quarters of all that a node has, and of the disk that it takes
(benchmarks.watch). What a CPU is idle stays: busy is the rest.
"""
Targets = list[dict[str, Any]]
"""[{"targets": ["address:port"], "labels": {"node": ..., "hall": ..., "rack": ..., "role": ...}}]"""


def controllers(schedulers: Iterable[Scheduler], at: Sequence[str]) -> dict[str, str]:
    """{head (empty: there is none): host:port of its controller's metrics}. `at`: the first head's, then the second's;
    an empty one is none. Raises ValueError for more of them than heads.
    """
    of = next((each for each in schedulers if each.head), None)
    heads = [""] if of is None else [of.head, *([of.second_head.head] if of.second_head else [])]
    at = [each for each in at if each]
    if len(at) > len(heads):
        raise ValueError(f"{', '.join(at)}: the controller runs on {len(heads)} host{'s' * (len(heads) > 1)} here")
    return dict(zip(heads, at, strict=False))


def of(hosts: Iterable[Host], controllers: Mapping[str, str]) -> dict[str, Targets]:
    """{job: its targets}; every job is there, if with none. `role` is head, login or gpu. `hosts`: the document's;
    `controllers`: of above; none: nothing is rented.
    """
    found: dict[str, Targets] = {job: [] for job in JOBS}
    for host in hosts:
        if not host.managed or not host.address:
            continue
        labels = {"node": host.name, "hall": host.hall, "role": host.role, "rack": host.rack, "zone": host.zone}
        labels = {name: value for name, value in labels.items() if value}
        found["node"].append({"targets": [f"{host.address}:{NODE}"], "labels": labels})
        if host.role == "gpu":
            found["dcgm"].append({"targets": [f"{host.address}:{DCGM}"], "labels": labels})
        if host.name in controllers:
            found["ironburst"].append({"targets": [controllers[host.name]], "labels": labels})
    if "" in controllers:
        found["ironburst"].append({"targets": [controllers[""]], "labels": {}})
    return found


def prometheus(cluster: str, folder: str, alertmanager: str, itself: str, *, pushed: bool = False) -> dict[str, Any]:
    """Settings of a Prometheus. `folder`: where rules and targets lie; `alertmanager`, `itself`: host:port; `pushed`:
    it also gets what rented nodes push, as late as a link of theirs was down (2.39 or later).
    """
    scraped = [
        # labels of a sample itself win: the head's exporter has files about other nodes
        {"job_name": job, "honor_labels": True, "file_sd_configs": [{"files": [f"{folder}/targets/{job}.json"]}]}
        for job in JOBS
    ]
    scraped[0]["metric_relabel_configs"] = [OF_EACH_CPU]
    servers = [
        {"job_name": "prometheus", "static_configs": [{"targets": [itself]}]},
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
        **({"storage": {"tsdb": {"out_of_order_time_window": LATE}}} if pushed else {}),
    }
