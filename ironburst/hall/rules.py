"""The rules of a hall, as one table. HW and NET are the catalogue's ids (rules.yaml); HAL are of our own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from ironburst.hall import cabling, fabric, power, racks
from ironburst.hall.model import Hall, Violation


@dataclass(frozen=True)
class HallRule:
    """One function and the ids of what it finds."""

    ids: tuple[str, ...]
    says: str
    check: Callable[[Hall], Iterator[Violation]]


RULES = (
    HallRule(("HAL-001",), "a figure that a limit needs is unknown", racks.unknown),
    HallRule(("HW-003",), "power supplies carry a node, also on one feed", power.supplies),
    HallRule(("HW-004",), "circuits, in normal operation and with one feed lost", power.circuits),
    HallRule(("HW-004", "HW-005", "HW-006"), "a rack's power, heat, weight and air", racks.totals),
    HallRule(("HW-005",), "the room's heat", racks.room),
    HallRule(("HW-006",), "depth", racks.depth),
    HallRule(("HW-006",), "temperature of the air", racks.inlet),
    HallRule(("HAL-002",), "phases carry about the same", power.balance),
    HallRule(("HAL-003",), "supplies are on both feeds", power.feeds),
    HallRule(("HAL-004",), "cords, PDUs, outlets", power.plugs),
    HallRule(("HAL-005",), "air or liquid", racks.cooling_kind),
    HallRule(("HAL-006",), "cables are made so long", cabling.lengths),
    HallRule(("HAL-007",), "cables reach", cabling.reach),
    HallRule(("HAL-008",), "ports exist and have one cable", cabling.ports),
    HallRule(("HAL-009",), "all HCAs are cabled", cabling.bare_hcas),
    HallRule(("HAL-010",), "HCA n goes to a leaf of rail n", fabric.rails),
    HallRule(("HAL-011",), "bandwidth from leaves to spines", fabric.oversubscription),
    HallRule(("HAL-012",), "InfiniBand and Ethernet aren't mixed", cabling.networks),
    HallRule(("NET-005",), "one master subnet manager", fabric.subnet_manager),
    HallRule(("NET-007", "NET-008"), "a node's ports and their speed", cabling.node_ports),
)


def check(hall: Hall) -> list[Violation]:
    """Everything that is wrong with a hall, rule by rule. What is wrong with equal machines alike is one finding."""
    alike: dict[tuple[str, tuple[str | int, ...], str], list[Violation]] = {}
    for finding in (finding for rule in RULES for finding in rule.check(hall)):
        alike.setdefault((finding.rule, finding.where, finding.text), []).append(finding)
    return [_one(findings) for findings in alike.values()]


def _one(findings: Sequence[Violation]) -> Violation:
    first, more = findings[0], len(findings) - 1
    return replace(first, subject=f"{first.subject} (and {more} more like it)") if more else first
