"""Averages over time as pictures: steps in SVG, in colours and dashes of the page's style sheet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from markupsafe import Markup, escape
from numpy.typing import NDArray

from ironburst.replay.pictures import axis_values

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 480, 190, 40, 10, 10, 24


Spans: TypeAlias = NDArray[np.float64]
"""rows of (from, to, GPUs)"""


@dataclass(frozen=True)
class Series:
    """One value for each part of the time. `style`: its class in the style sheet."""

    name: str
    style: str
    values: Sequence[float]


def average(spans: Spans, edges: Sequence[float]) -> list[float]:
    """GPUs on average between each edge and the next one."""
    at = np.array(edges, dtype=float) - edges[0]
    begin, end, gpus = spans[spans[:, 1] > spans[:, 0]].T
    # GPU-seconds from the first edge up to each
    total = _since(begin - edges[0], gpus, at) - _since(end - edges[0], gpus, at)
    return [float(value) for value in np.maximum(np.diff(total), 0.0) / np.diff(at)]


def _since(moments: Spans, gpus: Spans, at: Spans) -> Spans:
    """GPU-seconds up to each edge, of GPUs that are there from their moments on."""
    order = np.argsort(moments)
    begin, many = np.maximum(moments[order], 0.0), gpus[order]
    before = np.searchsorted(begin, at)
    count, weighted = (np.concatenate(([0.0], np.cumsum(values))) for values in (many, many * begin))
    since: Spans = at * count[before] - weighted[before]
    return since


def drawn(
    series: Sequence[Series], edges: Sequence[float], marks: Sequence[tuple[float, str]], when: list[str]
) -> Markup:
    """The picture. `marks`: (moment, its words) below the axis; `when`: the words for each part of the time."""
    top = 1.08 * max((value for each in series for value in each.values), default=0.0) or 1.0
    start, end, bottom = edges[0], edges[-1], HEIGHT - BOTTOM

    def across(at_s: float) -> float:
        return LEFT + (at_s - start) / (end - start) * (WIDTH - LEFT - RIGHT)

    def up(value: float) -> float:
        return bottom - value / top * (bottom - TOP)

    out = []
    for value in axis_values(0.0, top, 4):
        out.append(f'<path class="grid" d="M{LEFT} {up(value):.1f}H{WIDTH - RIGHT}"/>')
        out.append(f'<text class="end" x="{LEFT - 5}" y="{up(value) + 4:.1f}">{value:g}</text>')
    for at_s, words in marks:
        out.append(f'<text class="middle" x="{across(at_s):.1f}" y="{HEIGHT - 6}">{escape(words)}</text>')
    for each in series:
        steps = "".join(f"H{across(edges[n]):.1f}V{up(value):.1f}" for n, value in enumerate(each.values))
        out.append(f'<path class="line {each.style}" d="M{LEFT} {up(each.values[0]):.1f}{steps}H{WIDTH - RIGHT}"/>')
    for n, words in enumerate(when):
        values = "".join(f"\n{escape(each.name)}: {each.values[n]:.1f}" for each in series)
        left, wide = across(edges[n]), across(edges[n + 1]) - across(edges[n])
        place = f'x="{left:.1f}" y="{TOP}" width="{wide:.1f}" height="{bottom - TOP}"'
        out.append(f'<rect class="over" {place}><title>{escape(words)}{values}</title></rect>')
    label = escape("; ".join(f"{each.name}: {_summary(each.values)}" for each in series))
    return Markup(f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{label}">{"".join(out)}</svg>')


def _summary(values: Sequence[float]) -> str:
    return f"{sum(values) / len(values):.1f} on average, {max(values):.1f} at most, {values[-1]:.1f} at last"
