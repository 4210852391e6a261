"""The break-even curve of sizing: as JSON values, for people, and as a picture."""

from __future__ import annotations

import math
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, NamedTuple

from ironburst.burst import Pool, explain
from ironburst.replay import growth, pictures
from ironburst.replay.declared import Declared
from ironburst.replay.pictures import Panel, Series
from ironburst.replay.sizing import Candidate, Sizing, WaitGoal
from ironburst.replay.traces import Trace
from ironburst.system.bad_input import BadInput


class Column(NamedTuple):
    """Of the table: which value of a candidate, and how it is shown."""

    name: str
    head: str
    unit: str
    width: int
    form: str


COLUMNS = (
    Column("nodes", "owned", "nodes", 8, ""),
    Column("reserved_nodes", "reserved", "nodes", 10, ""),
    Column("rented_node_hours", "rented", "node-hours", 14, ",.0f"),
    Column("owned_usd", "owned", "USD", 14, ",.0f"),
    Column("reserved_usd", "reserved", "USD", 14, ",.0f"),
    Column("rented_usd", "rented", "USD", 14, ",.0f"),
    Column("total_usd", "total", "USD", 14, ",.0f"),
    Column("p50_h", "wait p50", "h", 10, ".2f"),
    Column("p95_h", "p95", "h", 8, ".2f"),
)


def unlike_simulate(
    trace: Trace, part: Trace, pools: tuple[Pool, ...], pool: Pool, wanted: WaitGoal, source: str
) -> list[str]:
    """What is counted otherwise than `simulate` counts it on the same trace and stack file."""
    unlimited = trace.limit_s is not None and any(map(math.isnan, trace.limit_s))
    markets = set(pool.markets)
    one = sum(len(each.by_type) for each in pools) > 1
    said = {
        f"one pool, {pool.name} of {pool.instance_type}": one,
        "rented nodes as fast as home's": any(each.speed != 1 for each in pools),
        "on demand alone": markets != {"on-demand"} or bool(markets & set(pool.prepaid_markets)),
        "nodes for every job, and no max_run": True,
        f"a price of {source}": source.startswith("--"),
        "jobs without a time limit have the longest one": unlimited,
        "each row has the most patient policy that keeps the wanted waits": wanted.any,
        f"a sample of {len(part):,} jobs": len(part) < len(trace),
    }
    return [words for words, so in said.items() if so]


def for_all(declared: Declared) -> tuple[Pool, ...]:
    """The pools for jobs that name no GPU type; without any, all. One pool is sized, for every job."""
    pools, kinds = declared.cloud.pools, declared.home.kinds
    good = [
        pool
        for pool in pools
        if pool.untyped or not pool.gpu or any(pool.gpu.as_good_as(kind, pool.each.gpus > 1) for kind in kinds)
    ]
    return tuple(replace(pool, gpu=None) for pool in good or pools)


def cheapest(pools: tuple[Pool, ...], config: Path) -> tuple[Pool, float | None]:
    """The pool whose GPU costs least on demand, and what;
    the first one where no price is known. Raises BadInput without any pool.
    """
    if not pools:
        raise BadInput(f"{config}: it declares no pool to rent from (cloud.pools)")
    alone = [each for pool in pools for each in pool.by_type]
    prices = ((pool, pool.usd_per_hour.get("on-demand")) for pool in alone)
    known = [(usd / pool.each.gpus, pool.name, pool.instance_type, pool) for pool, usd in prices if usd is not None]
    return (min(known)[3], min(known)[0]) if known else (alone[0], None)


def as_json(sized: Sizing) -> dict[str, Any]:
    """The curve, as JSON values."""
    return {
        "sample": {"jobs": len(sized.sample), "days": sized.days, "mean_gpus": sized.mean_gpus},
        "candidates": [_candidate(candidate) for candidate in sized.candidates],
        "best": _candidate(sized.best) if sized.best else None,
    }


def _candidate(candidate: Candidate) -> dict[str, Any]:
    return asdict(candidate) | {"total_usd": candidate.total_usd}


def idle(sized: Sizing, gpu_hours: float, share: float) -> dict[str, Any]:
    """What the part of the jobs' GPU-hours that did nothing, as it was measured, costs in a year; `usd`: null without a
    best candidate.
    """
    usd = sized.best.total_usd * share if sized.best else None
    return {"measured_gpu_hours": gpu_hours, "share": share, "gpus": share * sized.mean_gpus, "usd": usd}


def _idle(said: dict[str, Any]) -> str:
    usd = "" if said["usd"] is None else f" and {explain.usd(said['usd'])} a year of the cheapest"
    gpus = f"{said['share']:.0%} of GPU-hours were idle, of {said['measured_gpu_hours']:,.0f} that were measured"
    return f"{gpus}: that is {said['gpus']:,.1f} of the GPUs that are busy on average{usd}"


def lines(said: dict[str, Any]) -> list[str]:
    """The curve as a table for people."""
    heads = "".join(f"{column.head:>{column.width}}" for column in COLUMNS)
    units = "".join(f"{column.unit:>{column.width}}" for column in COLUMNS)
    out = [*_heading(said), "", heads, units]
    best = said["best"]
    for candidate in said["candidates"]:
        cheapest = best and candidate["nodes"] == best["nodes"]
        note = "  <- cheapest" if cheapest else "" if candidate["kept"] else "  waits too long"
        out.append(_row(candidate) + note)
    if not best:
        wanted = [(name, limit) for name, limit in said["wanted"].items() if limit is not None]
        asked = " and ".join(f"{name[:3]} of {limit:g} h" for name, limit in wanted)
        out += ["", f"no candidate keeps the wanted waits ({asked}): allow more, or give more --nodes"]
    if "idle" in said:
        out += ["", _idle(said["idle"])]
    if "growth" in said:
        out += ["", *growth.lines(said["growth"], said["instance_type"])]
    return [*out, "", f"Unlike simulate: {'; '.join(said['unlike_simulate'])}; and figures are of a year."]


def _heading(said: dict[str, Any]) -> list[str]:
    part, usd = said["sample"], said["usd_per_gpu_hour"]
    sample = f"a sample: {part['jobs']:,} in a row, as busy as the whole,"
    jobs = f"{'all' if part['jobs'] == said['jobs'] else sample} of {said['jobs']:,} jobs"
    prices = ", ".join(f"{name} {explain.usd(price)}" for name, price in usd.items() if price is not None)
    owned = f"owned nodes have {explain.plural(said['gpus_per_node'], 'GPU')}"
    return [
        f"{said['trace']}: {jobs}, {part['days']:.1f} days, {part['mean_gpus']:,.0f} GPUs busy on average",
        f"a GPU-hour: {prices} (rented: {said['rented_price_from']}); figures are of a year",
        f"{owned}; reserved and rented ones are {said['instance_type']}",
    ]


def _row(candidate: dict[str, Any]) -> str:
    values = candidate | candidate["waits"]
    return "".join(f"{values[column.name]:>{column.width}{column.form}}" for column in COLUMNS)


def picture(sized: Sizing) -> str:
    """The break-even curve; SVG."""
    nodes = [candidate.nodes for candidate in sized.candidates]
    series = {}
    for name in ("owned", "reserved", "rented", "total"):
        series[name] = Series(nodes, [getattr(candidate, f"{name}_usd") for candidate in sized.candidates])
    return pictures.svg([Panel("Break-even", "owned nodes", "USD a year", series)])
