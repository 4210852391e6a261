"""`ironburst size TRACE`: how many nodes to own, which to reserve and how much to rent, from a team's own history."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from ironburst.burst import Pool, explain
from ironburst.cli import site_options, stack_file, trials
from ironburst.cli.site_options import BadInput
from ironburst.replay import pictures, sizing
from ironburst.replay.pictures import Panel, Series
from ironburst.replay.sizing import Candidate, Prices, Sizing, SizingError, Wanted

JOBS = 2000


def add_parser(subparsers: argparse._SubParsersAction) -> None:
    parser = subparsers.add_parser(
        "size",
        help="how many nodes to own, reserve and rent, from your own history",
        description="The yearly cost of owning so many nodes, reserving so many and renting the rest, and the cheapest that keeps a wanted "
        "wait. Each candidate is the history played through the controller's own decision, a sample of it where it is long. What an owned "
        "GPU costs an hour (with power, space and people, over its life) nobody but you knows: it is required. "
        + site_options.EXIT_CODES,
        epilog="example: ironburst size jobs.csv --config stacks/Pulumi.prod.yaml --owned-usd-per-gpu-hour 2.10 --wait-p95 4",
    )
    parser.add_argument("trace", type=Path, metavar="TRACE", help="as for simulate")
    parser.add_argument(
        "--config", type=Path, required=True, metavar="STACK_FILE", help="GPUs of an owned node, the pool to rent from"
    )
    parser.add_argument("--owned-usd-per-gpu-hour", type=float, required=True, metavar="USD", help="used or not")
    parser.add_argument(
        "--rented-usd-per-gpu-hour",
        type=float,
        metavar="USD",
        help="on demand (default: the price of the stack file's cheapest pool)",
    )
    parser.add_argument(
        "--reserved-usd-per-gpu-hour",
        type=float,
        metavar="USD",
        help="used or not (default: no reservations are looked at)",
    )
    parser.add_argument("--wait-p50", type=float, metavar="H", help="half of the jobs start within so many hours")
    parser.add_argument(
        "--wait-p95", type=float, metavar="H", help="95%% do (default for both: the stack file's policy as it is)"
    )
    parser.add_argument(
        "--nodes", metavar="N,N,...", help="owned nodes to look at (default: seven around the mean use)"
    )
    parser.add_argument(
        "--jobs", type=int, default=JOBS, metavar="N", help="of the history, at most (default: %(default)s)"
    )
    parser.add_argument("--out", type=Path, metavar="DIR", help="write size.json and size.svg there")
    parser.add_argument("--json", action="store_true", help="machine-readable")
    parser.set_defaults(func=run)


@site_options.guarded
def run(arguments: argparse.Namespace) -> int:
    if arguments.jobs < 2:
        raise BadInput(f"--jobs is {arguments.jobs}; allowed is 2 or more")
    nodes = counts(arguments.nodes)
    declared = stack_file.declared(arguments.config)
    pool, told = cheapest(declared.cloud.pools, arguments.config)
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
    try:
        found = sizing.size(
            part, declared.home, declared.policy, cloud, prices, wanted, nodes, trials.bar(sys.stderr, "candidates")
        )
    except (SizingError, ValueError) as error:
        raise BadInput(f"{arguments.trace}: {error}") from None
    said = as_json(found) | {
        "trace": arguments.trace.name,
        "jobs": len(trace),
        "pool": pool.name,
        "instance_type": pool.instance_type,
        "gpus_per_node": declared.home.gpus,
        "wanted": {"p50_h": arguments.wait_p50, "p95_h": arguments.wait_p95},
        "usd_per_gpu_hour": {
            "owned": arguments.owned_usd_per_gpu_hour,
            "rented": rented,
            "reserved": arguments.reserved_usd_per_gpu_hour,
        },
        "rented_price_from": source,
    }
    if arguments.out:
        trials.write(arguments.out, "size", said, picture(found))
    print(json.dumps(said) if arguments.json else "\n".join(lines(said)))
    return 0


def counts(text: str | None) -> list[int] | None:
    """The numbers of --nodes. Raises BadInput."""
    if text is None:
        return None
    words = [word.strip() for word in text.split(",")]
    if not all(word.isdigit() and int(word) <= 100_000 for word in words):
        raise BadInput(
            f"--nodes is {text!r}; allowed are whole numbers from 0 to 100000 with commas between, such as 40,48,56"
        )
    return sorted({int(word) for word in words})


def cheapest(pools: tuple[Pool, ...], config: Path) -> tuple[Pool, float | None]:
    """The pool whose GPU costs least on demand, and what; the first one where no price is known. Raises BadInput
    without any pool.
    """
    if not pools:
        raise BadInput(f"{config}: it declares no pool to rent from (cloud.pools)")
    known = [
        (usd / pool.each.gpus, pool.name, pool)
        for pool in pools
        if (usd := pool.usd_per_hour.get("on-demand")) is not None
    ]
    return (min(known)[2], min(known)[0]) if known else (pools[0], None)


def as_json(found: Sizing) -> dict[str, Any]:
    return {
        "sample": {"jobs": len(found.sample), "days": found.days, "mean_gpus": found.mean_gpus},
        "candidates": [_candidate(one) for one in found.candidates],
        "best": _candidate(found.best) if found.best else None,
    }


def _candidate(one: Candidate) -> dict[str, Any]:
    return asdict(one) | {"total_usd": one.total_usd}


def lines(said: dict[str, Any]) -> list[str]:
    part, best, wanted = said["sample"], said["best"], said["wanted"]
    whole = "all" if part["jobs"] == said["jobs"] else f"a sample: {part['jobs']:,} in a row, as busy as the whole,"
    prices = ", ".join(
        f"{name} {explain.usd(usd)}" for name, usd in said["usd_per_gpu_hour"].items() if usd is not None
    )
    out = [
        f"{said['trace']}: {whole} of {said['jobs']:,} jobs, {part['days']:.1f} days, {part['mean_gpus']:,.0f} GPUs busy on average",
        f"a GPU-hour: {prices} (rented: {said['rented_price_from']}); figures are of a year",
        f"owned nodes have {explain.plural(said['gpus_per_node'], 'GPU')}; reserved and rented ones are {said['instance_type']}",
        "",
        f"{'owned':>8}{'reserved':>10}{'rented':>14}{'owned':>14}{'reserved':>14}{'rented':>14}{'total':>14}{'wait p50':>10}{'p95':>8}",
        f"{'nodes':>8}{'nodes':>10}{'node-hours':>14}{'USD':>14}{'USD':>14}{'USD':>14}{'USD':>14}{'h':>10}{'h':>8}",
    ]
    for one in said["candidates"]:
        money = "".join(
            f"{one[name]:>14,.0f}"
            for name in ("rented_node_hours", "owned_usd", "reserved_usd", "rented_usd", "total_usd")
        )
        waits = f"{one['waits']['p50_h']:>10.2f}{one['waits']['p95_h']:>8.2f}"
        note = "  <- cheapest" if best and one["nodes"] == best["nodes"] else "" if one["kept"] else "  waits too long"
        out.append(f"{one['nodes']:>8}{one['reserved_nodes']:>10}{money}{waits}{note}")
    asked = " and ".join(f"{name[:3]} of {limit:g} h" for name, limit in wanted.items() if limit is not None)
    out += [] if best else ["", f"no candidate keeps the wanted waits ({asked}): allow more, or give more --nodes"]
    return out


def picture(found: Sizing) -> str:
    nodes = [one.nodes for one in found.candidates]
    names = ("owned", "reserved", "rented", "total")
    series = {name: Series(nodes, [getattr(one, f"{name}_usd") for one in found.candidates]) for name in names}
    return pictures.svg([Panel("Break-even", "owned nodes", "USD a year", series)])
