"""The life of a lease after its instance exists, and the way out. See records.py for the states."""

from __future__ import annotations

from typing import NamedTuple

from ironburst.burst import Job, Node
from ironburst.controller import (
    broken_pool,
    cool_downs,
    drained,
    going,
    idle_store,
    launching,
    policy_view,
    records,
    sightings,
)
from ironburst.controller.launching import leave
from ironburst.controller.ledger import IllegalMove
from ironburst.controller.records import LeaseRow, Place
from ironburst.controller.site import Site
from ironburst.nodes import states as node_states
from ironburst.ports import CloudError, Observation, SchedulerError

_AGAIN_S = 60.0  # an accepted call to end an instance that lives on is repeated after that


class _Seen(NamedTuple):
    """A lease's node and the jobs on it, as the scheduler shows them. `node` None: it doesn't know it."""

    node: Node | None
    jobs: list[Job]


def advance(site: Site, observation: Observation) -> bool:
    """Take every step that can be taken from this observation.
    Whether anything changed. Trouble with one launch stops no other.
    """
    changed = launching.power_up(site, observation)
    for launch in dict.fromkeys(lease.launch for lease in site.ledger.leases()):
        try:
            changed |= _launch(site, launch, observation)
        except (SchedulerError, CloudError, IllegalMove) as error:
            site.tell("trouble", str(error), launch=launch)
    changed |= going.go(site, observation)
    return launching.ask(site, observation) or changed


def admit(site: Site) -> None:
    """Let those join that are on their way; those that aren't let in are reported to a person."""
    if not any(lease.state == records.LAUNCHED for lease in site.ledger.leases()):
        return
    try:
        for text in site.scheduler.admit():
            site.tell("needs_a_person", text)
    except SchedulerError as error:
        site.tell("trouble", f"nodes that are on their way can't be let in: {error}")


def _launch(site: Site, id: str, observation: Observation) -> bool:
    leases = site.ledger.leases_of(id)  # all of one scheduler
    unseen = any(observation.unseen(lease.node) for lease in leases)
    changed = not unseen and launching.steps(site, id, observation)
    for lease in site.ledger.leases_of(id):
        # of a scheduler that gives no answer nothing is concluded; what is ending is the cloud's alone
        if lease.state in _STEPS and (not unseen or lease.state == records.TERMINATED):
            seen = _Seen(observation.node(lease.node), observation.on(lease.node))
            changed |= _STEPS[lease.state](site, lease, seen)
    return changed


def _gang(site: Site, lease: LeaseRow) -> list[LeaseRow]:
    """The leases of a launch that stand or fall with this one: those that haven't been handed over yet."""
    still = (*records.COMING, records.JOINED)
    return [other for other in site.ledger.leases_of(lease.launch) if other.state in still]


def _launched(site: Site, lease: LeaseRow, seen: _Seen) -> bool:
    launch = site.ledger.launch(lease.launch)
    if seen.jobs:  # handed over, and the ledger is older than that
        site.ledger.move([lease], records.READY, site.now, worked=True)
        return True
    if dead := sightings.gone(site, lease, seen.node):
        return _failed(site, lease, dead, own_fault=not _by_the_cloud(site, lease))
    if seen.node is None:
        return _failed(site, lease, "the scheduler doesn't know its node any more")
    if _registered(seen.node):
        site.ledger.move([lease], records.JOINED, site.now, joined_s=site.now)
        broken_pool.joined(site, launch, lease.zone)
        took_s = site.now - lease.changed_s
        text = f"{lease.node} registered {took_s:.0f} s after its launch, so its gate passed"
        site.event("joined", text, launch=lease.launch, lease=lease.id)
        return True
    if node_states.going_down(seen.node.states) and not seen.node.has("POWER_UP"):
        return _failed(site, lease, f"the scheduler gave its node up ({'+'.join(seen.node.states)})", own_fault=True)
    if site.now - lease.changed_s > launch.boot_s:
        late = f"it did not join within {launch.boot_s:.0f} s: it never booted, or its gate failed"
        return _failed(site, lease, late, own_fault=True)
    return False


def _registered(node: Node) -> bool:
    """Its slurmd has registered; it waits behind its drain."""
    coming = node_states.powering_up(node.states) or node.has("NOT_RESPONDING")
    return node.has("IDLE", "DRAIN") and not coming and not node_states.going_down(node.states)


def _by_the_cloud(site: Site, lease: LeaseRow) -> bool:
    """Whether its instance is gone by the cloud's doing, not by its own or a person's."""
    instance = site.instances.get(lease.instance_id or "")
    return instance is None or instance.reason.startswith("Server.")


def _failed(site: Site, lease: LeaseRow, why: str, *, own_fault: bool = False) -> bool:
    """A node of a launch that isn't handed over yet fails: all of it is given
    up, and the place is closed for a while. `own_fault`: it may be the image's, and the next one fails alike.
    """
    if lease.id not in {other.id for other in _gang(site, lease)}:
        return False  # it was given up with another one of its launch a moment ago
    launch = site.ledger.launch(lease.launch)
    seconds = float(site.document.burst.cool_down_s)
    place = Place(launch.pool, lease.zone, launch.market, 1, launch.instance_type)
    cool_downs.close(site.ledger, place, seconds, f"{lease.node}: {why}", site.now, launch.serial)
    if own_fault:
        broken_pool.did_not_join(site, lease, why)
    return give_up(site, lease, why)


def _joined(site: Site, lease: LeaseRow, seen: _Seen) -> bool:
    if seen.jobs:  # handed over, and we died before we wrote it down
        site.ledger.move([lease], records.READY, site.now, worked=True)
        return True
    if dead := sightings.gone(site, lease, seen.node):
        return _failed(site, lease, dead)
    if seen.node is None or node_states.going_down(seen.node.states):
        return _failed(site, lease, "the scheduler took its node away before it was used")
    if seen.node.held_by_person:  # nobody waits for whoever did that
        return give_up(site, lease, f"a person drained it ({seen.node.reason}), and only a person lifts that")
    if seen.node.verdict:
        drained.note(site, lease, seen.node.verdict)
        return _failed(site, lease, f"it was drained before it was used ({seen.node.verdict})")
    return False


def _ready(site: Site, lease: LeaseRow, seen: _Seen) -> bool:
    node, busy = seen.node, bool(seen.jobs)
    if dead := sightings.gone(site, lease, seen.node):
        lost_spot = lease.market == "spot" and _by_the_cloud(site, lease)
        return taken_back(site, lease, dead) if lost_spot else interrupt(site, lease, dead)
    if node is None or (node.has("DOWN") and not node.has("POWERED_DOWN")):
        why = f": {node.reason}" if node and node.reason else ""
        return interrupt(site, lease, f"the scheduler lost its node (DOWN{why})")
    if node_states.going_down(node.states):  # a person's doing, or Slurm's own SuspendTime
        site.ledger.move([lease], records.RELEASING, site.now, end_reason="the scheduler powers it down")
        return True
    if node.verdict:  # the machine goes, and what is said of it with it
        drained.note(site, lease, node.verdict)
        site.ledger.move([lease], records.RELEASING, site.now, end_reason=f"drained: {node.verdict}")
        return True
    if busy and (lease.idle_since_s is not None or not lease.worked):
        with site.ledger.transaction():
            site.ledger.update([lease], idle_since_s=None, worked=True)
            if pool := policy_view.pool_of(site, lease):
                idle_store.used(site.ledger, pool, lease, site.now)
    elif not busy and lease.idle_since_s is None:
        with site.ledger.transaction():
            site.ledger.update([lease], idle_since_s=site.now)
            if pool := policy_view.pool_of(site, lease):
                idle_store.began(site.ledger, pool, lease, site.now)
    return False


def give_up(site: Site, lease: LeaseRow, why: str) -> bool:
    """A lease that isn't handed over yet, with those that stand or fall with it."""
    return leave(site, _gang(site, lease), f"{lease.node}: {why}")


def taken_back(site: Site, lease: LeaseRow, why: str) -> bool:
    """`interrupt`, by the cloud: its place is left alone for a while, for longer each time."""
    place = Place(lease.pool, lease.zone, lease.market, 1, lease.instance_type)
    seconds = float(site.document.burst.cool_down_s)
    cool_downs.taken_back(site.ledger, place, seconds, site.now, site.document.serial)
    if lease.market == "spot":
        site.ledger.lost_spot(lease)
    return interrupt(site, lease, why)


def interrupt(site: Site, lease: LeaseRow, why: str) -> bool:
    """The node goes, whatever runs there: its jobs go back to the queue first."""
    with site.ledger.transaction():
        if lease.state in records.COMING:  # a joined one may have been handed over a moment ago
            return give_up(site, lease, why)
        site.ledger.move([lease], records.INTERRUPTED, site.now, end_reason=why)
        site.event("interrupted", f"{lease.node}: {why}", launch=lease.launch, lease=lease.id)
    return True


def _interrupted(site: Site, lease: LeaseRow, seen: _Seen) -> bool:
    node = seen.node
    lost = bool(sightings.gone(site, lease, node)) or (node is not None and node.has("DOWN"))
    if seen.jobs and not lost and site.now - lease.changed_s < site.stop_s:
        return False  # until its jobs have left; the provider's own end cuts this short
    site.ledger.move([lease], records.LEAVING, site.now)
    return True


def _releasing(site: Site, lease: LeaseRow, seen: _Seen) -> bool:
    node = seen.node
    down = node is None or node.has("POWERING_DOWN") or node.has("POWERED_DOWN")
    if down or sightings.gone(site, lease, node):
        site.ledger.move([lease], records.LEAVING, site.now)
        return True
    return False


def _terminated(site: Site, lease: LeaseRow, _seen: _Seen) -> bool:
    instance, told = site.instances.get(lease.instance_id or ""), lease.to_s is not None or lease.instance_id is None
    # what isn't shown has ended by the provider's word, or if nothing knows it any more
    if not instance.alive if instance else told or sightings.gone(site, lease, None):
        ended_s = site.now if lease.to_s is None and lease.from_s is not None else lease.to_s
        site.ledger.move([lease], records.ENDED, site.now, to_s=ended_s)
        return True
    ending = set[str]()
    if lease.instance_id and site.now - lease.changed_s > _AGAIN_S:  # the call was accepted and yet it lives
        ending = going.terminate(site, [lease])[1]
    # it is paid for until it is gone
    site.ledger.update([lease], to_s=site.now if ending and instance is None else None)
    return False


_STEPS = {
    records.LAUNCHED: _launched,
    records.JOINED: _joined,
    records.READY: _ready,
    records.INTERRUPTED: _interrupted,
    records.RELEASING: _releasing,
    records.TERMINATED: _terminated,
}
