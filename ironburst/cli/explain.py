"""`ironburst explain JOB`: what was decided for one job, when and why; also after it has ended."""

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path

from ironburst.cli import Subparsers, explain_own, site_options
from ironburst.controller import job_story
from ironburst.controller.ledger import LedgerError, NotForYou
from ironburst.system import terminal
from ironburst.system.bad_input import BadInput


def add_parser(subparsers: Subparsers) -> None:
    """The verb's arguments and help."""
    parser = subparsers.add_parser(
        "explain",
        description="Each decision about one job over time, its rented nodes and their cost; also after it has ended. "
        "Who may not read the ledger, or is on a login node, is told what Slurm shows. " + site_options.EXIT_CODES,
        epilog="example: ironburst explain 4711",
    )
    parser.add_argument(
        "job",
        nargs="?",
        help="its number; N_M, a task of an array; N+M, a part of a heterogeneous job; N of one of these (or N_[..] as "
        "squeue has it), all of them; or its name as `status` shows it (of several the last)",
    )
    parser.add_argument("--mine", action="store_true", help="your own jobs and what was rented for them, by Slurm")
    site_options.add(parser, needs_scheduler=False, needs_document=False)
    parser.set_defaults(func=run)


@site_options.guarded
def run(arguments: argparse.Namespace) -> int:
    """Print one job's story; to users who may not read the ledger, what Slurm shows of it."""
    if arguments.mine or not arguments.job:
        if not arguments.mine or arguments.job:
            raise BadInput("write one job, or --mine for all of your own")
        return explain_own.mine(arguments.json)
    try:
        ledger = site_options.open_ledger(arguments)
    except NotForYou:
        return explain_own.one(arguments.job, arguments.json)
    except LedgerError:
        if arguments.ledger or os.environ.get("IRONBURST_LEDGER") or Path(site_options.LEDGER).exists():
            raise
        return explain_own.one(arguments.job, arguments.json)  # a login node
    said = [job_story.gather(ledger, job, time.time()) for job in job_story.numbers(ledger, arguments.job)]
    if arguments.json:
        print(json.dumps(said[0] if len(said) == 1 else {"jobs": said}))
    else:
        print("\n\n".join("\n".join(terminal.wrapped(job_story.lines(each), terminal.width())) for each in said))
    return 0
