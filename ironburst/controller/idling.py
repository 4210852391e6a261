"""Each pool's account of idle times (ironburst.burst.idle), kept in the ledger: what the policy learns from, across restarts.

A gap begins when the last job leaves a rented node and ends when the node is handed to a job again, or, after it was given back, when its
pool next launches a node. One that a person, the provider or a failure ended tells nothing and is dropped.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field, replace

from ironburst.burst import Lease, Pool, from_json, idle, to_json
from ironburst.burst.idle import Terms
from ironburst.burst.snapshot import IdleHistory
from ironburst.controller import records
from ironburst.controller.ledger import Ledger
from ironburst.controller.records import LeaseRow

_LONGEST_AWAY = 256  # given back and not settled: more than any pool gives back within a boot


@dataclass(frozen=True)
class Away:
    """A lease that was given back; its like may be needed again."""

    since_s: float  # idle from then on
    kept_s: float
    terms: Terms
    usd_per_hour: float


@dataclass(frozen=True)
class Account:
    history: IdleHistory = IdleHistory()
    idle: dict[str, float] = field(default_factory=dict)  # lease: idle since
    away: tuple[Away, ...] = ()  # in the order in which they were given back


def account(ledger: Ledger, pool: str) -> Account:
    """A pool's account; an unreadable one (of another version) starts anew."""
    said = ledger.noted(_key(pool))
    try:
        return from_json(Account, json.loads(said)) if said else Account()
    except ValueError:
        return Account()


def began(ledger: Ledger, pool: Pool, lease: LeaseRow, now_s: float) -> None:
    """Its last job has left it. What is prepaid has no gaps: idle costs nothing more."""
    if lease.market not in pool.prepaid_markets:
        now = account(ledger, pool.name)
        _write(ledger, pool.name, replace(now, idle={**now.idle, lease.id: now_s}))


def used(ledger: Ledger, pool: Pool, lease: LeaseRow, now_s: float) -> None:
    """It is handed to a job, or a job is on it. Handed over in the very tick in which it became idle: that was no gap."""
    now = account(ledger, pool.name)
    if lease.id in now.idle:
        since, history = now.idle[lease.id], now.history
        if now_s > since:
            history = idle.used_again(history, _terms(ledger, pool, lease, since, now_s), now_s - since, lease.usd_per_hour)
        _write(ledger, pool.name, replace(now, history=history, idle=_without(now, lease.id)))


def given_back(ledger: Ledger, pool: Pool, lease: LeaseRow, now_s: float) -> None:
    now = account(ledger, pool.name)
    if lease.id in now.idle:
        since = now.idle[lease.id]
        away = Away(since, now_s - since, _terms(ledger, pool, lease, since, now_s), lease.usd_per_hour)
        history = idle.given_back(now.history, away.terms, away.kept_s, lease.usd_per_hour)
        _write(ledger, pool.name, Account(history, _without(now, lease.id), (*now.away, away)[-_LONGEST_AWAY:]))


def launched(ledger: Ledger, pool: str, nodes: int, now_s: float) -> None:
    """The pool rents again: so many of those that were given back last are had again now."""
    now = account(ledger, pool)
    if now.away:
        _write(ledger, pool, _settle(replace(now, away=now.away[:-nodes]), now.away[-nodes:], now_s))


def tidy(ledger: Ledger, pool: str, now_s: float) -> None:
    """Settle what has been away for so long that its length makes no difference; drop what ended otherwise."""
    now = account(ledger, pool)
    ready = {lease.id for lease in ledger.leases() if lease.state == records.READY} if now.idle else set()
    long = tuple(away for away in now.away if now_s - away.since_s > away.terms.break_even_s)
    kept = replace(
        now, idle={id: since for id, since in now.idle.items() if id in ready}, away=tuple(each for each in now.away if each not in long)
    )  # fmt: skip
    if kept != now:
        _write(ledger, pool, _settle(kept, long, now_s))


def _settle(now: Account, away: tuple[Away, ...], now_s: float) -> Account:
    history = now.history
    for each in away:
        history = idle.settled(history, each.terms, each.kept_s, max(now_s - each.since_s, each.kept_s), each.usd_per_hour)
    return replace(now, history=history)


def _terms(ledger: Ledger, pool: Pool, lease: LeaseRow, since_s: float, now_s: float) -> Terms:
    seen = Lease(lease.id, lease.launch, lease.node, lease.pool, lease.zone, lease.market, "ready", (), lease.usd_per_hour, 0.0,
                 since_s, True, lease.from_s)  # fmt: skip
    terms = idle.terms(pool, seen, ledger.cool_downs(now_s), since_s, now_s)
    return terms if math.isfinite(terms.free_s) else Terms(0.0)


def _without(now: Account, lease: str) -> dict[str, float]:
    return {id: since for id, since in now.idle.items() if id != lease}


def _key(pool: str) -> str:
    return f"idle/{pool}"


def _write(ledger: Ledger, pool: str, account: Account) -> None:
    ledger.note(_key(pool), json.dumps(to_json(account), separators=(",", ":")))
