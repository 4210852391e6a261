"""What the page shows, of what the controller's files say. Pure: values in, the template's values out.

Everything in it is text of others (names of jobs, users, reasons): the template escapes it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ironburst.burst import explain
from ironburst.controller.records import DecisionRow, EventRow
from ironburst.nodes import naming
from ironburst.page import broken
from ironburst.page.broken import Trouble
from ironburst.page.history import Picture
from ironburst.page.seen import At, Look, PageFiles, Usd

ROWS = 200  # jobs at a time
SENTENCES = 500  # jobs that are told of in whole; the others' reason is shown alone
DECISIONS = 100
_WORDS = {"wait": "waits", "infeasible": "can't be rented for", "would_rent": "would rent", "given_up": "given up"}


@dataclass(frozen=True)
class JobLine:
    """One job of the queue."""

    id: str
    name: str
    user: str
    account: str
    state: str
    gpus: int
    where: str
    why: str
    more: tuple[str, ...] = ()


@dataclass(frozen=True)
class Queue:
    """Those that are asked for, as many as are shown."""

    jobs: list[JobLine]
    found: int
    of: int
    waiting: int
    running: int
    asked: str = ""


@dataclass(frozen=True)
class Bar:
    """One ceiling. `spent` and `aside`: parts of it, 0 to 100 together."""

    name: str
    text: str
    until: str
    spent: float
    aside: float


@dataclass(frozen=True)
class Day:
    """What a day cost: (account, pool, USD), the most first."""

    name: str
    usd: str
    rows: list[tuple[str, str, str]]


@dataclass(frozen=True)
class Decided:
    """One line of what was decided and done."""

    at_s: float
    when: str
    until: str
    what: str
    job: str
    text: str


@dataclass(frozen=True)
class View:
    """All of the page."""

    cluster: str
    serial: int
    made_s: float
    made: str
    tick: str
    late: str
    tiles: list[tuple[str, str, str]]  # (words, figure, the section that has more)
    broken: list[Trouble]
    queue: Queue
    pictures: Sequence[Picture]
    leases: list[dict[str, str]]
    karpenter: list[dict[str, str]]
    bars: list[Bar]
    days: list[Day]
    burn: Sequence[str]
    prices: str
    home: list[dict[str, str]]
    decisions: list[Decided]
    drift: list[dict[str, str]] = field(default_factory=list)
    drift_text: str = ""
    links: Sequence[tuple[str, str]] = ()


def view(seen: PageFiles, at: At, asked: str = "", rows: int | None = ROWS) -> View:
    """`asked`: words that the jobs shown have; `rows`: that many of them at most, None: all."""
    said = seen.said
    drift_text, drift = _drift(seen.look, said["at_s"], at)
    troubles, days = broken.troubles(seen, at), [_day(name, usd) for name, usd in seen.spent]
    return View(
        cluster=said["cluster"],
        serial=said["serial"],
        made_s=said["at_s"],
        made=at(said["at_s"]),
        tick=_tick(seen, at),
        late=seen.late,
        tiles=_tiles(said, troubles, days),
        broken=troubles,
        queue=queue(seen, asked, rows),
        pictures=seen.pictures,
        leases=[_lease(lease, seen.names, at) for lease in said["leases"]],
        karpenter=[_karpenter(pool) for pool in said["karpenter"]],
        bars=[_bar(ceiling, at) for ceiling in said["money"]["ceilings"]],
        days=days,
        burn=seen.burn,
        prices=said["money"]["prices"],
        home=[_home(node) for node in said["home"]],
        decisions=_decisions(seen, at),
        drift=drift,
        drift_text=drift_text,
        links=seen.links,
    )


def _tiles(said: dict[str, Any], troubles: list[Trouble], days: list[Day]) -> list[tuple[str, str, str]]:
    home, leases, money = said["home"], said["leases"], said["money"]
    acts = sum(trouble.act for trouble in troubles)
    used, gpus = sum(node["gpus_used"] for node in home), sum(node["gpus"] for node in home)
    nodes = len(leases) + sum(pool["nodes"] for pool in said["karpenter"])
    month = "" if money["usd_per_month"] is None else f" of {explain.dollars(money['usd_per_month'])}"
    return [
        ("for a person to do", str(acts) if acts else "nothing", "broken"),
        ("jobs that wait", f"{sum(job['state'] == 'PENDING' for job in said['queue']):,}", "queue"),
        ("GPUs in use at home", f"{used:,} of {gpus:,}", "home"),
        ("rented nodes", f"{nodes:,}", "leases"),
        ("rented, an hour", explain.usd(money["usd_per_hour"]), "money"),
        *_fixed_tile(money),
        *[(f"{day.name}", day.usd, "money") for day in days[1:2]],
        ("spent this month", f"{explain.usd(money['spent_usd'])}{month}", "money"),
    ]


def _fixed_tile(money: dict[str, Any]) -> list[tuple[str, str, str]]:
    """A price that isn't known is no zero."""
    if not money["fixed"]:
        return []
    unknown = money["fixed_unknown"]
    figure = explain.usd(money["fixed_usd_per_hour"]) if unknown < len(money["fixed"]) else "unknown"
    partly = f", {unknown} of unknown price" if 0 < unknown < len(money["fixed"]) else ""
    return [(f"{explain.plural(len(money['fixed']), 'fixed cloud node')}, an hour{partly}", figure, "money")]


def _tick(seen: PageFiles, at: At) -> str:
    last = seen.said["last_tick"]
    if last is None:
        return "no controller has run with this ledger yet"
    ago = explain.duration(max(seen.said["at_s"] - last["at_s"], 0.0))
    kept = f"; queue and nodes are as they were then, last changed {at(seen.tick_s)}" if seen.tick_s else ""
    return f"the controller's last tick was at {at(last['at_s'])}, {ago} before{kept}"


# ---- drift


def _drift(look: Look, now_s: float, at: At) -> tuple[str, list[dict[str, str]]]:
    if look.report is None:
        return look.why, []
    kind = "looked, and changed nothing" if look.report["check"] else "converged"
    ago = explain.duration(max(now_s - look.report["started"], 0.0))
    text = f"{kind} at {at(look.report['started'])}, {ago} before, document {look.report['serial']} ({look.where})"
    hosts = look.report["hosts"].items()
    rows = [
        {"host": name, "state": host["state"], "text": "" if host["state"] in broken.DONE else broken.host_text(host)}
        for name, host in hosts
    ]
    return text, rows


# ---- the queue


def queue(seen: PageFiles, asked: str = "", rows: int | None = ROWS) -> Queue:
    """Those that wait first, the longest wait first; of those with every word that is asked for."""
    jobs, words = seen.said["queue"], asked.casefold().split()
    found = [job for job in jobs if not words or all(_has(job, word) for word in words)]
    found.sort(key=lambda job: (job["state"] != "PENDING", job["waits_since_s"] or 0.0, job["called"]))
    if words:
        found.sort(key=lambda job: words[0] not in (called(job).casefold(), str(job["job"])))
    waiting = sum(job["state"] == "PENDING" for job in jobs)
    running = sum(bool(job["on"]) for job in jobs)
    shown = [_line(job, seen, n < SENTENCES) for n, job in enumerate(found if rows is None else found[:rows])]
    return Queue(shown, len(found), len(jobs), waiting, running, asked)


def _has(job: dict[str, Any], word: str) -> bool:
    texts = (called(job), job["name"], job["user"], job["account"], job["state"])
    return any(word in text.casefold() for text in texts)


def called(job: dict[str, Any]) -> str:
    """As people call it: Slurm's number; a pod's or a gang's name, for its number is nobody's."""
    return str(job["called"]) if job["scheduler"] == "slurm" else str(job["name"])


def _line(job: dict[str, Any], seen: PageFiles, whole: bool) -> JobLine:
    """`whole`: with the sentence and what was not done, else with the reason alone."""
    since_s, now_s = job["waits_since_s"], seen.said["at_s"]
    where = explain.listed(job["on"])
    if since_s is not None:
        wait_s = now_s - since_s
        where = f"waits {explain.duration(wait_s)}" if wait_s >= 0 else f"may start in {explain.duration(-wait_s)}"
    told = list(seen.why(job["job"])) if whole and job["state"] == "PENDING" else []
    why = told[0] if told else job["why"]
    if job["state"] == "PENDING" and not why:
        why = "the controller has decided nothing about it yet"
    return JobLine(
        id=called(job),
        name=job["name"],
        user=job["user"],
        account=job["account"],
        state=job["state"],
        gpus=job["gpus"],
        where=where,
        why=why,
        more=tuple(line.strip() for line in told[1:]),
    )


# ---- nodes and money


def _home(node: dict[str, Any]) -> dict[str, str]:
    states = "+".join(node["states"])
    used = f"{node['gpus_used']} of {node['gpus']}"
    return {"node": node["node"], "states": states, "used": used, "reason": node["reason"]}


def _lease(lease: dict[str, Any], names: Mapping[int, str], at: At) -> dict[str, str]:
    return {
        "node": lease["node"],
        "state": lease["state"],
        "what": f"{lease['instance_type']} {lease['market']}",
        "zone": lease["zone"] or "no zone yet",
        "jobs": explain.listed(names.get(job, naming.called(job)) for job in lease["jobs"]),
        "since": at(lease["from_s"]) if lease["from_s"] is not None else "not launched",
        "price": f"{explain.usd(lease['usd_per_hour'])}/h",
        "usd": explain.usd(lease["usd"]),
        "instance": lease["instance_id"] or "",
    }


def _karpenter(pool: dict[str, Any]) -> dict[str, str]:
    limit = "not written yet" if pool["limit_nodes"] is None else explain.plural(pool["limit_nodes"], "node")
    return {
        "pool": pool["node_pool"],
        "what": f"{pool['nodes']} × {pool['instance_type']} {pool['market']}",
        "price": f"{explain.usd(pool['usd_per_hour'])}/h",
        "usd": explain.usd(pool["usd"]),
        "limit": limit,
    }


def _bar(row: dict[str, Any], at: At) -> Bar:
    usd, spent, aside = row["usd"], row["spent_usd"], row["committed_usd"]
    finite = 0 < usd < float("inf")
    part = 100 * min(spent / usd, 1.0) if finite else 0.0
    limit = explain.usd(usd) if usd < float("inf") else "no limit"
    text = f"{explain.usd(spent)} spent, {explain.usd(aside)} set aside of {limit}"
    second = min(100 * aside / usd, 100.0 - part) if finite else 0.0
    return Bar(broken.ceiling_name(row), text, at(row["to_s"]), part, second)


def _day(name: str, usd: Usd) -> Day:
    rows = [(who, pool, cost) for pool, of in usd.items() for who, cost in of.items()]
    rows.sort(key=lambda row: -row[2])
    total = explain.usd(sum(cost for _, _, cost in rows))
    return Day(
        name, total, [(who or "accounts without a ceiling", pool, explain.usd(cost)) for who, pool, cost in rows]
    )


# ---- what was decided


def _decisions(seen: PageFiles, at: At) -> list[Decided]:
    """Of jobs, and what was done with nodes; the newest first."""
    rows = [_decision(row, seen.names, at) for row in seen.decisions]
    rows += [_event(row, seen.names, at) for row in seen.events if row.kind not in broken.ON_TOP]
    return sorted(rows, key=lambda row: -row.at_s)[:DECISIONS]


def _decision(row: DecisionRow, names: Mapping[int, str], at: At) -> Decided:
    until = at(row.last_s) if row.last_s - row.at_s >= 1 else ""
    return Decided(
        row.at_s, at(row.at_s), until, _WORDS.get(row.kind, row.kind), names.get(row.job, str(row.job)), row.text
    )


def _event(row: EventRow, names: Mapping[int, str], at: At) -> Decided:
    job = "" if row.job is None else names.get(row.job, str(row.job))
    what = _WORDS.get(row.kind, row.kind.replace("_", " "))
    return Decided(row.at_s, at(row.at_s), "", what, job, row.text)
