"""Capacity that a pool names, for clouds that have one kind that was bought for a fixed time: which market it has, and
when it is over. (The first cloud has more kinds: its room's own.)
"""

from __future__ import annotations

from datetime import datetime

from ironburst.config.burst_models import Burst
from ironburst.config.checks.common import Findings, Place
from ironburst.config.cloud_models import Bought, Cloud, Pool
from ironburst.config.finding import Finding, path_of
from ironburst.config.types import duration_text

OVER = "the pool's capacity ended at {}; nothing can be rented in it"
ZONE_MISSING = "has no time zone; write for example 2026-12-01T11:30:00Z"


def over(cloud: Cloud | None, now: datetime) -> Findings:
    """Capacity of pools that is taken back by `now`."""
    for p, pool in enumerate(cloud.pools if cloud else ()):
        yield from _over(("cloud", "pools", p), pool, now)


def _over(at: Place, pool: Pool, now: datetime) -> Findings:
    if pool.block:
        yield from _block((*at, pool.block_key), pool.block, now)
    if pool.capacity_ends and pool.block:
        message = f"stands beside {pool.block_key}, whose own end counts; leave it out"
        yield Finding(path_of(*at, "capacity_ends"), str(pool.capacity_ends), "capacity", message)
    elif pool.capacity_ends:
        yield from ended(path_of(*at, "capacity_ends"), pool.capacity_ends, now)


def _block(at: Place, bought: Bought, now: datetime) -> Findings:
    yield from ended(path_of(*at, "ends"), bought.ends, now)
    if bought.starts and bought.starts.tzinfo is None:
        yield Finding(path_of(*at, "starts"), str(bought.starts), "time-zone", ZONE_MISSING)
    elif bought.starts and bought.ends.tzinfo and bought.starts >= bought.ends:
        message = f"is not before its end, {bought.ends}: give both as the cloud shows them"
        yield Finding(path_of(*at, "starts"), str(bought.starts), "order", message)


def ended(path: str, ends: datetime, now: datetime, over: str = OVER) -> Findings:
    """An end that is over by `now`, or has no time zone. `over`: the message, with {} where the end is written."""
    if ends.tzinfo is None:
        yield Finding(path, str(ends), "time-zone", ZONE_MISSING)
    elif ends <= now:
        yield Finding(path, str(ends), "over", over.format(ends))


def markets(at: Place, pool: Pool) -> Findings:
    """Those that go with what it names. `at`: the pool's place in the file."""
    path = path_of(*at, "markets")
    if pool.block and pool.markets != ["capacity-block"]:
        message = f"beside {pool.block_key} a pool has the market capacity-block alone: leave markets out"
        yield Finding(path, pool.markets, "capacity", message)
    elif "capacity-block" in pool.markets and not pool.block:
        message = f"names capacity-block without one: write {pool.block_key} with what was bought and its end"
        yield Finding(path, pool.markets, "capacity", message)
    for _, (key, *_) in pool.reserved[1:]:
        message = f"stands beside {pool.reserved[0][1][0]}; a machine runs in one"
        yield Finding(path_of(*at, key), True, "capacity", message)
    if pool.reserved and not pool.block and "spot" in pool.markets:
        message = f"names spot beside {pool.reserved[0][1][0]}, and no spot machine runs in one: leave one out"
        yield Finding(path, pool.markets, "capacity", message)
    if len(set(pool.markets)) < len(pool.markets):
        yield Finding(path, pool.markets, "duplicate", "names a market twice")


def dead_man(at: Place, pool: Pool, burst: Burst) -> Findings:
    """Until it has joined a node hears no heartbeat: its gate runs. `at`: the pool's place in the file."""
    if pool.boot >= burst.dead_man:
        alone = duration_text(burst.dead_man)
        message = f"until it joins a node hears nobody, and ends itself after burst.dead_man, {alone}: raise that"
        yield Finding(path_of(*at, "boot"), duration_text(pool.boot), "dead-man", message)
