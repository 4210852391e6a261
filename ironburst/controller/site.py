"""What one tick works with, and how the declared envelope becomes the policy's view of it."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, replace

from ironburst.burst import Budget, Lease, Policy, Pool, Resources, Snapshot, runtimes
from ironburst.burst.limits import Limits, WaitTarget
from ironburst.controller import idle_store, money, records, runtime_store
from ironburst.controller.ledger import Ledger
from ironburst.controller.records import LaunchRow, LeaseRow, Rate
from ironburst.document import ClusterDocument, PoolDocument
from ironburst.ports import Clock, Cloud, CloudError, Instance, LaunchRequest, Observation, Scheduler


@dataclass
class Site:
    """One tick's surroundings: the declaration, the ports, the ledger, and what the cloud said at its start."""

    document: ClusterDocument
    scheduler: Scheduler
    cloud: Cloud
    ledger: Ledger
    clock: Clock
    instances: dict[str, Instance]

    @property
    def now(self) -> float:
        return self.clock.now()

    def pool(self, name: str) -> Pool | None:
        """A pool as the policy sees it; None: not declared any more."""
        declared = next((each for each in self.document.pools if each.name == name), None)
        return pool(self, declared) if declared else None

    def event(self, kind: str, text: str, *, launch: str = "", lease: str = "", job: int | None = None) -> None:
        self.ledger.event(kind, text, self.now, launch=launch, lease=lease, job=job)


@dataclass(frozen=True)
class Image:
    """A pool's image, or why there is none."""

    id: str = ""
    obstacle: str = ""


def images(document: ClusterDocument, cloud: Cloud) -> dict[str, Image]:
    """The image of each pool, by pool name."""
    return {pool.name: _image(pool, cloud) for pool in document.pools}


def _image(pool: PoolDocument, cloud: Cloud) -> Image:
    try:
        found = cloud.image_id(pool.image_parameter)
    except CloudError as error:
        return Image(obstacle=f"its image can't be looked up ({error})")
    missing = f"no image: the parameter {pool.image_parameter} doesn't exist; bake one with playbooks/image.yml"
    return Image(id=found) if found else Image(obstacle=missing)


def policy(document: ClusterDocument) -> Policy:
    burst = document.burst
    limits = Limits(WaitTarget.of_mean(**burst.wait_target.model_dump())) if burst.wait_target else None
    declared = {"spot_max_nodes": burst.spot_max_nodes} if burst.spot_max_nodes else {}
    home, wait_limit_s = document.scheduler.home_partition, float(burst.wait_limit_s)
    return Policy(home, wait_limit_s, limits=limits, settle_s=float(burst.settle_s), **declared)


def pools(site: Site, images: dict[str, Image]) -> tuple[Pool, ...]:
    return tuple(pool(site, declared, images[declared.name].obstacle) for declared in site.document.pools)


def pool(site: Site, declared: PoolDocument, obstacle: str = "") -> Pool:
    """A declared pool as the policy sees it, with what the ledger knows of its boots and idle times."""
    seen = site.ledger.usual_boot_s(declared.name), idle_store.log_of(site.ledger, declared.name).history
    return replace(declared_pool(declared), obstacle=obstacle, usual_boot_s=seen[0], idle_history=seen[1])


def declared_pool(declared: PoolDocument) -> Pool:
    """A declared pool, before anything was seen of it."""
    reserved = tuple(declared.markets) if declared.capacity_reservation_id else ()
    return Pool(
        name=declared.name,
        partition=declared.partition,
        nodes=tuple(declared.nodes),
        instance_type=declared.instance_type,
        each=Resources(declared.gpu.count, declared.slurm.cpus, declared.slurm.memory_mb),
        gpu_type=gpu_type(declared.gpu.model),
        markets=tuple(declared.markets),
        usd_per_hour=dict(declared.usd_per_hour),
        zones=tuple(zone.zone for zone in declared.zones),
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
        ending_s=records.ENDING_S,
    )


def budget(site: Site) -> Budget | None:
    """The money now, under every ceiling that a lease can reach. None: no budget is declared."""
    declared = site.document.budget
    if declared is None:
        return None
    ahead_s = max(
        (pool.boot_s + pool.max_run_s + pool.idle_s + records.ENDING_S for pool in site.document.pools), default=0.0
    )
    return site.ledger.budget(declared.usd_per_month, site.now, declared.usd_per_day, declared.accounts, ahead_s)


def gpu_type(model: str) -> str:
    """Slurm's gres type of a GPU model ("H100 SXM5 80GB" -> h100), as the role slurm_head writes it."""
    return model.split()[0].lower()


def snapshot(site: Site, observation: Observation, images: dict[str, Image]) -> Snapshot:
    """What the policy decides from. Nodes that Slurm is powering down are leaving, whatever the ledger knows yet."""
    now, leases = site.now, site.ledger.leases()
    rates = site.ledger.rates(now)
    joined: dict[str, bool] = {}
    for lease in leases:
        joined[lease.launch] = joined.get(lease.launch, True) and lease.state not in records.COMING
    return Snapshot(
        now_s=now,
        jobs=observation.jobs,
        nodes=observation.nodes,
        pools=pools(site, images),
        leases=tuple(
            _lease(site, each, observation, joined[each.launch], money.rates_of(each, rates)[-1]) for each in leases
        ),
        cool_downs=tuple(site.ledger.cool_downs(now)),
        budget=budget(site),
        experience=runtimes.relevant(runtime_store.experience(site.ledger), observation.jobs),
        notes={"cluster": site.document.cluster, "document_serial": str(site.document.serial)},
    )


def _lease(site: Site, lease: LeaseRow, observation: Observation, gang_joined: bool, rate: Rate) -> Lease:
    _, until_s = lease.aside(site.now) or (0.0, lease.committed_until_s)
    state = "leaving" if lease.state in records.GOING else "coming" if lease.state in records.COMING else lease.state
    node = observation.node(lease.node)
    if state == "joined" and not gang_joined:
        state = "coming"
    if state in ("joined", "ready") and (node is None or going_down(node.states)):
        state = "leaving"
    return Lease(
        id=lease.id,
        launch=lease.launch,
        node=lease.node,
        pool=lease.pool,
        zone=lease.zone,
        market=lease.market,
        state=state,
        jobs=site.ledger.jobs_of(lease.id),
        usd_per_hour=rate.usd_per_hour,
        committed_until_s=until_s,
        idle_since_s=lease.idle_since_s,
        worked=lease.worked,
        paid_from_s=lease.from_s,
        account=rate.account,
    )


def going_down(states: tuple[str, ...]) -> bool:
    """Slurm is taking a node away, or has."""
    return bool(
        {
            "POWER_DOWN",
            "POWER_DRAIN",
            "POWER_DOWN_ASAP",
            "POWER_DOWN_FORCE",
            "POWERING_DOWN",
            "POWERED_DOWN",
            "DOWN",
        }.intersection(states)
    )


# ---- launching


def token(cluster: str, launch: str, attempt: int) -> str:
    """The client token of an attempt: the same for every repeat of it, of no other."""
    return "ib-" + hashlib.sha256(f"{cluster}/{launch}/{attempt}".encode()).hexdigest()[:40]


def user_data(document: ClusterDocument, nodes: tuple[str, ...]) -> str:
    """What a rented node needs to find out who it is; it holds references, no secrets."""
    said = {
        "ironburst": 1,
        "cluster": document.cluster,
        "nodes": list(nodes),
        "conf_server": document.scheduler.head_address,
        "munge_key": document.scheduler.munge_key,
        "region": document.region,
    }
    return json.dumps(said, sort_keys=True)


def launch_request(document: ClusterDocument, launch: LaunchRow, zone: str, attempt: int) -> LaunchRequest | None:
    """The request for one zone; None if the document declares the pool or the zone no more."""
    pool = next((pool for pool in document.pools if pool.name == launch.pool), None)
    place = next((each for each in pool.zones if each.zone == zone), None) if pool else None
    if pool is None or place is None:
        return None
    return LaunchRequest(
        token=token(document.cluster, launch.id, attempt),
        launch=launch.id,
        cluster=document.cluster,
        pool=launch.pool,
        zone=zone,
        market=launch.market,
        count=len(launch.nodes),
        launch_template_id=place.launch_template_id,
        image_id=launch.image_id,
        user_data=user_data(document, launch.nodes),
        capacity_reservation_id=pool.capacity_reservation_id,
    )
