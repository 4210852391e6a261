"""What nobody asked for any more: instances, permits and powered-up burst nodes without a lease."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from ironburst.controller import going, ownership, rebuild, sightings
from ironburst.controller.site import Site
from ironburst.nodes import states as node_states
from ironburst.ports import CloudError, Instance, Observation, Refused

GRACE_S = 300.0  # younger instances may belong to a call whose answer is still under way

_ABANDONED = "powered up without a lease"


def orphans(site: Site, observation: Observation, grace_s: float = GRACE_S) -> list[Instance]:
    """Living instances of this cluster's controller that no open lease and no open intent knows. Those of a controller
    of another site are spared, and reported.

    One whose address is that of a node with jobs is spared (a lost ledger must not cost
    users their work); it is reported instead.
    """
    others = _elsewhere(site)
    unknown = [
        instance
        for instance in sightings.unknown(site)
        if instance.owner not in others and not sightings.hidden(site, observation, instance)
    ]
    old = [instance for instance in unknown if site.now - instance.launched_s >= grace_s]
    working = {node.address for node in observation.nodes if node.address and observation.on(node.name)}
    for instance in old:
        if instance.address in working:
            text = f"instance {instance.id} ({instance.address}) has no lease, and jobs run on it: spared"
            site.tell("needs_a_person", text)
    return [instance for instance in old if instance.address not in working]


def _elsewhere(site: Site) -> set[str]:
    """Owners of another site; each is told once."""
    others = ownership.elsewhere(site)
    told = set((site.ledger.noted("elsewhere") or "").split())
    for owner in sorted(others - told):
        text = f"controller {owner} rents for a cluster of this name elsewhere: its nodes are left alone; rename one"
        site.event("needs_a_person", text)
    if others - told:
        site.ledger.note("elsewhere", " ".join(sorted(told | others)))
    return others


def reap(site: Site, observation: Observation, grace_s: float = GRACE_S) -> list[str]:
    """End orphans; returns their ids. Raises CloudError where some can't be ended, after the others were."""
    ending = {instance.id: instance for instance in orphans(site, observation, grace_s)}
    accepted, _, refused = going.terminate_each(site, ending)
    for instance in (ending[id] for id in ending if id in accepted):
        rebuild.charge(site, instance)
        text = f"instance {instance.id} of launch {instance.launch or '?'} had no lease: ended"
        site.event("orphan", text, launch=instance.launch)
    if stays := sorted(ending.keys() - accepted):
        text = f"instances without a lease can't be ended, and cost on: {', '.join(stays)}"
        raise Refused(f"{text}: {next(reversed(refused.values()))}") if refused else CloudError(text)
    return [id for id in ending if id in accepted]


def tidy(site: Site, observation: Observation) -> None:
    """Keep the rule that a burst node without a lease is powered down
    and drained, and that only leases have permits.
    """
    leased = {lease.node for lease in site.ledger.leases()}
    burst = {node for pool in site.document.pools for node in pool.nodes}
    kept = leased | site.spare
    free = [node for node in observation.nodes if node.name in burst and node.name not in kept]
    unleased = sorted(observation.permits & burst - kept)
    lost = [node for node in free if node.has("POWERED_DOWN", "DOWN") and not node.has("POWERING_UP")]
    down = [node.name for node in lost if not node.held_by_person]
    # slurmctld would wait for the word of a slurmd that is gone with its instance, longer than SlurmdTimeout
    silent = [node for node in free if node.has("COMPLETING", "NOT_RESPONDING")]
    words = {node.name: node.reason for node in silent if node.held_by_person}
    off = [node for node in free if node.has("POWERED_DOWN") and not node.has("DOWN") and not node.has("POWER_UP")]
    undrained = [node.name for node in off if not node.has("DRAIN")]
    up = [node for node in free if not node_states.going_down(node.states) and not node.has("POWER_UP")]
    unused = [node.name for node in up if not observation.on(node.name)]
    _tidied(site, unleased, "permit without a lease", site.scheduler.remove_permit)
    _tidied(site, down, "DOWN while powered down", site.scheduler.heal)
    ending = [node.name for node in silent]
    _tidied(site, ending, "a job was still ending there, and there is no instance", site.scheduler.heal)
    for name, reason in words.items():
        _tidied(site, [name], "it stays drained", partial(site.scheduler.drain, reason=reason))
    _tidied(site, undrained, "not drained while powered down", lambda nodes: site.scheduler.drain(nodes, "no lease"))
    _tidied(site, unused, _ABANDONED, lambda nodes: site.scheduler.abandon(nodes, "no lease"))


def abandoned(site: Site, node: str, since_s: float) -> bool:
    """Whether its node was powered up without a lease after that: what was launched for it may register yet."""
    told = [event.text for event in site.ledger.events(since_s) if event.kind == "tidied"]
    return any(text.endswith(f": {_ABANDONED}") and node in text.partition(": ")[0].split(", ") for text in told)


def _tidied(site: Site, nodes: list[str], what: str, act: Callable[[list[str]], None]) -> None:
    done = going.each(site, nodes, act)
    if tidied := [name for name in nodes if name in done]:
        site.event("tidied", f"{', '.join(tidied)}: {what}")


def reap_safely(site: Site, observation: Observation) -> None:
    """`reap`; what can't be ended is reported."""
    try:
        reap(site, observation)
    except CloudError as error:
        site.tell("needs_a_person" if isinstance(error, Refused) else "trouble", str(error))
