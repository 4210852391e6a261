"""Who watches, and what there is to watch."""

from __future__ import annotations

from ironburst.config.checks.common import Findings
from ironburst.config.finding import Finding, path_of
from ironburst.config.models import ClusterConfig


def receiver(config: ClusterConfig) -> Findings:
    """Rented nodes push what exporters have."""
    given = config.monitoring.receiver
    if given and not config.metrics and not config.monitoring.logs:
        message = "takes what rented nodes push, and they have neither exporters nor logs: write `metrics: true`"
        yield Finding(path_of("monitoring", "receiver"), given, "no-exporters", message)
