"""`ironburst report`: what GPU-hours cost (ironburst.cli.cost); with --shadow, what a controller in shadow saw, and
what renting would have made of it.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from dataclasses import asdict
from pathlib import Path

from ironburst.cli import Subparsers, cost, site_options, trials, waiting
from ironburst.controller import declared_site, recorder
from ironburst.controller.recorder import RecordError
from ironburst.document import of_stack
from ironburst.nodes.naming import SCHEDULERS
from ironburst.replay import results, seen, simulation_report
from ironburst.replay.formats import TraceError
from ironburst.system.bad_input import BadInput

DESCRIPTION = (
    "GPU-hours and dollars, at home and rented, by account, user, job, pool, cloud or day: from the ledger and Slurm's "
    "sacct; "
    "the waits that were reached; the estimates against the bill, each difference explained. With --shadow: "
    "what `ironburst run --shadow` saw: its jobs, as they started and ended, played with rent, as `simulate` plays "
    "a trace, for whom it would have rented, for how much, and what the waits would have become. The ticks of a "
    f"controller that rents can be reported on, too. {site_options.EXIT_CODES}"
)


def add_parser(subparsers: Subparsers) -> None:
    """The verb and its options."""
    parser = subparsers.add_parser(
        "report",
        description=DESCRIPTION,
        epilog="examples: ironburst report --from 2026-03-01 --to 2026-04-01 --by account --bill march.csv.gz; "
        "ironburst report --shadow --document /srv/ironburst/prod.json --out last-week",
    )
    parser.add_argument("--shadow", action="store_true", help="what renting would have made of the jobs that were seen")
    told = "recorded ticks (default: those of the shadow, beside its ledger)"
    parser.add_argument("folder", type=Path, nargs="?", metavar="DIR", help=told)
    told = "home, pools and policy are this file's (default: the document's)"
    parser.add_argument("--config", type=Path, metavar="STACK_FILE", help=told)
    parser.add_argument("--scheduler", choices=tuple(SCHEDULERS), help="whose queue, where the site has both")
    told = "by account: GPU-hours, how busy they were, how many were idle and what that cost; of jobs that ended then"
    parser.add_argument("--efficiency", action="store_true", help=told)
    site_options.add(parser)
    cost.add_options(parser)
    trials.add_out(parser, "shadow")
    parser.set_defaults(func=run)


@site_options.guarded
def run(arguments: argparse.Namespace) -> int:
    """The money; or play what was seen, and print what it comes to. A damaged file of ticks is reported, and left
    out.
    """
    cost.check(arguments)
    if arguments.efficiency:
        return cost.efficiency(arguments)
    if not arguments.shadow:
        return cost.run(arguments)
    where = arguments.config or arguments.document or "the document"
    cluster = of_stack.document(arguments.config) if arguments.config else site_options.read_document(arguments)
    partition = declared_site.chosen(cluster, str(where), arguments.scheduler).home_partition
    declared = declared_site.declared_in(cluster, str(where), arguments.scheduler)
    folder = arguments.folder or site_options.shadow_ledger_path(arguments).with_name("ticks")
    trials.make(arguments.out)
    damaged: list[RecordError] = []
    began = time.monotonic()
    try:
        with waiting.told("reading the ticks"):
            trace = seen.trace((tick.snapshot for tick in recorder.ticks(folder, damaged.append)), partition)
    except TraceError as error:
        raise BadInput(f"{folder}: {error}") from None
    for wrong in damaged:
        print(f"ironburst: {wrong}", file=sys.stderr)
    played = simulation_report.played_on(trace, declared, trials.bar(sys.stderr, "jobs"))
    said = simulation_report.gather(trace, declared, played)
    said["home_only"] = simulation_report.home_only(trace, declared)
    said |= {"trace": str(folder), "config": str(where), "wall_s": time.monotonic() - began, "bound": None}
    said["damaged"] = [str(wrong) for wrong in damaged]
    of_accounts = results.by_account(trace, played)
    said["accounts"] = [asdict(each) for each in of_accounts]
    printed = [*simulation_report.lines(said), *simulation_report.by_account(of_accounts)]
    if arguments.out:
        trials.write(arguments.out, "shadow", said, simulation_report.picture(trace, declared, played), printed)
    print(json.dumps(said) if arguments.json else "\n".join(printed))
    return 2 if damaged else 0
