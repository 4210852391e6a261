"""Who watches, and what there is to watch."""

from __future__ import annotations

from ironburst.config.checks.common import Findings, owned_nodes
from ironburst.config.finding import Finding, path_of
from ironburst.config.models import ClusterConfig


def server(config: ClusterConfig) -> Findings:
    """Everything about `monitoring.server`."""
    name, path = config.monitoring.server, path_of("monitoring", "server")
    if name is None:
        return
    managed = {node: nodes.managed for _, _, nodes in owned_nodes(config) for node in nodes.names}
    if name not in managed:
        known = ", ".join(managed) or "none"
        yield Finding(path, name, "unknown", f"{name!r} is no host of a hall: name one of these: {known}")
    elif not managed[name]:
        why = (
            f"{name!r} isn't managed, so no role runs there: name another host, or take files (`ironburst monitoring`)"
        )
        yield Finding(path, name, "not-managed", why)
    if not config.metrics:
        yield Finding(path, name, "nothing-to-scrape", "no host has exporters: write `metrics: true` at the top, too")


def receiver(config: ClusterConfig) -> Findings:
    """Rented nodes push what exporters have."""
    given = config.monitoring.receiver
    if given and not config.metrics and not config.monitoring.logs:
        message = "takes what rented nodes push, and they have neither exporters nor logs: write `metrics: true`"
        yield Finding(path_of("monitoring", "receiver"), given, "no-exporters", message)
