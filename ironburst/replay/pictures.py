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
    body = "".join(_Axes(panel, height, number * height).drawn() for number, panel in enumerate(panels))
    whole = height * len(panels)
    size = f'viewBox="0 0 {WIDTH} {whole}" width="{WIDTH}" height="{whole}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} {_FONT}>'
    return f'{head}\n<rect width="100%" height="100%" fill="#ffffff"/>\n{body}</svg>\n'


def axis_values(low: float, high: float, about: int = 6) -> list[float]:
    """Round numbers from `low` to `high`."""
    span = high - low if high > low else 1.0
    rough = span / about
    power = 10 ** math.floor(math.log10(rough))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough * 0.999)
    first = math.ceil(low / step - 1e-9)
    return [number * step for number in range(first, math.floor(high / step + 1e-9) + 1)]


class _Axes:
    """A panel with its limits on both axes; `down`: where it begins, from the top of the picture."""

    def __init__(self, panel: Panel, height: int, down: int):
        self.panel, self.height, self.down = panel, height, down
        points = [point for series in panel.series.values() for point in _finite(series)]
        low, high = min((x for x, _, _ in points), default=0.0), max((x for x, _, _ in points), default=1.0)
        if any(series.marks for series in panel.series.values()):  # dots keep off the edges
            low, high = min(low, 0.0) if low < 0.3 * high else low - 0.1 * (high - low), high + 0.12 * (high - low)
        self.low, self.high = low, high if high > low else low + 1.0
        self.top = 1.05 * max((y for _, y, _ in points), default=0.0) or 1.0

    def drawn(self) -> str:
        panel, lines = self.panel, self._axes()
        legend = WIDTH - RIGHT
        for (name, series), colour in reversed(list(zip(panel.series.items(), COLOURS * 9, strict=False))):
            lines += self._series(series, colour)
            lines.append(_text(legend, self.down + 16, f"● {escape(name)}", f'text-anchor="end" fill="{colour}"'))
            legend -= 7 * len(name) + 30
        return "\n".join(lines) + "\n"

    def _axes(self) -> list[str]:
        panel, bottom = self.panel, self.down + self.height
        lines = [_text(LEFT, self.down + 16, escape(panel.title), 'font-weight="bold"')]
        for value in axis_values(0.0, self.top):
            up = self._up(value)
            lines.append(f'<path d="M{LEFT} {up:.1f}H{WIDTH - RIGHT}" stroke="#d8dee4"/>')
            lines.append(_text(LEFT - 6, f"{up + 4:.1f}", _number(value), 'text-anchor="end"'))
        for value in axis_values(self.low, self.high):
            across = f"{self._across(value):.1f}"
            lines.append(_text(across, bottom - BOTTOM + 16, _number(value), 'text-anchor="middle"'))
        lines.append(_text((LEFT + WIDTH) // 2, bottom - 8, escape(panel.x_label), 'text-anchor="middle"'))
        lines.append(_text(LEFT - 70, self.down + TOP - 4, escape(panel.y_label)))
        return lines

    def _series(self, series: Series, colour: str) -> list[str]:
        places = [(self._across(x), self._up(y), number) for x, y, number in _finite(series)]
        if not series.marks:
            line = "L".join(f"{x:.1f} {y:.1f}" for x, y, _ in places)
            return [f'<path d="M{line}" fill="none" stroke="{colour}" stroke-width="1.5"/>'] if places else []
        lines = []
        for x, y, number in places:
            lines.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{colour}"/>')
            if number < len(series.names):
                style = f'fill="{colour}" font-size="11"'
                lines.append(_text(f"{x + 6:.1f}", f"{y + 4:.1f}", escape(series.names[number]), style))
        return lines

    def _across(self, x: float) -> float:
        return LEFT + (x - self.low) / (self.high - self.low) * (WIDTH - LEFT - RIGHT)

    def _up(self, y: float) -> float:
        return self.down + self.height - BOTTOM - y / self.top * (self.height - TOP - BOTTOM)


def _finite(series: Series) -> list[tuple[float, float, int]]:
    """(x, y, its place in the series) of the points that can be shown."""
    points = enumerate(zip(series.x, series.y, strict=True))
    return [(x, y, number) for number, (x, y) in points if math.isfinite(x) and math.isfinite(y)]


def _text(x: float | str, y: float | str, words: str, style: str = "") -> str:
    return f'<text x="{x}" y="{y}"{style and " " + style}>{words}</text>'


def _number(value: float) -> str:
    for size, unit in ((1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:g}{unit}"
    return f"{value:.6g}"
