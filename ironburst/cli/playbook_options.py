"""What the verbs that run playbooks (converge, image) have in common: what they are given, how they say progress."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

from ironburst.adapters.ansible import REPOSITORY
from ironburst.document import ClusterDocument, read


def add_declaration(parser: argparse.ArgumentParser) -> None:
    """The options that `declaration` reads."""
    parser.add_argument("--document", type=Path, help="the published ClusterDocument (default: IRONBURST_DOCUMENT)")
    parser.add_argument("--inventory", type=Path, required=True, help="folder of an environment, as in inventory/lab")


def declaration(arguments: argparse.Namespace) -> tuple[Path, ClusterDocument]:
    """The document, and where it is. Raises ValueError or DocumentError: no checkout, no document, no inventory."""
    if not (REPOSITORY / "playbooks" / "site.yml").is_file():
        raise ValueError(
            "this verb runs playbooks, and they aren't installed with the command: "
            "in a checkout of ironburst run `make setup`, then .venv/bin/ironburst there"
        )
    given = arguments.document or os.environ.get("IRONBURST_DOCUMENT")
    if not given:
        raise ValueError(
            "no ClusterDocument is named: "
            "give --document PATH or set IRONBURST_DOCUMENT (`ironburst publish` writes one)"
        )
    if not (arguments.inventory / "stack.yml").is_file():
        raise ValueError(
            f"{arguments.inventory} is no inventory of this repository: it has no stack.yml; inventory/lab has one"
        )
    return Path(given), read(Path(given))


def progress(arguments: argparse.Namespace) -> Callable[[str], None]:
    """Prints lines with the seconds since now; with --json to stderr, for stdout is the result's."""
    started = time.monotonic()
    stream = sys.stderr if arguments.json else sys.stdout

    def say(line: str) -> None:
        print(f"{time.monotonic() - started:7.1f} s  {line}", file=stream, flush=True)

    return say
