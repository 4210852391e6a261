"""Each pool's log of idle times (ironburst.burst.idle_log), kept in the ledger:
what the policy learns from, across restarts.
"""

from __future__ import annotations

import json
import math
from dataclasses import replace

from ironburst.burst import Pool, from_json, idle, idle_log, to_json
from ironburst.burst.idle import Terms
from ironburst.burst.idle_log import IdleLog
from ironburst.controller import records
from ironburst.controller.ledger import Ledger
from ironburst.controller.records import LeaseRow


def read(ledger: Ledger, pool: str) -> IdleLog:
    """A pool's log; an unreadable one (of another version) starts again."""
    said = ledger.noted(_key(pool))
    try:
        return from_json(IdleLog, json.loads(said)) if said else IdleLog()
    except ValueError:
        return IdleLog()


def began(ledger: Ledger, pool: Pool, lease: LeaseRow, now_s: float) -> None:
    """Its last job has left it. What is prepaid has no gaps: idle costs nothing more."""
    if lease.market not in pool.prepaid_markets:
        _write(ledger, pool.name, idle_log.began(read(ledger, pool.name), lease.id, now_s))


def used(ledger: Ledger, pool: Pool, lease: LeaseRow, now_s: float) -> None:
    """A job has come to an idle lease: its gap ends."""
    now = read(ledger, pool.name)
    if lease.id in now.idle:
        terms = _terms(ledger, pool, lease, now.idle[lease.id], now_s)
        _write(ledger, pool.name, idle_log.used(now, lease.id, terms, lease.usd_per_hour, now_s))


def given_back(ledger: Ledger, pool: Pool, lease: LeaseRow, now_s: float) -> None:
    """An idle lease is given back: its gap ends without a job."""
    now = read(ledger, pool.name)
    if lease.id in now.idle:
        terms = _terms(ledger, pool, lease, now.idle[lease.id], now_s)
        _write(ledger, pool.name, idle_log.given_back(now, lease.id, terms, lease.usd_per_hour, now_s))


def launched(ledger: Ledger, pool: str, nodes: int, now_s: float) -> None:
    """Nodes are rented: what was given back lately was missed."""
    now = read(ledger, pool)
    if now.away:
        _write(ledger, pool, idle_log.launched(now, nodes, now_s))


def tidy(ledger: Ledger, pool: str, now_s: float) -> None:
    """Forget the gaps of leases that are ready no more, and what was given back long ago."""
    now = read(ledger, pool)
    ready = {lease.id for lease in ledger.leases() if lease.state == records.READY} if now.idle else set()
    kept = idle_log.tidied(now, ready, now_s)
    if kept != now:
        _write(ledger, pool, kept)


def _terms(ledger: Ledger, pool: Pool, lease: LeaseRow, since_s: float, now_s: float) -> Terms:
    seen = replace(lease.lease(), state="ready", idle_since_s=since_s, worked=True)
    terms = idle.terms(pool, seen, ledger.cool_downs(now_s), since_s, now_s)
    return terms if math.isfinite(terms.free_s) else Terms(0.0)


def _key(pool: str) -> str:
    return f"idle/{pool}"


def _write(ledger: Ledger, pool: str, log: IdleLog) -> None:
    ledger.note(_key(pool), json.dumps(to_json(log), separators=(",", ":")))
