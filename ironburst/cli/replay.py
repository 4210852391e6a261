"""`ironburst replay`: the controller's recorded ticks through today's policy, or through a candidate's."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from ironburst.burst import Policy
from ironburst.cli import Subparsers, site_options, trials, waiting
from ironburst.controller import policy_view, recorder
from ironburst.controller.recorder import RecordError
from ironburst.document import of_stack
from ironburst.replay import ticks, ticks_report
from ironburst.system.bad_input import BadInput

DESCRIPTION = (
    "Decide the controller's recorded ticks again, each from its snapshot as it was: which jobs today's policy decides "
    "otherwise, and what that is in money and hours. With --config it is a candidate's policy, decided beside the real "
    "one and never applied; the controller may go on meanwhile. A damaged file is told, the others are replayed, and "
    f"the exit code is 2. {site_options.EXIT_CODES}"
)


def add_parser(subparsers: Subparsers) -> None:
    """The verb and its options."""
    parser = subparsers.add_parser(
        "replay",
        description=DESCRIPTION,
        epilog="example: ironburst replay /var/lib/ironburst/ticks --config stacks/Pulumi.candidate.yaml",
    )
    folder_help = "recorded ticks, or one file of them (default: beside the ledger)"
    parser.add_argument("folder", type=Path, nargs="?", metavar="DIR", help=folder_help)
    config_help = "decide by this file's policy (default: each tick's own)"
    parser.add_argument("--config", type=Path, metavar="STACK_FILE", help=config_help)
    site_options.add(parser, needs_scheduler=False, needs_document=False)
    trials.add_out(parser, "replay")
    parser.set_defaults(func=run)


@site_options.guarded
def run(arguments: argparse.Namespace) -> int:
    """Decide the ticks again, and print how that differs."""
    policy: Policy | None = policy_view.policy(of_stack.document(arguments.config)) if arguments.config else None
    folder = arguments.folder or site_options.ticks_path(arguments)
    trials.make(arguments.out)
    damaged: list[RecordError] = []
    with waiting.told("deciding the ticks again"):
        comparison = ticks.compare(recorder.ticks(folder, damaged.append), policy)
    if not comparison.ticks and not damaged:
        raise BadInput(f"there is no tick in {folder} yet: give the folder `ticks` of a controller that has run")
    for error in damaged:
        print(f"ironburst: {error}", file=sys.stderr)
    a_day = recorder.usage(folder).mb_a_day if folder.is_dir() else None
    said = ticks_report.as_json(comparison) | {"mb_a_day": a_day, "damaged": [str(error) for error in damaged]}
    if arguments.out:
        printed = ticks_report.lines(comparison, a_day)
        trials.write(
            arguments.out, "replay", said, ticks_report.picture(comparison), [f"{folder}: {printed[0]}", *printed[1:]]
        )
    print(json.dumps(said) if arguments.json else "\n".join(ticks_report.lines(comparison, a_day)))
    return 2 if damaged else 0
