"""`ironburst hall verify STACK_FILE`: are the cables where the declaration has them?"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

from ironburst.cli import Subparsers, site_options
from ironburst.cli.site_options import BadInput
from ironburst.config import halls
from ironburst.config.models import ClusterConfig
from ironburst.hall import seen_cables
from ironburst.hall.model import SPEEDS, Hall
from ironburst.hall.seen_cables import Difference

EPILOG = """\
Nothing is asked of the hall: give what these tools printed, on any node of the fabric (ibnetdiscover, as root) and on \
the nodes themselves (lldpctl -f json; the file is named as its node).

exit codes:
  0  every cable that could be seen is as declared
  2  bad input: the declaration, or a file that these tools don't print
  3  a cable isn't as declared

example:
  ibnetdiscover > fabric.txt
  ironburst hall verify stacks/Pulumi.prod.yaml --ibnetdiscover fabric.txt --lldp dgx01.json dgx02.json"""


def add_parser(verbs: Subparsers, usable: Callable[[Path], ClusterConfig]) -> None:
    """The verb's arguments and help. `usable` loads the declaration, and raises BadInput."""
    parser = verbs.add_parser(
        "verify",
        help="declared cables against what ibnetdiscover and LLDP saw",
        description="Hold the declared cables against what ibnetdiscover and LLDP saw: swapped plugs are named.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    option = parser.add_argument
    option("stack_file", type=Path, help="as in stacks/Pulumi.prod.yaml")
    option("--hall", metavar="NAME", help="the hall whose fabric it is; needed where several are declared")
    option("--ibnetdiscover", type=Path, metavar="FILE", help="output of ibnetdiscover")
    option("--lldp", type=Path, nargs="+", default=[], metavar="NODE.json", help="output of lldpctl -f json")
    option(
        "--hcas",
        type=lambda text: text.split(","),
        default=[],
        metavar="NAMES",
        help="a node's HCAs in the order ib1, ib2, ..., as in mlx5_0,mlx5_3; default: mlx5_0, mlx5_1, ...",
    )
    option("--json", action="store_true", help="machine-readable")
    parser.set_defaults(func=run, usable=usable)


@site_options.guarded
def run(arguments: argparse.Namespace) -> int:
    """Compare and print; the exit code."""
    if not arguments.ibnetdiscover and not arguments.lldp:
        raise BadInput("hall verify needs what was seen: give --ibnetdiscover FILE, or --lldp NODE.json ...")
    hall = _chosen(halls.declared(arguments.usable(arguments.stack_file)), arguments.hall)
    found = list(_fabric(arguments, hall)) + list(_ethernet(arguments, hall))
    if arguments.json:
        print(json.dumps({"hall": hall.name, "differences": [asdict(each) for each in found]}, indent=1))
    else:
        print("\n".join(each.sentence for each in found) or "every cable that could be seen is as declared")
    return 3 if found else 0


def _chosen(declared: tuple[Hall, ...], name: str | None) -> Hall:
    names = [hall.name for hall in declared]
    if name is None and len(names) == 1:
        return declared[0]
    if name not in names:
        given = f"--hall {name} is none of them" if name else "several halls are declared"
        raise BadInput(f"{given}: give --hall with one of {', '.join(names) or 'none, for no hall is declared'}")
    return declared[names.index(name)]


def _fabric(arguments: argparse.Namespace, hall: Hall) -> list[Difference]:
    if not arguments.ibnetdiscover:
        return []
    path = arguments.ibnetdiscover
    try:
        seen = seen_cables.as_declared(seen_cables.ibnetdiscover(_text(path)), hall, arguments.hcas)
    except seen_cables.Unreadable as error:
        raise BadInput(f"{path}: {error}") from None
    return seen_cables.compare(_of(hall, "infiniband"), seen)


def _ethernet(arguments: argparse.Namespace, hall: Hall) -> list[Difference]:
    seen: set[seen_cables.Link] = set()
    for path in arguments.lldp:
        if path.stem not in hall.device:
            raise BadInput(f"{path}: {path.stem} is no node of hall {hall.name}; name the file as its node: NODE.json")
        try:
            seen |= seen_cables.as_declared(seen_cables.lldp(path.stem, _text(path)), hall)
        except seen_cables.Unreadable as error:
            raise BadInput(f"{path}: {error}") from None
    asked = {path.stem for path in arguments.lldp}
    return seen_cables.compare(_of(hall, "ethernet"), seen, asked) if asked else []


def _of(hall: Hall, network: str) -> list[seen_cables.Link]:
    return [(cable.a, cable.b) for cable in hall.cables if SPEEDS[cable.speed].network == network]


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise BadInput(f"{path} can't be read: {error.strerror}") from None
