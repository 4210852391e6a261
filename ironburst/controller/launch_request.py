"""A launch that is written down, as the request that the cloud gets. Pure: a repeat is the same call."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from ironburst.controller import heartbeat
from ironburst.controller.records import LaunchRow
from ironburst.document import ClusterDocument, PoolDocument, PoolZone
from ironburst.nodes import naming
from ironburst.ports import LaunchRequest


def token(cluster: str, launch: str, attempt: int) -> str:
    """The client token of an attempt: the same for every repeat of it, of no other."""
    return "ib-" + hashlib.sha256(f"{cluster}/{launch}/{attempt}".encode()).hexdigest()[:40]


def user_data(
    document: ClusterDocument, pool: PoolDocument, place: PoolZone, nodes: tuple[str, ...], boot_s: float
) -> str:
    """What a rented node needs to find out who it is, and when to end itself; it holds references, no secrets."""
    said = {
        "ironburst": 1,
        "cluster": document.cluster,
        "nodes": list(nodes),
        "region": document.region,
        **_joins(document, pool, place),
        "dead_man_s": document.burst.dead_man_s,
        "hard_limit_s": _hard_limit_s(pool, boot_s),
    }
    if document.monitoring.receiver:
        said["receiver"] = document.monitoring.receiver
    if data := document.data_of(pool):
        said |= {"boot_s": boot_s, "data": {name: declared.model_dump() for name, declared in data.items()}}
    return json.dumps(said, sort_keys=True)


def _hard_limit_s(pool: PoolDocument, boot_s: float) -> int:
    return heartbeat.hard_limit_s(boot_s, pool.max_run_s, pool.idle_s)


def _joins(document: ClusterDocument, pool: PoolDocument, place: PoolZone) -> dict[str, Any]:
    """What it joins, and with what."""
    declared = document.scheduler_of(pool)
    known = {host.name: host.address for host in document.hosts if host.role in ("head", "login")}
    at = declared.conf_server or declared.head_address
    slurm = {"conf_server": at, "munge_key": declared.munge_key, "hosts": known}
    if declared.kind != "kubernetes" and not declared.bridge:
        return slurm
    types, cluster = [place.instance_type or pool.instance_type], declared.bridge or declared
    return {
        **(slurm if declared.bridge else {}),
        "scheduler": "slurm-bridge" if declared.bridge else "kubernetes",
        "api_server": cluster.api_server,
        "ca": cluster.ca,
        **(declared.signs_in or {"join_token": cluster.join_token}),
        "labels": naming.node_labels(pool.partition, document.region, [place.zone], types, pool.labels),
    }


def launch_request(document: ClusterDocument, launch: LaunchRow, zone: str, attempt: int) -> LaunchRequest | None:
    """The request for one zone; None if the document declares the pool, its type or the zone no more."""
    pool = document.pool(launch.pool)
    place = pool.place(zone, launch.instance_type) if pool else None
    if pool is None or place is None:
        return None
    document = document.in_cloud(pool)
    return LaunchRequest(
        token=token(document.cluster, launch.id, attempt),
        launch=launch.id,
        cluster=document.cluster,
        pool=launch.pool,
        zone=zone,
        market=launch.market,
        count=len(launch.nodes),
        place=place.place.model_dump(),
        image_id=launch.image_id,
        user_data=user_data(document, pool, place, launch.nodes, launch.boot_s),
        max_usd_per_hour=pool.spot_max_usd_per_hour.get(launch.instance_type) if launch.market == "spot" else None,
        hard_limit_s=_hard_limit_s(pool, launch.boot_s),
    )
