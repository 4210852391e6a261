"""The steps of all leases, as `lease_table` has them: those of their launches first (launching.py), then their own."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from ironburst.controller import (
    broken_pool,
    cool_downs,
    drained,
    going,
    idle_store,
    launching,
    lease_table,
    policy_view,
    reaper,
    records,
    sightings,
)
from ironburst.controller.launching import leave
from ironburst.controller.lease_states import MOVES, State
from ironburst.controller.lease_table import LeaseRule, OfLaunch, OfLease
from ironburst.controller.lease_table import rule as rule_of
from ironburst.controller.ledger import IllegalMove
from ironburst.controller.records import LaunchRow, LeaseRow, Place
from ironburst.controller.site import Site
from ironburst.ports import CloudError, Node, Observation, SchedulerError

_AGAIN_S = 60.0  # an accepted call to end an instance that lives on is repeated after that


def advance(site: Site, observation: Observation) -> bool:
    """Take every step that can be taken from this observation; the scheduler and the cloud are called once for all
    leases. Whether a lease changed its state. Trouble with one launch stops no other.
    """
    before, ask = _states(site), list[LaunchRow]()
    launching.power_up(site, observation)
    for id in dict.fromkeys(lease.launch for lease in site.ledger.leases()):
        try:
            launch = site.ledger.launch(id)
            if _launch(site, launch, observation) == "ask":
                ask.append(launch)
        except (SchedulerError, CloudError, IllegalMove) as error:
            site.tell("trouble", str(error), launch=id)
    going.go(site, observation)
    launching.ask(site, ask, observation)
    return _states(site) != before


def _states(site: Site) -> dict[str, tuple[str, float]]:
    return {lease.id: (lease.state, lease.changed_s) for lease in site.ledger.leases()}


def admit(site: Site) -> None:
    """Let those join that are on their way; those that aren't let in are reported to a person."""
    if not any(lease.state == State.LAUNCHED for lease in site.ledger.leases()):
        return
    try:
        for text in site.scheduler.admit():
            site.tell("needs_a_person", text)
    except SchedulerError as error:
        site.tell("trouble", f"nodes that are on their way can't be let in: {error}")


def _launch(site: Site, launch: LaunchRow, observation: Observation) -> OfLaunch:
    """Take the steps of a launch and its leases. "ask": the cloud is to be asked for it, with all others."""
    leases = site.ledger.leases_of(launch.id)  # all of one scheduler
    # of one that gives no answer nothing is concluded; what is ending is the cloud's alone
    unseen = any(observation.unseen(lease.node) for lease in leases)
    act: OfLaunch = "" if unseen else launching.steps(site, launch, observation)
    for id in [lease.id for lease in leases]:
        lease = site.ledger.lease(id)  # as it is now: another one may have taken it along
        if lease.state not in records.EARLY and (not unseen or lease.state == State.TERMINATED):
            _lease(site, lease, launch, observation)
    return act


def _lease(site: Site, lease: LeaseRow, launch: LaunchRow, observation: Observation) -> None:
    """Take the step that the table has for a lease."""
    state, lasts_s, gone = lease.state, site.now - lease.changed_s, ""
    node = observation.node(lease.node)
    facts = lease_table.facts(
        node,
        jobs=bool(observation.on(lease.node)),
        overdue=lasts_s >= {State.INTERRUPTED: site.stop_s, State.TERMINATED: _AGAIN_S}.get(state, launch.boot_s),
        spot=lease.market == "spot",
    )
    if "registered" in facts and state == State.LAUNCHED and node and _another(site, lease, launch, node):
        facts -= {"registered"}
    if rule_of(state, facts) is not rule_of(state, facts | {"gone"}):  # it matters: the cloud may be asked
        gone = _gone(site, lease, node)
        facts |= lease_table.those(gone=bool(gone), by_cloud=bool(gone) and _by_the_cloud(site, lease))
    rule = rule_of(state, facts)
    states, reason, verdict = ("+".join(node.states), node.reason, node.verdict) if node else ("", "", "")
    words = {"states": states, "reason": reason, "verdict": verdict, "because": f": {reason}" if reason else ""}
    why = rule.why.format(gone=gone, lasts_s=lasts_s, boot_s=launch.boot_s, **words)
    if "drained" in rule.when:
        drained.note(site, lease, verdict)
    take(site, lease, rule, why)


def take(site: Site, lease: LeaseRow, rule: LeaseRule, why: str) -> None:
    """Carry out a row of the table."""
    columns: dict[str, Any] = {}
    if rule.to == State.READY:
        columns = {"worked": True}
    elif rule.to == State.RELEASING:
        columns = {"end_reason": why}
    elif rule.to == State.ENDED and lease.to_s is None and lease.from_s is not None:
        columns = {"to_s": site.now}
    if rule.act:
        _ACTS[rule.act](site, lease, why)
    elif rule.to != lease.state:
        site.ledger.move([lease], rule.to, site.now, **columns)


def _gone(site: Site, lease: LeaseRow, node: Node | None) -> str:
    if lease.state != State.TERMINATED:
        return sightings.gone(site, lease, node)
    told = lease.to_s is not None or lease.instance_id is None
    if told and lease.instance_id not in site.instances:
        return "it has ended by the cloud's word, and isn't shown any more"
    return sightings.gone(site, lease, None)  # its node may be another lease's by now


def _another(site: Site, lease: LeaseRow, launch: LaunchRow, node: Node) -> bool:
    """Whether what registered is another instance, by its address: of a launch that was lost with a ledger, whose node
    has this name, too. Believed for the minutes in which the scheduler would miss that one: a machine may have more
    than one address.
    """
    instance = site.instances.get(lease.instance_id or "")
    if instance is None or not instance.address or node.address in ("", node.name, instance.address):
        return False
    lately = site.now - lease.changed_s < sightings.UNSEEN_S
    return lately and reaper.abandoned(site, lease.node, lease.made_s - launch.boot_s)


def _by_the_cloud(site: Site, lease: LeaseRow) -> bool:
    """Whether its instance is gone by the cloud's doing, not by its own or a person's."""
    instance = site.instances.get(lease.instance_id or "")
    return instance is None or instance.taken


def _gang(site: Site, lease: LeaseRow) -> list[LeaseRow]:
    """The leases of a launch that stand or fall with this one: those that haven't been handed over yet."""
    still = (*records.COMING, State.JOINED)
    return [other for other in site.ledger.leases_of(lease.launch) if other.state in still]


# ---- what others ask for, too


def give_up(site: Site, lease: LeaseRow, why: str) -> None:
    """A lease that isn't handed over yet, with those that stand or fall with it."""
    leave(site, _gang(site, lease), f"{lease.node}: {why}")


def taken_back(site: Site, lease: LeaseRow, why: str) -> None:
    """`interrupt`, by the cloud: its place isn't tried for a while, for longer each time."""
    place = Place(lease.pool, lease.zone, lease.market, 1, lease.instance_type)
    seconds = float(site.document.burst.cool_down_s)
    cool_downs.taken_back(site.ledger, place, seconds, site.now, site.document.serial)
    if lease.market == "spot":
        site.ledger.lost_spot(lease)
    interrupt(site, lease, why)


def interrupt(site: Site, lease: LeaseRow, why: str) -> None:
    """The node goes, whatever runs there: its jobs go back to the queue first."""
    with site.ledger.transaction():
        state = site.ledger.lease(lease.id).state  # it may have gone with another one of its launch a moment ago
        if state in records.COMING:  # a joined one may have been handed over a moment ago
            give_up(site, lease, why)
        elif State.INTERRUPTED in MOVES[state]:
            site.ledger.move([lease], State.INTERRUPTED, site.now, end_reason=why)
            site.event("interrupted", f"{lease.node}: {why}", launch=lease.launch, lease=lease.id)


# ---- the other acts of the table


def _join(site: Site, lease: LeaseRow, why: str) -> None:
    site.ledger.move([lease], State.JOINED, site.now, joined_s=site.now)
    broken_pool.joined(site, site.ledger.launch(lease.launch), lease.zone)
    site.event("joined", f"{lease.node} {why}", launch=lease.launch, lease=lease.id)


def _fail(site: Site, lease: LeaseRow, why: str, *, suspect: bool = False) -> None:
    launch, seconds = site.ledger.launch(lease.launch), float(site.document.burst.cool_down_s)
    place = Place(launch.pool, lease.zone, launch.market, 1, launch.instance_type)
    cool_downs.close(site.ledger, place, seconds, f"{lease.node}: {why}", site.now, launch.serial)
    if suspect:
        broken_pool.did_not_join(site, lease, why)
    give_up(site, lease, why)


def _use(site: Site, lease: LeaseRow, _why: str) -> None:
    if lease.idle_since_s is not None or not lease.worked:
        with site.ledger.transaction():
            site.ledger.update([lease], idle_since_s=None, worked=True)
            if pool := policy_view.pool_of(site, lease):
                idle_store.used(site.ledger, pool, lease, site.now)


def _idle(site: Site, lease: LeaseRow, _why: str) -> None:
    if lease.idle_since_s is None:
        with site.ledger.transaction():
            site.ledger.update([lease], idle_since_s=site.now)
            if pool := policy_view.pool_of(site, lease):
                idle_store.began(site.ledger, pool, lease, site.now)


def _end_again(site: Site, lease: LeaseRow, _why: str) -> None:
    ended = going.terminate(site, [lease])[1]
    site.ledger.update([lease], to_s=site.now if ended and lease.instance_id not in site.instances else None)


def _pay(site: Site, lease: LeaseRow, _why: str) -> None:
    site.ledger.update([lease], to_s=None)


_ACTS: dict[OfLaunch | OfLease, Callable[[Site, LeaseRow, str], None]] = {
    "join": _join,
    "fail": _fail,
    "suspect": partial(_fail, suspect=True),
    "give_up": give_up,
    "use": _use,
    "idle": _idle,
    "interrupt": interrupt,
    "take_back": taken_back,
    "end_again": _end_again,
    "pay": _pay,
}
