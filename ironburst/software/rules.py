"""Applies the rules that speak of software. Severity and text come from the rule data (rules.yaml, lock_rules.yaml),
conditions from here.

Every check takes declared or observed facts alike; what is unknown (None) breaks no rule.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import date

from ironburst.software import driver_rules, node_rules, site_rules
from ironburst.software.model import Facts, Hit
from ironburst.software.state import ClusterState, DetectionState, FabricState, NodeState, ThresholdState
from ironburst.software.versions import version

__all__ = [
    "CODED",
    "check_cluster",
    "check_detection",
    "check_fabric",
    "check_fleet",
    "check_node",
    "check_threshold",
    "hit",
    "version",
]

NODE = {**driver_rules.RULES, **node_rules.RULES}
CODED = (
    *NODE,
    *site_rules.FLEET,
    *site_rules.FABRIC,
    *site_rules.CLUSTER,
    *site_rules.DETECTION,
    *site_rules.THRESHOLD,
)
"""Ids of all rules of rules.yaml that are code."""


def hit(rule: str, detail: str, facts: Facts, *, group: str = "", remedies: Iterable[str] = ()) -> Hit:
    """A broken rule: what was found, and the rule's own text."""
    given = facts.rules[rule]
    return Hit(rule, given.severity, f"{detail}: {given.message}", group, tuple(remedies))


def check_node(node: NodeState, facts: Facts, *, today: date | None = None) -> list[Hit]:
    """Every rule that one node (or a group of equal ones) breaks. `today` decides whether a branch is past its end of
    life. Raises ValueError for a version that isn't one.
    """
    found = ((rule, applied(node, facts, today)) for rule, applied in NODE.items())
    return [hit(rule, detail, facts, group=node.group) for rule, detail in found if detail]


def check_fleet(fleet: Sequence[NodeState], facts: Facts) -> list[Hit]:
    """Rules between groups."""
    return [hit(rule, detail, facts) for rule, applied in site_rules.FLEET.items() if (detail := applied(fleet, facts))]


def check_fabric(fabric: FabricState, facts: Facts) -> list[Hit]:
    """Rules of one InfiniBand fabric."""
    return [
        hit(rule, detail, facts, group=fabric.name)
        for rule, applied in site_rules.FABRIC.items()
        if (detail := applied(fabric, facts))
    ]


def check_cluster(cluster: ClusterState, facts: Facts) -> list[Hit]:
    """Rules of the scheduler's and Kubernetes' settings."""
    return [
        hit(rule, detail, facts) for rule, applied in site_rules.CLUSTER.items() if (detail := applied(cluster, facts))
    ]


def check_detection(detection: DetectionState, facts: Facts) -> list[Hit]:
    """Rules of how NVSwitch boards are recognised."""
    return [
        hit(rule, detail, facts)
        for rule, applied in site_rules.DETECTION.items()
        if (detail := applied(detection, facts))
    ]


def check_threshold(threshold: ThresholdState, facts: Facts) -> list[Hit]:
    """Rules of an acceptance threshold."""
    return [
        hit(rule, detail, facts)
        for rule, applied in site_rules.THRESHOLD.items()
        if (detail := applied(threshold, facts))
    ]
