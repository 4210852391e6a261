"""The firmware of owned nodes: who may be written to."""

from __future__ import annotations

from ironburst.config.checks.common import Findings, owned_nodes
from ironburst.config.finding import Finding
from ironburst.config.models import ClusterConfig


def firmware(config: ClusterConfig) -> Findings:
    """Firmware is written by a node's BMC, on nodes that are named, and that a drain makes idle."""
    for at, _, nodes in owned_nodes(config):
        for name in nodes.allow_update:
            if name not in nodes.names:
                message = f"{name!r} is none of these nodes: {', '.join(nodes.names)}"
                yield Finding(at("allow_update"), name, "firmware", message)
        if nodes.allow_update and nodes.bmc is None:
            yield Finding(at("bmc"), None, "firmware", "is needed to update these nodes: their BMCs write the firmware")
        if nodes.allow_update and nodes.role != "gpu":
            message = (
                f"is for GPU nodes: no drain makes a {nodes.role} node idle; use its maker's tool and leave this out"
            )
            yield Finding(at("allow_update"), ", ".join(nodes.allow_update), "firmware", message)
