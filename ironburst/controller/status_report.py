"""How things are: queue, home nodes, leases, and money against the budget; as JSON values, and for people."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from functools import partial
from typing import Any, TypeAlias

from ironburst.burst import Job, Node, explain
from ironburst.burst.budget import Ceiling
from ironburst.controller import (
    burn,
    hall_events,
    karpenter_status,
    order_book,
    policy_view,
    spending,
    spot_prices,
    waits_watch,
)
from ironburst.controller.ledger import Ledger
from ironburst.controller.order_book import Order
from ironburst.controller.records import DecisionRow, LeaseRow
from ironburst.document import BudgetDocument, ClusterDocument, PoolDocument
from ironburst.nodes import naming, ranges
from ironburst.ports import Observation
from ironburst.system import local_time, terminal

QUEUE = ("job", "state", "user", "GPUs", "where", "why")
HOME = ("node", "GPUs", "state", "reason")
RENTED = ("node", "state", "what", "paid", "instance")
Look: TypeAlias = Callable[..., list[str]]
"""terminal.table for one terminal"""
LATE_S, LATE_TICKS = 120.0, 6
"""a controller that hasn't ticked for so long, and for so many ticks, is said to be silent"""
COPY_OLD_S = 2 * 86400.0
"""the ledger's newest copy is old then, as the alert LedgerBackupOld and the doctor have it"""


def late(said: dict[str, Any]) -> str:
    """That the controller is silent, as a sentence."""
    return (
        f"the controller has not ticked for {explain.duration(said['late_s'])}: nothing is rented or given back; "
        "start it (`ironburst run`), or see what it says"
    )


def _copied(said: dict[str, Any]) -> tuple[str, bool]:
    """When the ledger was copied last, on the head that ticks, as a sentence; and whether a person is to look."""
    last = said["last_tick"] or {}
    copied_s, head = last.get("copied_s"), last.get("copied_on", "the head")
    if copied_s is None:
        return "", False
    if not copied_s:
        return f"there is no copy of the ledger on {head}: `systemctl start ironburst-backup` makes one", True
    text = f"the ledger was copied on {head} {explain.duration(max(0.0, said['at_s'] - copied_s))} ago"
    old = said["at_s"] - copied_s > COPY_OLD_S
    return text + (": look at `systemctl status ironburst-backup` there" if old else ""), old


def gather(
    document: ClusterDocument,
    observation: Observation,
    ledger: Ledger | None,
    now_s: float,
    decided: Mapping[int, DecisionRow] | None = None,
) -> dict[str, Any]:
    """Everything that is shown, as JSON values. `decided`: of each job that waits, if it is known already."""
    document = spot_prices.priced(document, spot_prices.read(ledger)) if ledger else document
    homes = {each.home_partition: each.kind for each in document.schedulers}
    at_home = [(homes[name], node) for node in observation.nodes for name in node.partitions if name in homes]
    last = json.loads(ledger.noted("last_tick") or "null") if ledger else None
    if decided is None:
        decided = ledger.last_decisions() if ledger else {}
    on: dict[str, list[Job]] = {}
    for job in observation.jobs:
        for name in job.on:
            on.setdefault(name, []).append(job)
    return {
        "at_s": now_s,
        "cluster": document.cluster,
        "serial": document.serial,
        "schedulers": [each.kind for each in document.schedulers],
        "silent": list(observation.silent),
        "unreadable": list(observation.unreadable),
        "last_tick": last,
        "late_s": _late_s(document, last, now_s),
        "queue": [_job(job, decided.get(job.id) if job.pending else None) for job in observation.jobs],
        "home": [{"scheduler": kind, **_home_node(node, on.get(node.name, []))} for kind, node in at_home],
        "leases": [_lease(document, each, on.get(each.node, []), now_s) for each in ledger.leases()] if ledger else [],
        "karpenter": karpenter_status.gather(document, ledger, now_s) if ledger else [],
        "boots": [_boots(pool, ledger) for pool in document.pools] if ledger else [],
        "waits": waits_watch.said(ledger, document, now_s) if ledger else "",
        "halls": hall_events.said(ledger, document) if ledger else [],
        "closed": [asdict(place) for place in ledger.cool_downs(now_s)] if ledger else [],
        "orders": in_force(ledger, now_s) if ledger else [],
        "money": {**money(document, ledger, now_s), **burn.gather(document, ledger, now_s)},
    }


def jobs_at_last(ledger: Ledger) -> int:
    """Jobs that were in the queue at the controller's last tick, as far as it is known."""
    return int((json.loads(ledger.noted("last_tick") or "null") or {}).get("jobs", 0))


def _late_s(document: ClusterDocument, last: dict[str, Any] | None, now_s: float) -> float | None:
    """For how long the controller has not ticked, if that is too long; None: it ticks, or none has run here yet."""
    if last is None:
        return None
    since_s = now_s - float(last["at_s"]) - float(last["took_s"])
    return since_s if since_s > max(LATE_S, LATE_TICKS * document.burst.tick_s) else None


def _boots(pool: PoolDocument, ledger: Ledger) -> dict[str, Any]:
    """`usual_s`: from launch to joined, as measured; None: nothing was."""
    took_s = ledger.newest_boots_s(pool.name, policy_view.BOOTS)
    usual_s = policy_view.usual_boot_s(took_s)
    return {"pool": pool.name, "usual_s": usual_s, "measured": len(took_s), "longest_s": pool.boot_s}


def _boots_line(boots: dict[str, Any]) -> str:
    usual, longest = explain.duration(boots["usual_s"]), explain.duration(boots["longest_s"])
    of = explain.plural(boots["measured"], "node")
    return f"pool {boots['pool']}: {usual} from launch to joined (the median of {of}; {longest} are allowed)"


def _home_node(node: Node, on: list[Job]) -> dict[str, Any]:
    return {
        "node": node.name,
        "states": list(node.states),
        "gpus": node.total.gpus,
        "reason": node.reason,
        "gpus_used": sum(job.each.gpus for job in on),
    }


def _lease(document: ClusterDocument, lease: LeaseRow, on: list[Job], now_s: float) -> dict[str, Any]:
    pool = document.pool(lease.pool)
    return {
        "lease": lease.id,
        "scheduler": document.scheduler_of(pool).kind if pool else "",
        "node": lease.node,
        "state": lease.state,
        "instance_type": lease.instance_type,
        "zone": lease.zone,
        "market": lease.market,
        "instance_id": lease.instance_id,
        "usd_per_hour": lease.usd_per_hour,
        "from_s": lease.from_s,
        "usd": lease.usd(now_s),
        "jobs": [job.id for job in on],
    }


def money(document: ClusterDocument, ledger: Ledger | None, now_s: float) -> dict[str, Any]:
    """Of this month, and the ceilings that count now."""
    declared = order_book.budget(ledger, document, now_s) if ledger else document.budget
    none_declared = BudgetDocument(usd_per_month=0.0)  # what was spent is told all the same
    budget = spending.budget(ledger, declared or none_declared, now_s) if ledger else None
    ceilings = budget.ceilings if budget and declared else ()
    day, today = spot_prices.day(document), datetime.fromtimestamp(now_s, UTC).date()
    return {
        "estimates": True,
        "usd_per_month": declared.usd_per_month if declared else None,
        "spent_usd": budget.spent_usd if budget else 0.0,
        "committed_usd": budget.committed_usd if budget else 0.0,
        "prices_as_of": day,
        "prices_age_days": None if day is None else local_time.age_days(day, today),
        "prices": local_time.prices_of(day, today),
        "ceilings": [_ceiling(ceiling) for ceiling in ceilings if ceiling.from_s <= now_s < ceiling.to_s],
    }


def _ceiling(ceiling: Ceiling) -> dict[str, Any]:
    return {
        "kind": ceiling.kind,
        "account": ceiling.account,
        "usd": ceiling.usd,
        "spent_usd": ceiling.spent_usd,
        "committed_usd": ceiling.committed_usd,
        "from_s": ceiling.from_s,
        "to_s": ceiling.to_s,
    }


def _job(job: Job, decided: DecisionRow | None) -> dict[str, Any]:
    return {
        "job": job.id,
        "called": job.called or str(job.id),
        "scheduler": naming.scheduler_of(job.id),
        "name": job.name,
        "user": job.user,
        "account": job.account,
        "state": job.state,
        "nodes": job.nodes,
        "gpus": job.nodes * job.each.gpus,
        "on": list(job.on),
        "waits_since_s": job.since_s if job.pending else None,
        "why": decided.text if decided else "",
        "code": decided.code if decided else "",
    }


def lines(said: dict[str, Any], columns: int = terminal.UNLIMITED, colour: bool = False) -> list[str]:
    """What `gather` gathered, for people, in this number of columns."""
    last = said["last_tick"]
    ago = f"last tick {explain.duration(said['at_s'] - last['at_s'])} ago" if last else "no controller has run yet"
    look = partial(terminal.table, columns=columns, colour=colour)
    kinds = said["schedulers"] if len(said["schedulers"]) > 1 else [None]
    sides = [_side(said, look, kind, f" of {naming.SCHEDULERS[kind]}" if kind else "") for kind in kinds]
    copied, old = _copied(said)
    below = [
        *map(karpenter_status.line, said["karpenter"]),
        *said["halls"],
        *[_boots_line(each) for each in said["boots"] if each["usual_s"] is not None],
        *([f"waits: {said['waits']}"] if said["waits"] else []),
        *[_closed_line(place) for place in said["closed"]],
        _money_line(said["money"]),
        *[f"  {text}" for text in burn.lines(said["money"])],
        *[_ceiling_line(row) for row in said["money"]["ceilings"] if row["kind"] == "day" or row["account"]],
        *([_disk_line(said["ticks"])] if said["ticks"]["files"] else []),
        *([copied] if copied and not old else []),
    ]
    return [
        f"cluster {said['cluster']}, document {said['serial']}, {ago}",
        *terminal.wrapped([late(said)] if said["late_s"] is not None else [], columns),
        *terminal.wrapped([copied] if old else [], columns),
        *terminal.wrapped([order_line(each) for each in said["orders"]], columns),
        "",
        *itertools.chain(*sides),
        "rented",
        *(_rented(said, look) if said["leases"] else ["  nothing"]),
        *terminal.wrapped(below, columns),
    ]


def _side(said: dict[str, Any], look: Look, kind: str | None, whose: str = "") -> list[str]:
    """The queue and home of one scheduler; `kind` None: there is only one."""
    if kind in said["silent"]:
        return [f"queue{whose}: no answer"]
    queue, home = ([item for item in said[key] if kind in (None, item["scheduler"])] for key in ("queue", "home"))
    jobs = look(QUEUE, [_job_row(job, said["at_s"]) for job in queue], right=("job", "GPUs")) if queue else []
    nodes = look(HOME, [_home_row(node) for node in home], right=("GPUs",)) if home else ["  no node"]
    return [f"queue{whose}", *(jobs or ["  empty"]), f"home{whose}", *nodes]


def _job_row(job: dict[str, Any], now_s: float) -> list[str]:
    where = ranges.compact(job["on"])
    waits = "" if job["waits_since_s"] is None else f"waits {explain.duration(max(0.0, now_s - job['waits_since_s']))}"
    return [_called(job), job["state"], job["user"], str(job["gpus"]), where or waits, job["why"]]


def _home_row(node: dict[str, Any]) -> list[str]:
    return [node["node"], f"{node['gpus_used']}/{node['gpus']}", "+".join(node["states"]), node["reason"]]


def _rented(said: dict[str, Any], look: Look) -> list[str]:
    rows = [
        [
            lease["node"],
            lease["state"],
            f"{lease['instance_type']} {lease['market']} {lease['zone'] or '(no zone yet)'}",
            explain.usd(lease["usd"]),
            lease["instance_id"] or "-",
        ]
        for lease in said["leases"]
    ]
    return look(RENTED, rows, right=("paid",))


def _called(job: dict[str, Any]) -> str:
    """As people call it: Slurm's number; a pod's or a gang's name, for its number is nobody's."""
    return str(job["called"]) if job["scheduler"] == "slurm" else str(job["name"])


def _closed_line(closed: dict[str, Any]) -> str:
    until = "a person reopens it" if closed["until_s"] is None else local_time.at(closed["until_s"])
    kind = f" {closed['instance_type']}" if closed["instance_type"] else ""
    place = f"{closed['pool']} {closed['zone']} {closed['market']}{kind} for {closed['nodes']}+ nodes"
    return f"  closed: {place} until {until}: {closed['reason']}"


def _money_line(money: dict[str, Any]) -> str:
    month = money["usd_per_month"]
    limit = "no budget declared" if month is None else f"of {explain.usd(month)} a month"
    spent = f"spent {explain.usd(money['spent_usd'])}, committed {explain.usd(money['committed_usd'])}"
    return f"money (estimates, prices of {money['prices']}): {spent}, {limit}"


def _ceiling_line(ceiling: dict[str, Any]) -> str:
    whose = f"account {ceiling['account']}, this " if ceiling["account"] else "this "
    spent, aside = explain.usd(ceiling["spent_usd"]), explain.usd(ceiling["committed_usd"])
    left = f"{spent} spent, {aside} set aside of {explain.usd(ceiling['usd'])}"
    return f"  {whose}{ceiling['kind']}: {left}, until {local_time.at(ceiling['to_s'])}"


def order_line(said: dict[str, Any]) -> str:
    """What a person ordered, and what lifts it."""
    return f"{local_time.local(said['text'])} (`{said['lifted_by']}` lifts it)"


def _disk_line(kept: dict[str, Any]) -> str:
    a_day = "" if kept["mb_a_day"] is None else f", {kept['mb_a_day']:.2g} MB a day"
    return f"ticks on disk: {kept['bytes'] / 1e6:.2g} MB since {local_time.at(kept['from_s'])}{a_day}"


def in_force(ledger: Ledger, now_s: float) -> list[dict[str, object]]:
    """For `status --json` and the page."""
    return [
        {
            "verb": order.asked.verb,
            "target": order.asked.target,
            "who": order.who,
            "why": order.asked.why,
            "at_s": order.at_s,
            "until_s": order.asked.until_s,
            "what": order.what,
            "text": order.text,
            "lifted_by": lifted_by(order),
        }
        for order in order_book.in_force(ledger, now_s)
    ]


def lifted_by(order: Order) -> str:
    """The command that ends it."""
    asked = order.asked
    return {
        "close": f"ironburst open {asked.target}",
        "budget": "ironburst budget clear",
        "limit": f"ironburst limit {asked.target} --clear",
    }.get(asked.verb, "ironburst resume")
