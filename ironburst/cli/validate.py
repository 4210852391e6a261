"""`ironburst validate STACK_FILE`: everything that can be checked of a declaration
without a cloud and without the Pulumi CLI.
"""

from __future__ import annotations

import argparse
import json
import sys
from datetime import UTC, datetime
from pathlib import Path

from ironburst.cli import Subparsers, waiting
from ironburst.config import load, prices, yaml_file
from ironburst.config.checks.common import clouds
from ironburst.config.finding import ConfigError, Finding
from ironburst.config.models import ClusterConfig
from ironburst.config.stack import load_valid


def add_parser(subparsers: Subparsers) -> None:
    """The verb and its options."""
    parser = subparsers.add_parser(
        "validate",
        description="Check a stack file. Exit code 0: valid; 2: not, with every finding; 1: a bug.",
        epilog="example: ironburst validate stacks/Pulumi.prod.yaml --json",
    )
    parser.add_argument("stack_file", type=Path, help="as in stacks/Pulumi.lab.yaml")
    parser.add_argument(
        "--json", action="store_true", help="findings as JSON: path, value, rule, message, severity, file, line"
    )
    parser.add_argument(
        "--no-secrets",
        action="store_true",
        help="don't try to resolve env: and file: secret references (pull requests in CI)",
    )
    parser.set_defaults(func=run)


def run(arguments: argparse.Namespace) -> int:
    """Check and report; the exit code."""
    try:
        with waiting.told("checking the stack file"):
            stack = load_valid(arguments.stack_file, now=datetime.now(UTC), resolve_secrets=not arguments.no_secrets)
        findings, valid = [*stack.warnings, *_prices(stack.config)], True
    except ConfigError as error:
        findings, valid = error.findings, False
    places = _places(arguments.stack_file)
    where = [yaml_file.nearest(finding.path, places) or (arguments.stack_file, None) for finding in findings]
    if arguments.json:
        report = {
            "file": str(arguments.stack_file),
            "valid": valid,
            "findings": [
                finding.as_json() | {"file": str(file), "line": line}
                for finding, (file, line) in zip(findings, where, strict=True)
            ],
        }
        print(json.dumps(report, indent=1, default=str))
    else:
        for finding, (file, line) in zip(findings, where, strict=True):
            said = finding.message if finding.path == str(file) else str(finding)
            print(f"{file}:{line}" if line else file, f"{finding.severity}: {said}", sep=": ", file=sys.stderr)
        print(f"{arguments.stack_file}: {'valid' if valid else 'not valid'}")
    return 0 if valid else 2


def _prices(config: ClusterConfig) -> list[Finding]:
    """A warning of old ones, in one line; nobody but validate says so each time."""
    told = [(at("price"), prices.aged(cloud, datetime.now(UTC).date())) for at, cloud in clouds(config)]
    return [Finding(path, None, "price-age", said, "warning") for path, said in told if said]


def _places(path: Path) -> dict[str, tuple[Path, int]]:
    """Where the declaration's keys are written; none where it is no YAML."""
    try:
        return load.places(path)
    except ConfigError:
        return {}
