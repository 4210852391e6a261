"""The `ironburst` command. One module a verb: each has add_parser(subparsers), which sets `func`, a function
of the arguments. What verbs share: site_options (the controller's), playbook_options (converge, image), trials
and stack_file (simulate, fit, size, replay).

Exit codes of every verb: 0 done, 1 a crash (a bug), 2 bad input, 130 stopped by Ctrl-C;
what a verb adds is in its own --help and in docs/reference/cli.md.
"""

from __future__ import annotations

import argparse
import importlib
import io
import os
import sys
from collections.abc import Sequence
from typing import TypeAlias

import argcomplete

from ironburst import __version__
from ironburst.catalog.errors import nearest, suggested
from ironburst.cli import crash
from ironburst.cli.arguments import Parser

Subparsers: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"
"""What a verb adds its parser to; argparse has no public name for it."""

GROUPS = {
    "begin": ("init", "catalog", "discover", "simulate", "fit", "size", "lab"),
    "declare a site, and review changes": ("validate", "lock", "diff", "plan", "rights", "hall", "document", "publish"),
    "make nodes, and keep them": ("converge", "image", "node", "health", "packages", "mirror", "slurm"),
    "see what is going on, and why": (
        "status",
        "explain",
        "job",
        "logs",
        "serve",
        "report",
        "shares",
        "doctor",
        "monitoring",
    ),
    "run the controller": ("run", "receive", "tick", "reap", "replay"),
    "hold the renting": ("pause", "stop", "resume", "close", "open", "budget", "limit"),
    "help": ("help", "completion"),
}
"""The verbs by what they are for, as --help lists them: a verb is one by being named here."""
VERBS = tuple(verb for verbs in GROUPS.values() for verb in verbs)


def parser(verbs: Sequence[str] = VERBS) -> argparse.ArgumentParser:
    """The command's parser with only these verbs: each loads its own libraries."""
    top = Parser(prog="ironburst", description="One declaration for the GPU nodes you own and the GPU nodes you rent.")
    top.groups = GROUPS
    top.add_argument("--version", action="version", version=f"ironburst {__version__}")
    subparsers = top.add_subparsers(dest="verb", required=True, metavar="VERB")
    for verb in verbs:
        importlib.import_module(f"ironburst.cli.{verb}").add_parser(subparsers)
    return top


def complete() -> None:
    """Answer the shell, which asks what may stand at its cursor; ends the process. Whole verbs load their libraries."""
    line = os.environ.get("COMP_LINE", "")[: int(os.environ.get("COMP_POINT") or 0) or None]
    before = line.split()[:-1] if line and not line[-1].isspace() else line.split()  # the cursor's own word is open
    verb = before[1] if len(before) > 1 else ""
    argcomplete.autocomplete(parser([verb]) if verb in VERBS else _verbs_alone())


def _verbs_alone() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(prog="ironburst")
    top.add_argument("--version", action="store_true")
    subparsers = top.add_subparsers()
    for verb in VERBS:
        subparsers.add_parser(verb)
    return top


def main(argv: Sequence[str] | None = None) -> int:
    """Run one verb. A crash is reported in one sentence, with exit code 1; Ctrl-C ends with 130."""
    if "_ARGCOMPLETE" in os.environ:
        complete()
    argv = sys.argv[1:] if argv is None else argv
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a name that the terminal's locale can't write is no crash
    if argv and not argv[0].startswith("-") and argv[0] not in VERBS:
        near = suggested(nearest(argv[0], VERBS))
        print(f"ironburst: {argv[0]!r} is no verb: {near or '`ironburst help` lists them'}", file=sys.stderr)
        return 2
    asked = [argv[0]] if argv and argv[0] in VERBS else VERBS  # one verb starts without loading the others' libraries
    try:
        arguments = parser(asked).parse_args(argv)
        code = int(arguments.func(arguments))
        sys.stdout.flush()
        return code
    except KeyboardInterrupt:
        print(f"\nironburst {' '.join(argv[:1])}: stopped", file=sys.stderr)
        return crash.STOPPED
    except Exception as error:
        if isinstance(error, BrokenPipeError) and crash.reader_gone():
            crash.silenced()
            return 0
        return crash.told(" ".join(argv[:1]), error)
