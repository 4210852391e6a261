"""The rules of a hall, as one table. HW and NET are the catalogue's ids (rules.yaml); HAL are of our own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from ironburst.hall import cabling, fabric, power, racks
from ironburst.hall.model import Finding, Hall


@dataclass(frozen=True)
class Rule:
    """One function and the ids of what it finds."""

    ids: tuple[str, ...]
    says: str
    check: Callable[[Hall], Iterator[Finding]]


RULES = (
    Rule(("HAL-001",), "a figure that a limit needs is unknown", racks.unknown),
    Rule(("HW-003",), "power supplies carry a node, also on one feed", power.supplies),
    Rule(("HW-004",), "circuits, in normal operation and with one feed lost", power.circuits),
    Rule(("HW-004", "HW-005", "HW-006"), "a rack's power, heat, weight and air", racks.totals),
    Rule(("HW-005",), "the room's heat", racks.room),
    Rule(("HW-006",), "depth", racks.depth),
    Rule(("HW-006",), "temperature of the air", racks.inlet),
    Rule(("HAL-002",), "phases carry about the same", power.balance),
    Rule(("HAL-003",), "supplies are on both feeds", power.feeds),
    Rule(("HAL-004",), "cords, PDUs, outlets", power.plugs),
    Rule(("HAL-005",), "air or liquid", racks.cooling_kind),
    Rule(("HAL-006",), "cables are made so long", cabling.lengths),
    Rule(("HAL-007",), "cables reach", cabling.reach),
    Rule(("HAL-008",), "ports exist and have one cable", cabling.ports),
    Rule(("HAL-009",), "all HCAs are cabled", cabling.bare_hcas),
    Rule(("HAL-010",), "HCA n goes to a leaf of rail n", fabric.rails),
    Rule(("HAL-011",), "bandwidth from leaves to spines", fabric.oversubscription),
    Rule(("HAL-012",), "InfiniBand and Ethernet aren't mixed", cabling.networks),
    Rule(("NET-005",), "one master subnet manager", fabric.subnet_manager),
    Rule(("NET-007", "NET-008"), "a node's ports and their speed", cabling.node_ports),
)


def check(hall: Hall) -> list[Finding]:
    """Everything that is wrong with a hall, rule by rule. What is wrong with equal machines alike is one finding."""
    alike: dict[tuple[str, tuple[str | int, ...], str], list[Finding]] = {}
    for finding in (finding for rule in RULES for finding in rule.check(hall)):
        alike.setdefault((finding.rule, finding.where, finding.text), []).append(finding)
    return [_one(findings) for findings in alike.values()]


def _one(findings: Sequence[Finding]) -> Finding:
    first, more = findings[0], len(findings) - 1
    return replace(first, subject=f"{first.subject} (and {more} more like it)") if more else first
