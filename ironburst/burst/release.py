"""Giving back: which of the leases that nobody uses are released now, each with its reason."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import cache

from ironburst.burst import explain, idle
from ironburst.burst.decision import Release, Wait
from ironburst.burst.memory import IdleHistory
from ironburst.burst.renting import Renting
from ironburst.burst.slots import usable
from ironburst.burst.snapshot import CoolDown, Lease, Node, Pool, Snapshot

# from the decision to give a node back to the end of its billing: a tick or two, and its power-down
LEAD_S = 60.0


def releases(snapshot: Snapshot, renting: Renting, used: Collection[str], waits: Iterable[Wait]) -> list[Release]:
    """Of the leases that no job is on, and no pending one counts on (`used`: ids), those to be given back."""
    on = snapshot.jobs_on if snapshot.leases else {}
    unused = [
        lease for lease in snapshot.leases if lease.node not in on and lease.state != "leaving" and lease.id not in used
    ]
    if not unused:
        return []
    needed = cache(lambda: _needed_soon(snapshot, waits, renting, unused))  # asked where it decides: seldom
    nodes, pools = snapshot.node_of, snapshot.pool_of
    histories = {pool.name: pool.idle_history for pool in snapshot.pools}
    given_back = []
    for lease in unused:
        pool, why = pools.get(lease.pool), ""
        if pool is None:
            why = f"pool {lease.pool} is not declared any more"
        elif snapshot.halt and snapshot.halt.stops:
            why = snapshot.halt.text
        elif not lease.worked:
            if lease.id not in needed() and not _paid_for(snapshot, pool, lease, nodes.get(lease.node)):
                why = "the jobs that it was rented for need it no more, and no other late job can use it"
        elif lease.idle_since_s is not None:
            why, histories[pool.name] = _idle(snapshot, pool, lease, histories[pool.name], needed)
        if why:
            given_back.append(Release(lease.id, lease.node, why))
    return given_back


def _needed_soon(
    snapshot: Snapshot, waits: Iterable[Wait], renting: Renting, leases: Sequence[Lease]
) -> frozenset[str]:
    """Ids of leases that a waiting job is expected to need within the boot
    time of their like: as many as it has nodes.
    """
    pools, now_s = snapshot.pool_of, snapshot.now_s
    left = [(lease.id, (lease.pool, lease.market)) for lease in leases if lease.pool in pools]
    if not left:
        return frozenset()
    jobs = {job.id: job for job in snapshot.waiting}
    there = {place: pools[place[0]] for _, place in left}
    horizon_s = now_s + max([pool.boot_s for pool in there.values()])
    needed: set[str] = set()
    for wait in waits:
        if not left:
            break
        if wait.rent_s is None or wait.rent_s > horizon_s or wait.job not in jobs:
            continue
        job = jobs[wait.job]
        places = renting.offers.places(job)
        fitting_places = {
            place
            for place, pool in there.items()
            if place in places and job.each.within(pool.each) and wait.rent_s <= now_s + pool.boot_s
        }
        if fitting_places and (fitting := [id for id, place in left if place in fitting_places]):
            needed.update(fitting[: job.nodes])
            left = [lease for lease in left if lease[0] not in needed]
    return frozenset(needed)


def _paid_for(snapshot: Snapshot, pool: Pool, lease: Lease, node: Node | None) -> bool:
    """Whether it is there, and has been paid for a while ahead."""
    if lease.state == "coming" or lease.market in pool.prepaid_markets or not usable(lease, node):
        return False
    paid_ahead_s = idle.terms(pool, lease, (), snapshot.now_s, snapshot.now_s).free_s
    return paid_ahead_s > min(LEAD_S, pool.billing_increment_s / 2)


def look_again_s(pool: Pool, lease: Lease, cool_downs: Sequence[CoolDown], history: IdleHistory) -> float:
    """When an idle lease is to be given back, as far as is known now;
    infinite for one that isn't idle, or costs nothing more.
    """
    if lease.idle_since_s is None:
        return math.inf
    terms = idle.terms(pool, lease, cool_downs, lease.idle_since_s, lease.idle_since_s)
    ends_s = terms.same_until_s(idle.keep_s(history, terms, lease.usd_per_hour))
    return lease.idle_since_s + min(pool.idle_s, max(0.0, ends_s - min(LEAD_S, terms.increment_s / 2)))


def _idle(
    snapshot: Snapshot, pool: Pool, lease: Lease, history: IdleHistory, needed: Callable[[], Collection[str]]
) -> tuple[str, IdleHistory]:
    """Why it is given back (empty: it is kept), and the pool's idle history after that. `needed`: what is kept."""
    since = snapshot.now_s if lease.idle_since_s is None else lease.idle_since_s
    idle_s = max(0.0, snapshot.now_s - since)
    terms = idle.terms(pool, lease, snapshot.cool_downs, since, snapshot.now_s)
    keep_s = idle.keep_s(history, terms, lease.usd_per_hour)
    paid_until_s = terms.same_until_s(idle_s)
    lead_s = min(LEAD_S, terms.increment_s / 2)  # end it just before the next increment begins
    ends = pool.ends_s is not None and snapshot.now_s >= pool.ends_s - LEAD_S
    stays = paid_until_s < keep_s or idle_s < paid_until_s - lead_s
    if not ends and idle_s < pool.idle_s and (stays or lease.id in needed()):
        return "", history
    for_long = f"idle for {explain.duration(idle_s)}"
    if ends:
        reason = f"{for_long}, and pool {pool.name}'s capacity is taken back at {explain.at(pool.ends_s or 0.0)}"
    elif idle_s >= pool.idle_s:  # what a person set, and what was set aside for it
        reason = f"{for_long}, the pool's limit is {explain.duration(pool.idle_s)}"
    elif keep_s >= terms.break_even_s:
        boot = f"a boot of {explain.duration(terms.buy_s)} at its price"
        reason = f"{for_long}, which has cost as much as having it again: {boot}"
    else:
        longer, known = sum([gap > keep_s for gap in history.gaps_s]), explain.plural(len(history.gaps_s), "idle time")
        often = f"{longer} of the pool's last {known} were longer than {explain.duration(keep_s)}"
        boot = f"{explain.duration(terms.buy_s)} of boot at its price"
        reason = f"{for_long}: {often}, so having it again ({boot}) is cheaper than waiting"
    return reason, idle.given_back(history, terms, idle_s, lease.usd_per_hour)
