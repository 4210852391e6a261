"""`ironburst lock STACK_FILE`: one exact set of versions per group of equal nodes, in a file beside the stack file."""

from __future__ import annotations

import argparse
import json
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ironburst import catalog
from ironburst.cli import Subparsers, waiting
from ironburst.config import lockfile
from ironburst.config.checks import check
from ironburst.config.load import ConfigError, load
from ironburst.software import security
from ironburst.software.lock import LockError, to_data
from ironburst.software.model import Hit

EPILOG = """\
exit codes:
  0  solved: the lock file is written, or says already what the stack calls for (with --check: it does)
  2  a conflict (each with its rule id), a stack file or lock file that can't be used, or, with --check, no lock file
     or one that doesn't fit the stack; nothing is written
  1  a bug

"state" with --json: fits, written, absent and stale (with --check), conflict, damaged (the lock file), \
invalid (the stack file)

examples:
  ironburst lock stacks/Pulumi.prod.yaml
  ironburst lock stacks/Pulumi.prod.yaml --check
  ironburst lock stacks/Pulumi.prod.yaml --upgrade"""


def add_parser(subparsers: Subparsers) -> None:
    """The verb and its options."""
    parser = subparsers.add_parser(
        "lock",
        description="Solve the exact software of every group of nodes and write it beside the stack file "
        "(Pulumi.lab.yaml: lab.lock.yaml). What is locked stays while it fits the stack.",
        epilog=EPILOG,
    )
    parser.add_argument("stack_file", type=Path, help="as in stacks/Pulumi.lab.yaml")
    how = parser.add_mutually_exclusive_group()
    how.add_argument(
        "--check", action="store_true", help="write nothing: is the lock file there, and does it fit the stack?"
    )
    how.add_argument(
        "--upgrade",
        action="store_true",
        help="take the newest versions that the stack allows, and say what changes and why; a driver that then lacks "
        "the fixes of a security bulletin of NVIDIA's is warned of",
    )
    parser.add_argument("--json", action="store_true", help="state, conflicts, changes and the groups' sets as JSON")
    parser.set_defaults(func=run)


def run(arguments: argparse.Namespace) -> int:
    """Solve, write where something changes, report; the exit code."""
    stack_file: Path = arguments.stack_file
    try:
        config = load(stack_file)
        now = datetime.now(UTC)
        wrong = [finding for finding in check(config, now) if finding.severity == "error"]
        if wrong:
            raise ConfigError(wrong)
        with waiting.told("solving the versions of every group"):
            plan = lockfile.plan(config, stack_file, upgrade=arguments.upgrade, today=now.date())
    except ConfigError as error:
        return _refuse(arguments, "invalid", [str(finding) for finding in error.findings])
    except catalog.Unknown as error:  # a profile; hardware was looked up above
        return _refuse(arguments, "invalid", [str(error)])
    except LockError as error:
        return _refuse(arguments, "damaged", [f"{error}; {lockfile.restore(stack_file)}"])
    state = _state(plan, arguments)
    if state == "written":
        lockfile.write(stack_file, plan.lock)
    _report(arguments, plan, state)
    return 0 if state in ("fits", "written") else 2


def _state(plan: lockfile.LockPlan, arguments: argparse.Namespace) -> str:
    if not plan.solved:
        return "conflict"
    if plan.fits:
        return "fits"
    if not arguments.check:
        return "written"
    return "absent" if plan.before is None else "stale"


def _refuse(arguments: argparse.Namespace, state: str, sentences: list[str]) -> int:
    if arguments.json:
        print(json.dumps({"file": str(arguments.stack_file), "state": state, "errors": sentences}, indent=1))
    for sentence in sentences:
        print(f"{arguments.stack_file}: error: {sentence}", file=sys.stderr)
    return 2


def _report(arguments: argparse.Namespace, plan: lockfile.LockPlan, state: str) -> None:
    solution = plan.solution
    drivers = {name: group.software.driver for name, group in plan.lock.items()} if arguments.upgrade else {}
    insecure = security.warnings(drivers, catalog.software_facts())
    if arguments.json:
        report = {
            "file": str(arguments.stack_file),
            "lock": str(plan.path),
            "state": state,
            "conflicts": [_hit(hit) for hit in solution.conflicts],
            "warnings": [_hit(hit) for hit in solution.warnings],
            "insecure": insecure,
            "changes": [vars(change) for change in plan.changes] if plan.before is not None else [],
            "groups": to_data(plan.lock),
        }
        print(json.dumps(report, indent=1, default=list))
        return
    for hit in (*solution.conflicts, *solution.warnings):
        print(f"{arguments.stack_file}: {hit.severity}: {hit}", file=sys.stderr)
    for sentence in insecure:
        print(f"{arguments.stack_file}: warning: {sentence}", file=sys.stderr)
    for change in plan.changes:
        print(change)
    told = {
        "fits": "fits the stack; nothing changed",
        "written": f"written, {len(plan.lock)} groups: review it and commit it",
        "absent": f"isn't there: run `ironburst lock {arguments.stack_file}`",
        "stale": f"doesn't fit the stack: run `ironburst lock {arguments.stack_file}`",
        "conflict": f"not written: {len(solution.conflicts)} conflicts",
    }
    print(f"{plan.path}: {told[state]}")


def _hit(hit: Hit) -> dict[str, Any]:
    return {
        "rule": hit.id,
        "severity": hit.severity,
        "group": hit.group,
        "message": hit.message,
        "ways_out": list(hit.remedies),
    }
