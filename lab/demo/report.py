"""The demo's report: one self-contained HTML page, pictures as inline SVG, no script and nothing fetched."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from lab.demo.history import History, JobHistory, gpus_in_use, gpus_leased, queue

WIDTH, LEFT, RIGHT = 1080, 150, 20
PLOT = WIDTH - LEFT - RIGHT
KINDS = {"wait": "wait", "rent": "rent", "release": "release", "fault": "fault", "other": "other"}
CSS = """
:root {
  --ink: #1d2733; --soft: #667788; --line: #d8dee5; --paper: #fff; --home: #2f6fb0; --rented: #d9822b;
  --wait: #8d99a6; --rent: #d9822b; --release: #3c8d5a; --fault: #c0392b; --other: #7a5ea8;
}
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6ebf0; --soft: #9aa8b5; --line: #33404d; --paper: #161c22; --home: #5a9bd8; --wait: #7f8b97; }
}
body {
  font: 15px/1.45 system-ui, sans-serif; color: var(--ink); background: var(--paper);
  max-width: 1100px; margin: 2em auto; padding: 0 1em;
}
h1 { font-size: 1.5em; margin-bottom: .2em; }
h2 { font-size: 1.05em; margin: 1.6em 0 .3em; }
p.note { color: var(--soft); margin: .2em 0; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: .25em 1em .25em 0; border-bottom: 1px solid var(--line); }
td.n, th.n { text-align: right; }
svg { width: 100%; height: auto; display: block; }
text { fill: var(--ink); font-size: 12px; }
text.soft { fill: var(--soft); }
.axis { stroke: var(--line); }
.home { fill: var(--home); }
.rented { fill: var(--rented); }
.pending { fill: var(--wait); opacity: .45; }
.area { opacity: .75; }
.leased { fill: none; stroke: var(--rented); stroke-width: 1.5; stroke-dasharray: 4 3; }
.queue { fill: var(--wait); opacity: .75; }
.mark { stroke: var(--paper); stroke-width: 1; }
.mark:hover, rect:hover { stroke: var(--ink); stroke-width: 2; }
.wait { fill: var(--wait); } .rent { fill: var(--rent); } .release { fill: var(--release); }
.fault { fill: var(--fault); } .other { fill: var(--other); }
.tiles { display: flex; flex-wrap: wrap; gap: .8em; margin: 1em 0; }
.tile { border: 1px solid var(--line); border-radius: 6px; padding: .6em 1em; }
.tile b { display: block; font-size: 1.4em; }
.tile span { color: var(--soft); font-size: .9em; }
"""


def page(history: History, title: str) -> str:
    """The whole page."""
    head = "".join(f"<p class=note>{escape(key)}: {escape(value)}</p>" for key, value in history.facts.items())
    parts = [
        f"<h1>{escape(title)}</h1>{head}",
        _tiles(history),
        _panel("Jobs in the queue", _area(history, [("queue", queue(history))], "jobs")),
        _panel(
            f"GPUs in use at home ({history.home_gpus} owned)",
            _area(history, [("home area", gpus_in_use(history, rented=False))], "GPUs"),
        ),
        _panel(
            "GPUs in use, rented (dashed: leased, from request to termination)",
            _area(history, [("rented area", gpus_in_use(history, rented=True))], "GPUs", line=gpus_leased(history)),
        ),
        _panel("Decisions and faults (hover for the reason)", _marks(history)),
        _panel("Leases", _leases(history)),
        _panel("Jobs", _jobs(history)),
        "<h2>Every job</h2>" + _job_table(history),
        "<h2>Every lease</h2>" + _lease_table(history),
    ]
    name = escape(title)
    about = f"<meta charset=utf-8><title>{name}</title><style>{CSS}</style>"
    return f"<!doctype html><html lang=en>{about}<body>{''.join(parts)}</body></html>\n"


def _tiles(history: History) -> str:
    count = {fate: sum(job.fate == fate for job in history.jobs) for fate in ("home", "waited", "rented", "lost")}
    tiles = [
        (f"{count['home']}", "jobs at home at once"),
        (f"{count['waited']}", "waited for home"),
        (f"{count['rented']}", "rented"),
        (f"{count['lost']} / {history.run_twice}", "lost / run twice"),
        (f"${history.spent_usd:,.2f}", f"spent of ${history.budget_usd:,.0f} a month (estimate)"),
    ]
    return (
        "<div class=tiles>"
        + "".join(f"<div class=tile><b>{value}</b><span>{escape(label)}</span></div>" for value, label in tiles)
        + "</div>"
    )


def _x(history: History, at: float) -> float:
    return LEFT + PLOT * max(0.0, min(1.0, at / history.end))


def _panel(title: str, svg: str) -> str:
    return f"<h2>{escape(title)}</h2>{svg}"


def _svg(height: float, body: str) -> str:
    return f'<svg viewBox="0 0 {WIDTH} {height:.0f}" role="img">{body}</svg>'


def _axis(history: History, bottom: float) -> str:
    step = next(step for step in (5, 10, 20, 30, 60, 120, 300, 600, 1800, 3600, 1e9) if history.end / step <= 12)
    ticks, at = [], 0.0
    while at <= history.end:
        x = _x(history, at)
        ticks.append(f'<line class=axis x1="{x:.1f}" x2="{x:.1f}" y1="4" y2="{bottom:.0f}"/>')
        ticks.append(f'<text class=soft x="{x:.1f}" y="{bottom + 14:.0f}" text-anchor="middle">{at:.0f} s</text>')
        at += step
    return "".join(ticks)


def _path(history: History, points: list[tuple[float, float]], top: float, bottom: float, *, close: bool) -> str:
    def y(value: float) -> float:
        return bottom - (bottom - 8) * value / top

    commands = [f"M{_x(history, 0):.1f},{y(0):.1f}"]
    for (at, value), after in zip(points, [*points[1:], (history.end, 0.0)], strict=True):
        commands.append(f"L{_x(history, at):.1f},{y(value):.1f}L{_x(history, after[0]):.1f},{y(value):.1f}")
    if close:
        commands.append(f"L{_x(history, history.end):.1f},{y(0):.1f}Z")
    return "".join(commands)


def _area(
    history: History,
    areas: list[tuple[str, list[tuple[float, float]]]],
    unit: str,
    line: list[tuple[float, float]] | None = None,
) -> str:
    bottom = 110.0
    top = max([value for _, points in areas for _, value in points] + [value for _, value in line or []] + [1.0])
    body = _axis(history, bottom)
    body += "".join(
        f'<path class="{kind}" d="{_path(history, points, top, bottom, close=True)}"/>' for kind, points in areas
    )
    if line:
        body += f'<path class=leased d="{_path(history, line, top, bottom, close=False)}"/>'
    body += f'<text class=soft x="{LEFT - 8}" y="14" text-anchor="end">{top:.0f} {unit}</text>'
    body += f'<text class=soft x="{LEFT - 8}" y="{bottom:.0f}" text-anchor="end">0</text>'
    return _svg(bottom + 20, body)


def _marks(history: History) -> str:
    rows = [kind for kind in KINDS if any(mark.kind == kind for mark in history.marks)]
    bottom = 12 + 22 * len(rows)
    body = _axis(history, bottom)
    for row, kind in enumerate(rows):
        y = 18 + 22 * row
        body += f'<text x="{LEFT - 8}" y="{y + 4}" text-anchor="end">{kind}</text>'
        for mark in history.marks:
            if mark.kind == kind:
                hover = f"<title>{mark.at:.1f} s: {escape(mark.text)}</title>"
                body += f'<circle class="mark {kind}" cx="{_x(history, mark.at):.1f}" cy="{y}" r="6">{hover}</circle>'
    return _svg(bottom + 20, body)


def _bar(history: History, kind: str, start: float, end: float, y: float, hover: str) -> str:
    x, width = _x(history, start), max(2.0, _x(history, end) - _x(history, start))
    place = f'x="{x:.1f}" y="{y:.0f}" width="{width:.1f}" height="14" rx="2"'
    return f'<rect class="{kind}" {place}><title>{escape(hover)}</title></rect>'


def _rows(history: History, rows: Iterable[tuple[str, str]]) -> str:
    rows = list(rows)
    bottom = 8 + 19 * len(rows)
    body = _axis(history, bottom)
    for n, (label, bars) in enumerate(rows):
        y = 8 + 19 * n
        body += f'<text x="{LEFT - 8}" y="{y + 11}" text-anchor="end">{escape(label)}</text>' + bars.replace(
            "@Y", str(y)
        )
    return _svg(bottom + 20, body)


def _leases(history: History) -> str:
    rows = []
    for n, lease in enumerate(history.leases):
        y = 8 + 19 * n
        what = f"{lease.type} {lease.market} in {lease.zone}"
        hover = f"{lease.node}: {what}, {lease.start:.0f} to {lease.end:.0f} s, ${lease.usd:.2f}, {lease.ended}"
        rows.append((f"{lease.node} {lease.market}", _bar(history, "rented", lease.start, lease.end, y, hover)))
    return _rows(history, rows)


def _jobs(history: History) -> str:
    rows = []
    for n, job in enumerate(history.jobs):
        y, bars, pending = 8 + 19 * n, "", job.submit
        for run in job.runs:
            bars += (
                _bar(history, "pending", pending, run.start, y, f"{job.name} waits {run.start - pending:.0f} s")
                if run.start - pending > 0.5
                else ""
            )
            where = ", ".join(run.nodes)
            bars += _bar(
                history,
                "rented" if run.rented else "home",
                run.start,
                run.end,
                y,
                f"{job.name} on {where}: {run.state}, {run.end - run.start:.0f} s",
            )
            pending = run.end
        rows.append((f"{job.name} · {job.gpus} GPUs", bars))
    return _rows(history, rows)


def _table(header: list[str], rows: Iterable[list[str]], numbers: set[int]) -> str:
    def cells(tag: str, values: list[str]) -> str:
        return "".join(
            f"<{tag}{' class=n' if i in numbers else ''}>{escape(value)}</{tag}>" for i, value in enumerate(values)
        )

    return (
        f"<table><tr>{cells('th', header)}</tr>" + "".join(f"<tr>{cells('td', row)}</tr>" for row in rows) + "</table>"
    )


def _job_table(history: History) -> str:
    def row(job: JobHistory) -> list[str]:
        waited = f"{job.runs[0].start - job.submit:.0f}" if job.runs else "-"
        nodes = " then ".join(",".join(run.nodes) for run in job.runs)
        return [str(job.id), job.name, str(job.gpus), str(job.nodes), waited, nodes, job.fate, f"{job.gpu_hours:.3f}"]

    return _table(
        ["id", "name", "GPUs", "nodes", "waited s", "ran on", "fate", "GPU-hours"],
        map(row, history.jobs),
        {0, 2, 3, 4, 7},
    )


def _lease_table(history: History) -> str:
    rows = [
        [x.node, x.type, x.zone, x.market, f"{x.start:.0f}", f"{x.end:.0f}", f"{x.usd:.2f}", x.ended]
        for x in history.leases
    ]
    return _table(["node", "type", "zone", "market", "from s", "to s", "USD", "ended"], rows, {4, 5, 6})
