"""`ironburst job ID`: what a job made of its GPUs; also when it has ended, and its nodes no longer exist."""

from __future__ import annotations

import argparse
import json
import sys
from contextlib import closing

from ironburst.cli import Subparsers, site_options
from ironburst.controller import job_report
from ironburst.document import DocumentError
from ironburst.system import terminal
from ironburst.system.bad_input import BadInput


def add_parser(subparsers: Subparsers) -> None:
    """The verb's arguments and help."""
    parser = subparsers.add_parser(
        "job",
        description="How busy a job's GPUs were, their SMs and tensor cores, memory, power, energy, NVLink, and what "
        "it cost: of each of its runs, GPU by GPU, with advice where its source can be named. The figures are those of "
        "the site's Prometheus (`monitoring.url`), asked for at the job's end and kept for good. "
        + site_options.EXIT_CODES,
        epilog="example: ironburst job 4711",
    )
    told = "its number; N_M, a task of an array; N of an array, all of its tasks; or its name as `status` shows it"
    parser.add_argument("job", help=told)
    site_options.add(parser, needs_scheduler=False)
    parser.set_defaults(func=run)


@site_options.guarded
def run(arguments: argparse.Namespace) -> int:
    """Print it."""
    try:
        pue = site_options.read_document(arguments).monitoring.pue
    except (BadInput, DocumentError):  # only for the PUE
        if arguments.document:
            raise
        pue = None
    with closing(site_options.open_ledger(arguments)) as ledger:
        said = job_report.gather(ledger, arguments.job, pue)
    if arguments.json:
        print(json.dumps(said))
    else:
        print("\n".join(job_report.lines(said, terminal.width(), sys.stdout.isatty())))
    return 0
