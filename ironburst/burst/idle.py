"""When an idle lease is given back: ski rental that learns from the pool's own idle
times, never over twice the best in hindsight.

An idle lease costs its price (to "rent"); given back and needed again it costs a boot without work and what goes with
it (to "buy", `buy_s` seconds at its price). Who knows how long the idle time (the gap) is pays min(rent of the whole
gap, buy). Giving back when the rent has reached the price of buying (break-even) pays at most twice that in every
single gap, and nothing better is possible in every single gap.

**The cap.** `credit` = 2 x (best in hindsight) - (paid), over all gaps of a pool. Giving back after rent r < buy loses
most against a gap that ends right then: r + buy is paid, 2 r allowed, so buy - r is lost. A lease is given back early
only if the credit covers that loss, and the loss is taken off at once, as if the worst had come (`given_back`); what
the true length gives back is added when it is known (`concluded`). A gap that ends in use at r <= buy adds
2 r - r >= 0, one given up at break-even 2 buy - 2 buy = 0. So no step ends with credit < 0: **after every gap, all that
was paid for idle time and boots again is <= 2 x the best in hindsight**, whatever the gaps, however many leases are
idle at once, and even if an adversary knows the rule. (Decisions come by the tick: each gap may add a tick of rent. A
lease kept beyond break-even for a job that then never comes adds at most one boot time; that is taken off the credit
too. A person's limit below break-even is obeyed, and gives the cap up.)

**The gain.** Within the cap, the moment is taken that would have cost least over the pool's newest gaps. Where gaps are
long, a lease goes at once: the credit doubles with each long gap (giving back c before break-even leaves c more), so
one short gap is enough to start.

Source: Karlin, Manasse, Rudolph, Sleator, Competitive snoopy caching (1988), for break-even; Purohit, Svitkina, Kumar,
Improving online algorithms via ML predictions (NeurIPS 2018), for trusting a prediction as far as a cap allows. The
credit over the sequence is ours.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING

from ironburst.burst.cost import billed_s, boot_s
from ironburst.burst.memory import IdleHistory
from ironburst.burst.snapshot import CoolDown, Lease, Pool

if TYPE_CHECKING:  # it is loaded where it is used: `ironburst status` would wait for it
    import numpy as np

NEWEST = 64  # gaps that are learned from: some days of a busy pool, so that a change of the load is followed
ENOUGH = 8  # gaps below which nothing is learned
_DEARER_S = 3600.0  # a node that must be had again at a dearer price is taken to be used this long
_ROUNDING_S = 1e-6


@dataclass(frozen=True)
class Terms:
    """What the idle time of one lease costs, all in seconds at its price, counted from the moment it became idle."""

    buy_s: float  # having it again
    free_s: float = 0.0  # paid for anyway up to then: minimum billing, the increment that work began
    increment_s: float = 0.0  # billed in such steps after that; 0: by the second

    def rent_s(self, idle_s: float) -> float:
        """What idle time up to `idle_s` costs."""
        over = max(0.0, idle_s - self.free_s)
        return self.increment_s * math.ceil(over / self.increment_s - 1e-9) if self.increment_s else over

    def same_until_s(self, idle_s: float) -> float:
        """The longest idle time that costs no more than `idle_s`."""
        return max(idle_s, self.free_s + self.rent_s(idle_s))

    @property
    def break_even_s(self) -> float:
        """The longest idle time whose rent is not over the price of buying."""
        steps = self.increment_s * math.floor(self.buy_s / self.increment_s + 1e-9) if self.increment_s else self.buy_s
        return self.free_s + steps

    def best_s(self, gap_s: float) -> float:
        """The best in hindsight."""
        return min(self.rent_s(gap_s), self.buy_s)

    def loss_s(self, idle_s: float) -> float:
        """The most that giving back now can take off the credit: the gap ends right after. Negative: it adds."""
        rent = self.rent_s(idle_s)
        ends = rent + self.increment_s if idle_s >= self.free_s + rent - _ROUNDING_S else rent
        return rent + self.buy_s - 2 * min(ends, self.buy_s)


def terms(pool: Pool, lease: Lease, cool_downs: Iterable[CoolDown], idle_since_s: float, now_s: float) -> Terms:
    """The terms of a lease that has been idle since then.

    Having it again costs a boot (or the minimum billing, if that is longer), at the price of the cheapest
    type and market that is open: where the lease's own place has refused lately, the dearer price for an hour
    of use on top; where none is open, twice.
    """
    if lease.market in pool.prepaid_markets:
        return Terms(buy_s=0.0, free_s=math.inf)
    again = max(boot_s(pool), pool.min_billing_s)
    its_own = [each for each in cool_downs if each.pool == pool.name]
    closed = {
        (each.instance_type, cool_down.zone, cool_down.market)
        for cool_down in its_own
        for each in pool.by_type
        if cool_down.concerns(each) and (cool_down.until_s is None or cool_down.until_s > now_s)
    }
    if (lease.instance_type or pool.instance_type, lease.zone, lease.market) in closed:
        prices = [
            usd
            for each in pool.by_type
            for market in each.markets
            if (usd := each.usd_per_hour.get(market)) is not None
            if any((each.instance_type, zone, market) not in closed for zone in each.zones)
        ]
        dearer = max(1.0, min(prices) / lease.usd_per_hour) if prices and lease.usd_per_hour > 0 else 2.0
        again = again * dearer + (_DEARER_S * (dearer - 1) if prices else 0.0)
    return Terms(again, _paid_ahead(pool, lease, idle_since_s), pool.billing_increment_s)


def _paid_ahead(pool: Pool, lease: Lease, at_s: float) -> float:
    """Seconds from `at_s` that are paid for anyway."""
    if lease.paid_from_s is None:
        return 0.0
    used = max(0.0, at_s - lease.paid_from_s)
    return max(0.0, billed_s(pool, used) - used)


@lru_cache(maxsize=1024)  # leases of a pool ask again and again, and their terms are mostly alike
def keep_s(history: IdleHistory, terms: Terms, usd_per_hour: float) -> float:
    """How long a lease is kept idle before it is given back: break-even,
    or what the pool's gaps teach within the credit.
    """
    last = terms.break_even_s
    if len(history.gaps_s) < ENOUGH or usd_per_hour <= 0 or not math.isfinite(last):
        return last
    import numpy as np

    credit = max(0.0, history.credit_usd * 3600 / usd_per_hour)
    gaps = np.array(history.gaps_s[-NEWEST:])
    # moments that can be best: where a gap of the past ends, as early as the credit
    # allows, the ends of increments, break-even
    earliest = terms.free_s + max(0.0, terms.buy_s - credit)
    increments = min(NEWEST, int(terms.buy_s / terms.increment_s)) if terms.increment_s else 0
    steps = terms.free_s + terms.increment_s * np.arange(increments)
    moments = np.concatenate(([0.0, earliest], gaps, steps))
    moments = np.maximum(moments, terms.free_s + _rents(terms, moments))  # as long as it costs no more
    moments = np.append(moments[moments < last], last)
    rents = _rents(terms, moments)
    # `Terms.loss_s`, at moments where an increment ends
    losses = rents + terms.buy_s - 2 * np.minimum(rents + terms.increment_s, terms.buy_s)
    allowed = (losses <= credit + _ROUNDING_S) | (moments == last)
    moments, rents = moments[allowed], rents[allowed]
    costs = np.where(gaps <= moments[:, None], _rents(terms, gaps), rents[:, None] + terms.buy_s)
    expected = costs.sum(axis=1) / len(gaps)
    # the latest of equal ones: it serves more jobs for the same money
    return float(moments[expected <= expected.min() + _ROUNDING_S].max())


def _rents(terms: Terms, idle_s: np.ndarray) -> np.ndarray:
    """`Terms.rent_s` of each."""
    import numpy as np

    over = np.maximum(0.0, idle_s - terms.free_s)
    return terms.increment_s * np.ceil(over / terms.increment_s - 1e-9) if terms.increment_s else over


# ---- the credit: what happened to a gap


def used_again(history: IdleHistory, terms: Terms, gap_s: float, usd_per_hour: float) -> IdleHistory:
    """A lease that was kept is used again after `gap_s`."""
    return _with(history, 2 * terms.best_s(gap_s) - terms.rent_s(gap_s), usd_per_hour, gap_s)


def given_back(history: IdleHistory, terms: Terms, kept_s: float, usd_per_hour: float) -> IdleHistory:
    """A lease is given back after `kept_s`; the worst is assumed until the gap is `concluded`."""
    return _with(history, -terms.loss_s(kept_s), usd_per_hour)


def concluded(history: IdleHistory, terms: Terms, kept_s: float, gap_s: float, usd_per_hour: float) -> IdleHistory:
    """Its like was needed again `gap_s` after it had become idle;
    or the gap is known to be at least that long, break-even or more.
    """
    change = 2 * terms.best_s(gap_s) - terms.rent_s(kept_s) - terms.buy_s
    return _with(history, change + terms.loss_s(kept_s), usd_per_hour, gap_s)


def _with(history: IdleHistory, change_s: float, usd_per_hour: float, *gap_s: float) -> IdleHistory:
    return replace(
        history,
        gaps_s=(*history.gaps_s, *gap_s)[-NEWEST:],
        credit_usd=history.credit_usd + change_s * usd_per_hour / 3600,
    )
