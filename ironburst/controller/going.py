"""The way out of all leases that end: one call of the scheduler and the cloud for all of them, however many there are.

Where a call for all is refused, each is tried by itself: one that fails keeps no other.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from functools import partial

from ironburst.burst import Node
from ironburst.burst.drains import PREFIX
from ironburst.controller import records
from ironburst.controller.records import LeaseRow
from ironburst.controller.site import Site
from ironburst.nodes import states as node_states
from ironburst.ports import CloudError, Observation, Refused, SchedulerError

_REFUSED_S = 300.0  # an instance that the cloud doesn't let us end for so long is told: rights may be new
STOPPABLE = ("RUNNING", "SUSPENDED", "STOPPED", "CONFIGURING")  # states of jobs (adapters/slurm/answers.py)
_By = dict[str, LeaseRow]  # by node


def go(site: Site, observation: Observation) -> None:
    """Take the next step out of every lease that is going."""
    going = (lease for lease in site.ledger.leases() if lease.state in records.GOING)
    leases = [lease for lease in going if not observation.unseen(lease.node)]
    _stop(site, [lease for lease in leases if lease.state == records.INTERRUPTED], observation)
    _release(site, [lease for lease in leases if lease.state == records.RELEASING], observation)
    _leave(site, [lease for lease in leases if lease.state == records.LEAVING], observation)


def _stop(site: Site, leases: list[LeaseRow], observation: Observation) -> None:
    """No new job, and those that are there go back to the queue."""
    by_reason: dict[str, list[str]] = {}
    for lease in leases:
        node = observation.node(lease.node)
        if node and not node.has("DRAIN") and not node_states.going_down(node.states):
            by_reason.setdefault(lease.end_reason, []).append(lease.node)
    for why, nodes in by_reason.items():
        each(site, nodes, partial(site.scheduler.drain, reason=PREFIX + why))
    from_lease = {job.id: lease for lease in leases for job in observation.on(lease.node) if job.state in STOPPABLE}
    if from_lease:
        _requeue(site, from_lease)


def _requeue(site: Site, from_lease: dict[int, LeaseRow]) -> None:
    try:
        # one that has just ended, or may not be requeued, ends with its node
        refused = site.scheduler.requeue(*from_lease)
    except SchedulerError as error:
        site.event("trouble", str(error))
        return
    with site.ledger.transaction():
        for job, lease in from_lease.items():
            kind, text = "requeued", f"from {lease.node}: {lease.end_reason}"
            if job in refused:
                kind, text = "trouble", refused[job]
            site.event(kind, text, launch=lease.launch, lease=lease.id, job=job)


def _release(site: Site, leases: list[LeaseRow], observation: Observation) -> None:
    """Also where the call was lost, or undone."""
    nodes = [(lease.node, observation.node(lease.node)) for lease in leases]
    each(
        site, [name for name, node in nodes if node and not node_states.going_down(node.states)], site.scheduler.release
    )


def _leave(site: Site, leases: list[LeaseRow], observation: Observation) -> None:
    """The permits and the nodes, then the instances."""
    of = {lease.node: lease for lease in leases}
    # whose node the scheduler doesn't let go for so long, whatever the reason: no instance is paid for that
    late = {lease.node: lease for lease in leases if site.now - lease.changed_s > records.ENDING_S}
    of = _kept(of, each(site, of, site.scheduler.remove_permit))
    for why, names in _powered(of, observation).items():
        done = each(site, names, partial(site.scheduler.abandon, reason=why))
        of = {name: lease for name, lease in of.items() if name in done or name not in names}
    end(site, list((late | of).values()))


def let_go(site: Site, names: Collection[str], observation: Observation) -> None:
    """Nodes that were spare and that no decision took: the scheduler powers them down."""
    rented = {lease.node for lease in site.ledger.leases()}
    unused = sorted(name for name in names if name not in rented and not observation.unseen(name))
    site.spare.difference_update(unused, rented)
    for why, powered in _powered(each(site, unused, site.scheduler.remove_permit), observation).items():
        each(site, sorted(powered), partial(site.scheduler.abandon, reason=why))


def _powered(of: Iterable[str], observation: Observation) -> dict[str, list[str]]:
    """The nodes that still have power, by what their drain is to say. A person's own words stay."""
    words: dict[str, list[str]] = {}
    for name in of:
        node = observation.node(name)
        if node and not node.has("POWERING_DOWN") and not _off(node):
            words.setdefault(node.reason if node.held_by_person else "given up", []).append(name)
    return words


def _off(node: Node) -> bool:
    return node.has("POWERED_DOWN") and not node.has("POWER_UP")


def end(site: Site, leases: list[LeaseRow]) -> None:
    """The scheduler is done with these nodes: their instances go."""
    living = {}
    for lease in leases:
        instance = site.instances.get(lease.instance_id or "")
        if lease.instance_id and (instance is None or instance.alive):  # what isn't shown may live
            living[lease.instance_id] = lease
    told = {lease.node for lease in leases if lease not in living.values()}
    accepted, ended = terminate(site, living.values())
    told |= {living[id].node for id in accepted}
    with site.ledger.transaction():
        now = site.now
        for lease in (lease for lease in leases if lease.node in told):
            gone = lease.instance_id not in living or lease.instance_id in ended
            to_s = (lease.to_s or now) if gone and lease.from_s is not None else None
            site.ledger.move([lease], records.TERMINATED, now, to_s=to_s)
            site.event("terminated", f"{lease.node}: {lease.end_reason}", launch=lease.launch, lease=lease.id)


def terminate(site: Site, leases: Iterable[LeaseRow]) -> tuple[set[str], set[str]]:
    """End the instances of leases; one that can't be ended keeps no other. The ids of those that the cloud was told to
    end, and of those that cost no more by its word. What stays and costs is reported.
    """
    of = {lease.instance_id: lease for lease in leases if lease.instance_id}
    accepted, ended, refused = terminate_each(site, of)
    for id in refused:
        if site.now - of[id].changed_s > _REFUSED_S:
            text = f"instance {id} of {of[id].node} can't be ended, and costs on: {refused[id]}; end it by hand"
            site.tell("needs_a_person", text, launch=of[id].launch, lease=of[id].id)
    return accepted, ended


def terminate_each(site: Site, ids: Iterable[str]) -> tuple[set[str], set[str], dict[str, Refused]]:
    """The same of instances by id, without a word to a person; and why some may not be ended."""
    ended, refused = set[str](), dict[str, Refused]()

    def act(ids: list[str]) -> None:
        try:
            ended.update(site.cloud.terminate(ids))
        except Refused as error:
            refused.update(dict.fromkeys(ids, error))
            raise

    accepted = each(site, ids, act)
    return accepted, ended, {id: error for id, error in refused.items() if id not in accepted}


def each(site: Site, items: Iterable[str], act: Callable[[list[str]], object]) -> set[str]:
    """Act on all, in one call; if that fails, on each by itself, as long as the tick's time isn't used up.
    Those that it was done for.
    """
    names = list(items)
    try:
        if names:
            act(names)
        return set(names)
    except (SchedulerError, CloudError) as error:
        site.tell("trouble", str(error))
    done = set()
    for name in names if len(names) > 1 else []:
        if site.late:
            break
        try:
            act([name])
            done.add(name)
        except (SchedulerError, CloudError) as error:
            site.tell("trouble", str(error))
    return done


def _kept(of: _By, names: set[str]) -> _By:
    return {name: lease for name, lease in of.items() if name in names}
