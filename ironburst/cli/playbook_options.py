"""What the verbs that run playbooks (converge, image) have in common: what they are given, how they say progress."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

from ironburst.adapters.ansible import REPOSITORY


def check_checkout() -> None:
    """Raises ValueError where ironburst is installed without its playbooks."""
    if not (REPOSITORY / "playbooks" / "site.yml").is_file():
        raise ValueError(
            "this verb runs playbooks, and they aren't installed with the command: "
            "in a checkout of ironburst run `make setup`, then .venv/bin/ironburst there"
        )


def document_path(arguments: argparse.Namespace) -> Path:
    """Where the ClusterDocument is. Raises ValueError if none is named."""
    given = arguments.document or os.environ.get("IRONBURST_DOCUMENT")
    if not given:
        raise ValueError(
            "no ClusterDocument is named: "
            "give --document PATH or set IRONBURST_DOCUMENT (`ironburst publish` writes one)"
        )
    return Path(given)


def check_inventory(folder: Path) -> None:
    """Raises ValueError if the folder is no inventory of an environment."""
    if not (folder / "stack.yml").is_file():
        raise ValueError(f"{folder} is no inventory of this repository: it has no stack.yml; inventory/lab has one")


def progress(arguments: argparse.Namespace) -> Callable[[str], None]:
    """Prints lines with the seconds since now; with --json to stderr, for stdout is the result's."""
    started = time.monotonic()
    stream = sys.stderr if arguments.json else sys.stdout

    def say(line: str) -> None:
        print(f"{time.monotonic() - started:7.1f} s  {line}", file=stream, flush=True)

    return say
