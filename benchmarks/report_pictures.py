"""The pictures of benchmarks/results.md."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ironburst.replay import pictures
from ironburst.replay.pictures import Panel, Series

Result = Mapping[str, Any]  # as it is in its file


def draw(results: list[dict[str, Any]], trace: str) -> dict[str, str]:
    """File name: SVG, of the results on this trace. One for each size of the pool: rented GPU-hours over the mean wait,
    ours, peers and bound.
    """
    drawn = {}
    parts: dict[tuple[int, str], list[dict[str, Any]]] = {}
    for result in results:
        if "ours" in result and result.get("trace") == trace and result.get("run_times") == "known":
            parts.setdefault((result["pool_gpus"], result.get("part", "all")), []).append(result)
    for (gpus, part), alike in sorted(parts.items()):
        suffix = "" if part == "all" else f"-{part}"
        words = {"all": "70 days", "aside": "its last quarter", "first": "its first three quarters"}[part]
        drawn[f"cost-over-wait-{gpus}{suffix}.svg"] = _cost_over_wait(f"Philly, {words}, {gpus} GPUs at home", alike)
    for result in results:
        if "prices" in result and "starburst" in result:
            drawn[Path(result["file"]).stem + ".svg"] = _usd_over_wait(result)
    return drawn


def _cost_over_wait(title: str, results: list[dict[str, Any]]) -> str:
    results = sorted(results, key=lambda result: result.get("wait_factor", 1.0))

    def dots(figures: Iterable[Mapping[str, Any] | None], names: Sequence[str] = ()) -> Series:
        there = [of for of in figures if of]
        waits, rented = [of["mean_wait_h"] for of in there], [of["rented_gpu_hours"] for of in there]
        return Series(waits, rented, marks=True, names=names)

    peers, factors = results[0]["peers"], [f"{result.get('wait_factor', 1.0):g} x" for result in results]
    series = {
        "ours": dots((result["ours"] for result in results), factors),
        "peers": dots(peers.values(), list(peers)),
        "certified bound": dots(result.get("bound") for result in results),
    }
    return pictures.svg([Panel(title, "mean wait, hours", "rented GPU-hours", series)], height=380)


def _usd_over_wait(result: Result) -> str:
    def dots(rows: Iterable[str]) -> Series:
        names = [row for row in rows if row in result]
        waits, usd = [result[row]["mean_wait_h"] for row in names], [result[row]["usd"] for row in names]
        return Series(waits, usd, marks=True, names=names)

    series = {"ours": dots("abc"), "peers": dots(("starburst", "no_wait"))}
    return pictures.svg([Panel("Dollars", "mean wait, hours", "USD", series)], height=380)
