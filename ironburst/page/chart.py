"""Averages over time as pictures: steps in SVG, in colours and dashes of the page's style sheet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup, escape

from ironburst.replay.pictures import axis_values

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 480, 190, 40, 10, 10, 24


@dataclass(frozen=True)
class Series:
    """One value for each part of the time; None: nobody knows. `style`: its class in the style sheet."""

    name: str
    style: str
    values: Sequence[float | None]


def drawn(
    series: Sequence[Series], edges: Sequence[float], marks: Sequence[tuple[float, str]], when: list[str]
) -> Markup:
    """The picture. `marks`: (moment, its words) below the axis; `when`: the words for each part of the time."""
    top = 1.08 * max((value for each in series for value in _known(each)), default=0.0) or 1.0
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
        steps = ""
        for n, known in enumerate(each.values):
            if known is not None:
                begin = f"M{across(edges[n]):.1f} " if not n or each.values[n - 1] is None else "V"
                steps += f"{begin}{up(known):.1f}H{across(edges[n + 1]):.1f}"
        out.append(f'<path class="line {each.style}" d="{steps}"/>')
    for n, words in enumerate(when):
        values = "".join(f"\n{escape(each.name)}: {_shown(each.values[n])}" for each in series)
        left, wide = across(edges[n]), across(edges[n + 1]) - across(edges[n])
        place = f'x="{left:.1f}" y="{TOP}" width="{wide:.1f}" height="{bottom - TOP}"'
        out.append(f'<rect class="over" {place}><title>{escape(words)}{values}</title></rect>')
    label = escape("; ".join(f"{each.name}: {_summary(each)}" for each in series))
    return Markup(f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{label}">{"".join(out)}</svg>')


def _known(series: Series) -> list[float]:
    return [value for value in series.values if value is not None]


def _shown(value: float | None) -> str:
    return "not known" if value is None else f"{value:.1f}"


def _summary(series: Series) -> str:
    if not (values := _known(series)):
        return _shown(None)
    return f"{sum(values) / len(values):.1f} on average, {max(values):.1f} at most, {_shown(series.values[-1])} at last"
