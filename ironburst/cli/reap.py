"""`ironburst reap`: end instances of this cluster that nobody leases."""

from __future__ import annotations

import argparse
import json

from ironburst.adapters.aws import Aws
from ironburst.cli import site_options
from ironburst.controller import lock, reaper
from ironburst.controller.loop import SystemClock
from ironburst.controller.tick import Controller


def add_parser(subparsers: argparse._SubParsersAction) -> None:
    parser = subparsers.add_parser(
        "reap",
        help="end rented instances that no lease knows",
        description="End rented instances of this cluster that no open lease knows. Every tick does this too; young ones and "
        f"ones with a job on them are spared. {site_options.EXIT_CODES}",
        epilog="example: ironburst reap --dry-run",
    )
    site_options.add(parser)
    parser.add_argument("--dry-run", action="store_true", help="only say what would be ended")
    parser.add_argument(
        "--grace",
        type=float,
        default=reaper.GRACE_S,
        metavar="SECONDS",
        help="spare younger ones (default: %(default)s)",
    )
    parser.set_defaults(func=run)


@site_options.guarded
def run(arguments: argparse.Namespace) -> int:
    document, scheduler = site_options.read_document(arguments), site_options.slurm(arguments)
    with lock.held(site_options.ledger_path(arguments)):
        ledger = site_options.open_ledger(arguments)
        controller = Controller(scheduler, Aws(document.region or "us-east-1"), ledger, SystemClock())
        site, observation = controller.site(document), scheduler.observe()
        found = [i.id for i in reaper.orphans(site, observation, arguments.grace)]
        if not arguments.dry_run:
            found = reaper.reap(site, observation, arguments.grace)
        ledger.close()
    if arguments.json:
        print(json.dumps({"orphans": found, "ended": not arguments.dry_run}))
    else:
        verb = "would be ended" if arguments.dry_run else "ended"
        print("\n".join(f"{id} {verb}" for id in found) or "no instance without a lease")
    return 0
