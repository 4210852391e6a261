"""The `ironburst` command. One module a verb: each has add_parser(subparsers), which sets `func`, a function
of the arguments. What verbs share: site_options (the controller's), playbook_options (converge, image), trials
and stack_file (simulate, fit, size, replay).

Exit codes of every verb: 0 done, 1 a crash (a bug), 2 bad input, 130 stopped by Ctrl-C;
what a verb adds is in its own --help and in docs/reference/cli.md.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Sequence
from typing import TypeAlias

import argcomplete

from ironburst import __version__
from ironburst.cli import crash

Subparsers: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"
"""What a verb adds its parser to; argparse has no public name for it."""

VERBS = (
    "help",
    "catalog",
    "init",
    "validate",
    "lock",
    "packages",
    "mirror",
    "diff",
    "plan",
    "hall",
    "document",
    "publish",
    "converge",
    "image",
    "node",
    "discover",
    "health",
    "slurm",
    "status",
    "explain",
    "serve",
    "tick",
    "run",
    "reap",
    "report",
    "replay",
    "simulate",
    "fit",
    "size",
    "shares",
    "doctor",
    "lab",
)


def parser(verbs: Sequence[str] = VERBS) -> argparse.ArgumentParser:
    """The command's parser with these verbs alone: each loads its own libraries."""
    top = argparse.ArgumentParser(
        prog="ironburst", description="One declaration for the GPU nodes you own and the GPU nodes you rent."
    )
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
    """Run one verb. A crash is told in one sentence, with exit code 1; Ctrl-C ends with 130."""
    if "_ARGCOMPLETE" in os.environ:
        complete()
    argv = sys.argv[1:] if argv is None else argv
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
