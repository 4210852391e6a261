"""`ironburst reap`: end instances of this cluster that nobody leases."""

from __future__ import annotations

import argparse
import json
import sys

from ironburst.cli import Subparsers, site_options
from ironburst.controller import ownership, reaper, rebuild
from ironburst.controller.loop import SystemClock
from ironburst.controller.tick import Controller
from ironburst.nodes.naming import SCHEDULERS
from ironburst.wiring import clouds, schedulers


def add_parser(subparsers: Subparsers) -> None:
    """The verb's arguments and help."""
    parser = subparsers.add_parser(
        "reap",
        description="End rented instances of this cluster that no open lease knows. Every tick does this too; young "
        f"ones and ones with a job on them are spared. {site_options.EXIT_CODES}",
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
    """End orphans, or say which would be."""
    document = site_options.read_document(arguments)
    queue = schedulers.connect(arguments, document)
    ledger_of = site_options.copied_ledger if arguments.dry_run else site_options.own_ledger
    with ledger_of(arguments) as ledger:
        controller = Controller(queue, clouds.connect(document), ledger, SystemClock())
        site, observation = controller.site(document), queue.observe()
        for kind in observation.silent:
            print(f"ironburst: {SCHEDULERS[kind]} gives no answer: instances for it are spared", file=sys.stderr)
        for halt in site.silent.values():
            print(f"ironburst: {halt.why}: instances there are spared", file=sys.stderr)
        holder = ownership.holder(site)
        orphans = reaper.orphans(site, observation, arguments.grace)
        ids = [instance.id for instance in orphans if not holder or instance.owner != holder]
        if not arguments.dry_run:
            rebuild.run(site, observation, ownership.claim(site, first=True))
            ownership.say(site)
            ids = reaper.reap(site, observation, arguments.grace)
    if arguments.json:
        print(json.dumps({"orphans": ids, "ended": not arguments.dry_run}))
    else:
        verb = "would be ended" if arguments.dry_run else "ended"
        print("\n".join(f"{id} {verb}" for id in ids) or "no instance without a lease")
    return 0
