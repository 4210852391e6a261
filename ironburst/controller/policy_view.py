"""What the policy decides from: the document, the observation and the ledger as its Snapshot and its Policy."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

from ironburst.burst import CoolDown, Job, Lease, Node, OtherType, Policy, Pool, Resources, Snapshot, explain, runtimes
from ironburst.burst.limits import Limits, WaitTarget
from ironburst.burst.policy import DeadlineMoves
from ironburst.controller import (
    idle_store,
    karpenter,
    money,
    order_book,
    own_exclusions,
    records,
    runtime_store,
    spending,
    unstarted,
)
from ironburst.controller.records import LeaseRow, Rate
from ironburst.controller.site import PoolImage, Site
from ironburst.document import ClusterDocument, GpuDocument, PoolDocument
from ironburst.nodes import naming
from ironburst.nodes import states as node_states
from ironburst.nodes.gpus import NodeGpu as Kind
from ironburst.ports import Observation

BOOTS = 15
"""newest ones that tell how long a boot takes"""


def policy(document: ClusterDocument, silent: Sequence[str] = ()) -> Policy:
    """What the document says of patience, as the policy has it. `silent`: kinds of schedulers whose queue isn't known
    now, so nothing is decided for it.
    """
    burst = document.burst
    limits = None
    if burst.wait_target:
        target = WaitTarget.of_mean(**burst.wait_target.model_dump())
        limits = Limits(target, hours_per_gpu_hour=burst.hours_per_gpu_hour)
    declared = {"spot_max_nodes": burst.spot_max_nodes} if burst.spot_max_nodes else {}
    homes = [each.home_partition for each in document.schedulers if each.kind not in silent]
    return Policy(
        homes[0],
        float(burst.wait_limit_s),
        limits=limits,
        settle_s=float(burst.settle_s),
        other_homes=tuple(homes[1:]),
        folders=None if burst.folders is None else tuple(burst.folders),
        accounts=tuple(burst.accounts),
        deadline_moves=None if burst.deadline_spare_s is None else DeadlineMoves(float(burst.deadline_spare_s)),
        **declared,
    )


def pool_of(site: Site, lease: LeaseRow) -> Pool | None:
    """A lease's pool as the policy sees it; None: it is not declared any more."""
    declared = site.document.pool(lease.pool)
    return pool(site, declared) if declared else None


def pools(site: Site, images: dict[str, PoolImage], observation: Observation) -> tuple[Pool, ...]:
    """All declared pools, in the document's order, but those of silent schedulers."""
    asked = (each for each in site.document.pools if site.document.scheduler_of(each).kind not in observation.silent)
    shown = {node.name: node.total for node in observation.nodes}
    return tuple(_as_shown(pool(site, declared, images[declared.name].obstacle), shown) for declared in asked)


def _as_shown(pool: Pool, shown: Mapping[str, Resources]) -> Pool:
    """Its nodes have for jobs what their scheduler says: Kubernetes' kubelet and DaemonSets keep a part. The most that
    one of them has: others may have less because of what runs there.
    """
    whole = [shown[name] for name in pool.nodes if name in shown and shown[name].gpus == pool.each.gpus]
    if not whole:
        return pool
    most = Resources(pool.each.gpus, max(each.cpus for each in whole), max(each.memory_mb for each in whole))
    return replace(pool, each=pool.each.at_most(most))


def pool(site: Site, declared: PoolDocument, obstacle: str = "") -> Pool:
    """A declared pool as the policy sees it, with what the ledger knows of its boots and idle times."""
    boot_s = usual_boot_s(site.ledger.newest_boots_s(declared.name, BOOTS))
    history = idle_store.read(site.ledger, declared.name).history
    obstacle = obstacle or _not_begun(declared, site.now)
    home = site.document.scheduler_of(declared).home_partition if site.document.other_schedulers else ""
    known = replace(declared_pool(declared, site.document), home=home)
    return replace(known, obstacle=obstacle, usual_boot_s=boot_s, idle_history=history)


def _not_begun(declared: PoolDocument, now_s: float) -> str:
    """EC2 takes no launch into a capacity block before it begins."""
    opens_s = declared.capacity_starts_s
    return f"its capacity block opens at {explain.at(opens_s)}" if opens_s is not None and opens_s > now_s else ""


def usual_boot_s(boots_s: Iterable[float]) -> float | None:
    """The median; None: none has joined."""
    took_s = sorted(boots_s)
    return took_s[len(took_s) // 2] if took_s else None


def kind(gpu: GpuDocument) -> Kind:
    """What it is to jobs that name no type."""
    return Kind(gpu.model, gpu.memory_gb, gpu.nvlink)


def _with_gpus(nodes: Iterable[Node], document: ClusterDocument) -> tuple[Node, ...]:
    """Those that are declared at home with what their GPUs are."""
    if document.burst.untyped_jobs_may_use is None:
        return tuple(nodes)
    known = {host.name: kind(host.gpu) for host in document.hosts if host.gpu}
    return tuple(replace(node, gpu=known[node.name]) if node.name in known else node for node in nodes)


def declared_pool(declared: PoolDocument, document: ClusterDocument) -> Pool:
    """A declared pool, before anything was seen of it."""
    document, untyped = document.in_cloud(declared), document.burst.untyped_jobs_may_use
    reserved = tuple(declared.markets) if declared.bought else ()
    return Pool(
        name=declared.name,
        partition=declared.partition,
        nodes=tuple(declared.nodes),
        instance_type=declared.instance_type,
        each=Resources(declared.gpu.count, declared.slurm.cpus, declared.slurm.memory_mb),
        gpu_type=naming.gpu_type(declared.gpu.model),
        markets=tuple(declared.markets),
        usd_per_hour=dict(declared.usd_per_hour),
        zones=tuple(declared.zone_names),
        boot_s=float(declared.boot_s),
        idle_s=float(declared.idle_s),
        max_run_s=float(declared.max_run_s),
        ends_s=declared.capacity_ends_s,
        data=tuple(declared.data),
        licences=tuple(declared.licences),
        fabric=declared.fabric,
        min_billing_s=records.MIN_BILLING_S,
        prepaid_markets=(*reserved, *({"capacity-block"} - set(reserved))),
        interruptions_per_hour=dict(declared.interruptions_per_hour),
        checkpoint_s=float(declared.checkpoint_s),
        relative_speed=declared.relative_speed,
        ending_s=records.ENDING_S,
        account=declared.account or "",
        other_types=tuple(
            OtherType(**other.model_dump(), carbon_usd_per_hour=_carbon_usd_per_hour(document, other.instance_type))
            for other in declared.other_types
        ),
        carbon_usd_per_hour=_carbon_usd_per_hour(document, declared.instance_type),
        in_order=declared.prefer == "order",
        gpu=None if untyped is None else kind(declared.gpu),
        untyped=declared.name in (untyped or ()),
    )


def _carbon_usd_per_hour(document: ClusterDocument, instance_type: str) -> float:
    """What a node's emissions weigh, at work."""
    usd_per_tonne, cloud = document.burst.carbon_usd_per_tonne, document.monitoring.cloud
    grams = cloud.gco2_per_kwh if cloud else None
    if not usd_per_tonne or not grams:
        return 0.0
    return document.monitoring.watts.get(instance_type, 0.0) / 1000 * grams / 1e6 * usd_per_tonne


def snapshot(site: Site, observation: Observation, images: dict[str, PoolImage]) -> Snapshot:
    """What the policy decides from. Nodes that Slurm is powering down are leaving, whatever the ledger knows yet."""
    now = site.now
    leases = [lease for lease in site.ledger.leases() if not observation.unseen(lease.node)]
    rates = spending.rates(site.ledger, now)
    joined: dict[str, bool] = {}
    for lease in leases:
        joined[lease.launch] = joined.get(lease.launch, True) and lease.state not in records.COMING
    return Snapshot(
        now_s=now,
        jobs=_jobs(site, observation),
        nodes=_with_gpus(observation.nodes, site.document),
        pools=pools(site, images, observation),
        leases=tuple(
            _lease(site, lease, observation, joined[lease.launch], money.rates_of(lease, rates)[-1]) for lease in leases
        ),
        cool_downs=(
            *site.ledger.cool_downs(now),
            *order_book.closings(site.ledger, site.document, now),
            *_unlisted(site),
        ),
        budget=karpenter.budget_of(site),
        experience=runtimes.relevant(runtime_store.experience(site.ledger), observation.jobs),
        unstarted=unstarted.jobs(site.ledger, observation.jobs),
        proven=unstarted.proven(site.ledger, observation.jobs),
        spare=tuple(sorted(name for name in site.spare if (node := observation.node(name)) and node.coming_up)),
        halt=site.halt or site.unlisted,
        refused_s=_refused_s(site, observation, {lease.node for lease in leases}),
        notes={"cluster": site.document.cluster, "document_serial": str(site.document.serial)},
    )


def _unlisted(site: Site) -> Iterator[CoolDown]:
    """The places of pools whose cloud doesn't list its instances, where another one does."""
    for pool in site.document.pools if not site.unlisted else ():
        if halt := site.silent_of(pool.name):
            until_s, places = site.now + site.document.burst.tick_s, product(pool.zone_names, pool.markets)
            yield from (CoolDown(pool.name, zone, market, 1, until_s, halt.why) for zone, market in places)


def _jobs(site: Site, observation: Observation) -> tuple[Job, ...]:
    """With what the ledger knows of them and the scheduler doesn't."""
    known: dict[int, dict[str, Any]] = unstarted.guessed(site.ledger)
    for field, values in (("spot_losses", site.ledger.spot_losses()), ("keeps_off", own_exclusions.read(site.ledger))):
        for id, value in values.items():
            known.setdefault(id, {})[field] = value
    if not known:
        return observation.jobs
    return tuple(replace(job, **known[job.id]) if job.id in known else job for job in observation.jobs)


def _refused_s(site: Site, observation: Observation, leased: set[str]) -> dict[str, float]:
    """When the cloud refused the last launch of each node that is being powered down for nobody."""
    burst = {name for pool in site.document.pools for name in pool.nodes} - leased
    going = [node.name for node in observation.nodes if node.name in burst and node_states.moving(node.states)]
    return site.ledger.refused_s(going) if going else {}


def _lease(site: Site, lease: LeaseRow, observation: Observation, gang_joined: bool, rate: Rate) -> Lease:
    _, until_s = lease.aside(site.now) or (0.0, lease.committed_until_s)
    state = "leaving" if lease.state in records.GOING else "coming" if lease.state in records.COMING else lease.state
    node = observation.node(lease.node)
    if state == "joined" and not gang_joined:
        state = "coming"
    if state in ("joined", "ready") and (node is None or node_states.going_down(node.states)):
        state = "leaving"
    return replace(
        lease.lease(),
        state=state,
        jobs=site.ledger.jobs_of(lease.id),
        usd_per_hour=rate.usd_per_hour,
        committed_until_s=until_s,
        account=rate.account,
    )
