"""A pool's log of idle times (ironburst.burst.idle), step by step: what the policy learns from. Pure.

A gap begins when the last job leaves a rented node and ends when the node is handed to a job again,
or, after it was given back, when its pool next launches a node. One that a person, the provider or a
failure ended shows nothing and is dropped.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace

from ironburst.burst import idle
from ironburst.burst.idle import Terms
from ironburst.burst.memory import IdleHistory

_MOST_AWAY = 256  # given back and not concluded: more than any pool gives back within a boot


@dataclass(frozen=True)
class Away:
    """A lease that was given back; its like may be needed again."""

    since_s: float  # idle from then on
    kept_s: float
    terms: Terms
    usd_per_hour: float


@dataclass(frozen=True)
class IdleLog:
    """The gaps that have ended, and those that are open."""

    history: IdleHistory = field(default_factory=IdleHistory)
    idle: dict[str, float] = field(default_factory=dict)  # lease: idle since
    away: tuple[Away, ...] = ()  # in the order in which they were given back


def began(log: IdleLog, lease: str, now_s: float) -> IdleLog:
    """Its last job has left it. (What is prepaid has no gaps: idle costs nothing more.)"""
    return replace(log, idle={**log.idle, lease: now_s})


def used(log: IdleLog, lease: str, terms: Terms, usd_per_hour: float, now_s: float) -> IdleLog:
    """It is handed to a job, or a job is on it. Handed over in the very tick
    in which it became idle: that was no gap.
    """
    if lease not in log.idle:
        return log
    since, history = log.idle[lease], log.history
    if now_s > since:
        history = idle.used_again(history, terms, now_s - since, usd_per_hour)
    return replace(log, history=history, idle=_without(log, lease))


def given_back(log: IdleLog, lease: str, terms: Terms, usd_per_hour: float, now_s: float) -> IdleLog:
    """It is given back: its gap ends when its like is needed again."""
    if lease not in log.idle:
        return log
    away = Away(log.idle[lease], now_s - log.idle[lease], terms, usd_per_hour)
    history = idle.given_back(log.history, away.terms, away.kept_s, usd_per_hour)
    return IdleLog(history, _without(log, lease), (*log.away, away)[-_MOST_AWAY:])


def launched(log: IdleLog, nodes: int, now_s: float) -> IdleLog:
    """The pool rents again: that many of those that were given back last are had again now."""
    if not log.away:
        return log
    return _concluded(replace(log, away=log.away[:-nodes]), log.away[-nodes:], now_s)


def tidied(log: IdleLog, ready: Collection[str], now_s: float) -> IdleLog:
    """Conclude what has been away for so long that its length makes no difference;
    drop what isn't among the `ready` leases any more.
    """
    long = tuple(away for away in log.away if now_s - away.since_s > away.terms.break_even_s)
    if not long and all(lease in ready for lease in log.idle):
        return log
    kept = replace(
        log,
        idle={id: since for id, since in log.idle.items() if id in ready},
        away=tuple(away for away in log.away if away not in long),
    )
    return _concluded(kept, long, now_s)


def _concluded(log: IdleLog, ended: tuple[Away, ...], now_s: float) -> IdleLog:
    history = log.history
    for away in ended:
        gap_s = max(now_s - away.since_s, away.kept_s)
        history = idle.concluded(history, away.terms, away.kept_s, gap_s, away.usd_per_hour)
    return replace(log, history=history)


def _without(log: IdleLog, lease: str) -> dict[str, float]:
    return {id: since for id, since in log.idle.items() if id != lease}
