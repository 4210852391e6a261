"""`ironburst validate STACK_FILE`: everything that can be said of a declaration
without a cloud and without the Pulumi CLI.
"""

from __future__ import annotations

import argparse
import json
import sys
from datetime import UTC, datetime
from pathlib import Path

from ironburst.cli import Subparsers, waiting
from ironburst.config import yaml_file
from ironburst.config.finding import ConfigError
from ironburst.config.stack import load_valid


def add_parser(subparsers: Subparsers) -> None:
    """The verb and its options."""
    parser = subparsers.add_parser(
        "validate",
        help="check a stack file",
        description="Check a stack file. Exit code 0: valid; 2: not, with every finding; 1: a bug.",
        epilog="example: ironburst validate stacks/Pulumi.prod.yaml --json",
    )
    parser.add_argument("stack_file", type=Path, help="as in stacks/Pulumi.lab.yaml")
    parser.add_argument(
        "--json", action="store_true", help="findings as JSON: path, value, rule, message, severity, line"
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
        findings, valid = stack.warnings, True
    except ConfigError as error:
        findings, valid = error.findings, False
    lines = _lines(arguments.stack_file)
    if arguments.json:
        report = {
            "file": str(arguments.stack_file),
            "valid": valid,
            "findings": [finding.as_json() | {"line": yaml_file.line_of(finding.path, lines)} for finding in findings],
        }
        print(json.dumps(report, indent=1, default=str))
    else:
        for finding in findings:
            line = yaml_file.line_of(finding.path, lines)
            where = f"{arguments.stack_file}:{line}" if line else str(arguments.stack_file)
            said = finding.message if finding.path == str(arguments.stack_file) else str(finding)
            print(f"{where}: {finding.severity}: {said}", file=sys.stderr)
        print(f"{arguments.stack_file}: {'valid' if valid else 'not valid'}")
    return 0 if valid else 2


def _lines(path: Path) -> dict[str, int]:
    """The lines of the stack file's keys; none where it is no YAML."""
    try:
        return yaml_file.lines(path)
    except ConfigError:
        return {}
