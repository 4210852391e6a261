"""Rented nodes whose jobs have no end of their own, as services have none: money is set aside for them anew, hour by
hour, as long as every ceiling can pay for the hour (docs/adr/0100).

Where one can't, nothing ends at once: it is reported, and when the time that was set aside is over the lease is among
the first that go (ironburst.controller.ceilings).
"""

from __future__ import annotations

from ironburst.burst import explain
from ironburst.burst.headroom import Headroom, charges, named
from ironburst.controller import money, records, spending
from ironburst.controller.records import LeaseRow
from ironburst.controller.site import Site
from ironburst.ports import Job, Observation

HOUR_S = 3600.0
AHEAD_S = 1800.0  # so long before its end it is renewed: whoever has to do something has the time for it


def look(site: Site, observation: Observation) -> None:
    """After the ceilings were enforced, before a tick decides what else the money is for."""
    due = [
        (lease, endless)
        for lease in site.ledger.leases()
        if lease.state == records.READY
        and lease.committed_until_s - site.now < AHEAD_S
        and (endless := _endless(observation.on(lease.node)))
    ]
    if not due:
        return
    budget, rates = spending.budget_of(site), spending.rates(site.ledger, site.now)
    headroom = Headroom(budget)
    for lease, job in due:
        now, before = money.rates_of(lease, rates)[-1], max(lease.committed_until_s, site.now)
        asked = charges(budget, now.account, now.usd_per_hour, site.now, before + HOUR_S, (now.account, before))
        if short := headroom.short(asked):
            _tell(site, lease, job, f"{named(short[0])} can't pay for another hour (${short[1]:,.2f})")
            continue
        headroom.take(asked)
        site.ledger.update([lease], committed_until_s=before + HOUR_S)


def _endless(jobs: list[Job]) -> Job | None:
    """The first of them that has no end."""
    return next((job for job in jobs if job.on and job.time_limit_s is None and job.end_s is None), None)


def _tell(site: Site, lease: LeaseRow, job: Job, why: str) -> None:
    until = explain.at(lease.committed_until_s)
    text = f"{lease.node} is paid for until {until}, and {job.name} runs there without an end: {why}; raise the ceiling"
    site.tell("needs_a_person", f"{text}, or scale it down", launch=lease.launch, lease=lease.id)
