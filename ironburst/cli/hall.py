"""`ironburst hall plan|verify STACK_FILE`: can the declared hall be powered, cooled and cabled, what else would fit;
and is it cabled as it was declared. The verbs `metrics`, `power`, `cap` and `import` have modules of their own.
"""

from __future__ import annotations

import argparse
import functools
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path

from ironburst.cli import Subparsers, hall_cap, hall_import, hall_metrics, hall_power, site_options
from ironburst.config import declared_halls, halls
from ironburst.config.models import ClusterConfig
from ironburst.hall import netbox, pictures, plan, seen, tables, topology
from ironburst.hall.model import Violation
from ironburst.nodes import ranges
from ironburst.system.bad_input import BadInput

EPILOG = """\
exit codes:
  0  planned, and nothing is wrong
  2  a rule is broken (the plan is written all the same), or the declaration can't be used
  1  a bug

example:
  ironburst hall plan stacks/Pulumi.prod.yaml --html build/hall --csv build/hall"""

VERIFY_EPILOG = """\
exit codes:
  0  every cable that was seen is where it was declared
  2  one is not, or the input can't be used
  1  a bug

example:
  ssh head ibnetdiscover > ib.txt; ironburst hall verify stacks/Pulumi.prod.yaml --ibnetdiscover ib.txt"""


def add_parser(subparsers: Subparsers) -> None:
    """`ironburst hall` and its verbs."""
    parser = subparsers.add_parser(
        "hall",
        description="Power, cooling and cabling of the declared halls.",
    )
    verbs = parser.add_subparsers(dest="hall_verb", required=True, metavar="VERB")
    planned = verbs.add_parser(
        "plan",
        help="what is wrong, what else fits, pictures, bill of cables, Slurm's topology",
        description="Hold the declared halls against their rules, and say what else would fit, what must be capped and "
        "in which order nodes are powered on. Nothing but the stack file is read.",
        epilog=EPILOG,
    )
    option = planned.add_argument
    option("stack_file", type=Path, help="as in stacks/Pulumi.prod.yaml")
    option("--html", type=Path, metavar="DIR", help="write hall.html: rack elevations and cabling, to print")
    option("--csv", type=Path, metavar="DIR", help="write HALL-cables.csv, -ports.csv, -power.csv and -circuits.csv")
    option(
        "--netbox", type=Path, metavar="DIR", help="write HALL-netbox-*.csv, to import in the order of their numbers"
    )
    option("--topology", choices=("conf", "yaml"), help="print Slurm's topology.conf or topology.yaml instead")
    option("--json", action="store_true", help="machine-readable")
    planned.set_defaults(func=run)
    verified = verbs.add_parser(
        "verify",
        help="the declared cabling against what the network says",
        description="Hold the declared cables against what the network says, and name those that are swapped, "
        "elsewhere or without a link. Nothing is asked of the network: give what its tools printed.",
        epilog=VERIFY_EPILOG,
    )
    option = verified.add_argument
    option("stack_file", type=Path, help="as in stacks/Pulumi.prod.yaml")
    option("--ibnetdiscover", type=Path, metavar="FILE", help="what `ibnetdiscover` prints, as root on one host")
    lldp_help = "what `lldpctl -f json` prints on that host; may be given several times"
    option("--lldp", action="append", default=[], metavar="HOST=FILE", help=lldp_help)
    option(
        "--hcas",
        type=lambda text: text.split(","),
        default=[],
        metavar="NAMES",
        help="a node's HCAs in the order ib1, ib2, ..., as in mlx5_0,mlx5_3; needed where some aren't seen",
    )
    option("--hall", metavar="NAME", help="which hall, where several are declared")
    option("--json", action="store_true", help="machine-readable")
    verified.set_defaults(func=verify)
    hall_metrics.add_parser(verbs)
    hall_power.add_parser(verbs)
    hall_cap.add_parser(verbs)
    hall_import.add_parser(verbs)


@site_options.guarded
def run(arguments: argparse.Namespace) -> int:
    """Plan, write and print; the exit code."""
    config = declared_halls.usable(arguments.stack_file)
    plans = [plan.of(hall) for hall in halls.declared(config)]
    if not plans:
        raise BadInput(f"{arguments.stack_file} declares no halls, so there is nothing to plan")
    if arguments.topology:
        print(slurm_topology(config, arguments.topology), end="")
    else:
        write(arguments, config.name, plans)
        if arguments.json:
            print(json.dumps({"halls": [plan.as_json(each) for each in plans]}))
        else:
            print("\n".join(line for each in plans for line in plan.lines(each)))
    return 2 if any(each.errors for each in plans) else 0


@site_options.guarded
def verify(arguments: argparse.Namespace) -> int:
    """Compare and print; the exit code."""
    hall = declared_halls.one(halls.declared(declared_halls.usable(arguments.stack_file)), arguments.hall)
    if not (arguments.ibnetdiscover or arguments.lldp):
        raise BadInput("nothing to verify against: give --ibnetdiscover FILE or --lldp HOST=FILE")
    found: list[Violation] = []
    if arguments.ibnetdiscover:
        links = _understood(arguments.ibnetdiscover, lambda text: seen.ibnetdiscover(text, hall, arguments.hcas))
        found += seen.compared(hall, links, "infiniband")
    neighbours: list[seen.Links] = []
    asked = [host for host, _ in map(_host_and_file, arguments.lldp)]
    for host, path in map(_host_and_file, arguments.lldp):
        if host not in hall.device:
            raise BadInput(f"--lldp: {host} is no node or switch of {hall.name}")
        neighbours.append(_understood(path, functools.partial(seen.lldp, host, hall=hall)))
    if arguments.lldp:
        found += seen.compared(hall, seen.merged(neighbours), "ethernet", asked)
    if arguments.json:
        print(json.dumps({"hall": hall.name, "findings": [asdict(each) | {"message": str(each)} for each in found]}))
    else:
        print("\n".join([*(f"{each.severity}: {each}" for each in found), f"{hall.name}: {len(found)} differences"]))
    return 2 if any(each.severity == "error" for each in found) else 0


def _host_and_file(text: str) -> tuple[str, Path]:
    host, equals, path = text.partition("=")
    if not (host and equals and path):
        raise BadInput(f"--lldp {text}: write HOST=FILE, as in dgx01=dgx01.json")
    return host, Path(path)


def _understood(path: Path, read: Callable[[str], seen.Links]) -> seen.Links:
    try:
        return read(path.read_text(encoding="utf-8", errors="replace"))
    except OSError as error:
        raise BadInput(f"{path} can't be read: {error.strerror}") from None
    except seen.NotUnderstood as error:
        raise BadInput(f"{path}: {error}") from None


def slurm_topology(config: ClusterConfig, kind: str) -> str:
    """Slurm's file. Raises BadInput where there is no Slurm."""
    if config.slurm is None:
        raise BadInput("--topology: the stack has no Slurm")
    text = topology.conf if kind == "conf" else functools.partial(topology.yaml, name=config.name)
    return text(halls.slurm_trees(config), ranges.compact)


def write(arguments: argparse.Namespace, name: str, plans: Sequence[plan.HallPlan]) -> None:
    """The page and the tables, where asked for. Raises BadInput."""
    files: dict[Path, str] = {}
    if arguments.html:
        files[arguments.html / "hall.html"] = pictures.page(plans, f"{name}: plan of the halls")
    if arguments.csv:
        for hall in (each.hall for each in plans):
            for table, of in tables.TABLES.items():
                files[arguments.csv / f"{hall.name}-{table}.csv"] = tables.as_csv(*of(hall))
    if arguments.netbox:
        for hall in (each.hall for each in plans):
            for table, its in netbox.tables(hall).items():
                files[arguments.netbox / f"{hall.name}-netbox-{table}.csv"] = tables.as_csv(*its)
    for path, text in files.items():
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8", newline="")
        except OSError as error:
            raise BadInput(f"{path} can't be written: {error.strerror}") from None
        print(path, file=sys.stderr)
