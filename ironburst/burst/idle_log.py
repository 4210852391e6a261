"""A pool's account of idle times (ironburst.burst.idle), step by step: what the policy learns from. Pure.

A gap begins when the last job leaves a rented node and ends when the node is handed to a job again, or, after it was
given back, when its pool next launches a node. One that a person, the provider or a failure ended tells nothing and is
dropped.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace

from ironburst.burst import idle
from ironburst.burst.idle import Terms
from ironburst.burst.snapshot import IdleHistory

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


def began(account: Account, lease: str, now_s: float) -> Account:
    """Its last job has left it. (What is prepaid has no gaps: idle costs nothing more.)"""
    return replace(account, idle={**account.idle, lease: now_s})


def used(account: Account, lease: str, terms: Terms, usd_per_hour: float, now_s: float) -> Account:
    """It is handed to a job, or a job is on it. Handed over in the very tick in which it became idle: that was no
    gap.
    """
    if lease not in account.idle:
        return account
    since, history = account.idle[lease], account.history
    if now_s > since:
        history = idle.used_again(history, terms, now_s - since, usd_per_hour)
    return replace(account, history=history, idle=_without(account, lease))


def given_back(account: Account, lease: str, terms: Terms, usd_per_hour: float, now_s: float) -> Account:
    if lease not in account.idle:
        return account
    away = Away(account.idle[lease], now_s - account.idle[lease], terms, usd_per_hour)
    history = idle.given_back(account.history, away.terms, away.kept_s, usd_per_hour)
    return Account(history, _without(account, lease), (*account.away, away)[-_LONGEST_AWAY:])


def launched(account: Account, nodes: int, now_s: float) -> Account:
    """The pool rents again: so many of those that were given back last are had again now."""
    return (
        _settle(replace(account, away=account.away[:-nodes]), account.away[-nodes:], now_s) if account.away else account
    )


def tidied(account: Account, ready: Collection[str], now_s: float) -> Account:
    """Settle what has been away for so long that its length makes no difference; drop what isn't among the `ready`
    leases any more.
    """
    long = tuple(away for away in account.away if now_s - away.since_s > away.terms.break_even_s)
    if not long and all(lease in ready for lease in account.idle):
        return account
    kept = replace(
        account,
        idle={id: since for id, since in account.idle.items() if id in ready},
        away=tuple(each for each in account.away if each not in long),
    )
    return _settle(kept, long, now_s)


def _settle(account: Account, away: tuple[Away, ...], now_s: float) -> Account:
    history = account.history
    for each in away:
        history = idle.settled(
            history, each.terms, each.kept_s, max(now_s - each.since_s, each.kept_s), each.usd_per_hour
        )
    return replace(account, history=history)


def _without(account: Account, lease: str) -> dict[str, float]:
    return {id: since for id, since in account.idle.items() if id != lease}
