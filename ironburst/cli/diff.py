"""`ironburst diff STAGING PROD`: what differs between two environments, before one is promoted to the other."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from ironburst.cli import Subparsers
from ironburst.cli.site_options import guarded
from ironburst.config import lockfile
from ironburst.config.models import ClusterConfig
from ironburst.config.valid import valid
from ironburst.plan.difference import Difference, difference, of_images, of_locks
from ironburst.software.lock import LockError
from ironburst.system.bad_input import BadInput
from ironburst.wiring import clouds


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
    both = valid(left), valid(right)
    found = [*_images(arguments.images, both), *of_locks(_lock(left), _lock(right)), *difference(*both)]
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


def _images(files: list[Path] | None, declared: Sequence[ClusterConfig]) -> list[Difference]:
    return of_images(*(_of_pools(*each) for each in zip(files, declared, strict=True))) if files else []


def _of_pools(file: Path, declared: ClusterConfig) -> dict[str, str]:
    """Pool -> image, as one of its clouds lists them."""
    rows = [its.provider.image_ids for its in clouds.declared(declared) if its.provider.image_ids] or [clouds.EXAMPLE]
    whys: list[Exception] = []
    for written in rows:
        try:
            return written.of_pools(file.read_text())
        except (OSError, ValueError) as error:
            whys.append(error)
    listed = " or ".join(f"`{written.LISTED_BY}`" for written in rows)
    raise BadInput(f"{file} isn't what {listed} prints ({whys[0]})")


def _said(value: Any) -> str:
    return "-" if value is None else ", ".join(map(str, value)) if isinstance(value, list) else str(value)
