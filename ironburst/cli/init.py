"""`ironburst init`: a stack file from answers to questions (new_site), or beside a Slurm that runs already."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from ironburst.adapters.slurm.site import UnreadableSite, read
from ironburst.cli import Subparsers, new_site
from ironburst.cli.arguments import Keyed
from ironburst.cli.site_options import guarded
from ironburst.initial import from_slurm, from_stack
from ironburst.system.bad_input import BadInput


def add_parser(subparsers: Subparsers) -> None:
    """The verb and its options."""
    parser = subparsers.add_parser(
        "init",
        description="Write a stack file: from nothing, or with --from-slurm beside a Slurm that runs already, whose "
        "nodes stay as they are (managed: false). What isn't given is asked for on a terminal. With --from: a new "
        "environment, with its name, references and cloud network; what is still the other's is marked in the file. "
        "Exit code 0: written, and valid; 2: bad input.",
        epilog="examples: ironburst init; ironburst init --yes --name hall1 --nodes 4 --platform dgx-h100 --addresses "
        "10.0.0.[11-14] --head 10.0.0.10 --region none; ironburst init --from-slurm answers --name prod",
    )
    source = parser.add_mutually_exclusive_group()
    source.add_argument("--from-slurm", type=Path, metavar="FOLDER", help="saved answers of a Slurm's --json")
    source.add_argument("--from", dest="from_stack", type=Path, metavar="STACK_FILE", help="of another environment")
    parser.add_argument("--name", help="of the stack; the file is Pulumi.NAME.yaml")
    parser.add_argument("--head", help="address of the scheduler's host, or of one that is there its name as well")
    parser.add_argument("--partition", help="of the GPU nodes (default: the one that has most of them, or home)")
    parser.add_argument(
        "--platform",
        action=Keyed,
        default=[],
        metavar="PLATFORM",
        help="what the nodes are; with --from-slurm TYPE=PLATFORM, what nodes with this gres type are",
    )
    parser.add_argument("--network", help="of the nodes, as in 10.0.0.0/22 (default: from their addresses)")
    parser.add_argument("--region", help="of a cloud, as in us-east-1, or none: rent nothing")
    parser.add_argument("--rent", metavar="TYPE=NODES", help="instance type, and how many at most (default: home's GPU, 2)")
    parser.add_argument("--budget", metavar="USD", help="the most for rented nodes in a month")
    parser.add_argument("--wait", help="mean wait that jobs should have (default: 20m)")
    parser.add_argument(
        "--os", help=f"system of the nodes (default: {from_slurm.SYSTEMS[0]}, or one that has this Slurm)"
    )
    parser.add_argument("--driver", default="580", help="NVIDIA's branch (default: %(default)s)")
    parser.add_argument("--output", type=Path, help="default: stacks/Pulumi.NAME.yaml, or Pulumi.NAME.yaml")
    parser.add_argument("--force", action="store_true", help="replace a file that is there")
    new_site.add(parser)
    parser.set_defaults(func=run)


@guarded
def run(arguments: argparse.Namespace) -> int:
    """Write the file, and say what was left out."""
    if arguments.from_stack:
        _ask(arguments, "name", "name of the stack")
        made, left = from_stack.make(arguments.from_stack, arguments.name, arguments.output, arguments.force)
        print("\n".join(made))
        print("\n".join(left), file=sys.stderr)
        return 0
    if arguments.from_slurm is None:
        return new_site.run(arguments)
    try:
        site = read(arguments.from_slurm)
    except UnreadableSite as error:
        raise BadInput(str(error)) from None
    arguments.wait = arguments.wait or "20m"
    for key, words in (
        ("name", "name of the stack"),
        ("head", "address of slurmctld's host"),
        ("region", "region of AWS to rent in"),
        ("budget", "USD a month"),
    ):
        _ask(arguments, key, words)
    path = new_site.output(arguments, arguments.name)
    text, left_out = from_slurm.text(arguments, site)
    new_site.write(path, text, left_out)
    print(f"{path}: valid; next: `ironburst lock {path}` and `ironburst slurm snippet {path}`")
    return 0


def _ask(arguments: argparse.Namespace, key: str, words: str) -> None:
    if getattr(arguments, key) is None:
        if arguments.yes or not sys.stdin.isatty():
            raise BadInput(f"--{key} is needed: {words}")
        setattr(arguments, key, input(f"{words}: ").strip())
    if key == "budget":
        try:
            arguments.budget = float(arguments.budget)
        except ValueError:
            raise BadInput(f"--{key}: {arguments.budget!r} is no number") from None
