"""All that is computed of a hall, as JSON values and as lines for people."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from ironburst.hall import capacity, fabric, rules, tables
from ironburst.hall.model import Hall


def as_json(hall: Hall) -> dict[str, Any]:
    """`ironburst hall plan --json`, one hall."""
    return {
        "hall": hall.name,
        "findings": [asdict(finding) | {"message": str(finding)} for finding in rules.check(hall)],
        "room_for_more": [asdict(each) for each in capacity.more(hall)],
        "caps": [asdict(each) for each in capacity.caps(hall)],
        "power_on": [asdict(each) for each in capacity.power_on(hall)],
        "resume_rate": dict(capacity.resume_rate(hall)),
        "topology": [asdict(each) for each in fabric.tree(hall)],
    } | {name: [dict(zip(columns, row, strict=True)) for row in rows] for name, (columns, rows) in _tables(hall)}


def _tables(hall: Hall) -> list[tuple[str, tables.Table]]:
    return [(name, table(hall)) for name, table in tables.TABLES.items()]


def lines(hall: Hall) -> list[str]:
    """A short report."""
    findings = rules.check(hall)
    errors = sum(each.severity == "error" for each in findings)
    racks = f"{len(hall.racks)} racks, {len(hall.devices)} machines, {len(hall.cables)} cables"
    out = [f"{hall.name}: {racks}; {errors} errors, {len(findings) - errors} warnings"]
    out += [f"  {finding.severity} {finding.rule}: {finding}" for finding in findings]
    out += [f"  room: {each}" for each in capacity.more(hall)]
    for cap in capacity.caps(hall):
        of_gpu = f", {cap.gpu_w:g} W a GPU" if cap.gpu_w is not None else ""
        out.append(f"  cap {cap.node}: {cap.cap_w:g} of {cap.power_w:g} W{of_gpu} ({cap.because})")
    return out
