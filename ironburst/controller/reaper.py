"""What nobody asked for any more: instances, permits and powered-up burst nodes without a lease."""

from __future__ import annotations

from ironburst import node_states
from ironburst.controller.site import Site
from ironburst.ports import CloudError, Instance, Observation, SchedulerError

GRACE_S = 300.0  # younger instances may belong to a call whose answer is still under way


def orphans(site: Site, observation: Observation, grace_s: float = GRACE_S) -> list[Instance]:
    """Living instances of this cluster's controller that no open lease and no open intent knows.

    One whose address is that of a node with jobs is spared (a lost ledger must not cost users their work); it is
    reported instead.
    """
    known = {lease.instance_id for lease in site.ledger.leases() if lease.state != "ended"}
    tokens = site.ledger.open_tokens()
    found = [
        i
        for i in site.instances.values()
        if i.alive and i.id not in known and i.token not in tokens and site.now - i.launched_s >= grace_s
    ]
    working = {node.address for node in observation.nodes if node.address and observation.on(node.name)}
    for instance in found:
        if instance.address in working:
            site.event(
                "needs_a_person",
                f"instance {instance.id} ({instance.address}) has no lease, and jobs run on it: spared",
            )
    return [instance for instance in found if instance.address not in working]


def reap(site: Site, observation: Observation, grace_s: float = GRACE_S) -> list[str]:
    """End orphans; returns their ids. Raises CloudError."""
    found = orphans(site, observation, grace_s)
    if found:
        site.cloud.terminate([instance.id for instance in found])
        for instance in found:
            site.ledger.charge(instance.launch, instance.id, instance.launched_s, site.now)
            site.event(
                "orphan",
                f"instance {instance.id} of launch {instance.launch or '?'} had no lease: ended",
                launch=instance.launch,
            )
    return [instance.id for instance in found]


def tidy(site: Site, observation: Observation) -> None:
    """Keep the rule that a burst node without a lease is powered down and drained, and that only leases have
    permits.
    """
    open_nodes = {lease.node for lease in site.ledger.leases()}
    burst = {node for pool in site.document.pools for node in pool.nodes}
    free = [node for node in observation.nodes if node.name in burst and node.name not in open_nodes]
    steps = (
        (site.scheduler.remove_permit, sorted(observation.permits & burst - open_nodes), "lease file without a lease"),
        (
            site.scheduler.heal,
            [n.name for n in free if n.has("POWERED_DOWN", "DOWN") and not n.has("POWERING_UP")],
            "DOWN while powered down",
        ),
        (
            lambda nodes: site.scheduler.drain(nodes, "no lease"),
            [
                n.name
                for n in free
                if n.has("POWERED_DOWN") and not n.has("DRAIN") and not n.has("DOWN") and not n.has("POWER_UP")
            ],
            "not drained while powered down",
        ),
        (
            lambda nodes: site.scheduler.abandon(nodes, "no lease"),
            [
                n.name
                for n in free
                if not node_states.going_down(n.states) and not n.has("POWER_UP") and not observation.on(n.name)
            ],
            "powered up without a lease",
        ),
    )
    for act, nodes, what in steps:
        if nodes:
            try:
                act(nodes)
                site.event("tidied", f"{', '.join(nodes)}: {what}")
            except SchedulerError as error:
                site.event("trouble", str(error))


def reap_safely(site: Site, observation: Observation) -> None:
    try:
        reap(site, observation)
    except CloudError as error:
        site.event("trouble", str(error))
