"""`ironburst size TRACE`: how many nodes to own, which to reserve and how much to rent, from a team's own history."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict, replace
from pathlib import Path

from ironburst.cli import Subparsers, site_options, trials, workers
from ironburst.config import upgrades, valid
from ironburst.controller import declared_site
from ironburst.replay import growth, size_report, sizing
from ironburst.replay.sizing import Prices, SizingError, WaitGoal
from ironburst.system import local_time
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


def add_parser(subparsers: Subparsers) -> None:
    """The verb and its options."""
    parser = subparsers.add_parser(
        "size",
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
    told = "what `ironburst report --efficiency --json` printed: what the GPU-hours cost that did nothing"
    add("--efficiency", type=Path, metavar="FILE", help=told)
    add("--inventory", type=Path, action="append", default=[], metavar="FILE", help=INVENTORY_HELP)
    workers.add(parser)
    trials.add_outputs(parser, "size")
    parser.set_defaults(func=run)


@site_options.guarded
def run(arguments: argparse.Namespace) -> int:
    """Play the candidates, and print or write the break-even curve."""
    if arguments.jobs < 2:
        raise BadInput(f"--jobs is {arguments.jobs}; allowed is 2 or more")
    if arguments.inventory and not arguments.halls:
        raise BadInput("--inventory says what nodes could take in, which is asked with --halls: give that, too")
    idle = measured_idle(arguments.efficiency) if arguments.efficiency else None
    nodes, inventories = counts(arguments.nodes), upgrades.inventories(arguments.inventory)
    declared = declared_site.declared(arguments.config, arguments.scheduler)
    config = valid.valid(arguments.config) if arguments.halls else None
    if config:
        upgrades.known(config, inventories, arguments.config)
    pool, told = size_report.cheapest(size_report.for_all(declared), arguments.config)
    rented, source = arguments.rented_usd_per_gpu_hour, "--rented-usd-per-gpu-hour"
    if rented is None:
        rented, source = told, f"pool {pool.name}, prices of {local_time.prices_of(declared.prices_as_of)}"
    if rented is None:
        raise BadInput(f"{arguments.config}: no pool has a known price on demand; give --rented-usd-per-gpu-hour")
    try:
        prices = Prices(arguments.owned_usd_per_gpu_hour, rented, arguments.reserved_usd_per_gpu_hour)
        wanted = WaitGoal(arguments.wait_p50, arguments.wait_p95)
    except SizingError as error:
        raise BadInput(str(error)) from None
    trace = trials.read(arguments.trace)
    trials.make(arguments.out)
    part, cloud = sizing.sample(trace, arguments.jobs), replace(declared.cloud, pools=(pool,))
    home, tell = declared.home, trials.bar(sys.stderr, "candidates")
    also = (home.nodes,) if config else ()
    try:
        with workers.workers(arguments.on) as where:
            sized = sizing.size(part, home, declared.policy, cloud, prices, wanted, nodes, tell, also, where.each)
    except (SizingError, ValueError) as error:
        raise BadInput(f"{arguments.trace}: {error}") from None
    said = size_report.as_json(sized) | {
        "trace": arguments.trace.name,
        "jobs": len(trace),
        "pool": pool.name,
        "instance_type": pool.instance_type,
        "gpus_per_node": home.gpus,
        "wanted": asdict(wanted),
        "usd_per_gpu_hour": asdict(prices),
        "rented_price_from": source,
        "unlike_simulate": size_report.unlike_simulate(trace, part, declared.cloud.pools, pool, wanted, source),
    }
    if idle:
        said["idle"] = size_report.idle(sized, *idle)
    if config:
        said["growth"] = growth.of(
            sized.candidates,
            sized.best,
            home.nodes,
            lambda more: upgrades.placed(config, more, home.gpus),
            upgrades.upgrades(config, inventories),
        )
    if arguments.out:
        trials.write(arguments.out, "size", said, size_report.picture(sized), size_report.lines(said))
    print(json.dumps(said) if arguments.json else "\n".join(size_report.lines(said)))
    return 0


def measured_idle(path: Path) -> tuple[float, float]:
    """(measured GPU-hours, idle part of them) of a report of efficiency. Raises BadInput."""
    try:
        found = json.loads(path.read_text())["idle"]
        if found is None:
            raise BadInput(f"--efficiency {path}: none of its jobs was measured; take a window in which some were")
        hours, share = float(found["gpu_hours"]), float(found["share"])
    except OSError as error:
        raise BadInput(f"--efficiency {path} can't be read: {error.strerror}") from None
    except (ValueError, KeyError, TypeError):
        raise BadInput(f"--efficiency {path} isn't what `ironburst report --efficiency --json` prints") from None
    if not (hours > 0 and 0 <= share <= 1):
        raise BadInput(f"--efficiency {path}: idle has {share:g} of {hours:g} GPU-hours; allowed is 0 to 1 of some")
    return hours, share


def counts(text: str | None) -> list[int] | None:
    """The numbers of --nodes. Raises BadInput."""
    if text is None:
        return None
    words = [word.strip() for word in text.split(",")]
    if not all(word.isdigit() and int(word) <= 100_000 for word in words):
        allowed = "whole numbers from 0 to 100000 with commas between, such as 40,48,56"
        raise BadInput(f"--nodes is {text!r}; allowed are {allowed}")
    return sorted({int(word) for word in words})
