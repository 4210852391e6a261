"""What a plan may not do, unless somebody answers for it in the stack file (`allow`)."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from ironburst.config.allowance_models import Allowance, Rule
from ironburst.config.models import ClusterConfig
from ironburst.plan.aws import AWS
from ironburst.plan.azure import AZURE
from ironburst.plan.google import GOOGLE
from ironburst.plan.kinds import Kinds, together
from ironburst.plan.money import Money
from ironburst.plan.preview import UNKNOWN, ResourceChange

KINDS = together(Kinds({"baremetal:index:Node": "owned node"}), AWS, GOOGLE, AZURE)
WIDEST = {4: 8, 6: 16}
"""IP version: prefix of the widest network that may be let in; nobody's own is wider"""

SOURCES = (
    *("cidrBlocks", "ipv6CidrBlocks", "cidrIpv4", "cidrIpv6", "sourceRanges"),
    *("sourceAddressPrefix", "sourceAddressPrefixes"),
)
"""keys of a rule that have networks, one or several"""


@dataclass(frozen=True)
class Refusal:
    """`of`: what it is about, "" for the whole stack; `why`: one sentence, with what to do."""

    rule: Rule
    of: str
    why: str


def judge(
    changes: Sequence[ResourceChange],
    config: ClusterConfig,
    before: ClusterConfig | None,
    taking_jobs: Mapping[str, str] | None,
    money: Money,
) -> list[Refusal]:
    """`before`: the declaration that is in force, None: there is none; `taking_jobs`: node -> why its jobs would be
    hurt, "" for one that is drained and has none; None: nobody was asked.
    """
    return [
        *_nodes(changes, taking_jobs),
        *_budget(money),
        *_networks(changes),
        *(_secrets(config, before) if before else ()),
        *_secret_resources(changes),
    ]


def let_through(
    refusals: Sequence[Refusal], allowed: Sequence[Allowance], today: date
) -> list[tuple[Refusal, Allowance | None]]:
    """Each refusal with who answers for it today; None: nobody does."""
    in_force = [each for each in allowed if each.until >= today]
    return [
        (refusal, next((a for a in in_force if (a.rule, a.of or "") == (refusal.rule, refusal.of)), None))
        for refusal in refusals
    ]


def _nodes(changes: Sequence[ResourceChange], taking_jobs: Mapping[str, str] | None) -> Iterator[Refusal]:
    for change in changes:
        harm = _harm(change)
        if not harm:
            continue
        if change.kind in KINDS.control_planes:
            why = "all its nodes lose it, whatever they run"
        elif taking_jobs is None:
            why = "whether it runs jobs wasn't asked (--nodes)"
        else:
            why = taking_jobs.get(change.name, "Slurm doesn't know it, so it counts as busy")
        if why:
            drain = f"drain it first (scontrol update nodename={change.name} state=drain reason=...)"
            do = "" if change.kind in KINDS.control_planes else f"{drain}, or "
            node = f"{KINDS.nodes[change.kind]} {change.name}"
            sentence = f"{node} would be {harm}, and {why}: {do}{_write('node', change.name)}"
            yield Refusal("node", change.name, sentence)


def _harm(change: ResourceChange) -> str:
    """What becomes of a node's jobs; "": nothing."""
    if change.kind not in KINDS.nodes:
        return ""
    reasons = f" for {', '.join(change.replaces)}" if change.replaces else ""
    stops = [key for key in change.keys if key in KINDS.stops.get(change.kind, ())]
    return {
        "replace": f"replaced{reasons}",
        "delete": "taken away",
        "update": f"stopped for its new {', '.join(stops)}" if stops else "",
        "create": "",
        "import": "",
    }.get(change.op, f"changed in a way that isn't known here ({change.op})")


def _budget(money: Money) -> Iterator[Refusal]:
    if money.ceiling is None:
        return
    if money.total is None:
        unknown = ", ".join(row.what for row in money.rows if row.after is None)
        why = f"the price of {unknown} isn't known, so nobody can say whether the month stays within"
        yield Refusal(
            "budget", "", f"{why} {money.ceiling:,.0f} USD: give one under price of its cloud, or {_write('budget')}"
        )
    elif money.total > money.ceiling:
        why = f"a month may cost {money.total:,.0f} USD at worst, more than budget.total_usd_per_month"
        yield Refusal("budget", "", f"{why}, {money.ceiling:,.0f}: declare less, raise it, or {_write('budget')}")


def _networks(changes: Sequence[ResourceChange]) -> Iterator[Refusal]:
    for change in changes:
        if change.op == "delete":
            continue
        opened = sorted(_wide(change.kind, change.after) - _wide(change.kind, change.before))
        if opened:
            known = ["a network that isn't known yet" if each == UNKNOWN else each for each in opened]
            what = KINDS.words.get(change.kind, "security group")
            why = f"{what} {change.name} would let in {', '.join(known)}: name the networks that need it"
            yield Refusal("open-network", change.name, f"{why}, or {_write('open-network', change.name)}")


def _wide(kind: str, inputs: Mapping[str, Any]) -> set[str]:
    """The networks that a security group, or a rule of one, lets in and that are too wide, or not known."""
    if kind in KINDS.firewalls:
        rules = inputs.get(KINDS.firewalls[kind]) or []
    elif kind.endswith(KINDS.rules):
        rules = [inputs] if inputs and _inwards(inputs) else []
        keys = KINDS.open_unless.get(kind, ())
        if keys and rules and not any(inputs.get(key) for key in keys):
            return {"0.0.0.0/0"}
    else:
        return set()
    if not isinstance(rules, list):
        return {UNKNOWN}
    return {network for rule in rules for network in _let_in(rule) if _too_wide(network)}


def _inwards(rule: Mapping[str, Any]) -> bool:
    """Whether it lets somebody in."""
    directions = {rule.get("type", "ingress"), str(rule.get("direction", "ingress")).lower()}
    denied = rule.get("denies") or rule.get("disabled") or str(rule.get("access", "")).lower() == "deny"
    return directions <= {"ingress", "inbound"} and not denied


def _let_in(rule: Any) -> Iterator[str]:
    if not isinstance(rule, Mapping):
        yield UNKNOWN
        return
    for key in SOURCES if _inwards(rule) else ():
        given = rule.get(key)
        yield from (map(str, given) if isinstance(given, list) else [str(given)] if given else [])


def _too_wide(network: str) -> bool:
    if network in KINDS.narrow:
        return False
    try:
        declared = ipaddress.ip_network(network, strict=False)
    except ValueError:  # a value that isn't known yet, or is masked
        return True
    return declared.prefixlen < WIDEST[declared.version]


def _secrets(config: ClusterConfig, before: ClusterConfig) -> Iterator[Refusal]:
    """Of the schedulers, and of each cloud's own copies."""
    yield from _joins(config, before)
    now = {cloud.provider: cloud for cloud in config.clouds}
    for cloud in before.clouds:
        if cloud.secrets and (its := now.get(cloud.provider)):
            yield from _joins(config.in_cloud(its), before.in_cloud(cloud), f" in {cloud.provider}")


def _joins(config: ClusterConfig, before: ClusterConfig, where: str = "") -> Iterator[Refusal]:
    after = {each.kind: each.joins_with for each in config.schedulers}
    for each in before.schedulers:
        if not each.joins_with:
            continue
        key, reference = each.joins_with
        now = after.get(each.kind)
        if each.kind not in after:
            why = f"the scheduler {each.kind} goes, and with it {key}"
        elif now is None or now[1] != reference:
            why = f"{key} of {each.kind}{where} would be {now[1] if now else 'none'} instead of {reference}"
        else:
            continue
        end = "nodes with the old one can't talk to the head any more"
        yield Refusal("join-secret", each.kind, f"{why}, and {end}: {_write('join-secret', each.kind)}")


def _secret_resources(changes: Sequence[ResourceChange]) -> Iterator[Refusal]:
    for change in changes:
        if change.kind.startswith(KINDS.secrets) and change.op in ("delete", "replace"):
            why = f"the secret {change.name} would be {'taken away' if change.op == 'delete' else 'replaced'}"
            yield Refusal("join-secret", change.name, f"{why}: {_write('join-secret', change.name)}")


def _write(rule: Rule, of: str = "") -> str:
    entry = f"rule: {rule}, of: {of}" if of else f"rule: {rule}"
    return f"write under allow who answers for it: {{{entry}, reason: ..., by: ..., until: ...}}"
