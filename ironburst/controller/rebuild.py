"""A ledger that knows less than the world: lost, restored from a copy, or overtaken by what the cloud shows.

A rented node that answers is what it is, whatever the ledger says: the instance at its address gets the lease, from the
instance's own tags and launch time. What the predecessor had spent is taken over from its last record.
"""

from __future__ import annotations

import secrets
from collections import Counter
from dataclasses import replace

from ironburst.burst import Job, Launch, Node, drains
from ironburst.controller import money, ownership, records, sightings, spending
from ironburst.controller.lease_states import State
from ironburst.controller.ownership import Running, Said
from ironburst.controller.records import LeaseRow
from ironburst.controller.site import Site
from ironburst.document import PoolDocument
from ironburst.ports import LAUNCHING, CloudError, Instance, Observation, SchedulerError

_CENT = 0.01
_NO_NODE = (LAUNCHING, "stopping")  # being ended, or its launch may be taken back: none to hand to a job
_UNUSED = "no lease"  # why a burst node is drained until it is handed over


def run(site: Site, observation: Observation, heard: Said | None) -> None:
    """Give instances without a lease theirs. `heard`: what was written that the ledger may not know; then its leases
    are compared with the cloud, and its spending with what was written, which counts alone where a cloud is silent.
    Raises CloudError or SchedulerError where that can't be done: what was written isn't all that runs in a silent
    cloud, or a scheduler gives no answer.
    """
    if heard is not None and site.silent and not heard.whole:
        raise CloudError("; ".join(halt.why for halt in site.silent.values()))
    if heard is not None and observation.silent:
        raise SchedulerError(
            f"{' and '.join(observation.silent)} must answer, too, before a ledger that knows less than the world is "
            "brought up to date: nothing is done until then"
        )
    elsewhere = ownership.elsewhere(site)
    mine = [
        instance
        for instance in sightings.unknown(site)
        if instance.owner not in elsewhere and not sightings.hidden(site, observation, instance)
    ]
    for instance in mine:
        nodes = _nodes_of(site, instance, observation)
        if instance.state in _NO_NODE and not any(observation.on(node.name) for node in nodes):
            continue
        if len(nodes) > 1:
            names, where = " and ".join(node.name for node in nodes), f"instance {instance.id} ({instance.address})"
            site.tell("needs_a_person", f"{where} has no lease, and {names} both show its address: it gets none")
        try:
            if len(nodes) == 1:
                _take(site, nodes[0], instance, observation.on(nodes[0].name), restored=heard is not None)
            elif not nodes:
                _revive(site, instance)
        except CloudError as error:  # about another instance
            site.tell("trouble", f"instance {instance.id} gets no lease yet: {error}")
    if heard is not None:
        _believe(site, heard, observation)
        _settle(site, observation, heard)
        _carry(site, heard)
        _ran_on(site, heard)


def charge(site: Site, instance: Instance) -> None:
    """Count an instance without a lease from its launch until now, at the price of its launch or of its own tags."""
    launch, now = instance.launch or instance.id, site.now
    if not site.ledger.charge(launch, instance.id, instance.launched_s, now):
        with site.ledger.transaction():
            lease = _add(site, instance, launch, instance.id, [], now, "it had no lease")
            site.ledger.move([lease], records.ENDED, now, to_s=now, end_reason="it had no lease")


# ---- instances without a lease


def _nodes_of(site: Site, instance: Instance, observation: Observation) -> list[Node]:
    """The answering burst nodes at its address. Where there are several, an address was taken over and one of them
    hasn't said so yet: those whose own instance lives at another address are none of them.
    """
    burst = {name for pool in site.document.pools for name in pool.nodes}
    there = [node for node in observation.nodes if node.name in burst and node.address]
    nodes = [node for node in there if node.address == instance.address and sightings.answers(node)]
    if len(nodes) < 2:
        return nodes
    leases = {lease.node: site.instances.get(lease.instance_id or "") for lease in site.ledger.leases()}
    return [node for node in nodes if not ((own := leases.get(node.name)) and own.alive)]


def _take(site: Site, node: Node, instance: Instance, jobs: list[Job], *, restored: bool) -> None:
    """The instance is this node."""
    until_s, own = _until_s(site, instance, jobs), site.ledger.lease_of_instance(instance.id, open_only=False)
    with site.ledger.transaction():
        for lease in [lease for lease in site.ledger.leases() if lease.node == node.name]:
            if lease.instance_id is None and lease.launch == instance.launch:
                own = lease
            elif lease.state != records.TERMINATED:
                _detach(site, lease, instance, restored=restored)
        if own is None:
            own = _add(site, instance, instance.id, node.name, jobs, until_s, f"{instance.id} had no lease")
        state = _state(node, jobs)
        it = {
            "node": node.name,
            "instance_id": instance.id,
            "zone": instance.zone,
            "seen_s": site.now,
            "end_reason": "",
        }
        paid = {"from_s": own.from_s or instance.launched_s, "to_s": None, "committed_until_s": until_s}
        site.ledger.move([own], state, site.now, worked=bool(jobs), **it, **paid)
        text = f"{node.name} is instance {instance.id}, which had no lease: it has one again, {state}"
        site.event("needs_a_person", text, launch=own.launch, lease=own.id)


def _state(node: Node, jobs: list[Job]) -> State:
    """Of a lease whose node is there: whether it was handed over. Not behind a person's drain."""
    waits = node.has("DRAIN") and drains.first_words(node.reason) == _UNUSED and not jobs
    return records.JOINED if waits else records.READY


def _revive(site: Site, instance: Instance) -> None:
    """What was treated as ended is ended again, and was paid for all the time."""
    lease = site.ledger.lease_of_instance(instance.id, open_only=False)
    if lease is not None:
        site.ledger.move([lease], records.TERMINATED, site.now, to_s=None, seen_s=site.now)
        text = f"instance {instance.id} had ended, and is shown alive: it is ended again"
        site.event("trouble", text, launch=lease.launch, lease=lease.id)


def _detach(site: Site, lease: LeaseRow, other: Instance, *, restored: bool) -> None:
    """A lease whose node is another instance by now: the node, and what runs there, is none of its business."""
    instance = site.instances.get(lease.instance_id or "") or sightings.ask(site, [lease]).get(lease.instance_id or "")
    why = f"its node is instance {other.id} by now"
    if instance and instance.alive:
        site.ledger.move([lease], records.TERMINATED, site.now, to_s=None, end_reason=why)
    else:
        _close(site, lease, why, lease.seen_s if restored else min(site.now, other.launched_s))
    site.event("given_up", f"{lease.node}: {why}", launch=lease.launch, lease=lease.id)


def _close(site: Site, lease: LeaseRow, why: str, ended_s: float | None) -> None:
    """It has ended, at that moment or, if that isn't known, when the ledger knew of it last."""
    to_s = lease.to_s
    if to_s is None and lease.from_s is not None:
        to_s = max(lease.changed_s if ended_s is None else ended_s, lease.from_s)
    site.ledger.move([lease], records.ENDED, site.now, to_s=to_s, end_reason=why)


def _until_s(site: Site, instance: Instance, jobs: list[Job]) -> float:
    """Until when money is set aside: for its jobs and what follows them, as for a new lease."""
    pool = site.document.pool(instance.pool)
    longest_s, idle_s = (float(pool.max_run_s), float(pool.idle_s)) if pool else (0.0, 0.0)
    ends_s = [site.now + longest_s if job.end_s is None else job.end_s for job in jobs]
    return max(ends_s, default=site.now) + idle_s + records.ENDING_S


def _add(site: Site, instance: Instance, id: str, node: str, jobs: list[Job], until_s: float, reason: str) -> LeaseRow:
    """The lease of an instance, as the only one of a launch of its own."""
    pool, market = site.document.pool(instance.pool), instance.market or "on-demand"
    launch = Launch(
        pool=instance.pool,
        zones=(instance.zone,),
        market=market,
        nodes=(node,),
        jobs=tuple(job.id for job in jobs),
        usd_per_hour=_usd_per_hour(instance, pool, market),
        committed_until_s=until_s,
        committed_usd=0.0,
        reason=reason,
        account=instance.account,
    )
    type, boot_s = (pool.instance_type, float(pool.boot_s)) if pool else ("", 0.0)
    type = instance.instance_type or type
    site.ledger.add_launch(id, launch, type, "", boot_s, site.document.serial, site.now)
    (lease,) = site.ledger.leases_of(id)
    site.ledger.update([lease], instance_id=instance.id, zone=instance.zone, from_s=instance.launched_s)
    return replace(lease, instance_id=instance.id, zone=instance.zone, from_s=instance.launched_s)


def _usd_per_hour(instance: Instance, pool: PoolDocument | None, market: str) -> float:
    """By its tag; else what its pool declares for its type, the dearest price of the pool if need be."""
    if instance.usd_per_hour is not None:
        return instance.usd_per_hour
    if pool is None:
        return 0.0
    declared = pool.price(instance.instance_type or pool.instance_type, market)
    return pool.dearest_usd_per_hour if declared is None else declared


# ---- a ledger that is older than what was said


def _believe(site: Site, heard: Said, observation: Observation) -> None:
    """Give the instances of silent clouds the leases that they had when that was written; nobody can see them."""
    written = [each for each in heard.running if each.instance and site.silent_of(each.pool)]
    ids = {each.instance for each in written}
    for each in written:
        own = site.ledger.lease_of_instance(each.instance, open_only=False)
        if own is None or own.state == records.ENDED:
            with site.ledger.transaction():
                for lease in site.ledger.leases():
                    if lease.node == each.node and lease.instance_id not in ids and lease.state != records.TERMINATED:
                        _close(site, lease, f"its node is instance {each.instance} by now", lease.seen_s)
                _as_written(site, each, own, observation)


def _as_written(site: Site, each: Running, own: LeaseRow | None, observation: Observation) -> None:
    node, jobs = observation.node(each.node), observation.on(each.node)
    if own is None:
        instance = Instance(
            each.instance,
            0,
            "running",
            None,
            each.zone,
            launch="",
            token="",
            launched_s=each.from_s or 0.0,
            pool=each.pool,
            market=each.market,
            account=each.account,
            usd_per_hour=each.usd_per_hour,
            instance_type=each.instance_type,
        )
        own = _add(site, instance, each.instance, each.node, jobs, each.until_s, f"{each.instance} had no lease")
    state = State(each.state)
    if state not in (records.LAUNCHED, records.LEAVING, records.TERMINATED):
        state = _state(node, jobs) if node else records.READY
    elif own.state == records.ENDED:  # it isn't known which of the two is later
        state = records.TERMINATED
    why = "it was to end" if state in records.GOING else ""
    paid = {"from_s": each.from_s, "to_s": None, "committed_until_s": each.until_s}
    site.ledger.move([own], state, site.now, worked=bool(jobs), seen_s=site.now, end_reason=why, **paid)
    text = f"{each.node} is instance {each.instance}, as the controller before wrote: it has its lease again, {state}"
    site.event("needs_a_person", text, launch=own.launch, lease=own.id)


def _settle(site: Site, observation: Observation, heard: Said) -> None:
    """End the leases that only the copy still has. What happened since is paid by what was said (`_carry`)."""
    written = {each.instance for each in heard.running}
    unshown = [lease for lease in site.ledger.leases() if lease.instance_id not in site.instances]
    sightings.ask(site, [lease for lease in unshown if not site.silent_of(lease.pool)])
    for lease in site.ledger.leases():
        if lease.instance_id in written and site.silent_of(lease.pool):
            continue  # when it was written it was there
        instance = site.instances.get(lease.instance_id or "")
        up = lease.state in (records.LAUNCHED, records.JOINED, records.READY) and instance is None
        if instance and instance.alive:
            _lengthen(site, lease, instance, observation.on(lease.node))
            continue  # its instance says how it goes on, and before there is one its token
        if lease.state == records.REQUESTED:
            continue
        if not (up and sightings.answers(observation.node(lease.node))):
            _close(site, lease, "it ended after the ledger was copied", lease.seen_s)
            site.event("given_up", f"{lease.node}: it ended after the ledger was copied", launch=lease.launch)


def _lengthen(site: Site, lease: LeaseRow, instance: Instance, jobs: list[Job]) -> None:
    """Set money aside for the jobs that a lease got after the copy: past its time, it would be the first to go."""
    until_s = _until_s(site, instance, jobs)
    if jobs and until_s > lease.committed_until_s:
        site.ledger.update([lease], committed_until_s=until_s)


def _carry(site: Site, heard: Said) -> None:
    """Count what the month had cost by what was said, as far as the ledger and the instances don't know of it."""
    said, then = heard.spent, heard.at_s
    if said.month_s != money.month(site.now)[0]:
        return
    known, missing_usd = spending.spent(site.ledger, spending.rates(site.ledger, then), then), 0.0
    later = _charged_later(site, then)
    with site.ledger.transaction():
        for account, usd in said.month.items():
            missing = usd - known.month.get(account, 0.0) - later.get(account, 0.0)
            today = min(max(said.day.get(account, 0.0) - known.day.get(account, 0.0), 0.0), missing)
            if said.day_s == said.month_s:
                today = missing
            _count(site, account, today, said.day_s, then)
            _count(site, account, missing - today, said.month_s, said.day_s)
            missing_usd += missing if missing > _CENT else 0.0
        if missing_usd:
            total = sum(said.month.values())
            text = (
                f"this month had cost ${total:,.2f}, and the ledger doesn't know of ${missing_usd:,.2f}: carried over"
            )
            site.event("needs_a_person", text)


def _ran_on(site: Site, heard: Said) -> None:
    """Count what ran when that was said, and has ended unseen: until now, or as long as money was set aside for it. Of
    a call without an answer the worst is believed, as far as no instance of it lives.
    """
    living, leases = [each for each in site.instances.values() if each.alive], site.ledger.leases()
    shown = {instance.id for instance in living} | {lease.instance_id for lease in leases if lease.instance_id}
    arrived, asked_still = Counter(instance.launch for instance in living), {lease.launch for lease in leases}
    with site.ledger.transaction():
        for each in heard.running:
            from_s = heard.at_s if each.asked_s is None else each.asked_s
            # what a silent cloud may have made lives on unseen until it answers
            to_s = each.until_s if site.silent_of(each.pool) else min(site.now, each.until_s)
            hours = (to_s - from_s) / 3600
            if each.asked_s is None:
                counted = each.instance in shown
            else:
                counted = each.launch in asked_still or arrived[each.launch] > 0
                arrived[each.launch] -= 1
            if not counted and hours > 0:
                _count(site, each.account, hours * each.usd_per_hour, from_s, from_s + hours * 3600)


def _charged_later(site: Site, then_s: float) -> dict[str, float]:
    """By account, what the instances that have no lease yet had cost by then: they are counted when they are ended."""
    usd: dict[str, float] = {}
    for instance in sightings.unknown(site):
        price = _usd_per_hour(instance, site.document.pool(instance.pool), instance.market or "on-demand")
        hours = max(then_s - max(instance.launched_s, money.month(then_s)[0]), 0.0) / 3600
        usd[instance.account] = usd.get(instance.account, 0.0) + hours * price
    return usd


def _count(site: Site, account: str, usd: float, from_s: float, to_s: float) -> None:
    """As a lease of nothing that had this cost over that time."""
    if usd <= _CENT:
        return
    from_s, id = min(from_s, to_s - records.MIN_BILLING_S), f"carried-{secrets.token_hex(6)}"
    price = usd / (to_s - from_s) * 3600
    reason = "carried over: what the ledger doesn't know of"
    launch = Launch("", (), "carried-over", ("",), (), price, to_s, 0.0, reason, account)
    site.ledger.add_launch(id, launch, "", "", 0.0, site.document.serial, site.now)
    paid = {"from_s": from_s, "to_s": to_s, "end_reason": reason}
    site.ledger.move(site.ledger.leases_of(id), records.ENDED, site.now, **paid)
