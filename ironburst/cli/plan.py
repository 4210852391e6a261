"""`ironburst plan STACK_FILE`: what a preview would do, whether it may, and what it costs, as one comment."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

from ironburst.adapters.slurm.site import UnreadableSite, taking_jobs
from ironburst.cli import Subparsers
from ironburst.cli.site_options import guarded
from ironburst.config.models import ClusterConfig
from ironburst.config.valid import valid
from ironburst.plan import (
    Drift,
    Preview,
    Shown,
    UnreadablePreview,
    comment,
    difference,
    judge,
    let_through,
    money,
    read_preview,
    read_refresh,
)
from ironburst.plan.checkpoints import needed
from ironburst.system.bad_input import BadInput

T = TypeVar("T")
EPILOG = """\
It refuses what would, and writes what to do instead:
  node          replace, stop or take away a fixed or owned node, unless it is drained and has no jobs (--nodes says so;
                a node that Slurm doesn't know, or that nobody asked about, counts as busy)
  budget        cost more in a month, at worst, than budget.total_usd_per_month
  open-network  let a network wider than /8 (IPv6: /16) into a security group
  join-secret   drop or change what rented nodes join with (the munge key, a join token)
An entry under `allow` in the stack file lets one of them through until its last day, with a name and a reason.

exit codes:
  0  nothing is refused
  1  a bug
  2  bad input: a file that can't be read or isn't what it should be, or is another stack's
  3  refused, or the preview itself failed: the text says what
  4  with --expect-no-changes: there are changes, or drift, or a look at it failed

example: pulumi preview --stack prod --json > preview.json
         ironburst plan stacks/Pulumi.prod.yaml --preview preview.json"""


def add_parser(subparsers: Subparsers) -> None:
    """The verb and its options."""
    parser = subparsers.add_parser(
        "plan",
        description="Write a preview as Markdown, for a pull request: what is refused, dollars at worst before and "
        "after, changes, drift. Asks nobody: everything is in the files.",
        epilog=EPILOG,
    )
    parser.add_argument("stack_file", type=Path, help="as in stacks/Pulumi.prod.yaml")
    parser.add_argument("--preview", type=Path, required=True, metavar="FILE", help="of `pulumi preview --json`")
    parser.add_argument("--before", type=Path, metavar="STACK_FILE", help="the stack file in force (the base branch's)")
    parser.add_argument("--nodes", type=Path, metavar="FILE", help="of `scontrol show node --json`, on the head, now")
    parser.add_argument("--refresh", type=Path, metavar="FILE", help="of `pulumi refresh --preview-only --json`")
    parser.add_argument("--converge", type=Path, metavar="FILE", help="of `ironburst converge --check --json`")
    parser.add_argument("--expect-no-changes", action="store_true", help="exit with 4 where there are any, or drift")
    parser.add_argument(
        "--up-environment", type=Path, metavar="FILE", help="write variables for this `pulumi up` there: NAME=value"
    )
    parser.add_argument("--json", action="store_true", help="the same as JSON")
    parser.set_defaults(func=run)


@guarded
def run(arguments: argparse.Namespace) -> int:
    """Read, judge, write; the exit code."""
    config = valid(arguments.stack_file)
    before = valid(arguments.before) if arguments.before else None
    preview = _preview(arguments.preview, read_preview, arguments.stack_file)
    asked = _nodes(arguments.nodes)
    costs = money(config, before)
    refusals = judge(preview.changes, config, before, asked, costs)
    judged = let_through(refusals, config.allow, datetime.now(UTC).date())
    declared = difference(before, config) if before else []
    stack, drift = _stack(arguments.stack_file), _drift(arguments)
    shown = Shown(stack, preview.changes, preview.errors, judged, costs, drift, declared)
    print(json.dumps(_plain(shown, config), indent=1, default=str) if arguments.json else comment(shown), end="")
    if arguments.up_environment:
        _write(arguments.up_environment, "" if needed(preview.changes) else "PULUMI_SKIP_CHECKPOINTS=true\n")
    refused = [refusal for refusal, allowance in judged if allowance is None]
    for refusal in refused:
        print(f"refused: {refusal.why}", file=sys.stderr)
    if refused or preview.errors:
        return 3
    return 4 if arguments.expect_no_changes and (preview.changes or shown.drift.any) else 0


def _stack(stack_file: Path) -> str:
    """`stacks/Pulumi.prod.yaml` is of the stack prod."""
    return stack_file.name.removeprefix("Pulumi.").removesuffix(".yaml")


def _preview(path: Path, read: Callable[[str], Preview], stack_file: Path) -> Preview:
    try:
        preview = read(_text(path))
    except UnreadablePreview as error:
        raise BadInput(f"{path} {error}") from None
    if preview.stack not in ("", _stack(stack_file)):
        raise BadInput(f"{path} is of the stack {preview.stack}, and {stack_file} is another one's: give both of one")
    return preview


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"{path} can't be read: {error}") from None


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text)
    except OSError as error:
        raise BadInput(f"{path} can't be written: {error}") from None


def _nodes(path: Path | None) -> dict[str, str] | None:
    """None: nobody was asked. An empty file is no answer: the head wasn't reached."""
    if path is None or (path.exists() and not path.read_text().strip()):
        return None
    try:
        return taking_jobs(path)
    except UnreadableSite as error:
        raise BadInput(str(error)) from None


def _drift(arguments: argparse.Namespace) -> Drift:
    failed: list[str] = []
    hosts: dict[str, tuple[str, str]] | None = None
    asked = 0
    if arguments.converge:
        hosts, asked, error = _hosts(arguments.converge)
        failed += [error] if error else []
    changes = None
    if arguments.refresh:
        refreshed = _preview(arguments.refresh, read_refresh, arguments.stack_file)
        changes, failed = refreshed.changes, [*failed, *refreshed.errors]
    return Drift(hosts, asked, changes, failed)


def _hosts(path: Path) -> tuple[dict[str, tuple[str, str]] | None, int, str]:
    """Of a converge's report: the hosts that aren't as they were left, how many were asked, and what went wrong."""
    text = _text(path)
    if not text.strip():
        return None, 0, "`converge --check` said nothing: its own errors say why"
    try:
        report = json.loads(text)
        hosts = {name: each for name, each in report["hosts"].items() if each["state"] != "unchanged"}
        found = {name: (each["state"], _told(each)) for name, each in hosts.items()}
        error = report.get("error") or ""
        return (None if error and not report["hosts"] else found), len(report["hosts"]), error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise BadInput(f"{path} isn't what `ironburst converge --check --json` prints ({error!r})") from None


def _told(host: dict[str, Any]) -> str:
    return host.get("error") or "; ".join([*host.get("why", []), *host.get("tasks", [])])


def _plain(shown: Shown, config: ClusterConfig) -> dict[str, Any]:
    judged = [asdict(refusal) | {"allowed": by and by.model_dump(mode="json")} for refusal, by in shown.judged]
    return {
        "stack": shown.stack,
        "cluster": config.name,
        "errors": list(shown.errors),
        "refusals": judged,
        "changes": [{"op": c.op, "kind": c.kind, "name": c.name, "keys": c.keys} for c in shown.changes],
        "declared": [asdict(each) for each in shown.declared],
        "usd_per_month": {"now": shown.money.total_before, "with_this": shown.money.total},
        "drift": asdict(shown.drift) | {"any": shown.drift.any},
    }
