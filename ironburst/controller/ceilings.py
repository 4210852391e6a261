"""The budget's ceilings are hard.
Money is set aside for all that is planned (ironburst.burst.headroom); what goes another way ends here.

Another way: a job that runs past the time that was set aside (its limit was raised, it started late), a price or a
ceiling that was declared again, a clock that was put back. Nothing that works is ended while every ceiling can pay for
it. If one can't, leases go in this order:
those past their own time, without jobs first; those that no job is on, the newest first; and all that the ceiling
pays, when what is left is just enough to end them.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping

from ironburst.burst.budget import Budget, Ceiling
from ironburst.burst.headroom import named
from ironburst.controller import going, leases, money, records, spending, spot_prices
from ironburst.controller.records import LeaseRow
from ironburst.controller.site import Site
from ironburst.ports import Observation

_ROUNDING_USD = 1e-6
_ENDABLE = (records.INTENDED, records.POWERING, records.LAUNCHED, records.JOINED, records.READY, records.RELEASING)

Ending = dict[str, tuple[LeaseRow, str]]  # by id: leases that are to end, and why


def reprice(site: Site, since_s: float) -> None:
    """A price that is declared again counts for the nodes that are rented, too, and spot's as the cloud says it; a
    higher one from the last tick on. A lower one that nobody asked for not for spot: a node may still cost what it did.
    """
    rates, spot = spending.rates(site.ledger, site.now), spot_prices.read(site.ledger)
    for lease in site.ledger.leases():
        pool = site.document.pool(lease.pool)
        asked = spot_prices.of_lease(spot, pool, lease) if pool else None
        declared = asked if asked is not None or pool is None else pool.price(lease.instance_type, lease.market)
        last = money.rates_of(lease, rates)[-1]
        if declared is None or declared == last.usd_per_hour:
            continue
        if lease.market == "spot" and asked is None and declared < last.usd_per_hour:
            continue
        from_s = max(min(since_s, site.now) if declared > last.usd_per_hour else site.now, last.from_s)
        site.ledger.rate(lease.id, from_s, last.account, declared)
        text = f"{lease.node} costs ${declared:,.2f} an hour from now on, ${last.usd_per_hour:,.2f} before"
        site.event("price", text, launch=lease.launch, lease=lease.id)


def exchange(site: Site, observation: Observation) -> None:
    """Set money aside for the jobs that run, where Slurm started them on each other's nodes: of nodes with one price
    and one payer the one whose jobs end last has the longest. What is set aside in total stays the same.
    """
    busy: list[tuple[float, LeaseRow]] = []
    for lease in site.ledger.leases():
        ends = [math.inf if job.end_s is None else job.end_s for job in observation.on(lease.node)]
        if lease.state == records.READY and ends and max(ends) < math.inf:
            busy.append((max(ends), lease))
    if not any(map(_short, busy)):
        return
    rates, groups = spending.rates(site.ledger, site.now), dict[tuple[str, float], list[tuple[float, LeaseRow]]]()
    for end_s, lease in busy:
        if not any((job := observation.job(id)) and job.pending for id in site.ledger.jobs_of(lease.id)):
            rate = money.rates_of(lease, rates)[-1]
            groups.setdefault((rate.account, rate.usd_per_hour), []).append((end_s, lease))
    for group in (group for group in groups.values() if any(map(_short, group))):
        until = sorted(lease.committed_until_s for _, lease in group)
        ordered = sorted(group, key=lambda each: (each[0], each[1].committed_until_s))
        with site.ledger.transaction():
            for until_s, (_, lease) in zip(until, ordered, strict=True):
                if until_s != lease.committed_until_s:
                    site.ledger.update([lease], committed_until_s=until_s)


def _short(busy: tuple[float, LeaseRow]) -> bool:
    """Its jobs end later than its money."""
    end_s, lease = busy
    return end_s + records.ENDING_S > lease.committed_until_s


def enforce(site: Site, observation: Observation) -> bool:
    """Give up the leases that the budget can't or needn't pay any longer. Whether there were any."""
    ending = _over(site, observation)
    end_blindly(site, {id: item for id, item in ending.items() if observation.unseen(item[0].node)})
    for lease, why in ending.values():
        if observation.unseen(lease.node):
            continue
        if observation.on(lease.node) or lease.state == records.RELEASING:
            leases.interrupt(site, lease, why)
        elif lease.state == records.READY:
            site.ledger.move([lease], records.RELEASING, site.now, end_reason=why)
            site.event("release", f"{lease.node}: {why}", launch=lease.launch, lease=lease.id)
        else:
            leases.give_up(site, lease, why)
    return bool(ending)


def enforce_blindly(site: Site) -> None:
    """The scheduler is out of reach, and its jobs run on:
    what a ceiling can't pay is ended all the same.
    """
    end_blindly(site, unpayable(site))


def end_blindly(site: Site, unpayable: Ending) -> None:
    """End instances under their jobs, and report it."""
    accepted, _ = going.terminate(site, [lease for lease, _ in unpayable.values()])
    with site.ledger.transaction():
        for lease, why in [item for item in unpayable.values() if item[0].instance_id in accepted]:
            site.ledger.move([lease], records.LEAVING, site.now, end_reason=why)
            text = f"{lease.node} is ended under its jobs, the scheduler is out of reach: {why}"
            site.event("needs_a_person", text, lease=lease.id)


def unpayable(site: Site, ended: Mapping[str, float] = spending.NONE) -> Ending:
    """The leases of ceilings whose money is just enough to end them. `ended`: as in `spending.budget_of`."""
    open_leases = [lease for lease in site.ledger.leases() if lease.id not in ended]
    return _stop(site, open_leases, spending.budget_of(site, ended) if open_leases else None, idle=())


def _over(site: Site, observation: Observation) -> Ending:
    open_leases, now = site.ledger.leases(), site.now
    budget = spending.budget_of(site) if open_leases else None
    endable = [lease for lease in open_leases if lease.state in _ENDABLE and not observation.unseen(lease.node)]
    ending: Ending = {}
    for lease in endable:
        if overdue(lease, now) and not observation.on(lease.node) and lease.state != records.RELEASING:
            ending[lease.id] = lease, "the time that money was set aside for is over, and no job is on it"
    for ceiling in budget.ceilings if budget else ():
        missing = -ceiling.left_usd
        if missing <= _ROUNDING_USD:
            continue
        rates = spending.rates(site.ledger, now)
        why = f"{named(ceiling)} can't pay for all that is rented: ${missing:,.2f} are missing"
        paid = [lease for lease in endable if _usd(ceiling, lease, now, rates) > 0]
        late = sorted(
            (lease for lease in paid if overdue(lease, now)), key=lambda each: bool(observation.on(each.node))
        )
        spare = [lease for lease in reversed(paid) if lease not in late and not observation.on(lease.node)]
        for lease in (*late, *spare):
            if missing > _ROUNDING_USD:
                ending.setdefault(lease.id, (lease, why))
                missing -= _usd(ceiling, lease, now, rates)
    known = [lease for lease in open_leases if not observation.unseen(lease.node)]
    return ending | _stop(site, open_leases, budget, {lease.id for lease in known if not observation.on(lease.node)})


def _stop(site: Site, open_leases: Iterable[LeaseRow], budget: Budget | None, idle: Collection[str]) -> Ending:
    """All that is paid by a ceiling whose money is just enough to end it. `idle`: leases that no job is on; jobs stay
    if it is enough for them without these.
    """
    now = site.now
    # of a call without an answer the worst is believed
    may_cost = [lease for lease in open_leases if lease.from_s is not None or lease.state == records.REQUESTED]
    launched = [lease for lease in may_cost if lease.aside(now)]
    rates = spending.rates(site.ledger, now) if launched else {}
    ending: Ending = {}
    for ceiling in budget.ceilings if budget else ():
        times = {lease.id: lease.ending(now, idle=lease.id in idle) or (now, now) for lease in launched}
        usd = {lease.id: money.usd(ceiling, lease, times[lease.id], rates) for lease in launched}
        missing = ceiling.spent_usd + sum(usd.values()) - ceiling.usd
        if any(usd.values()) and missing > _ROUNDING_USD:
            why = f"{named(ceiling)} is used up: what is left is needed to end what runs"
            may_end = [lease for lease in launched if usd[lease.id] > 0 and lease.state in _ENDABLE]
            unused = [lease for lease in may_end if lease.id in idle]
            enough = unused and missing - sum(usd[lease.id] for lease in unused) <= _ROUNDING_USD
            ending |= {lease.id: (lease, why) for lease in (unused if enough else may_end)}
    return ending


def overdue(lease: LeaseRow, now_s: float) -> bool:
    """It is past the time that was set aside, but for what it takes to end it."""
    return lease.from_s is not None and now_s + records.ENDING_S > lease.committed_until_s


def _usd(ceiling: Ceiling, lease: LeaseRow, now_s: float, rates: money.Paid) -> float:
    aside = lease.aside(now_s)
    return money.usd(ceiling, lease, aside, rates) if aside else 0.0
