"""A plan as one comment of a pull request (Markdown)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ironburst.config.allowance_models import Allowance
from ironburst.plan.difference import Difference
from ironburst.plan.money import Money
from ironburst.plan.policy import KINDS, Refusal
from ironburst.plan.preview import ResourceChange
from ironburst.system import local_time

MOST = 60_000
"""characters: GitHub takes 65,536, and the rest is for what is left out"""
MOST_DECLARED, LONGEST = 40, 300
OURS = "ironburst:components:"
"""kinds that only hold others together"""
SIGNS = {"delete": "taken away", "replace": "**replaced**", "update": "changed", "create": "made", "import": "adopted"}


@dataclass(frozen=True)
class Drift:
    """What isn't as it was left. `hosts`: name -> (state, what) of the hosts that aren't, of `asked` hosts;
    `resources`: changes that a refresh finds; None: nobody looked. `failed`: why a look failed.
    """

    hosts: Mapping[str, tuple[str, str]] | None = None
    asked: int = 0
    resources: Sequence[ResourceChange] | None = None
    failed: Sequence[str] = field(default_factory=tuple)

    @property
    def any(self) -> bool:
        """Whether there is drift, or that isn't known."""
        return bool(self.hosts or self.resources or self.failed)


@dataclass(frozen=True)
class Shown:
    """All that a comment says."""

    stack: str
    changes: Sequence[ResourceChange]
    errors: Sequence[str]
    judged: Sequence[tuple[Refusal, Allowance | None]]
    money: Money
    drift: Drift
    declared: Sequence[Difference] = ()
    """between the declaration in force and this one"""


def marker(stack: str) -> str:
    """The comment's first line: by it the next run finds it."""
    return f"<!-- ironburst plan {stack} -->"


def comment(shown: Shown) -> str:
    """The whole text. What is too long for a comment is cut at the table of changes, and counted."""
    head = [marker(shown.stack), f"### `{shown.stack}`: {_title(shown)}", ""]
    before = [*head, *_errors(shown), *_verdict(shown), *_declared(shown.declared), *_dollars(shown.money)]
    after = list(_drift(shown.drift))
    rows = list(_rows(shown.changes))
    room = MOST - len("\n".join([*before, *after]))
    kept: list[str] = []
    for row in rows:
        room -= len(row) + 1
        if room < 0:
            kept += ["", f"... and {len(rows) - len(kept)} more: the job's log has all of them"]
            break
        kept.append(row)
    table = ["#### Changes", "", "| | what | name | why |", "|---|---|---|---|", *kept, ""] if rows else []
    return "\n".join([*before, *table, *after]).rstrip() + "\n"


def _title(shown: Shown) -> str:
    counts = Counter(change.op for change in shown.changes if not change.kind.startswith(OURS))
    order = [*SIGNS, *(op for op in counts if op not in SIGNS)]
    said = ", ".join(f"{counts[op]} {SIGNS.get(op, op).strip('*')}" for op in order if counts[op])
    refused = sum(allowance is None for _, allowance in shown.judged)
    verdict = "the preview failed" if shown.errors else said or "no change of resources"
    return f"{verdict}; **refused** ({refused})" if refused else verdict


def _errors(shown: Shown) -> Iterator[str]:
    if shown.errors:
        yield from ("```", *(each.replace("```", "'''") for each in shown.errors[:10]), "```", "")


def _verdict(shown: Shown) -> Iterator[str]:
    refused = [refusal for refusal, allowance in shown.judged if allowance is None]
    if refused:
        yield from ("#### Refused", "", *(f"- {_plain(each.why)} ({each.rule})" for each in refused), "")
    allowed = [(refusal, allowance) for refusal, allowance in shown.judged if allowance]
    if allowed:
        yield from ("#### Let through", "")
        for refusal, by in allowed:
            what = f"{refusal.rule}{' of ' * bool(refusal.of)}{refusal.of}"
            yield f"- {what}, by {_plain(by.by)} until {by.until}: {_plain(by.reason)}"
        yield ""


def _declared(differences: Sequence[Difference]) -> Iterator[str]:
    if differences:
        yield from ("#### Declared", "", "| | now | with this |", "|---|---|---|")
        for each in differences[:MOST_DECLARED]:
            place = f"{each.section}.{each.where}" if each.where != each.section else each.section
            yield f"| {_cell(place)} | {_cell(each.left)} | {_cell(each.right)} |"
        if more := len(differences) - MOST_DECLARED:
            yield from ([f"| and {more} more | | |"] if more > 0 else [])
        yield ""


def _dollars(money: Money) -> Iterator[str]:
    if not money.rows:
        return
    priced = f"prices of {local_time.prices_of(money.as_of)}"
    yield from (f"#### USD a month at worst (estimates, {priced})", "", "| | now | with this |", "|---|---:|---:|")
    for row in money.rows:
        yield f"| {row.what} | {_usd(row.before)} | {_usd(row.after)} |"
    yield f"| **in all** | {_usd(money.total_before)} | **{_usd(money.total)}** |"
    yield ""
    rented = next((row.after for row in money.rows if row.what == "rented nodes"), None)
    if rented is not None and (money.rented is None or money.rented > rented):
        held = "an unknown sum" if money.rented is None else f"{money.rented:,.0f}"
        yield f"Rented nodes would cost {held} if all ran all the time; the budget ends them before."
    if money.ceiling is None:
        yield "No ceiling over all of it is declared (budget.total_usd_per_month), so it is told and not judged."
    yield ""


def _usd(usd: float | None) -> str:
    return "not known" if usd is None else f"{usd:,.0f}"


def _rows(changes: Sequence[ResourceChange]) -> Iterator[str]:
    """A row for all resources of a kind to which the same happens."""
    order = {op: n for n, op in enumerate(SIGNS)}
    rows: dict[tuple[str, str, str], list[str]] = {}
    for change in sorted(changes, key=lambda each: (order.get(each.op, -1), each.kind not in KINDS.nodes, each.kind)):
        if not change.kind.startswith(OURS):
            rows.setdefault((change.op, change.kind, ", ".join(change.replaces or change.keys)), []).append(change.name)
    for (op, kind, why), names in rows.items():
        called = ", ".join(_cell(name) for name in sorted(names))
        yield f"| {SIGNS.get(op, op)} | {len(names)} {words(kind)} | {called} | {_cell(why)} |"


def words(kind: str) -> str:
    """`kubernetes:core/v1:ConfigMap` is a config map."""
    name = kind.rsplit(":", 1)[-1]
    return KINDS.nodes.get(kind) or KINDS.words.get(kind) or re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name).lower()


def _drift(drift: Drift) -> Iterator[str]:
    looked = [what for what, seen in (("hosts", drift.hosts), ("resources", drift.resources)) if seen is not None]
    if not looked and not drift.failed:
        return
    yield from ("#### Drift", "")
    for sentence in drift.failed:
        yield f"- {_plain(sentence)}"
    for name, (state, what) in (drift.hosts or {}).items():
        yield f"- {_cell(name)}: {state}{': ' * bool(what)}{_plain(what)}"
    for change in drift.resources or ():
        found = f"{SIGNS.get(change.op, change.op)} {', '.join(change.keys)}".rstrip()
        yield f"- {words(change.kind)} {_cell(change.name)}: {found}"
    if drift.hosts == {}:
        yield f"- none on {drift.asked} hosts"
    if drift.resources is not None and not drift.resources:
        yield "- none of the declared resources"
    yield ""


def _plain(text: Any) -> str:
    """In one line, and nothing of it is Markdown's or HTML's: hosts and resources say it."""
    return re.sub(r"([<>`|*\[\]])", r"\\\1", " ".join(str(text).split()))


def _cell(text: Any) -> str:
    plain = " ".join(str(text).split()).replace("|", "/").replace("`", "")
    return "" if text in (None, "") else f"`{plain[:LONGEST]}{'...' * (len(plain) > LONGEST)}`"
