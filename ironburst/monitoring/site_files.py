"""The files of one site, as `ironburst monitoring` writes them and role prometheus puts them on its host."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import yaml

from ironburst.document.model import Host
from ironburst.document.monitoring import PORT, MonitoringDocument
from ironburst.monitoring import dashboards, receivers, rules, targets

ALERTMANAGER = "alertmanager.yml"


@dataclass(frozen=True)
class PrometheusPlace:
    """`folder`: where they lie; the rest is host:port, as that Prometheus reaches it. `controllers`: by head, as
    targets.of has them.
    """

    folder: str
    controllers: Mapping[str, str]
    alertmanager: str = "localhost:9093"
    itself: str = f"localhost:{PORT}"
    pushed: bool = False  # rented nodes push to it, by the gate


def of_prometheus(cluster: str, hosts: Iterable[Host], place: PrometheusPlace) -> dict[str, str]:
    """{name: text}: rules and targets, then the settings that name them."""
    found = targets.of(hosts, place.controllers)
    settings = targets.prometheus(cluster, place.folder, place.alertmanager, place.itself, pushed=place.pushed)
    return {
        "ironburst-alerts.yml": rules.text(),
        **{f"targets/{job}.json": json.dumps(its, indent=2) + "\n" for job, its in found.items()},
        "prometheus.yml": _yaml(settings),
    }


def of_alertmanager(monitoring: MonitoringDocument, secret: Callable[[str], str]) -> str:
    """With secrets in clear; what `secret` raises is passed on."""
    return _yaml(receivers.alertmanager(monitoring, secret))


def of_grafana() -> dict[str, str]:
    """{name: text}. Raises ImportError without the extra `monitoring`."""
    return {f"dashboards/{board.uid}.json": dashboards.as_json(board) for board in dashboards.dashboards()}


def _yaml(value: object) -> str:
    return yaml.safe_dump(value, sort_keys=False)
