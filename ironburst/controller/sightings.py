"""What the cloud shows, and what may be concluded from what it doesn't show.

A list of instances may be incomplete: EC2's answers are only in the end consistent, and a list of many pages may break
off. So an instance is gone when it wasn't shown for UNSEEN_S, its node doesn't answer the scheduler, and the cloud,
asked for exactly its id, doesn't know it or says that it ended.
"""

from __future__ import annotations

import math

from ironburst.burst import Halt
from ironburst.controller import heartbeat
from ironburst.controller.records import ENDING_S, LeaseRow
from ironburst.controller.site import Site
from ironburst.nodes import states as node_states
from ironburst.ports import CloudError, Instance, Node, Observation

UNSEEN_S = 300.0  # the cloud may take so long to show a new instance, too


def note(site: Site) -> None:
    """Write down which leases' instances the cloud shows alive; one that was never looked for counts as shown now."""
    open_leases = site.ledger.leases()
    shown = [lease for lease in open_leases if lease.instance_id and _shown(site, lease)]
    site.ledger.update(shown, seen_s=site.now)
    for lease in shown:
        instance = site.instances.get(lease.instance_id or "")
        if instance and instance.address and instance.address != lease.address:
            site.ledger.update([lease], address=instance.address)


def _shown(site: Site, lease: LeaseRow) -> bool:
    instance = site.instances.get(lease.instance_id or "")
    return instance.alive if instance else lease.seen_s is None


def unknown(site: Site) -> list[Instance]:
    """Living instances that are shown, and that no open lease and no open intent knows."""
    known, tokens = {lease.instance_id for lease in site.ledger.leases()}, site.ledger.open_tokens()
    living = (instance for instance in site.instances.values() if instance.alive)
    return [instance for instance in living if instance.id not in known and instance.token not in tokens]


def hidden(site: Site, observation: Observation, instance: Instance) -> bool:
    """Whether its node may be one of a scheduler that gave no answer: then nothing is concluded about it."""
    pool = site.document.pool(instance.pool)
    return bool(observation.silent) if pool is None else any(map(observation.unseen, pool.nodes))


def gone(site: Site, lease: LeaseRow, node: Node | None) -> str:
    """Why a lease's instance is gone, which is then paid for until it ended; empty: nothing proves that. `node`: its
    node, if that may speak for it.
    """
    why = "" if lease.instance_id is None else _gone(site, lease, lease.instance_id, node)
    if why and lease.from_s is not None and lease.to_s is None:
        site.ledger.update([lease], to_s=_ended_s(site, lease, node))
    return why


def _ended_s(site: Site, lease: LeaseRow, node: Node | None) -> float:
    """The latest moment at which an instance that is gone may have ended. The cloud doesn't say when, and after hours
    without a controller "now" is hours too much: it would use up a ceiling, and end the jobs of others. The scheduler
    has watched it meanwhile; what fell silent because its link was down lived on until its dead-man's switch, which
    listens to whoever wrote `seen_s`, and was told then when its lease ends: it hears that, and acts, a bit later.
    """
    silent_s = site.now if node is None or node.silent_s is None else node.silent_s
    heard_s = max(lease.seen_s or 0.0, lease.joined_s or 0.0)
    end_s = max(lease.committed_until_s, heard_s + ENDING_S) + heartbeat.HEARD_S + heartbeat.STEP_S
    told_s = math.inf if lease.joined_s is None else end_s
    return min(max(silent_s, min(heard_s + site.document.burst.dead_man_s, told_s)), site.now)


def _gone(site: Site, lease: LeaseRow, id: str, node: Node | None) -> str:
    instance = site.instances.get(id)
    if instance is None:
        unseen_s = 0.0 if lease.seen_s is None else site.now - lease.seen_s
        if unseen_s < UNSEEN_S or answers(node) or site.silent_of(lease.pool):
            return ""
        try:
            instance = ask(site, [lease]).get(id)
        except CloudError as error:
            halt = Halt("ironburst", f"the cloud doesn't say which instances live: {error}", site.now)
            declared = site.document.pool(lease.pool)
            whose = [declared.provider] if declared else [cloud.provider for cloud in site.document.clouds]
            site.silent |= dict.fromkeys(whose or [""], halt)
            site.tell("trouble", f"{lease.node}: whether its instance lives can't be asked: {error}")
            return ""
        if instance is None:
            silent = " and its node doesn't answer" if node else ""
            return f"its instance is gone: not shown for {unseen_s / 60:.0f} min, unknown by its id{silent}"
    return "" if instance.alive else f"its instance ended: {instance.reason or instance.state}"


def ask(site: Site, leases: list[LeaseRow]) -> dict[str, Instance]:
    """Ask the cloud for the instances of leases by their ids; one that lives is a sighting.
    Raises CloudError.
    """
    wanted = {lease.instance_id: lease for lease in leases if lease.instance_id}
    known = {instance.id: instance for instance in site.cloud.described(list(wanted))} if wanted else {}
    site.instances |= known
    site.ledger.update([wanted[id] for id, each in known.items() if each.alive], seen_s=site.now)
    return known


def answers(node: Node | None) -> bool:
    """The node's slurmd has registered and responds, also if it is drained or to be powered down later."""
    if node is None or node.has("NOT_RESPONDING") or node.has("POWERED_DOWN") or node.has("POWERING_DOWN"):
        return False
    return not node_states.unregistered(node.states) and not node_states.powering_up(node.states)
