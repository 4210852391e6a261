"""The plan as one HTML page that prints: rack elevations and cabling as SVG, the rest as tables. Nothing is fetched."""

from __future__ import annotations

import functools
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from html import escape

from ironburst.hall import fabric, racks, tables
from ironburst.hall.model import Device, Hall, Rack
from ironburst.hall.plan import HallPlan

UNIT, WIDE, LEFT = 12, 190, 24
"""pixels of a rack unit's height, a rack's inside, the numbers beside it"""
COLOURS = {
    "gpu": "#cfe8d5",
    "head": "#dbe7f8",
    "login": "#dbe7f8",
    "leaf": "#f8e3c4",
    "spine": "#f3d0c8",
    "core": "#f3d0c8",
    "ethernet": "#e8e0f2",
    "management": "#eeeeee",
}
STYLE = """
body { font: 14px/1.45 sans-serif; margin: 1.5em; color: #111; background: #fff }
h1, h2, h3 { line-height: 1.2 } h2 { margin-top: 1.6em; border-bottom: 1px solid #999 }
table { border-collapse: collapse; margin: .5em 0 } td, th { border: 1px solid #bbb; padding: .15em .5em }
th, td { text-align: left }
td.n { text-align: right; font-variant-numeric: tabular-nums } .error { font-weight: bold }
.racks { display: flex; flex-wrap: wrap; gap: 1em } figure { margin: 0; break-inside: avoid }
.racks figure { width: 220px } figcaption { font-size: 12px }
svg { max-width: 100%; height: auto } tr { break-inside: avoid }
@media print { body { margin: 0; font-size: 11px } h2 { break-after: avoid }
  * { -webkit-print-color-adjust: exact; print-color-adjust: exact } }
""".strip()


def page(plans: Sequence[HallPlan], title: str) -> str:
    """All halls, one after the other."""
    parts = [f"<h1>{escape(title)}</h1>", *(part for plan in plans for part in _hall(plan))]
    head = f'<meta charset="utf-8"><title>{escape(title)}</title>\n<style>\n{STYLE}\n</style>'
    return f'<!DOCTYPE html>\n<html lang="en"><head>{head}</head>\n<body>\n' + "\n".join(parts) + "\n</body></html>\n"


def _hall(plan: HallPlan) -> Iterable[str]:
    hall, name, findings = plan.hall, escape(plan.hall.name), plan.findings
    yield f"<h2>{name}: findings</h2>"
    yield table(("rule", "", "what"), [(f.rule, f.severity, str(f)) for f in findings]) if findings else "<p>None.</p>"
    if hall.racks:
        yield f"<h2>{name}: racks</h2><div class='racks'>"
        for rack in hall.racks:
            yield f"<figure>{elevation(hall, rack)}<figcaption>{_limits(hall, rack)}</figcaption></figure>"
        yield "</div>"
    for heading, (columns, rows) in _tables(plan):
        if rows:
            yield f"<h2>{name}: {heading}</h2>{table(columns, rows)}"
    groups = [each for each in plan.tree if each.nodes]
    if groups:
        yield f"<h2>{name}: fabric</h2>"
        yield from (f"<figure>{group(hall, each)}</figure>" for each in groups)


def _tables(plan: HallPlan) -> Iterable[tuple[str, tuple[Sequence[str], Sequence[Sequence[object]]]]]:
    yield "circuits", tables.circuits(plan.hall)
    more = [(each.rack, each.platform, each.count, each.then) for each in plan.room]
    yield "room for more", (("rack", "platform", "more", "then"), more)
    caps = [(e.node, e.power_w, e.cap_w, e.gpu_w, e.because) for e in plan.caps]
    yield "caps", (("node", "draws at most, W", "cap, W", "each GPU, W", "because of"), caps)
    yield "power on", (("after, s", "nodes"), [(each.at_s, ", ".join(each.nodes)) for each in plan.power_on])
    yield "cables to buy", tables.bill(plan.hall)


def table(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """An HTML table; numbers stand right, what is unknown is a dash."""
    head = "".join(f"<th>{escape(column)}</th>" for column in columns)
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _cell(value: object) -> str:
    if isinstance(value, int | float):
        return f'<td class="n">{value:g}</td>' if isinstance(value, float) else f'<td class="n">{value}</td>'
    return f"<td>{'-' if value is None else escape(str(value))}</td>"


def _limits(hall: Hall, rack: Rack) -> str:
    told = []
    for limit in racks.LIMITS:
        there, most = racks.total(limit, hall.in_rack[rack.name]), limit.limit(rack)
        if most is not None:
            told.append(f"{limit.what} {there:.1f} of {most:g} {limit.unit}")
    return escape("; ".join(told) or "no limits declared")


def elevation(hall: Hall, rack: Rack) -> str:
    """A rack from the front, unit 1 below."""
    high, wide = rack.units * UNIT + 22, LEFT + WIDE + 4
    lines = [_text(LEFT, 13, f"{hall.name} {rack.name}", 'font-weight="bold"')]
    lines.append(f'<rect x="{LEFT}" y="18" width="{WIDE}" height="{rack.units * UNIT}" fill="#fff" stroke="#333"/>')
    for unit in range(1, rack.units + 1):
        y = _top(rack, unit, 1)
        lines.append(f'<path d="M{LEFT} {y}h{WIDE}" stroke="#ddd"/>')
        if unit == 1 or unit % 4 == 0:
            lines.append(_text(LEFT - 4, y + UNIT - 2, str(unit), 'text-anchor="end" font-size="9" fill="#555"'))
    lines += [line for device in hall.in_rack[rack.name] if device.unit for line in _box(rack, device)]
    label = f"rack {rack.name}: " + ", ".join(device.name for device in hall.in_rack[rack.name])
    return _svg(wide, high, lines, label)


def _top(rack: Rack, unit: int, height: int) -> int:
    return 18 + (rack.units - (unit + height - 1)) * UNIT


def _box(rack: Rack, device: Device) -> list[str]:
    high = device.height or 1
    y, colour = _top(rack, device.unit or 1, high), COLOURS.get(device.kind, "#eee")
    frame = f'<rect x="{LEFT}" y="{y}" width="{WIDE}" height="{high * UNIT}" fill="{colour}" stroke="#333"/>'
    what = device.platform or device.kind
    watts = f", {device.power_w / 1000:g} kW" if device.power_w is not None else ""
    return [frame, _text(LEFT + 5, y + high * UNIT / 2 + 4, f"{device.name} · {what}{watts}", 'font-size="10"')]


def group(hall: Hall, switch: fabric.TreeSwitch) -> str:
    """Leaves of one group, what is above them, and their nodes by rack; a line says how many cables it stands for."""
    counts = _cables_between(hall)
    its_racks = [(hall.device[node].rack or "no rack", node) for node in switch.nodes]
    down: Counter[tuple[str, str]] = Counter()
    for rack, node in its_racks:
        down.update({(rack, leaf): count for leaf, count in counts[node].items()})
    leaves = _unique(leaf for _, leaf in down)
    up = {(leaf, high): count for leaf in leaves for high, count in counts[leaf].items()}
    rows = [_unique(high for _, high in up), leaves, _unique(low for low, _ in down)]
    box, gap = 92, 12
    wide = max(len(row) for row in rows) * (box + gap) + gap
    at = {(y, name): wide * (n + 0.5) / len(row) for y, row in enumerate(rows) for n, name in enumerate(row)}
    lines = [_line(at[1, leaf], 92, at[2, low], 164, count) for (low, leaf), count in down.items()]
    lines += [_line(at[0, high], 32, at[1, leaf], 72, count) for (leaf, high), count in up.items()]
    for (y, name), x in at.items():
        kind = hall.device[name].kind if name in hall.device else "gpu"
        top = (12, 72, 164)[y]
        size = f'x="{x - box / 2:.0f}" y="{top}" width="{box}" height="20"'
        lines.append(f'<rect {size} fill="{COLOURS[kind]}" stroke="#333"/>')
        rail = hall.device[name].rail if name in hall.device else None
        words = name + (f" rail {rail}" if rail else "")
        lines.append(_text(x, top + 14, words, 'text-anchor="middle" font-size="10"'))
    return _svg(wide, 190, lines, f"{switch.name}: {len(switch.nodes)} nodes at {len(leaves)} leaves")


@functools.lru_cache(maxsize=8)
def _cables_between(hall: Hall) -> Mapping[str, Counter[str]]:
    """Lower device -> upper switch -> how many cables join them."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for below, _, above, _ in fabric.links(hall):
        counts[below.name][above.name] += 1
    return counts


def _unique(names: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(names))


def _line(x1: float, y1: float, x2: float, y2: float, count: int) -> str:
    title = f"<title>{count} cables</title>"
    place = f'x1="{x1:.0f}" y1="{y1:.0f}" x2="{x2:.0f}" y2="{y2:.0f}"'
    number = _text(x1 + (x2 - x1) * 0.3, y1 + (y2 - y1) * 0.3, str(count), 'font-size="8" fill="#333"')
    return f'<line {place} stroke="#777" stroke-width="{min(4, 0.5 + count / 4):.1f}">{title}</line>{number}'


def _text(x: float, y: float, words: str, style: str) -> str:
    return f'<text x="{x:.0f}" y="{y:.0f}" {style}>{escape(words)}</text>'


def _svg(wide: float, high: float, lines: Sequence[str], label: str) -> str:
    size = f'viewBox="0 0 {wide:.0f} {high:.0f}" width="{wide:.0f}" height="{high:.0f}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="12" role="img"'
    return f'{head} aria-label="{escape(label)}">{"".join(lines)}</svg>'
