"""`ironburst lab`: the commands of the lab, where there is one: in a checkout. They are a program of their own, for the
product never imports the lab (tests/test_layers.py).
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from ironburst.cli import Subparsers

CHECKOUT = Path(__file__).resolve().parents[2]
# every word is the lab's own, its options too
NO_OPTIONS = "\0"


def add_parser(subparsers: Subparsers) -> None:
    """The verb's arguments and help."""
    parser = subparsers.add_parser(
        "lab",
        description="In a checkout: the commands of the lab, a whole site on one machine (status, shell, submit, wait, "
        "fault, price, down ...), as `python -m lab` has them; `ironburst lab --help` lists them. Exit codes: those of "
        "the lab's command; 2: there is no lab here.",
        epilog="example: ironburst lab shell head squeue",
        prefix_chars=NO_OPTIONS,
        add_help=False,
    )
    parser.add_argument("words", nargs=argparse.REMAINDER, metavar="COMMAND ...", help="the lab's command")
    parser.set_defaults(func=run)


def run(arguments: argparse.Namespace) -> int:  # noqa: RET503 - execve doesn't return
    """Become the lab's program."""
    if not (CHECKOUT / "lab" / "__main__.py").is_file():
        print(
            f"ironburst lab: there is no lab beside {CHECKOUT / 'ironburst'}: it comes with a checkout of ironburst, "
            "not with the installed package; call it there (`make setup`, then `.venv/bin/ironburst lab`)",
            file=sys.stderr,
        )
        return 2
    path = os.pathsep.join(filter(None, [str(CHECKOUT), os.environ.get("PYTHONPATH")]))
    # -P: a folder `lab` where the caller stands isn't meant
    program = [sys.executable, "-P", "-m", "lab", *(arguments.words or ["--help"])]
    sys.stdout.flush()
    os.execve(sys.executable, program, os.environ | {"PYTHONPATH": path})
