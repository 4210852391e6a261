"""A site with two schedulers: each has its own queue, its own nodes at home and its own pools; the money is one.

Each side is decided by itself, with what the sides before it have promised taken from the budget. The side that pays
least for rented nodes at the moment goes first: when money is short, neither is always the one that finds nothing left.
A priority says who is first within one scheduler; the numbers of two can't be compared.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, replace

from ironburst.burst.decision import Decision
from ironburst.burst.headroom import Charge, charges, set_aside
from ironburst.burst.policy import Policy
from ironburst.burst.snapshot import Lease, Snapshot


def decide(snapshot: Snapshot, policy: Policy, one: Callable[[Snapshot, Policy], Decision]) -> Decision:
    """The decisions of all sides together. `one` decides for a single home partition."""
    homes = (policy.home_partition, *policy.other_homes)
    side_of = {pool.name: pool.home if pool.home in homes else homes[0] for pool in snapshot.pools}
    leases: dict[str, list[Lease]] = {home: [] for home in homes}
    for lease in snapshot.leases:  # of a pool that isn't declared any more: it is given back by the first
        leases[side_of.get(lease.pool, homes[0])].append(lease)
    usd_per_hour = {home: sum(lease.usd_per_hour for lease in mine) for home, mine in leases.items()}
    budget, decided = snapshot.budget, dict[str, Decision]()
    for home in sorted(homes, key=usd_per_hour.__getitem__):
        pools = tuple(pool for pool in snapshot.pools if side_of[pool.name] == home)
        side = replace(snapshot, pools=pools, leases=tuple(leases[home]), budget=budget)
        decided[home] = one(side, replace(policy, home_partition=home, other_homes=()))
        budget = set_aside(budget, promised(side, decided[home]))
    return _together([decided[home] for home in homes])


def promised(snapshot: Snapshot, decision: Decision) -> list[Charge]:
    """The money that a decision sets aside."""
    budget, now_s, known = snapshot.budget, snapshot.now_s, {lease.id: lease for lease in snapshot.leases}
    asked: list[Charge] = []
    for launch in decision.launches:
        price = len(launch.nodes) * launch.usd_per_hour
        asked += charges(budget, launch.account, price, now_s, launch.committed_until_s)
    for assign in decision.assigns:
        for lease in _of(assign.leases, known):
            before = lease.account, lease.committed_until_s
            asked += charges(budget, assign.account, lease.usd_per_hour, now_s, assign.committed_until_s, before)
    return asked


def _of(ids: tuple[str, ...], known: Mapping[str, Lease]) -> list[Lease]:
    return [known[id] for id in ids if id in known]


def _together(decisions: list[Decision]) -> Decision:
    """Item by item, in the order of the home partitions."""
    names = [field.name for field in fields(Decision)]
    return Decision(**{name: tuple(item for each in decisions for item in getattr(each, name)) for name in names})
