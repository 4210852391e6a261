"""Filters that give what a site's Prometheus and Grafana read, as entries of module `files`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))  # ansible's own process does not know the repository
from ironburst.document.model import Host, Scheduler
from ironburst.document.monitoring import MonitoringDocument
from ironburst.monitoring import site_files, targets

CHECKS = {"ironburst-alerts.yml": "rules", "prometheus.yml": "config"}


def monitoring_files(
    hosts: list[dict],
    cluster: str,
    schedulers: list[dict],
    monitoring: dict,
    folder: str,
    alertmanager: str,
    itself: str,
    pushed: bool = False,
) -> list[dict]:
    """Of Prometheus. `hosts`, `schedulers`, `monitoring`: the document's; `alertmanager`, `itself`: host:port;
    `pushed`: rented nodes push.
    """
    # Ansible's own kinds of text are none that YAML's writer knows
    hosts, cluster, schedulers, monitoring, folder, *rest = json.loads(
        json.dumps([hosts, cluster, schedulers, monitoring, folder, alertmanager, itself, pushed])
    )
    known, heads = (
        [kind.model_validate(each) for each in its] for kind, its in ((Host, hosts), (Scheduler, schedulers))
    )
    controllers = targets.controllers(heads, MonitoringDocument.model_validate(monitoring).controllers)
    made = site_files.of_prometheus(cluster, known, site_files.PrometheusPlace(folder, controllers, *rest))
    checks = {name: {"validate": ["promtool", "check", what, "%s"]} for name, what in CHECKS.items()}
    return [{"path": f"{folder}/{name}", "content": text} | checks.get(name, {}) for name, text in made.items()]


def monitoring_dashboards(folder: str) -> list[dict]:
    """Of Grafana; none where its SDK isn't there."""
    try:
        made = site_files.of_grafana()
    except ImportError:
        return []
    return [{"path": f"{folder}/{Path(name).name}", "content": text} for name, text in made.items()]


class FilterModule:
    """Filters of ironburst's roles."""

    def filters(self):
        """Name -> function, as Ansible asks for them."""
        return {"monitoring_files": monitoring_files, "monitoring_dashboards": monitoring_dashboards}
