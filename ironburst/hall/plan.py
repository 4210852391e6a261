"""All that is computed of a hall, once; as JSON values, and as lines for people."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from ironburst.hall import capacity, fabric, rules, tables
from ironburst.hall.model import Hall, Violation


@dataclass(frozen=True)
class HallPlan:
    """Of one hall."""

    hall: Hall
    findings: list[Violation]
    room: tuple[capacity.Room, ...]
    caps: tuple[capacity.Cap, ...]
    power_on: tuple[capacity.Step, ...]
    tree: tuple[fabric.TreeSwitch, ...]

    @property
    def errors(self) -> int:
        """Rules that are broken."""
        return sum(finding.severity == "error" for finding in self.findings)


def of(hall: Hall) -> HallPlan:
    """The plan of a hall."""
    whole = rules.check(hall), capacity.more(hall), capacity.caps(hall), capacity.power_on(hall), fabric.tree(hall)
    return HallPlan(hall, *whole)


def as_json(plan: HallPlan) -> dict[str, Any]:
    """`ironburst hall plan --json`, one hall."""
    said: dict[str, Any] = {
        "hall": plan.hall.name,
        "findings": [asdict(finding) | {"message": str(finding)} for finding in plan.findings],
        "room_for_more": [asdict(each) for each in plan.room],
        "caps": [asdict(each) for each in plan.caps],
        "power_on": [asdict(each) for each in plan.power_on],
        "resume_rate": dict(capacity.resume_rate(plan.hall)),
        "topology": [asdict(each) for each in plan.tree],
    }
    for name, table in tables.TABLES.items():
        columns, rows = table(plan.hall)
        said[name] = [dict(zip(columns, row, strict=True)) for row in rows]
    return said


def lines(plan: HallPlan) -> list[str]:
    """A short report."""
    hall = plan.hall
    racks = f"{len(hall.racks)} racks, {len(hall.devices)} machines, {len(hall.cables)} cables"
    out = [f"{hall.name}: {racks}; {plan.errors} errors, {len(plan.findings) - plan.errors} warnings"]
    out += [f"  {finding.severity} {finding.rule}: {finding}" for finding in plan.findings]
    out += [f"  room: {each}" for each in plan.room]
    alike: dict[tuple[object, ...], list[str]] = {}
    for cap in plan.caps:
        alike.setdefault((cap.cap_w, cap.power_w, cap.gpu_w, cap.because), []).append(cap.node)
    for (watts, most, gpu_w, because), names in alike.items():
        of_gpu = f", gpu_power_limit_w: {gpu_w}" if gpu_w is not None else ""
        out.append(f"  cap {', '.join(names)}: {watts} of {most} W{of_gpu} ({because})")
    return out
