"""`ironburst document STACK_FILE`: the ClusterDocument of a hall of one's own, without Pulumi."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from ironburst.cli import Subparsers
from ironburst.cli.site_options import guarded
from ironburst.config.finding import ConfigError
from ironburst.config.models import ClusterConfig
from ironburst.config.stack import load_valid
from ironburst.config.valid import first
from ironburst.document.build import Observed, build
from ironburst.system.bad_input import BadInput


def add_parser(subparsers: Subparsers) -> None:
    """The verb's argument and help."""
    parser = subparsers.add_parser(
        "document",
        description="Print the ClusterDocument of a stack file and the lock file beside it, as Pulumi's output "
        "`cluster` is, of a stack that has nothing in a cloud. What only Pulumi knows, ids and addresses in the "
        "cloud, it can't say: such a stack is refused. Exit code 0: printed; 2: refused, or not a valid stack.",
        epilog="example: ironburst document stacks/Pulumi.hall.yaml | ironburst publish --to /srv/ironburst/hall.json",
    )
    parser.add_argument("stack_file", type=Path, help="as in stacks/Pulumi.hall.yaml")
    parser.set_defaults(func=run)


@guarded
def run(arguments: argparse.Namespace) -> int:
    """Print the document."""
    stack_file: Path = arguments.stack_file
    try:
        stack = load_valid(stack_file, now=datetime.now(UTC))
    except ConfigError as error:
        raise BadInput(first(stack_file, error.findings)) from None
    of_pulumi = list(_only_pulumi_knows(stack.config))
    if of_pulumi:
        raise BadInput(
            f"{stack_file} declares {', '.join(of_pulumi)}, whose ids and addresses only Pulumi knows: run "
            "`pulumi up`, then `pulumi stack output cluster --json | ironburst publish --to PATH`"
        )
    for warning in stack.warnings:
        print(f"{stack_file}: {warning}", file=sys.stderr)
    print(json.dumps(build(stack.config, Observed(), stack.software).model_dump(mode="json"), indent=1))
    return 0


def _only_pulumi_knows(config: ClusterConfig) -> Iterator[str]:
    yield from (f"group {group.name}" for group in config.groups)
    yield from (f"pool {pool.name}" for pool in config.pools)
    yield from (f"Karpenter's pool {pool.name}" for pool in config.karpenter)
    if config.kubernetes and config.kubernetes.hosted:
        yield config.kubernetes.hosted.CALLED
