"""Pictures of results as SVG text, made by hand: no library, the same bytes for the same numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

WIDTH, LEFT, RIGHT, TOP, BOTTOM = 860, 80, 20, 34, 42
COLOURS = ("#1f6feb", "#d1570d", "#2da44e", "#8250df", "#57606a", "#bf8700", "#cf222e")
_FONT = 'font-family="sans-serif" font-size="12"'


@dataclass(frozen=True)
class Series:
    """Values over x: joined by a line, or `marks` only (dots, named beside each where `names` has one for it)."""

    x: Sequence[float]
    y: Sequence[float]
    marks: bool = False
    names: Sequence[str] = ()


@dataclass(frozen=True)
class Panel:
    """One set of axes. `series` by the name that the legend shows; y begins at 0."""

    title: str
    x_label: str
    y_label: str
    series: Mapping[str, Series]


def svg(panels: Sequence[Panel], height: int = 300) -> str:
    """The panels under one another. Points that aren't finite are left out."""
    body = "".join(_panel(panel, height, number * height) for number, panel in enumerate(panels))
    whole = height * len(panels)
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {whole}" width="{WIDTH}" height="{whole}" {_FONT}>'
    return f'{head}\n<rect width="100%" height="100%" fill="#ffffff"/>\n{body}</svg>\n'


def ticks(low: float, high: float, about: int = 6) -> list[float]:
    """Round numbers from `low` to `high`."""
    span = high - low if high > low else 1.0
    rough = span / about
    power = 10 ** math.floor(math.log10(rough))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough * 0.999)
    first = math.ceil(low / step - 1e-9)
    return [number * step for number in range(first, math.floor(high / step + 1e-9) + 1)]


def _panel(panel: Panel, height: int, down: int) -> str:
    points = [
        p for each in panel.series.values() for p in zip(each.x, each.y, strict=True) if all(map(math.isfinite, p))
    ]
    low, high = min((x for x, _ in points), default=0.0), max((x for x, _ in points), default=1.0)
    if any(each.marks for each in panel.series.values()):  # dots keep off the edges
        low, high = min(low, 0.0) if low < 0.3 * high else low - 0.1 * (high - low), high + 0.12 * (high - low)
    top = 1.05 * max((y for _, y in points), default=0.0) or 1.0
    high = high if high > low else low + 1.0

    def across(x: float) -> float:
        return LEFT + (x - low) / (high - low) * (WIDTH - LEFT - RIGHT)

    def up(y: float) -> float:
        return down + height - BOTTOM - y / top * (height - TOP - BOTTOM)

    out = [f'<text x="{LEFT}" y="{down + 16}" font-weight="bold">{escape(panel.title)}</text>']
    for value in ticks(0.0, top):
        out.append(f'<path d="M{LEFT} {up(value):.1f}H{WIDTH - RIGHT}" stroke="#d8dee4"/>')
        out.append(f'<text x="{LEFT - 6}" y="{up(value) + 4:.1f}" text-anchor="end">{_number(value)}</text>')
    for value in ticks(low, high):
        out.append(
            f'<text x="{across(value):.1f}" y="{down + height - BOTTOM + 16}" text-anchor="middle">{_number(value)}</text>'
        )
    out.append(
        f'<text x="{(LEFT + WIDTH) // 2}" y="{down + height - 8}" text-anchor="middle">{escape(panel.x_label)}</text>'
    )
    out.append(f'<text x="{LEFT - 70}" y="{down + TOP - 4}">{escape(panel.y_label)}</text>')
    legend = WIDTH - RIGHT
    for (name, each), colour in reversed(list(zip(panel.series.items(), COLOURS * 9, strict=False))):
        good = [
            (across(x), up(y), n)
            for n, (x, y) in enumerate(zip(each.x, each.y, strict=True))
            if math.isfinite(x) and math.isfinite(y)
        ]
        if each.marks:
            for x, y, n in good:
                out.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{colour}"/>')
                if n < len(each.names):
                    out.append(
                        f'<text x="{x + 6:.1f}" y="{y + 4:.1f}" fill="{colour}" font-size="11">{escape(each.names[n])}</text>'
                    )
        elif good:
            line = "L".join(f"{x:.1f} {y:.1f}" for x, y, _ in good)
            out.append(f'<path d="M{line}" fill="none" stroke="{colour}" stroke-width="1.5"/>')
        out.append(f'<text x="{legend}" y="{down + 16}" text-anchor="end" fill="{colour}">● {escape(name)}</text>')
        legend -= 7 * len(name) + 30
    return "\n".join(out) + "\n"


def _number(value: float) -> str:
    for size, unit in ((1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:g}{unit}"
    return f"{value:.6g}"
