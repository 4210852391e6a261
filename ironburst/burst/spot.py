"""Spot under a deadline: jobs that save their work go to spot, on demand, or wait for spot, by the time that they have
to spare. Pure.

What is expected to cost least is what `spot_table` has for the spells of spot that were seen in the market so far.
Nothing is chosen after which on demand, from the next look on, couldn't end the job by its deadline any more.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from typing import Literal, NamedTuple

from ironburst.burst import spot_table
from ironburst.burst.memory import SpotMarket
from ironburst.burst.snapshot import Pool, Snapshot
from ironburst.burst.spot_table import AGES, CELLS, STEP_S, TABLES, Odds, Terms

Do = Literal["wait", "spot", "on-demand"]
_DO: tuple[Do, ...] = ("wait", "spot", "on-demand")  # as spot_table numbers them

# The chance that a spell ends within STEP_S, by (away, there) and its age: of real AWS probes of two zones in October
# 2022 (Can't Be Late, NSDI'24), the first half of the time of shared data's spot_deadline_dev, made to fall with age.
PRIOR: Odds = (
    (0.458, 0.305, 0.261, 0.139, 0.061, 0.035, 0.035, 0.035),
    (0.375, 0.265, 0.186, 0.186, 0.097, 0.086, 0.022, 0.022),
)
_PRIOR_ENDS = 5.0  # spells that have to be seen before a market's own count as much as these
_GRID = 2.0  # of a market's own factor: steps an octave, so that few tables are made
_SEEN_AGAIN_S = 3600.0  # what lies between two sightings of the same is one spell if it isn't longer
_PRICES = 50  # ratios of prices that are told apart


class Choice(NamedTuple):
    """What is to be done for a job now. `spare_s`: what it could still lose, beyond what the site keeps."""

    do: Do
    spare_s: float
    there: bool  # spot is to be had, as far as is known


class Way(NamedTuple):
    """A job's two ways to its end. Seconds and USD an hour of a node."""

    work_s: float  # that it has to do yet
    left_s: float  # to its deadline
    launch_s: float  # from a launch to work, at the longest
    lost_s: float  # of its work may be lost when it leaves a node
    spot_usd: float
    on_demand_usd: float
    usual_s: float  # from a launch to work, as seen lately
    look_s: float  # until it is decided again
    spare_s: float = 0.0  # to be kept for what goes wrong on demand, too


def choose(way: Way, on: Do, market: SpotMarket | None, there: bool, now_s: float) -> Choice:
    """`on`: what it is on (wait: nothing). `market`: what is known of spot; None: nothing. `there`: it is, now."""
    slack_s = way.left_s - way.work_s - way.launch_s - way.lost_s - way.spare_s
    cheapest = _cheapest(way, on, market, there, now_s)
    if cheapest == "wait":
        safe = slack_s >= way.look_s
    elif cheapest == "spot":  # a new one may go before it has done anything
        safe = slack_s >= (0.0 if on == "spot" else min(way.launch_s, way.look_s) + (on == "on-demand") * way.lost_s)
    else:
        safe = True
    return Choice(cheapest if safe else "on-demand", slack_s, there)


def _cheapest(way: Way, on: Do, market: SpotMarket | None, there: bool, now_s: float) -> Do:
    if way.left_s <= 0 or not math.isfinite(way.left_s):
        return "on-demand"
    scale = max(1, math.ceil(way.left_s / (TABLES[-1] * STEP_S)))
    step_s = scale * STEP_S
    steps = next(steps for steps in TABLES if step_s * steps >= way.left_s)
    cells = [math.ceil(seconds * CELLS / step_s - 1e-6) for seconds in (way.usual_s, way.lost_s, way.work_s)]
    price = round(_PRICES * way.spot_usd / way.on_demand_usd) / _PRICES if way.on_demand_usd else 1.0
    age = spot_table.age_group(_age_s(market, there, now_s) / STEP_S)
    left = min(steps, int((way.left_s - way.spare_s) / step_s))
    if left <= 0 or cells[2] > CELLS * left:
        return "on-demand"
    terms = Terms(odds(market), price, cells[0], cells[1], scale)
    return _DO[spot_table.best(terms, steps, left, there, age, _DO.index(on), cells[2])]


def _age_s(market: SpotMarket | None, there: bool, now_s: float) -> float:
    """Of the spell. What nobody has tried is taken to be there for long: trying shows it, and costs nothing where it
    isn't.
    """
    if market is None or market.there is None:
        return math.inf if there else 0.0
    return now_s - (market.since_s if market.there == there else market.seen_s)


def odds(market: SpotMarket | None) -> Odds:
    """Those of PRIOR, times how much more often this market's spells ended."""
    ended, expected = (market.ended, market.expected) if market else ((0.0, 0.0), (0.0, 0.0))
    factors = [(n + _PRIOR_ENDS) / (of + _PRIOR_ENDS) for n, of in zip(ended, expected, strict=True)]
    rounded = [2.0 ** (round(_GRID * math.log2(factor)) / _GRID) for factor in factors]
    away, there = (tuple(round(min(0.95, factor * each), 4) for each in PRIOR[n]) for n, factor in enumerate(rounded))
    return away, there


def learn(market: SpotMarket, there: bool, now_s: float) -> SpotMarket:
    """With what is seen of it now."""
    if now_s <= market.seen_s and market.there is not None:
        return market
    if market.there is None or now_s - market.seen_s > _SEEN_AGAIN_S:
        return replace(market, there=there, since_s=now_s, seen_s=now_s)
    kind = int(market.there)
    expected, ended = list(market.expected), list(market.ended)
    expected[kind] += _expected_ends(kind, market.seen_s - market.since_s, now_s - market.since_s)
    since_s = market.since_s
    if there != market.there:
        ended[kind] += 1
        since_s = now_s
    return replace(
        market,
        there=there,
        since_s=since_s,
        seen_s=now_s,
        expected=(expected[0], expected[1]),
        ended=(ended[0], ended[1]),
    )


def _expected_ends(kind: int, from_s: float, to_s: float) -> float:
    """How many ends PRIOR has for a spell between two ages."""
    total, bounds = 0.0, [*AGES[1:], math.inf]
    for begins, ends, each in zip(AGES, bounds, PRIOR[kind], strict=True):
        steps = min(to_s / STEP_S, ends) - max(from_s / STEP_S, begins)
        total += each * max(0.0, steps)
    return total


def of_place(markets: Iterable[SpotMarket], pool: str, instance_type: str) -> SpotMarket | None:
    """What is known of it; None: nothing."""
    return next((each for each in markets if (each.pool, each.instance_type) == (pool, instance_type)), None)


def seen(markets: Iterable[SpotMarket], snapshot: Snapshot) -> tuple[SpotMarket, ...]:
    """What is known of spot in each pool that has it, with what a snapshot shows: a node of spot that is there proves
    that it is to be had, a place that is closed in all zones that it isn't; else it shows nothing.
    """
    before, known = list(markets), list[SpotMarket]()
    for pool in snapshot.pools:
        for each in pool.by_type if "spot" in pool.markets else ():
            name = each.instance_type if pool.other_types else ""
            market = of_place(before, pool.name, name) or SpotMarket(pool.name, name)
            there = _there(snapshot, each)
            known.append(market if there is None else learn(market, there, snapshot.now_s))
    return tuple(known)


def _there(snapshot: Snapshot, pool: Pool) -> bool | None:
    """Of a pool as of one type; None: nothing shows it."""
    for lease in snapshot.leases:
        its = lease.pool == pool.name and lease.instance_type in ("", pool.instance_type)
        if its and lease.market == "spot" and lease.state in ("joined", "ready"):
            return True
    closed = {
        cool_down.zone
        for cool_down in snapshot.cool_downs
        if cool_down.market == "spot" and cool_down.concerns(pool) and cool_down.nodes == 1 and cool_down.until_s
    }
    return False if closed.issuperset(pool.zones) and pool.zones else None
