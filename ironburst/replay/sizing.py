"""How many nodes to own, which to reserve and how much to rent:
the yearly cost for a wanted wait, from a team's own history. Pure.

Every candidate is the trace (or a sample of it) played through `burst.decide` on that many owned nodes: the policy that
the controller runs, and no other. Where waits are wanted, each candidate gets the most patient policy that keeps them
(a coarse search over its wait target): patience is what makes renting cheap. What it rents is then counted over a year,
in whole instances, and as many of them are reserved as are busy for long enough to be cheaper so.

What it doesn't know: growth, the price of next year, and whether the sample is like the year.
"""

from __future__ import annotations

import math
from bisect import insort
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ironburst.burst import Policy, Pool
from ironburst.burst.limits import REFERENCE, Limits, WaitTarget
from ironburst.replay import results
from ironburst.replay.home import Home
from ironburst.replay.provider import SimulatedCloud
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
    """USD for an hour of one GPU. `owned`: with power, space and people, used or not;
    `reserved`: used or not; None: it isn't for sale.
    """

    owned: float
    rented: float
    reserved: float | None = None

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if value is not None and not 0 < value < math.inf:
                raise SizingError(f"the {name} price is {value:g} USD per GPU-hour; allowed is more than 0")


@dataclass(frozen=True)
class WaitGoal:
    """Waits in hours that must be kept; None: not asked for."""

    p50_h: float | None = None
    p95_h: float | None = None

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if value is not None and not 0 <= value < math.inf:
                raise SizingError(f"the wanted wait {name} is {value:g}; allowed is 0 or more hours")

    @property
    def any(self) -> bool:
        """Whether a wait is asked for at all."""
        return self.p50_h is not None or self.p95_h is not None

    def kept(self, waits: Waits) -> bool:
        """Whether these waits are within what is asked for."""
        pairs = ((waits.p50_h, self.p50_h), (waits.p95_h, self.p95_h))
        return all(limit_h is None or wait_h <= limit_h for wait_h, limit_h in pairs)


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
        """Of a year: owned, reserved and rented nodes."""
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
    """A number of jobs in a row, or all: the stretch whose load (GPU-hours submitted
    an hour) is closest to the whole trace's.
    """
    if len(trace) <= jobs:
        return trace
    starts = np.unique(np.linspace(0, len(trace) - jobs, 50).astype(int))
    total = np.concatenate([[0.0], np.cumsum(trace.gpu_hours)])
    spans_s = trace.submit_s[starts + jobs - 1] - trace.submit_s[starts]
    loads = (total[starts + jobs] - total[starts]) / np.maximum(spans_s, 1.0)
    mean = total[-1] / max(trace.submit_s[-1] - trace.submit_s[0], 1.0)
    start = int(starts[np.abs(np.log(np.maximum(loads, 1e-12) / max(mean, 1e-12))).argmin()])
    return trace.take(slice(start, start + jobs))


def size(
    trace: Trace,
    home: Home,
    policy: Policy,
    cloud: SimulatedCloud,
    prices: Prices,
    wanted: WaitGoal,
    nodes: Sequence[int] | None = None,
    tell: Callable[[int, int], None] | None = None,
    also: Sequence[int] = (),
    over: Callable[[Callable[[Home], Candidate], Sequence[Home]], Iterable[Candidate]] = map,
) -> Sizing:
    """The break-even curve over owned nodes of `home.gpus` GPUs.
    `nodes`: the candidates (None: around the mean use of the history); `also`: more of them.

    `cloud`: its first pool is what is rented, without its limit on nodes, on demand, at `prices.rented`. `tell`: called
    with the candidates that are done, and all. `over`: calls a function on each, as `map` does, or on several at
    once. A job without a time limit in a trace that has them has the longest of
    it: else none could be rented for. Raises SizingError, or ValueError where some job of the trace can never start.
    """
    days = float(trace.submit_s[-1] - trace.submit_s[0]) / 86400
    if days < LEAST_DAYS:
        span = f"the {len(trace):,} jobs were submitted within {24 * days:.1f} h"
        raise SizingError(f"{span}; a year can be told from a history of {24 * LEAST_DAYS:g} h or more")
    trace, mean_gpus = _all_limited(trace), float(trace.gpu_hours.sum()) / (24 * days)
    if nodes is None:
        nodes = [round(load * mean_gpus / home.gpus) for load in LOADS]
    nodes = sorted({*nodes, *also})
    unlimited = replace(cloud, pools=(_unlimited(cloud.pools[0], prices.rented),))
    study = _Study(trace, policy, unlimited, prices, wanted, YEAR_H / (24 * days))
    candidates: list[Candidate] = []
    for candidate in over(study.candidate, [replace(home, nodes=count) for count in nodes]):
        candidates.append(candidate)
        if tell:
            tell(len(candidates), len(nodes))
    kept = (candidate for candidate in candidates if candidate.kept)
    best = min(kept, key=lambda candidate: candidate.total_usd, default=None)
    return Sizing(tuple(candidates), best, trace, days, mean_gpus)


def _all_limited(trace: Trace) -> Trace:
    """Where the trace has time limits, jobs without one have the longest."""
    if trace.limit_s is None:
        return trace
    longest_s = np.fmax.reduce([*trace.limit_s, *trace.duration_s])
    return replace(trace, limit_s=np.where(np.isnan(trace.limit_s), longest_s, trace.limit_s))


def _unlimited(pool: Pool, usd_per_gpu_hour: float) -> Pool:
    return replace(
        pool,
        nodes=tuple(f"{pool.name}-{n}" for n in range(1, RENTABLE + 1)),
        markets=("on-demand",),
        usd_per_hour={"on-demand": pool.each.gpus * usd_per_gpu_hour},
        prepaid_markets=(),
        max_run_s=math.inf,
    )


@dataclass(frozen=True)
class _Study:
    """What all candidates have in common. `times_a_year`: how often the history fits into a year."""

    trace: Trace
    policy: Policy
    cloud: SimulatedCloud
    prices: Prices
    wanted: WaitGoal
    times_a_year: float

    def candidate(self, home: Home) -> Candidate:
        """With the most patient policy that keeps the wanted waits, or else the least patient one."""
        if not self.wanted.any:
            return self._counted(home, self.policy, None)
        low, high, best = 0, len(PATIENCE) - 1, None  # the first place that keeps them is between these
        while low <= high:
            middle = (low + high) // 2
            target = WaitTarget.of_mean(PATIENCE[middle] * REFERENCE.mean_h)
            tried = self._counted(home, replace(self.policy, limits=Limits(target)), PATIENCE[middle])
            if tried.kept:
                best, high = tried, middle - 1
            else:
                low = middle + 1
        return best or tried

    def _counted(self, home: Home, policy: Policy, patience: float | None) -> Candidate:
        """Play the history with this policy, and count what it costs in a year."""
        played = play(self.trace, home, policy, self.cloud)
        waits, prices, gpus = results.waits(self.trace, played.start_s), self.prices, self.cloud.pools[0].each.gpus
        usd_per_hour, reserved_usd_per_hour = gpus * prices.rented, prices.reserved and gpus * prices.reserved
        leases = [(bill.from_s, bill.to_s, usd_per_hour) for bill in played.bills]
        reserved, rented_usd = reservation(leases, YEAR_H / self.times_a_year, reserved_usd_per_hour)
        return Candidate(
            nodes=home.nodes,
            patience=patience,
            waits=waits,
            kept=self.wanted.kept(waits),
            rented_gpu_hours=self.times_a_year * float(self.trace.gpu_hours[played.rented].sum()),
            rented_node_hours=self.times_a_year * rented_usd / usd_per_hour,
            reserved_nodes=reserved,
            owned_usd=YEAR_H * home.nodes * home.gpus * prices.owned,
            reserved_usd=YEAR_H * reserved * gpus * (prices.reserved or 0.0),
            rented_usd=self.times_a_year * rented_usd,
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
        for n, price in enumerate(reversed(there)):
            off[n] += price * (at - last) / 3600
        last = at
        if usd > 0:
            insort(there, usd)
        else:
            there.remove(-usd)
    dearest = max((usd for _, _, usd in leases), default=0.0)
    # leases may outlast the history; a reservation counts as long as that
    worth = 0 if reserved_usd is None else sum(min(usd, span_h * dearest) > span_h * reserved_usd for usd in off)
    return worth, sum(off[worth:])
