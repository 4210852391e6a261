"""`ironburst rights STACK_FILE`: the policies of the role that does `up`, for whoever gives rights in the account."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from ironburst.cli import Subparsers
from ironburst.cli.site_options import guarded
from ironburst.config import load
from ironburst.config.valid import valid
from ironburst.system.bad_input import BadInput
from ironburst.wiring import clouds
from ironburst.wiring.provider import Rights


def add_parser(subparsers: Subparsers) -> None:
    """The verb and its options."""
    parser = subparsers.add_parser(
        "rights",
        description="Print the policies of a role that may do `pulumi up` of a stack and needn't be an administrator: "
        "roles are made with the declared boundary alone, and below the declared path. Changes nothing, asks nobody. "
        "Exit code 0: printed; 2: bad input.",
        epilog="example: ironburst rights stacks/Pulumi.prod.yaml --account 123456789012 --out rights",
    )
    parser.add_argument("stack_file", type=Path, help="as in stacks/Pulumi.lab.yaml")
    parser.add_argument("--account", metavar="NUMBER", help="of the cloud; without: the one that the stack file allows")
    parser.add_argument("--out", type=Path, metavar="FOLDER", help="write each policy into a file of this folder")
    parser.set_defaults(func=run)


@guarded
def run(arguments: argparse.Namespace) -> int:
    """Print, or write."""
    config, settings = valid(arguments.stack_file), load.settings(arguments.stack_file)
    policies: dict[str, Any] = {}
    for its in clouds.declared(config):
        if not its.provider.rights:
            raise BadInput(f"{arguments.stack_file} declares no cloud, so `up` needs no rights in one")
        try:
            of_cloud = its.provider.rights(Rights(its.config, settings, arguments.account))
        except BadInput as error:
            raise BadInput(its.placed(str(error))) from None
        policies |= {f"{its.whose}-{name}".lstrip("-"): policy for name, policy in of_cloud.items()}
    if not arguments.out:
        print(json.dumps(policies, indent=2))
        return 0
    try:
        arguments.out.mkdir(parents=True, exist_ok=True)
        for name, policy in policies.items():
            path = arguments.out / f"{name}.json"
            path.write_text(json.dumps(policy, indent=2) + "\n", encoding="utf-8")
            print(path)
    except OSError as error:
        raise BadInput(f"{arguments.out} can't be written: {error.strerror or error}") from None
    return 0
