"""What the provider says of instances: that it takes them back, that they are ill, that their host will be serviced.

An interruption is written down first, then taken off its queue. One queue that can't be read hides no other. A cloud
without queues tells only the instance: its node closes itself, with a reason that the scheduler shows.
"""

from __future__ import annotations

from ironburst.burst import Node
from ironburst.controller import leases, records
from ironburst.controller.records import LeaseRow
from ironburst.controller.site import Site
from ironburst.ports import CloudError, InstanceTrouble, Interruption, Observation, SomeSilent

# jobs are put back so long before a scheduled event: time to stop them, and a controller that was away for a moment
BEFORE_S = records.ENDING_S
_GONE = (records.INTERRUPTED, records.LEAVING, records.TERMINATED)
# how the reason of a node begins that was told so itself; why, and the instance's id, follow: "... (preempted): ID"
TAKEN_BACK = "ironburst: taken back by the cloud"


def queues(site: Site) -> list[str]:
    """All pools' queues, each once."""
    return list(dict.fromkeys(filter(None, (pool.notices for pool in site.document.pools))))


def interruptions(site: Site) -> None:
    """Spot notices: into the ledger first, then off their queue."""
    for queue in queues(site):
        try:
            notices = site.cloud.interruptions([queue])
            _written(site, notices)
            site.cloud.acknowledge(*notices)
        except CloudError as error:
            site.tell("trouble", f"notices of {queue.rsplit('/', 1)[-1]}: {error}")


def _written(site: Site, notices: list[Interruption]) -> None:
    with site.ledger.transaction():
        for notice in notices:
            lease = site.ledger.lease_of_instance(notice.instance_id)
            if lease and lease.state not in _GONE:
                leases.taken_back(site, lease, "spot interruption")


def _from_nodes(site: Site, observation: Observation) -> None:
    """Notices that the nodes themselves got. The reason of a node outlives its lease, so the instance has to be it."""
    for lease in site.ledger.leases():
        node = observation.node(lease.node)
        if node is None or lease.state in _GONE or not node.reason.startswith(TAKEN_BACK):
            continue
        why, _, said = node.reason.removeprefix(TAKEN_BACK).partition(": ")
        if said.partition(" ")[0] == lease.instance_id:  # slurmctld may have added words of its own
            leases.taken_back(site, lease, f"the cloud takes it back{why}")


def troubles(site: Site, observation: Observation) -> None:
    """What nodes were told themselves; failed status checks and scheduled events: the node takes no new job. Its jobs
    go on while it answers and the event is far off, else they go back to the queue.
    """
    _from_nodes(site, observation)
    of = {lease.instance_id: lease for lease in site.ledger.leases() if lease.instance_id}
    hidden = {id for id, lease in of.items() if id not in site.instances and site.silent_of(lease.pool)}
    if site.late:  # EC2 isn't reached: waiting for it once more only makes the next notice late
        hidden = set()
    running = [id for id in of if id in hidden or (id in site.instances and site.instances[id].state == "running")]
    try:
        found = site.cloud.troubles(running) if running else []
    except SomeSilent as error:
        site.tell("trouble", f"status checks and scheduled events aren't known: {error}")
        found = error.answer
    except CloudError as error:
        site.tell("trouble", f"status checks and scheduled events aren't known: {error}")
        return
    for trouble in found:
        lease = of.get(trouble.instance_id)
        if lease is not None and not observation.unseen(lease.node):  # else: it is shown again
            _troubled(site, lease, trouble, observation)


def _troubled(site: Site, lease: LeaseRow, trouble: InstanceTrouble, observation: Observation) -> None:
    if lease.state in records.GOING and lease.state != records.RELEASING:
        return
    if lease.state in records.COMING and trouble.from_s is None:
        return  # a boot may fail a check; it has its own limit
    urgent = _urgent(site, trouble, observation.node(lease.node))
    if lease.state in (*records.COMING, records.JOINED) or (urgent and observation.on(lease.node)):
        leases.interrupt(site, lease, trouble.text)
    elif lease.state == records.READY:
        site.ledger.move([lease], records.RELEASING, site.now, end_reason=trouble.text)
        text = f"{lease.node}: {trouble.text}; it takes no new job, those on it may end"
        site.event("release", text, launch=lease.launch, lease=lease.id)


def _urgent(site: Site, trouble: InstanceTrouble, node: Node | None) -> bool:
    if trouble.from_s is None:  # it fails a check now: believed where the scheduler doesn't reach it either
        return node is None or node.has("NOT_RESPONDING") or node.has("DOWN")
    return site.now + BEFORE_S >= trouble.from_s
