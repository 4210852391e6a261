"""benchmarks/results.md and its pictures, from benchmarks/results/*.json. A result is known by what is in it, not by
its name.

Nothing here is measured or rounded up: what was asked and wanted is written down here, what was reached comes from the
files.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks import dollars
from benchmarks.figures import WAITS
from ironburst.replay import pictures
from ironburst.replay.pictures import Panel, Series

RESULTS = Path(__file__).parent / "results"
PAGE = "results.md"  # beside the folder
NOT_MEASURED = "not measured"
PARTS = (("all", ""), ("aside", ", the part kept aside"))
PHILLY = "philly_first70d.csv.xz"
DATA = (
    "Traces: Microsoft Philly, September to November 2017 (its first 70 days; CC-BY-4.0); Chronus (Philly with deadlines, 2021); Alibaba "
    "openb (2023). Prices: us-east-1, on demand of 2026-07-20, spot of 2025-06-28."
)


@dataclass(frozen=True)
class Line:
    """One case of a row: a figure that is to be at most `asked`, at best `wanted`. `note`: what else must be said with
    it; `kept`: the waits are, without which the figure counts for nothing.
    """

    case: str
    asked: float | None
    wanted: float | None
    reached: float | None
    note: str = ""
    source: Mapping[str, Any] | None = None
    kept: bool = True


def read(folder: Path) -> list[dict[str, Any]]:
    """Every result in a folder, with its file's name under `file`. One that can't be read is left out; `unreadable`
    names it.
    """
    found = []
    for path in sorted(folder.glob("*.json")):
        try:
            value = json.loads(path.read_text())
        except (OSError, ValueError):
            value = None
        found.append({"file": path.name, **(value if isinstance(value, dict) else {"unreadable": True})})
    return found


def of_burst(results: Iterable[Mapping[str, Any]], **wanted: Any) -> Mapping[str, Any] | None:
    """The result of benchmarks.burst with these settings: the whole trace before a part of it, more seeds before
    fewer.
    """
    found = [
        each
        for each in results
        if "ours" in each and "peers" in each and all(each.get(key) == value for key, value in wanted.items())
    ]
    order = {"all": 2, "first": 1, "aside": 0}
    return max(found, key=lambda each: (order.get(each.get("part", "all"), 0), each.get("seeds", 0)), default=None)


def rows(results: list[dict[str, Any]]) -> Iterator[tuple[str, list[Line]]]:
    """The ten rows: what each asks, and its lines."""

    def burst(case: str, asked: float, wanted: float, **settings: Any) -> Line:
        settings = {"trace": PHILLY, "pool_gpus": 512, "run_times": "known", "wait_factor": 1.0} | settings
        return _line(case, asked, wanted, of_burst(results, **settings))

    yield (
        "1. Run times known: rented GPU-hours over Starburst's (whole queue), all five waits no longer than its own",
        [
            burst(f"{gpus} GPUs{words}", asked, 0.90, pool_gpus=gpus, part=part)
            for part, words in PARTS
            for gpus, asked in ((512, 0.98), (384, 0.99), (640, 0.93))
        ],
    )
    yield (
        "2. The frontier at 512 GPUs: the five waits may be so many times Starburst's",
        [
            burst(f"{factor:g} x", asked, wanted, wait_factor=factor)
            for factor, asked, wanted in ((1.0, 0.98, 0.85), (1.5, 0.93, 0.80), (2.0, 0.87, 0.75))
        ],
    )
    yield (
        "3. Run times unknown (time limits of 2 to 5 times them, learned online), over Starburst with known ones, 512 GPUs",
        [
            burst(f"{case}{words}", 1.05, 0.98, run_times=told, part=part)
            for part, words in PARTS
            for case, told in (
                ("factor drawn for each job", "limits"),
                ("factor depends on the queue", "limits-by-queue"),
            )
        ],
    )
    known = of_burst(results, trace=PHILLY, pool_gpus=512, run_times="known", wait_factor=1.0)
    yield (
        "4. Rented GPU-hours over the certified bound, 512 GPUs",
        [Line("the same five limits", 1.57, 1.4, _ratio(known, "ours / bound"), _bound_note(known), known)],
    )
    yield "5. Dollars over what Starburst pays for the cheapest fitting instances, on demand", list(_dollars(results))
    yield (
        "6. Other traces: rented GPU-hours over the best peer's",
        [
            *(
                _best_peer(f"Chronus{words}", of_burst(results, trace="chronus_philly_slo.csv.xz", part=part))
                for part, words in PARTS
            ),
            _best_peer("openb", of_burst(results, trace="openb2023_pods_default.csv.xz")),
        ],
    )
    idle = next((each for each in results if {"sequences", "adversarial"} <= each.keys()), None)
    yield (
        "7. Paid for idle leases over the best in hindsight",
        [
            Line("mean", 1.3, 1.15, idle and idle.get("mean"), "", idle),
            Line("worst", 2.0, None, idle and idle.get("max"), "never over 2", idle),
        ],
    )
    whole = known if known and known.get("part") == "all" else None
    yield (
        "8. The 70-day trace through decide() on one core, seconds",
        [Line("512 GPUs", 600.0, 180.0, whole and whole["ours"]["wall_s"], _speed_note(whole), whole)],
    )
    decide = next((each for each in results if "seconds for all (<= 1)" in each), None)
    yield (
        "9. One decide(): 10,000 pending jobs, 2,000 nodes, 84 types, seconds",
        [
            Line(
                "all jobs",
                1.0,
                0.2,
                decide and decide["seconds for all (<= 1)"],
                (decide and f"slope {decide['slope (1 is linear)']} (1 is linear)") or "",
                decide,
            )
        ],
    )
    budget = next((each for each in results if "times a ceiling was passed (0)" in each), None)
    yield (
        "10. Random scenarios with failures: times that a hard ceiling was passed",
        [Line(_scenarios(budget), 0.0, 0.0, budget and budget["times a ceiling was passed (0)"], "", budget)],
    )


def _line(case: str, asked: float, wanted: float, found: Mapping[str, Any] | None, peer: str = "starburst") -> Line:
    """Rented GPU-hours over a peer's, with the waits over Starburst's (times the wait factor)."""
    if found is None:
        return Line(case, asked, wanted, None)
    note, kept = _waits(found["ratios"]["ours / starburst"], found.get("wait_factor", 1.0))
    if (patience := found.get("patience", 1.0)) != 1:
        learned = "--patience learned" in found.get("run", {}).get("command", "")
        note += f"; told {patience:g} times the waits" + (
            ": the longest that kept them on the first part" if learned else ""
        )
    return Line(case, asked, wanted, _ratio(found, f"ours / {peer}"), note + _part(found), found, kept)


def _waits(ratios: Mapping[str, float | None], factor: float = 1.0) -> tuple[str, bool]:
    each = [round(value / factor, 3) for name in WAITS if (value := ratios.get(name)) is not None]
    kept = max(each, default=0.0) <= 1
    return (
        f"waits {'kept' if kept else 'NOT kept'}: {', '.join(f'{value:.2f}' for value in each)} of what they may be",
        kept,
    )


def _part(found: Mapping[str, Any]) -> str:
    part = {"aside": "; the last quarter of the jobs only", "first": "; the first three quarters of the jobs only"}.get(
        found.get("part", ""), ""
    )
    return f"{part}; {found['seeds']} seed{'s' if found['seeds'] > 1 else ''}" if "seeds" in found else part


def _ratio(found: Mapping[str, Any] | None, name: str) -> float | None:
    return found["ratios"].get(name, {}).get("rented_gpu_hours") if found else None


def _bound_note(found: Mapping[str, Any] | None) -> str:
    if not found or not found.get("bound"):
        return ""
    return f"bound {found['bound']['rented_gpu_hours']:,.0f} GPU-h, found in {found['bound']['wall_s']:.0f} s{_part(found)}"


def _speed_note(found: Mapping[str, Any] | None) -> str:
    return f"peer {found['peers']['starburst']['jobs_per_s']:,.0f} jobs/s (a fair one has 1,500)" if found else ""


def _scenarios(found: Mapping[str, Any] | None) -> str:
    count = next(
        (value for key, value in (found or {}).items() if key.startswith("scenarios") and isinstance(value, int)), None
    )
    return f"{count:,} scenarios" if count else "scenarios"


def _dollars(results: list[dict[str, Any]]) -> Iterator[Line]:
    for row, words in (("a", "on demand only"), ("b", "70% may use spot"), ("c", "that, and a reservation")):
        most, best = dollars.ASKED[row], dollars.WANTED[row]
        found = [
            each
            for each in results
            if isinstance(each.get("ratios"), dict) and row in each["ratios"] and "prices" in each
        ]
        one = max(found, key=lambda each: (not each.get("days"), each.get("seeds", 0)), default=None)
        if one is None:
            yield Line(f"({row}) {words}", most, best, None)
            continue
        ratio, days = one["ratios"][row], f"; days {one['days']} of the trace only" if one.get("days") else ""
        note, kept = _waits(ratio, one.get("wait_factor", 1.0))
        if row == "c" and "reserved" in one and not any(one["reserved"]):
            note += "; `size` recommends to reserve nothing"
        yield Line(f"({row}) {words}", most, best, ratio["usd"], note + days + _part(one), one, kept)


def _best_peer(name: str, found: Mapping[str, Any] | None) -> Line:
    if found is None:
        return Line(name, 1.0, 0.9, None)
    best = min(found["peers"], key=lambda peer: found["peers"][peer]["rented_gpu_hours"])
    line = _line(f"{name}, {found['pool_gpus']} GPUs", 1.0, 0.9, found, best)
    return replace(line, note=f"over {best}; {line.note}")


# ---- the page


def page(results: list[dict[str, Any]], drawn: Iterable[str] = ()) -> str:
    out = [
        "<!-- written by `make bench` (benchmarks/report.py): change the benchmarks, not this file -->",
        "# What was measured",
        "",
    ]
    out += [
        DATA,
        "",
        "A figure is better the smaller it is. Every line names the commit that was measured; `make bench` measures anew.",
        "",
    ]
    for title, lines in rows(results):
        out += [f"## {title}", "", "| case | asked | wanted | reached | | measured |", "|---|---|---|---|---|---|"]
        out += [
            f"| {one.case} | {_most(one.asked)} | {_most(one.wanted)} | {_reached(one)} | {one.note} | {_source(one.source)} |"
            for one in lines
        ]
        out.append("")
    out += [f"![{name}](results/{name})\n" for name in drawn]
    if bad := [each["file"] for each in results if each.get("unreadable")]:
        out += [f"Not readable, so not shown: {', '.join(bad)}.", ""]
    return "\n".join(out).rstrip() + "\n"


def _most(value: float | None) -> str:
    return "-" if value is None else f"<= {value:g}"


def _reached(one: Line) -> str:
    if one.reached is None:
        return NOT_MEASURED
    if not one.kept:
        return f"{one.reached:.3f} (waits not kept)"
    shown = f"{one.reached:,.0f}" if one.reached >= 100 or one.reached == int(one.reached) else f"{one.reached:.3f}"
    if one.wanted is not None and one.reached <= one.wanted:
        return f"**{shown}** (wanted)"
    return f"**{shown}** (asked)" if one.asked is not None and one.reached <= one.asked else f"{shown} (missed)"


def _source(found: Mapping[str, Any] | None) -> str:
    if found is None:
        return ""
    ran = found.get("run") or {}
    return " ".join(
        filter(None, (f"`{found['file']}`", ran.get("commit") or _committed(found["file"]), ran.get("date", "")))
    )


def _committed(name: str) -> str:
    """The commit that brought a result which doesn't say what it measured."""
    done = subprocess.run(
        ["git", "-C", str(RESULTS), "log", "-1", "--format=brought by %h %cs", "--", name],
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout.strip()


# ---- pictures


def draw(results: list[dict[str, Any]]) -> dict[str, str]:
    """File name: SVG. One for each size of the pool: rented GPU-hours over the mean wait, ours, peers and bound."""
    found = {}
    parts: dict[tuple[int, str], list[dict[str, Any]]] = {}
    for each in results:
        if "ours" in each and each.get("trace") == PHILLY and each.get("run_times") == "known":
            parts.setdefault((each["pool_gpus"], each.get("part", "all")), []).append(each)
    for (gpus, part), each in sorted(parts.items()):
        suffix = "" if part == "all" else f"-{part}"
        words = {"all": "70 days", "aside": "its last quarter", "first": "its first three quarters"}[part]
        found[f"cost-over-wait-{gpus}{suffix}.svg"] = _cost_over_wait(f"Philly, {words}, {gpus} GPUs at home", each)
    for each in results:
        if "prices" in each and "starburst" in each:
            found[Path(each["file"]).stem + ".svg"] = _usd_over_wait(each)
    return found


def _cost_over_wait(title: str, each: list[dict[str, Any]]) -> str:
    each = sorted(each, key=lambda one: one.get("wait_factor", 1.0))

    def points(of: Callable[[dict[str, Any]], Mapping[str, Any] | None]) -> tuple[list[float], list[float]]:
        found = [one for one in map(of, each) if one]
        return [one["mean_wait_h"] for one in found], [one["rented_gpu_hours"] for one in found]

    peers = each[0]["peers"]
    series = {
        "ours": Series(
            *points(lambda one: one["ours"]), marks=True, names=[f"{one.get('wait_factor', 1.0):g} x" for one in each]
        ),
        "peers": Series(
            *zip(*((p["mean_wait_h"], p["rented_gpu_hours"]) for p in peers.values()), strict=True),
            marks=True,
            names=list(peers),
        ),
        "certified bound": Series(*points(lambda one: one.get("bound")), marks=True),
    }
    return pictures.svg([Panel(title, "mean wait, hours", "rented GPU-hours", series)], height=380)


def _usd_over_wait(found: Mapping[str, Any]) -> str:
    def series(names: Iterable[str]) -> Series:
        there = [name for name in names if name in found]
        return Series(
            [found[name]["mean_wait_h"] for name in there], [found[name]["usd"] for name in there], True, there
        )

    panel = Panel(
        "Dollars", "mean wait, hours", "USD", {"ours": series("abc"), "peers": series(("starburst", "no_wait"))}
    )
    return pictures.svg([panel], height=380)


def write(folder: Path = RESULTS) -> Path:
    """Write the pictures into the folder and the page beside it. Returns the page's path."""
    folder.mkdir(parents=True, exist_ok=True)
    results = read(folder)
    drawn = draw(results)
    for name, svg in drawn.items():
        (folder / name).write_text(svg)
    path = folder.parent / PAGE
    path.write_text(page(results, drawn))
    return path
