"""Karpenter launches inside our budget: by limits of its NodePools that follow the ledger (docs/adr/0045).

A limit is what the money can pay if each node under it were a new one: Karpenter may replace any node of its own at any
moment, and counts one that is ending no more while it still costs. What a limit lets it launch is set aside, so nothing
else is rented with it; a lower limit frees that money only when what was decided under the old one must have shown.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from ironburst.burst import Budget, explain
from ironburst.controller import karpenter_room, karpenter_store, money, order_book, records, spending
from ironburst.controller.karpenter_room import Wish
from ironburst.controller.karpenter_store import Book, Claim, NodePoolLimit, span_s
from ironburst.controller.records import Rate
from ironburst.controller.site import Site
from ironburst.document import KarpenterPool
from ironburst.nodes import state_times
from ironburst.ports import SchedulerError
from ironburst.ports.karpenter import NodeClaim, NodePools, Size

SETTLE_S = 120.0  # Karpenter thinks for a minute at most about one batch of pods, by the limits that it began with
_LEFT = "Karpenter's nodes can't be seen, so its limits stay as they are and what was seen last counts on"


def look(site: Site) -> bool:
    """What Karpenter has rented goes into the ledger. False: it can't be seen, or there is nothing to see."""
    pools, book = {pool.node_pool: pool for pool in site.document.karpenter}, karpenter_store.read(site.ledger)
    if not pools and not any(each.to_s is None for each in book.claims):
        return False
    if site.karpenter is None:
        site.tell("trouble", f"{_LEFT}: there is no way to the Kubernetes cluster that it is in")
        return False
    try:
        seen = site.karpenter.look(site.document.cluster, {name: _size(pool) for name, pool in pools.items()})
    except SchedulerError as error:
        site.tell("trouble", f"{_LEFT}: {error}")
        return False
    now = site.now
    _tell_gap(site, book, now)
    claims = tuple(_claims(site, book, seen.claims, pools, now))
    limits = {name: _as_found(site, book, name, seen, now) for name in pools}
    after = Book(now, claims, limits)
    karpenter_store.write(site.ledger, after.tidied(money.counts_from_s(now), now, SETTLE_S))
    return True


def budget_of(site: Site) -> Budget | None:
    """The money now, without what Karpenter may launch by the limits that it has."""
    budget = spending.budget_of(site)
    if budget is None or not site.document.karpenter:
        return budget
    return karpenter_room.reserved(budget, _wishes(site, budget))


def offer(site: Site) -> None:
    """Let Karpenter have what the money can pay now, after what was just decided. In the ledger first."""
    book, budget = karpenter_store.read(site.ledger), spending.budget_of(site)
    wanted = karpenter_room.handed_out(budget, _wishes(site, budget)) if budget else {}
    closed = order_book.closed_node_pools(site.ledger, site.document, site.now)
    for pool in site.document.karpenter:
        nodes = 0 if pool.node_pool in closed else wanted.get(pool.node_pool, 0)
        if nodes == book.limit(pool.node_pool) or site.karpenter is None:
            continue
        said = (*book.limits.get(pool.node_pool, ()), NodePoolLimit(site.now, nodes))
        book = replace(book, limits={**book.limits, pool.node_pool: said})
        with site.ledger.transaction():
            karpenter_store.write(site.ledger, book)
            usd = nodes * pool.usd_per_hour
            what = f"{nodes} x {pool.market} {pool.instance_type}, {explain.usd(usd)} an hour"
            site.event("limit", f"Karpenter's NodePool {pool.node_pool} may have {what}")
        try:
            site.karpenter.limit(pool.node_pool, _size(pool), nodes)
        except SchedulerError as error:
            site.tell("trouble", f"the limit of NodePool {pool.node_pool} can't be written: {error}")


def _size(pool: KarpenterPool) -> Size:
    return Size(pool.gpus, pool.cpus)


# ---- what is there
def _claims(
    site: Site, book: Book, seen: Iterable[NodeClaim], pools: Mapping[str, KarpenterPool], now_s: float
) -> Iterator[Claim]:
    """Those that are there, and those that were. One that is gone is paid to now: when it ended, nobody saw. One that
    was never launched cost nothing.
    """
    known, there = {each.uid: each for each in book.claims}, {each.uid: each for each in seen}
    for uid, before in known.items():
        if uid in there or before.to_s is not None:
            continue
        if before.launched:
            yield replace(before, to_s=min(now_s, max(before.until_s, book.looked_s)))
            site.event("karpenter", f"{before.name} of NodePool {before.node_pool} is gone")
    yield from (before for before in known.values() if before.to_s is not None)
    for claim in there.values():
        yield _claim(site, known.get(claim.uid), claim, pools.get(claim.node_pool), book.looked_s, now_s)


def _claim(
    site: Site, before: Claim | None, seen: NodeClaim, pool: KarpenterPool | None, looked_s: float, now_s: float
) -> Claim:
    leaves_s = seen.expires_s if seen.deleting_s is None else min(seen.deleting_s, seen.expires_s)
    now = Claim(
        uid=seen.uid,
        name=seen.name,
        node_pool=seen.node_pool,
        instance_type=seen.instance_type or (pool.instance_type if pool else ""),
        market=seen.market or (pool.market if pool else ""),
        created_s=seen.created_s,
        launched=seen.launched or bool(before and before.launched),
        until_s=_until(site, seen, pool, now_s),
        leaves_s=leaves_s if math.isfinite(leaves_s) else None,
        rates=before.rates if before else (),
    )
    rates = _rates(site, now, pool, looked_s, now_s)
    if now.launched and not (before and before.launched):
        usd = rates[-1].usd_per_hour * (now.until_s - now.created_s) / 3600
        text = f"{now.name} of NodePool {now.node_pool} ({now.market} {now.instance_type}), up to {explain.usd(usd)}"
        site.event("karpenter", text)
    return replace(now, rates=rates)


def _until(site: Site, seen: NodeClaim, pool: KarpenterPool | None, now_s: float) -> float:
    """With the time that an instance takes to end."""
    if math.isfinite(seen.ends_s):
        until_s, steps = seen.ends_s + records.ENDING_S, state_times.CLAIM[state_times.DELETED].steps
        if now_s - until_s >= steps[0][0]:
            look = "look at its finalizers, its pods and its instance"
            text = f"{seen.name} of NodePool {seen.node_pool} should have ended long ago, and is paid for: {look}"
            site.tell("needs_a_person", text)
        return until_s
    what_to_do = "run `pulumi up`, and delete this NodeClaim when its pods have ended"
    text = f"{seen.name} of NodePool {seen.node_pool} has no end (expireAfter and terminationGracePeriod): {what_to_do}"
    site.tell("needs_a_person", text)
    return now_s + (span_s(pool) if pool else records.ENDING_S)


def _rates(site: Site, claim: Claim, pool: KarpenterPool | None, looked_s: float, now_s: float) -> tuple[Rate, ...]:
    """With the price and the payer that are declared now: a higher price counts from the last look on, a lower one of
    spot not at all, for what it costs nobody asks.
    """
    known = claim.rates
    usd = _price(site, claim, pool)
    if usd is None:
        return known or (Rate(0.0, "", 0.0),)
    account = pool.account if pool else known[-1].account if known else ""
    if not known:
        return (Rate(0.0, account, usd),)
    last = known[-1]
    usd = max(usd, last.usd_per_hour) if claim.market == "spot" else usd
    if (last.account, last.usd_per_hour) == (account, usd):
        return known
    from_s = min(looked_s, now_s) if usd > last.usd_per_hour and account == last.account else now_s
    return (*known, Rate(max(from_s, last.from_s), account, usd))


def _price(site: Site, claim: Claim, pool: KarpenterPool | None) -> float | None:
    """Of what it is, which may be another thing than what is declared. None: of nothing that is declared any more."""
    wanted = claim.instance_type, claim.market
    if pool and wanted == (pool.instance_type, pool.market):
        return pool.usd_per_hour
    others = [each.usd_per_hour for each in site.document.karpenter if (each.instance_type, each.market) == wanted]
    rented = [each.price(*wanted) for each in site.document.pools]
    known = [*others, *(usd for usd in rented if usd is not None)]
    if pool is None:
        return known[0] if known and not claim.rates else None
    priced = f"counts as {explain.usd(known[0] if known else pool.usd_per_hour)} an hour"
    is_other = f"is {claim.market} {claim.instance_type}, not the declared {pool.market} {pool.instance_type}"
    site.tell("needs_a_person", f"{claim.name} of NodePool {claim.node_pool} {is_other}, and {priced}: run `pulumi up`")
    return known[0] if known else pool.usd_per_hour


def _as_found(site: Site, book: Book, name: str, seen: NodePools, now_s: float) -> tuple[NodePoolLimit, ...]:
    """The limits that count, with the one that the cluster has."""
    said, ours = book.limits.get(name, ()), book.limit(name)
    if name not in seen.limits:
        site.tell("needs_a_person", f"the cluster has no NodePool {name}: run `pulumi up`")
        return said
    found = seen.limits[name]
    if found is None:
        site.tell("needs_a_person", f"NodePool {name} has no limit: it is written anew; what came of it is counted")
        most = next(pool.max_nodes for pool in site.document.karpenter if pool.node_pool == name)
        found = most + 1  # other than whatever is wanted
    if found == ours:
        return said
    if ours is not None:
        site.event("limit", f"NodePool {name} may have {found} nodes, {ours} were written: it is written anew")
    return (*said, NodePoolLimit(now_s, found))


def _tell_gap(site: Site, book: Book, now_s: float) -> None:
    away_s = now_s - book.looked_s
    if not book.looked_s or away_s <= records.OUTAGE_S:
        return
    missing = {
        pool.node_pool: max(0, book.reach(pool.node_pool, now_s, SETTLE_S) - len(book.open_of(pool.node_pool)))
        for pool in site.document.karpenter
    }
    usd = sum(missing[pool.node_pool] * pool.usd_per_hour * away_s / 3600 for pool in site.document.karpenter)
    if usd > 0:
        text = f"Karpenter's nodes weren't seen for {explain.duration(away_s)}: what came and went isn't counted"
        site.event("trouble", f"{text}, {explain.usd(usd)} at most")


# ---- what it may have
def _wishes(site: Site, budget: Budget) -> list[Wish]:
    book, now = karpenter_store.read(site.ledger), site.now
    return [
        Wish(
            name=pool.node_pool,
            new=Rate(now, budget.payer(pool.account), pool.usd_per_hour),
            until_s=now + span_s(pool),
            most=pool.max_nodes,
            reach=book.reach(pool.node_pool, now, SETTLE_S),
            there=tuple(_giving_back(site, book.open_of(pool.node_pool))),
        )
        for pool in site.document.karpenter
    ]


def _giving_back(site: Site, claims: Iterable[Claim]) -> Iterator[tuple[Rate, float]]:
    """One that Karpenter ends soon gives back nothing: it costs on, and isn't counted."""
    soon_s = site.now + SETTLE_S + 2 * site.document.burst.tick_s
    for each in claims:
        if each.leaves_s is None or each.leaves_s > soon_s:
            yield each.rate, each.until_s
