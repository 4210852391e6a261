"""What the published policies pay in dollars, with the cost model of benchmarks.dollars and none of its policy.

They decide as in benchmarks.peers. A job whose limit ends is given instances of its own: of all types with enough GPUs
a node the one that costs least an hour, on demand, in the first zone that has capacity; where none has, the next type;
where no type has, all are tried again after a while. It starts when they have booted, and they end with it: no idle
time, no sharing.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks import peers
from benchmarks.offers import ON_DEMAND
from benchmarks.peers import NODE_GPUS
from ironburst.burst import Pool
from ironburst.replay.provider import Capacity, SimulatedCloud
from ironburst.replay.traces import Trace


@dataclass(frozen=True)
class Paid:
    """`start_s`: when each job started; `rented`; `usd_of`: what was paid for each; the part of it that instances
    booted.
    """

    start_s: np.ndarray
    rented: np.ndarray
    usd_of: np.ndarray
    boot_usd: float
    refusals: int

    @property
    def usd(self) -> float:
        return float(self.usd_of.sum())


def pay(trace: Trace, pool_gpus: int, peer: peers.Peer, cloud: SimulatedCloud) -> Paid:
    """`cloud`: whose on-demand prices, zones, boot times, minimum billing and shortages hold."""
    outcome = peers.run(trace, pool_gpus, peer)
    capacity = Capacity(cloud, float(trace.submit_s[0]))
    offers = sorted((pool for pool in cloud.pools if ON_DEMAND in pool.markets), key=_price)
    start, usd, boot_usd, refusals = outcome.start_s.copy(), np.zeros(len(trace)), 0.0, 0
    asking = [(float(outcome.start_s[job]), int(job)) for job in np.flatnonzero(outcome.rented)]
    heapq.heapify(asking)
    while asking:
        now, job = heapq.heappop(asking)
        nodes = -(-int(trace.gpus[job]) // NODE_GPUS)
        pool, refused = _offer(offers, -(-int(trace.gpus[job]) // nodes), capacity, now)
        refusals += refused
        if pool is None:
            heapq.heappush(asking, (now + cloud.cool_down_s, job))
            continue
        start[job] = now + pool.boot_s
        usd[job] = nodes * _price(pool) * max(pool.min_billing_s, pool.boot_s + float(trace.duration_s[job])) / 3600
        boot_usd += nodes * _price(pool) * pool.boot_s / 3600
    return Paid(start, outcome.rented, usd, boot_usd, refusals)


def _offer(offers: Sequence[Pool], gpus: int, capacity: Capacity, now: float) -> tuple[Pool | None, int]:
    """The cheapest type with room and capacity, and how often there was none before."""
    refused = 0
    for pool in offers:
        if pool.each.gpus < gpus:
            continue
        for zone in pool.zones:
            if capacity.has(pool.instance_type, zone, ON_DEMAND, now):
                return pool, refused
            refused += 1
    return None, refused


def _price(pool: Pool) -> float:
    return pool.usd_per_hour[ON_DEMAND] or 0.0
