"""`ironburst hall plan STACK_FILE`: can the declared hall be powered, cooled and cabled, and what else would fit."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from ironburst.cli import Subparsers, hall_metrics, hall_verify, site_options
from ironburst.cli.site_options import BadInput
from ironburst.config import halls, ranges
from ironburst.config.checks import halls as hall_checks
from ironburst.config.checks import metal, names
from ironburst.config.checks.common import Findings
from ironburst.config.finding import ConfigError
from ironburst.config.load import load
from ironburst.config.models import ClusterConfig
from ironburst.hall import pictures, plan, tables, topology

EPILOG = """\
exit codes:
  0  planned, and nothing is wrong
  2  a rule is broken (the plan is written all the same), or the declaration can't be used
  1  a bug

example:
  ironburst hall plan stacks/Pulumi.prod.yaml --html build/hall --csv build/hall"""

SHAPE: tuple[Callable[[ClusterConfig], Findings], ...] = (
    metal.one_value_a_node,
    metal.platforms,
    metal.rack_units,
    names.duplicates,
    hall_checks.cables,
    hall_checks.switches,
)
"""what must be right before anything is planned"""


def add_parser(subparsers: Subparsers) -> None:
    """`ironburst hall` and its verbs."""
    parser = subparsers.add_parser(
        "hall",
        help="power, cooling and cabling of the declared halls",
        description="Power, cooling and cabling of the declared halls.",
    )
    verbs = parser.add_subparsers(dest="hall_verb", required=True, metavar="VERB")
    planned = verbs.add_parser(
        "plan",
        help="what is wrong, what else fits, pictures, bill of cables, Slurm's topology",
        description="Hold the declared halls against their rules, and say what else would fit, what must be capped and "
        "in which order nodes are powered on. Nothing but the stack file is read.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    option = planned.add_argument
    option("stack_file", type=Path, help="as in stacks/Pulumi.prod.yaml")
    option("--html", type=Path, metavar="DIR", help="write hall.html: rack elevations and cabling, to print")
    option("--csv", type=Path, metavar="DIR", help="write HALL-cables.csv, -ports.csv, -power.csv and -circuits.csv")
    option("--topology", choices=("conf", "yaml"), help="print Slurm's topology.conf or topology.yaml instead")
    option("--json", action="store_true", help="machine-readable")
    planned.set_defaults(func=run)
    hall_verify.add_parser(verbs, usable)
    hall_metrics.add_parser(verbs, usable)


@site_options.guarded
def run(arguments: argparse.Namespace) -> int:
    """Plan, write and print; the exit code."""
    config = usable(arguments.stack_file)
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


def usable(path: Path) -> ClusterConfig:
    """The declaration, as far as a hall needs it. Raises BadInput with all that keeps it from being planned."""
    try:
        config = load(path)
    except ConfigError as error:
        raise BadInput(f"{path}: {error}") from None
    wrong = [found for check in SHAPE for found in check(config) if found.severity == "error"]
    if wrong:
        raise BadInput("\n".join(f"{path}: {found}" for found in wrong))
    return config


def slurm_topology(config: ClusterConfig, kind: str) -> str:
    """Slurm's file. Raises BadInput where there is no Slurm."""
    if config.slurm is None:
        raise BadInput("--topology: the stack has no Slurm")
    trees = halls.slurm_trees(config)
    if kind == "conf":
        return topology.conf(trees, ranges.compact)
    return topology.yaml(trees, ranges.compact, config.name)


def write(arguments: argparse.Namespace, name: str, plans: Sequence[plan.Plan]) -> None:
    """The page and the tables, where asked for. Raises BadInput."""
    files: dict[Path, str] = {}
    if arguments.html:
        files[arguments.html / "hall.html"] = pictures.page(plans, f"{name}: plan of the halls")
    if arguments.csv:
        for hall in (each.hall for each in plans):
            for table, of in tables.TABLES.items():
                files[arguments.csv / f"{hall.name}-{table}.csv"] = tables.as_csv(*of(hall))
    for path, text in files.items():
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8", newline="")
        except OSError as error:
            raise BadInput(f"{path} can't be written: {error.strerror}") from None
        print(path, file=sys.stderr)
