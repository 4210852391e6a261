"""Applies the rules that speak of software.
Severity and text come from the rule data (rules.yaml, lock_rules.yaml), conditions from here.

Every check takes declared or observed facts alike; what is unknown (None) breaks no rule.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import date
from typing import TypeVar

from ironburst.software import driver_rules, node_rules, site_rules
from ironburst.software.model import Facts, Hit
from ironburst.software.state import ClusterState, DetectionState, FabricState, NodeState, ThresholdState

State = TypeVar("State")
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


def hit(rule: str, detail: str, facts: Facts, *, group: str = "") -> Hit:
    """A broken rule: what was found, and the rule's own text."""
    given = facts.rules[rule]
    return Hit(rule, given.severity, f"{detail}: {given.message}", group)


def check_node(node: NodeState, facts: Facts, *, today: date | None = None) -> list[Hit]:
    """Every rule that one node (or a group of equal ones) breaks. `today` decides whether a branch is past its end of
    life. Raises ValueError for a version that isn't one.
    """
    details = ((rule, broken(node, facts, today)) for rule, broken in NODE.items())
    return [hit(rule, detail, facts, group=node.group) for rule, detail in details if detail]


def check_fleet(fleet: Sequence[NodeState], facts: Facts) -> list[Hit]:
    """Rules between groups."""
    details = ((rule, broken(fleet, facts)) for rule, broken in site_rules.FLEET.items())
    return [hit(rule, detail, facts) for rule, detail in details if detail]


def check_fabric(fabric: FabricState, facts: Facts) -> list[Hit]:
    """Rules of one InfiniBand fabric."""
    return _hits(site_rules.FABRIC, fabric, facts, group=fabric.name)


def check_cluster(cluster: ClusterState, facts: Facts) -> list[Hit]:
    """Rules of the scheduler's and Kubernetes' settings."""
    return _hits(site_rules.CLUSTER, cluster, facts)


def check_detection(detection: DetectionState, facts: Facts) -> list[Hit]:
    """Rules of how NVSwitch boards are recognised."""
    return _hits(site_rules.DETECTION, detection, facts)


def check_threshold(threshold: ThresholdState, facts: Facts) -> list[Hit]:
    """Rules of an acceptance threshold."""
    return _hits(site_rules.THRESHOLD, threshold, facts)


def _hits(table: Mapping[str, Callable[[State], str | None]], state: State, facts: Facts, group: str = "") -> list[Hit]:
    details = ((rule, broken(state)) for rule, broken in table.items())
    return [hit(rule, detail, facts, group=group) for rule, detail in details if detail]
