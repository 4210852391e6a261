"""From the declared `monitoring` to the document's."""

from __future__ import annotations

from ironburst.config.models import ClusterConfig
from ironburst.document.monitoring import CONTROLLER_PORT, PORT, MonitoringDocument

LOOPBACK = "127.0.0.1"


def monitoring(config: ClusterConfig) -> MonitoringDocument:
    """With the URL of its own server, unless another one is declared. Of the head it is the loopback: Prometheus has
    no password and shows what is rented for how much, and who asks it is there. Another host has to be reached from
    the head, and reaches the controller there.
    """
    declared = config.monitoring
    made = MonitoringDocument.model_validate(declared.model_dump())
    if declared.server is None:
        return made.model_copy(update={"retention": "", "retention_gb": None})
    head = next((each.head_node for each in config.schedulers if each.head_node), None)
    on_head = declared.server == head
    address = LOOPBACK if on_head else _address(config, declared.server)
    controller = ""
    if head and config.cloud and config.cloud.pools:
        controller = f"{LOOPBACK if on_head else _address(config, head)}:{CONTROLLER_PORT}"
    url = declared.url or f"http://{address}:{PORT}"
    return made.model_copy(update={"address": address, "url": url, "controller": controller})


def _address(config: ClusterConfig, name: str) -> str:
    """Of an owned host."""
    owned = (nodes for hall in config.halls for nodes in hall.nodes if name in nodes.names)
    return next((nodes.addresses[nodes.names.index(name)] for nodes in owned), "")  # config.checks.monitoring
