"""How many nodes to own, which to reserve and how much to rent: the yearly cost for a wanted wait, from a team's own
history. Pure.

Every candidate is the trace (or a sample of it) played through `burst.decide` on so many owned nodes: the policy that
the controller runs, and no other. Where waits are wanted, each candidate gets the most patient policy that keeps them
(a coarse search over its wait target): patience is what makes renting cheap. What it rents is then counted over a year,
in whole instances, and as many of them are reserved as are busy for long enough to be cheaper so.

What it doesn't know: growth, the price of next year, and whether the sample is like the year.
"""

from __future__ import annotations

import math
from bisect import insort
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ironburst.burst import Policy, Pool
from ironburst.burst.limits import REFERENCE, Limits, WaitTarget
from ironburst.replay import results
from ironburst.replay.home import Home
from ironburst.replay.outcome import Played
from ironburst.replay.provider import Cloud
from ironburst.replay.results import Waits
from ironburst.replay.simulate import play
from ironburst.replay.traces import Trace

YEAR_H = 8760.0
LEAST_DAYS = 1.0  # of a history
LOADS = (0.0, 0.5, 0.8, 1.0, 1.2, 1.5, 2.0)  # owned GPUs over the mean use: the candidates
PATIENCE = (8.0, 4.0, 2.0, 1.0, 0.5, 0.25, 0.1)  # wait targets that are tried, over REFERENCE
RENTABLE = 4096  # nodes that may be rented in a candidate: as good as no limit


class SizingError(ValueError):
    """A history or prices that can't be used; one sentence."""


@dataclass(frozen=True)
class Prices:
    """USD for an hour of one GPU. `owned`: with power, space and people, used or not; `reserved`: used or not; None: it
    isn't for sale.
    """

    owned: float
    rented: float
    reserved: float | None = None

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if value is not None and not 0 < value < math.inf:
                raise SizingError(f"the {name} price is {value:g} USD per GPU-hour; allowed is more than 0")


@dataclass(frozen=True)
class Wanted:
    """Waits in hours that must be kept; None: not asked for."""

    p50_h: float | None = None
    p95_h: float | None = None

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if value is not None and not 0 <= value < math.inf:
                raise SizingError(f"the wanted wait {name} is {value:g}; allowed is 0 or more hours")

    @property
    def any(self) -> bool:
        return self.p50_h is not None or self.p95_h is not None

    def kept(self, waits: Waits) -> bool:
        return all(
            limit is None or value <= limit for limit, value in ((self.p50_h, waits.p50_h), (self.p95_h, waits.p95_h))
        )


@dataclass(frozen=True)
class Candidate:
    """One point of the break-even curve; USD and hours are of a year.

    `patience`: its wait target over limits.REFERENCE (None: the policy as it was given). `rented_node_hours`: on
    leases, booting and idling too, less what is reserved. `kept`: the wanted waits are.
    """

    nodes: int
    patience: float | None
    waits: Waits
    kept: bool
    rented_gpu_hours: float
    rented_node_hours: float
    reserved_nodes: int
    owned_usd: float
    reserved_usd: float
    rented_usd: float

    @property
    def total_usd(self) -> float:
        return self.owned_usd + self.reserved_usd + self.rented_usd


@dataclass(frozen=True)
class Sizing:
    """The candidates by their nodes; `best`: the cheapest that keeps the wanted waits (None: none does). `sample`: the
    part of the history that was played, with the days that its submits span.
    """

    candidates: tuple[Candidate, ...]
    best: Candidate | None
    sample: Trace
    days: float
    mean_gpus: float


def sample(trace: Trace, jobs: int) -> Trace:
    """So many jobs in a row, or all: the stretch whose load (GPU-hours submitted an hour) is closest to the whole
    trace's.
    """
    if len(trace) <= jobs:
        return trace
    starts = np.unique(np.linspace(0, len(trace) - jobs, 50).astype(int))
    total = np.concatenate([[0.0], np.cumsum(trace.gpu_hours)])
    loads = (total[starts + jobs] - total[starts]) / np.maximum(
        trace.submit_s[starts + jobs - 1] - trace.submit_s[starts], 1.0
    )
    mean = total[-1] / max(trace.submit_s[-1] - trace.submit_s[0], 1.0)
    start = int(starts[np.abs(np.log(np.maximum(loads, 1e-12) / max(mean, 1e-12))).argmin()])
    return trace.take(slice(start, start + jobs))


def size(
    trace: Trace,
    home: Home,
    policy: Policy,
    cloud: Cloud,
    prices: Prices,
    wanted: Wanted,
    nodes: Sequence[int] | None = None,
    tell: Callable[[int, int], None] | None = None,
) -> Sizing:
    """The break-even curve over owned nodes of `home.gpus` GPUs. `nodes`: the candidates (None: around the mean use of
    the history).

    `cloud`: its first pool is what is rented, without its limit on nodes, on demand, at `prices.rented`. `tell`: called
    with the candidates that are done, and all. A job without a time limit in a trace that has them has the longest of
    it: else none could be rented for. Raises SizingError, or ValueError where some job of the trace can never start.
    """
    days = float(trace.submit_s[-1] - trace.submit_s[0]) / 86400
    if days < LEAST_DAYS:
        span = f"the {len(trace):,} jobs were submitted within {24 * days:.1f} h"
        raise SizingError(f"{span}; a year can be told from a history of {24 * LEAST_DAYS:g} h or more")
    if trace.limit_s is not None:
        longest_s = np.fmax.reduce([*trace.limit_s, *trace.duration_s])
        trace = replace(trace, limit_s=np.where(np.isnan(trace.limit_s), longest_s, trace.limit_s))
    mean_gpus = float(trace.gpu_hours.sum()) / (24 * days)
    if nodes is None:
        nodes = sorted({round(load * mean_gpus / home.gpus) for load in LOADS})
    unlimited = replace(cloud, pools=(_unlimited(cloud.pools[0], prices.rented),))
    found: list[Candidate] = []
    for count in nodes:
        found.append(
            _candidate(trace, replace(home, nodes=count), policy, unlimited, prices, wanted, YEAR_H / (24 * days))
        )
        if tell:
            tell(len(found), len(nodes))
    best = min((one for one in found if one.kept), key=lambda one: one.total_usd, default=None)
    return Sizing(tuple(found), best, trace, days, mean_gpus)


def _unlimited(pool: Pool, usd_per_gpu_hour: float) -> Pool:
    names = tuple(f"{pool.name}-{n}" for n in range(1, RENTABLE + 1))
    price = {"on-demand": pool.each.gpus * usd_per_gpu_hour}
    return replace(
        pool, nodes=names, markets=("on-demand",), usd_per_hour=price, prepaid_markets=(), max_run_s=math.inf
    )


def _candidate(
    trace: Trace, home: Home, policy: Policy, cloud: Cloud, prices: Prices, wanted: Wanted, years: float
) -> Candidate:
    """The most patient policy that keeps the wanted waits, or else the least patient one."""
    if not wanted.any:
        played = play(trace, home, policy, cloud)
        return _counted(trace, home, cloud, prices, wanted, years, played, None)
    low, high, best = 0, len(PATIENCE) - 1, None  # the first place that keeps them is between these
    while low <= high:
        middle = (low + high) // 2
        target = WaitTarget.of_mean(PATIENCE[middle] * REFERENCE.mean_h)
        played = play(trace, home, replace(policy, limits=Limits(target)), cloud)
        found = _counted(trace, home, cloud, prices, wanted, years, played, PATIENCE[middle])
        if found.kept:
            best, high = found, middle - 1
        else:
            low = middle + 1
    return best or found


def _counted(
    trace: Trace,
    home: Home,
    cloud: Cloud,
    prices: Prices,
    wanted: Wanted,
    years: float,
    played: Played,
    patience: float | None,
) -> Candidate:
    gpus = cloud.pools[0].each.gpus
    waits = results.waits(trace, played.start_s)
    span_h = YEAR_H / years
    busy = [(bill.from_s, bill.to_s, gpus * prices.rented) for bill in played.bills]
    reserved, left_usd = reservation(busy, span_h, gpus * prices.reserved if prices.reserved else None)
    return Candidate(
        nodes=home.nodes,
        patience=patience,
        waits=waits,
        kept=wanted.kept(waits),
        rented_gpu_hours=years * float(trace.gpu_hours[played.rented].sum()),
        rented_node_hours=years * left_usd / (gpus * prices.rented),
        reserved_nodes=reserved,
        owned_usd=YEAR_H * home.nodes * home.gpus * prices.owned,
        reserved_usd=YEAR_H * reserved * gpus * (prices.reserved or 0.0),
        rented_usd=years * left_usd,
    )


def reservation(
    leases: Sequence[tuple[float, float, float]], span_h: float, reserved_usd: float | None
) -> tuple[int, float]:
    """(how many nodes to reserve, USD of the leases that are left to rent).

    `leases`: (from, to, USD per hour) of one node each, times in seconds; `span_h`: hours that the reservation would be
    paid for, at `reserved_usd` an hour (None: it isn't for sale). A node is reserved where what it takes off the rent
    costs more: the n-th one takes off the n-th dearest lease that is there at each moment. (A policy that knows of the
    reservation rents differently, for less: this is an upper bound on the cost.)
    """
    leases = [lease for lease in leases if lease[0] < lease[1]]
    changes = sorted([(begin, usd) for begin, _, usd in leases] + [(end, -usd) for _, end, usd in leases])
    there: list[float] = []  # prices of the leases that are there, ascending
    off: list[float] = []  # what each reserved node takes off, the first one first
    last = changes[0][0] if changes else 0.0
    for at, usd in changes:
        off += [0.0] * (len(there) - len(off))
        for n, each in enumerate(reversed(there)):
            off[n] += each * (at - last) / 3600
        last = at
        if usd > 0:
            insort(there, usd)
        else:
            there.remove(-usd)
    dearest = max((usd for _, _, usd in leases), default=0.0)
    # leases may outlast the history; a reservation counts as long as that
    worth = 0 if reserved_usd is None else sum(min(each, span_h * dearest) > span_h * reserved_usd for each in off)
    return worth, sum(off[worth:])
