"""What the Pulumi CLI prints of a preview and of a refresh, as changes.

`pulumi preview --json` and `pulumi refresh --preview-only --json` are one object each (Pulumi's PreviewDigest, seen
with 3.260.0): steps, diagnostics, duration, changeSummary; what is empty is left out. What a refresh finds unchanged is
a step `refresh`. Values that are secrets are "[secret]"; those that aren't known yet are a text of their own.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

UNKNOWN = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"
"""a text, which the resource will only have when it is made"""
REPLACING = {"replace", "create-replacement", "delete-replaced", "import-replacement", "discard-replaced"}
QUIET = {"same", "read", "read-discard", "refresh", "remove-pending-replace"}
_STACK = "pulumi:pulumi:Stack"


class UnreadablePreview(ValueError):
    """It isn't what the CLI prints; the text is one sentence without the file."""


@dataclass(frozen=True)
class ResourceChange:
    """One resource that would not stay as it is. `op`: create, update, replace, delete, or another of Pulumi's;
    `before`, `after`: its inputs; `keys`: which of them differ, `replaces`: those that replace it.
    """

    op: str
    kind: str
    name: str
    before: Mapping[str, Any]
    after: Mapping[str, Any]
    keys: tuple[str, ...] = ()
    replaces: tuple[str, ...] = ()


@dataclass(frozen=True)
class Preview:
    """`stack`: whose it is, "" where nothing says it; `errors`: why the preview itself failed."""

    stack: str
    changes: list[ResourceChange]
    errors: list[str]


def read_preview(text: str) -> Preview:
    """What `pulumi preview --json` printed. Raises UnreadablePreview."""
    return _read(_digest(text, "preview"))


def read_refresh(text: str) -> Preview:
    """What `pulumi refresh --preview-only --json` printed. Raises UnreadablePreview."""
    said = _digest(text, "refresh --preview-only")
    found = _read(said)
    if "duration" not in said:
        raise UnreadablePreview(
            f"has no summary, so the refresh didn't end{': ' * bool(found.errors)}{'; '.join(found.errors)}"
        )
    counted = sum(number for op, number in (said.get("changeSummary") or {}).items() if op not in QUIET)
    named = sum(step["op"] not in QUIET for step in said.get("steps") or [])
    if counted > named:  # a plugin that doesn't say which keys differ
        unnamed = f"{counted - named} more resources are otherwise than in the state: `pulumi refresh --preview-only`"
        return Preview(found.stack, found.changes, [*found.errors, unnamed])
    return found


def _digest(text: str, verb: str) -> dict[str, Any]:
    printed = f"`pulumi {verb} --json` prints"
    if not text.strip():
        raise UnreadablePreview(f"is empty: the {verb.split()[0]} ended before it said anything; its errors say why")
    try:
        said = json.loads(text)
    except ValueError as error:
        raise UnreadablePreview(f"is not JSON ({error}); write what {printed} there") from None
    if not isinstance(said, dict) or not said.keys() & {"steps", "changeSummary", "diagnostics", "duration"}:
        raise UnreadablePreview(f"has no steps: write what {printed} there")
    return said


def _read(said: Mapping[str, Any]) -> Preview:
    try:
        steps = said.get("steps") or []
        wrong = [each for each in said.get("diagnostics") or [] if each["severity"] == "error"]
        errors = [each["message"].removeprefix("error: ").strip() for each in wrong]
        return Preview(_stack(each["urn"] for each in steps), _changes(steps), errors)
    except (KeyError, TypeError, AttributeError) as error:
        raise UnreadablePreview(f"has a step of a shape that isn't known ({error!r})") from None


def _stack(urns: Iterable[str]) -> str:
    return next((urn.removeprefix("urn:pulumi:").partition("::")[0] for urn in urns), "")


def _changes(steps: Iterable[Mapping[str, Any]]) -> list[ResourceChange]:
    """One a resource: the CLI may show the parts of a replacement beside it."""
    found: dict[str, ResourceChange] = {}
    for step in steps:
        kind, name = step["urn"].split("::", 3)[2].rsplit("$", 1)[-1], step["urn"].split("::", 3)[3]
        if step["op"] in QUIET or kind == _STACK or kind.startswith("pulumi:providers:"):
            continue
        details = step.get("detailedDiff") or {}
        forced = {key for key, each in details.items() if str(each.get("kind", "")).endswith("-replace")}
        change = ResourceChange(
            op="replace" if step["op"] in REPLACING else step["op"],
            kind=kind,
            name=name,
            before=(step.get("oldState") or {}).get("inputs") or {},
            after=(step.get("newState") or {}).get("inputs") or {},
            keys=_tops([*(step.get("diffReasons") or []), *details]),
            replaces=_tops([*(step.get("replaceReasons") or []), *forced]),
        )
        found[step["urn"]] = _both(found[step["urn"]], change) if step["urn"] in found else change
    return list(found.values())


def _tops(paths: Iterable[str]) -> tuple[str, ...]:
    """`tags.Name` and `ingress[0].cidrBlocks` by their first key, each once."""
    return tuple(dict.fromkeys(path.partition(".")[0].partition("[")[0] for path in paths))


def _both(first: ResourceChange, second: ResourceChange) -> ResourceChange:
    """Two steps of one resource: a replacement, or a delete beside something else, which is none but a replacement."""
    op = first.op if first.op == second.op else "replace"
    return ResourceChange(
        op,
        first.kind,
        first.name,
        first.before or second.before,
        second.after or first.after,
        tuple(dict.fromkeys([*first.keys, *second.keys])),
        tuple(dict.fromkeys([*first.replaces, *second.replaces])),
    )
