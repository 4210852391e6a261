"""`ironburst diff STAGING PROD`: what differs between two environments, before one is promoted to the other."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from ironburst.cli import Subparsers
from ironburst.cli.site_options import guarded
from ironburst.config import lockfile
from ironburst.config.valid import valid
from ironburst.plan.difference import Difference, difference, of_images, of_locks
from ironburst.software.lock import LockError
from ironburst.system.bad_input import BadInput
from ironburst.wiring import clouds
from ironburst.wiring.provider import ImageIds


def add_parser(subparsers: Subparsers) -> None:
    """The verb and its options."""
    parser = subparsers.add_parser(
        "diff",
        description="What differs between two stacks in image, lock and config, in that order. Names, addresses and "
        "references of secrets always differ: they are counted (--all: listed). Exit code 0: said; 2: bad input.",
        epilog="example: ironburst diff staging prod",
    )
    for name in ("left", "right"):
        parser.add_argument(name, help="a stack file, or the name of a stack in stacks/")
    told = f"of `{clouds.EXAMPLE.LISTED_BY} {clouds.EXAMPLE.ARGUMENTS}`, one of each"
    parser.add_argument("--images", nargs=2, type=Path, metavar="FILE", help=told)
    parser.add_argument("--all", action="store_true", help="also what is each environment's own")
    parser.add_argument("--json", action="store_true", help="everything as JSON: section, where, left, right, own")
    parser.set_defaults(func=run)


@guarded
def run(arguments: argparse.Namespace) -> int:
    """Compare and print."""
    left, right = _path(arguments.left), _path(arguments.right)
    of_left = valid(left)
    images = _images(arguments.images, clouds.declared(of_left)[0][0].image_ids or clouds.EXAMPLE)
    found = [*images, *of_locks(_lock(left), _lock(right)), *difference(of_left, valid(right))]
    if arguments.json:
        print(json.dumps([asdict(each) for each in found], indent=1, default=str))
        return 0
    shown = [each for each in found if arguments.all or not each.own]
    if shown:
        table = Table("", "", arguments.left, arguments.right, box=None)
        for each in shown:
            table.add_row(each.section, each.where, _said(each.left), _said(each.right))
        Console(soft_wrap=False).print(table)
    hidden = len(found) - len(shown)
    rest = f"; {hidden} values of their own differ, too (--all)" if hidden else ""
    print(f"{len(shown)} differences{rest}")
    return 0


def _path(given: str) -> Path:
    """Of a stack file, or of a stack's name. Raises BadInput."""
    named = Path("stacks", f"Pulumi.{given}.yaml")
    path = Path(given) if Path(given).exists() else named
    if not path.exists():
        raise BadInput(f"{given} is no stack file, and there is no {named}: give the path of one, or its stack's name")
    return path


def _lock(stack_file: Path) -> Any:
    try:
        return lockfile.read(lockfile.path_of_lock(stack_file))
    except LockError as error:
        raise BadInput(f"{error}; {lockfile.restore(stack_file)}") from None


def _images(files: list[Path] | None, written: ImageIds) -> list[Difference]:
    return of_images(*(_of_pools(file, written) for file in files)) if files else []


def _of_pools(file: Path, written: ImageIds) -> dict[str, str]:
    """Pool -> image."""
    try:
        return written.of_pools(file.read_text())
    except (OSError, ValueError) as error:
        raise BadInput(f"{file} isn't what `{written.LISTED_BY}` prints ({error})") from None


def _said(value: Any) -> str:
    return "-" if value is None else ", ".join(map(str, value)) if isinstance(value, list) else str(value)
