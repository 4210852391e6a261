"""`ironburst size TRACE`: how many nodes to own, which to reserve and how much to rent, from a team's own history."""

from __future__ import annotations

import argparse
import json
import math
import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, NamedTuple

from ironburst.burst import Pool, explain
from ironburst.cli import Subparsers, growth, site_options, stack_file, trials
from ironburst.cli.stack_file import Declared
from ironburst.replay import pictures, sizing
from ironburst.replay.pictures import Panel, Series
from ironburst.replay.sizing import Candidate, Prices, Sizing, SizingError, Wanted
from ironburst.replay.traces import Trace
from ironburst.system.bad_input import BadInput

JOBS = 2000
DESCRIPTION = (
    "The yearly cost of owning so many nodes, reserving so many and renting the rest, and the cheapest that keeps a "
    "wanted wait. Each candidate is the history played through the controller's own decision, a sample of it where it "
    "is long. What an owned GPU costs an hour (with power, space and people, over its life) nobody but you knows: it "
    f"is required. {site_options.EXIT_CODES}"
)
INVENTORY_HELP = "with --halls: what `ironburst node show NODE STACK_FILE --json` printed; may be given several times"
EXAMPLE = "example: ironburst size jobs.csv --config stacks/Pulumi.prod.yaml --owned-usd-per-gpu-hour 2.10 --wait-p95 4"


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


def add_parser(subparsers: Subparsers) -> None:
    """The verb and its options."""
    parser = subparsers.add_parser(
        "size",
        help="how many nodes to own, reserve and rent, from your own history",
        description=DESCRIPTION,
        epilog=EXAMPLE,
    )
    trials.add_inputs(parser, config_help="GPUs of an owned node, the pool to rent from", trace_help="as for simulate")
    add = parser.add_argument
    not_looked_at = "no reservations are looked at"
    cheapest_pool = "the price of the stack file's cheapest pool with GPUs no less than home's"
    add("--owned-usd-per-gpu-hour", type=float, required=True, metavar="USD", help="used or not")
    add("--rented-usd-per-gpu-hour", type=float, metavar="USD", help=f"on demand (default: {cheapest_pool})")
    add("--reserved-usd-per-gpu-hour", type=float, metavar="USD", help=f"used or not (default: {not_looked_at})")
    add("--wait-p50", type=float, metavar="H", help="half of the jobs start within so many hours")
    add("--wait-p95", type=float, metavar="H", help="95%% do (default for both: the stack file's policy as it is)")
    add("--nodes", metavar="N,N,...", help="owned nodes to look at (default: seven around the mean use)")
    add("--jobs", type=int, default=JOBS, metavar="N", help="of the history, at most (default: %(default)s)")
    add(
        "--halls",
        action="store_true",
        help="the ways to grow, too: rent, more nodes and where they stand, more GPUs and memory",
    )
    add("--inventory", type=Path, action="append", default=[], metavar="FILE", help=INVENTORY_HELP)
    trials.add_outputs(parser, "size")
    parser.set_defaults(func=run)


@site_options.guarded
def run(arguments: argparse.Namespace) -> int:
    """Play the candidates, and print or write the break-even curve."""
    if arguments.jobs < 2:
        raise BadInput(f"--jobs is {arguments.jobs}; allowed is 2 or more")
    if arguments.inventory and not arguments.halls:
        raise BadInput("--inventory says what nodes could take in, which is asked with --halls: give that, too")
    nodes, inventories = counts(arguments.nodes), growth.inventories(arguments.inventory)
    declared = stack_file.declared(arguments.config, arguments.scheduler)
    config = stack_file.valid(arguments.config) if arguments.halls else None
    if config:
        growth.known(config, inventories, arguments.config)
    pool, told = cheapest(_for_all(declared), arguments.config)
    rented, source = arguments.rented_usd_per_gpu_hour, "--rented-usd-per-gpu-hour"
    if rented is None:
        rented, source = told, f"pool {pool.name}, prices of {declared.prices_as_of or 'the stack file'}"
    if rented is None:
        raise BadInput(f"{arguments.config}: no pool has a known price on demand; give --rented-usd-per-gpu-hour")
    try:
        prices = Prices(arguments.owned_usd_per_gpu_hour, rented, arguments.reserved_usd_per_gpu_hour)
        wanted = Wanted(arguments.wait_p50, arguments.wait_p95)
    except SizingError as error:
        raise BadInput(str(error)) from None
    trace = trials.read(arguments.trace)
    trials.make(arguments.out)
    part, cloud = sizing.sample(trace, arguments.jobs), replace(declared.cloud, pools=(pool,))
    home, tell = declared.home, trials.bar(sys.stderr, "candidates")
    also = (home.nodes,) if config else ()
    try:
        sized = sizing.size(part, home, declared.policy, cloud, prices, wanted, nodes, tell, also)
    except (SizingError, ValueError) as error:
        raise BadInput(f"{arguments.trace}: {error}") from None
    said = as_json(sized) | {
        "trace": arguments.trace.name,
        "jobs": len(trace),
        "pool": pool.name,
        "instance_type": pool.instance_type,
        "gpus_per_node": home.gpus,
        "wanted": asdict(wanted),
        "usd_per_gpu_hour": asdict(prices),
        "rented_price_from": source,
        "unlike_simulate": unlike_simulate(trace, part, declared.cloud.pools, pool, wanted, source),
    }
    if config:
        said["growth"] = growth.of(config, sized.candidates, sized.best, home.nodes, home.gpus, inventories)
    if arguments.out:
        trials.write(arguments.out, "size", said, picture(sized), lines(said))
    print(json.dumps(said) if arguments.json else "\n".join(lines(said)))
    return 0


def unlike_simulate(
    trace: Trace, part: Trace, pools: tuple[Pool, ...], pool: Pool, wanted: Wanted, source: str
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


def counts(text: str | None) -> list[int] | None:
    """The numbers of --nodes. Raises BadInput."""
    if text is None:
        return None
    words = [word.strip() for word in text.split(",")]
    if not all(word.isdigit() and int(word) <= 100_000 for word in words):
        allowed = "whole numbers from 0 to 100000 with commas between, such as 40,48,56"
        raise BadInput(f"--nodes is {text!r}; allowed are {allowed}")
    return sorted({int(word) for word in words})


def _for_all(declared: Declared) -> tuple[Pool, ...]:
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
