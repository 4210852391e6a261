"""`ironburst replay`: the controller's recorded rounds through today's policy, or through a candidate's."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ironburst.burst import Policy, explain
from ironburst.cli import site_options, stack_file
from ironburst.cli.site_options import BadInput
from ironburst.controller import policy_view, recorder
from ironburst.controller.recorder import RecordError
from ironburst.replay import ticks
from ironburst.replay.ticks import Act, Comparison, Difference, Side

SHOWN = 20  # jobs, without --json


def add_parser(subparsers: argparse._SubParsersAction) -> None:
    parser = subparsers.add_parser(
        "replay",
        help="recorded rounds decided again: what would have been different",
        description="Decide the controller's recorded rounds again, each from its snapshot as it was: which jobs today's policy decides "
        "otherwise, and what that is in money and hours. With --config it is a candidate's policy, decided beside the real one and never "
        "applied; the controller may go on meanwhile. A damaged file is told, the others are replayed, and the exit code is 2. "
        + site_options.EXIT_CODES,
        epilog="example: ironburst replay /var/lib/ironburst/rounds --config stacks/Pulumi.candidate.yaml",
    )
    parser.add_argument(
        "folder", type=Path, nargs="?", metavar="DIR", help="rounds, or one file of them (default: beside the ledger)"
    )
    parser.add_argument(
        "--config", type=Path, metavar="STACK_FILE", help="decide by this file's policy (default: each round's own)"
    )
    site_options.add(parser, slurm=False, needs_document=False)
    parser.set_defaults(func=run)


@site_options.guarded
def run(arguments: argparse.Namespace) -> int:
    policy: Policy | None = policy_view.policy(stack_file.document(arguments.config)) if arguments.config else None
    folder = arguments.folder or site_options.ticks_path(arguments)
    damaged: list[RecordError] = []
    found = ticks.compare(recorder.ticks(folder, damaged.append), policy)
    if not found.rounds and not damaged:
        raise BadInput(f"there is no round in {folder} yet: give the folder `rounds` of a controller that has run")
    for error in damaged:
        print(f"ironburst: {error}", file=sys.stderr)
    a_day = recorder.usage(folder).mb_a_day if folder.is_dir() else None
    said = as_json(found) | {"mb_a_day": a_day, "damaged": [str(error) for error in damaged]}
    print(json.dumps(said) if arguments.json else "\n".join(lines(found, a_day)))
    return 2 if damaged else 0


def as_json(found: Comparison) -> dict[str, Any]:
    return {
        "rounds": found.rounds,
        "looks_between": found.looks,
        "from_s": found.from_s,
        "to_s": found.to_s,
        "clock_back": found.clock_back,
        "rounds_that_differ": found.differ,
        "first_difference": _difference(found.first) if found.first else None,
        "jobs": [_difference(one) for one in found.jobs],
        "recorded": _side(found.recorded),
        "replayed": _side(found.replayed),
        "committed_usd_difference": found.replayed.usd - found.recorded.usd,
        "hours": asdict(found.hours),
    }


def _difference(one: Difference) -> dict[str, Any]:
    return {
        "at_s": one.at_s,
        "job": one.job,
        "between_rounds": one.between,
        "recorded": asdict(one.recorded),
        "replayed": asdict(one.replayed),
    }


def _side(side: Side) -> dict[str, Any]:
    """`waits` and `infeasible` count once a job and round, the others once each."""
    return {
        "launched_for": side.rents,
        "assigned": side.gives,
        "waits": side.waits,
        "infeasible": side.infeasible,
        "releases": side.releases,
        "committed_usd": side.usd,
    }


def lines(found: Comparison, a_day: float | None) -> list[str]:
    if not found.rounds:
        return ["no round could be read"]
    size = "" if a_day is None else f", {a_day:.2g} MB a day"
    out = [
        f"{explain.plural(found.rounds, 'round')} from {site_options.at(found.from_s)} to {site_options.at(found.to_s)}{size}"
    ]
    if found.clock_back:
        out.append(f"the clock went back {explain.plural(found.clock_back, 'time')}")
    if not found.first and not found.differ:
        return [*out, "nothing would have been decided otherwise"]
    out.append(f"{explain.plural(len(found.jobs), 'job')} otherwise, in {explain.plural(found.differ, 'round')}")
    out += [f"  {_line(one)}" for one in found.jobs[:SHOWN]]
    out += [f"  and {len(found.jobs) - SHOWN} more: --json has all"] if len(found.jobs) > SHOWN else []
    out += ["", f"{'':24}{'recorded':>14}{'replayed':>14}"]
    for name, value in _side(found.recorded).items():
        theirs = _side(found.replayed)[name]
        out.append(f"{name.replace('_', ' '):24}{_number(name, value):>14}{_number(name, theirs):>14}")
    hours, unknown = found.hours, explain.plural(found.hours.unknown, "job")
    out += ["", f"jobs that both rent for: {hours.sooner_h:.1f} h sooner and {hours.later_h:.1f} h later in all"]
    out += [f"jobs that only the replay rents for: {hours.saved_h:.1f} h less wait; of {unknown} no record can tell"]
    return out


def _number(name: str, value: float) -> str:
    return f"{value:,.2f}" if name.endswith("usd") else f"{value:,}"


def _line(one: Difference) -> str:
    return f"{site_options.at(one.at_s)} job {one.job}: {_words(one.recorded)}; replayed: {_words(one.replayed)}"


def _words(act: Act) -> str:
    money = f" ({explain.usd(act.usd)})" if act.usd else ""
    return f"{act}{money}"
