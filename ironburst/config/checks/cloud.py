"""Cloud nodes: instance types, and combinations of capacity that AWS refuses."""

from __future__ import annotations

from datetime import datetime

from ironburst import catalog
from ironburst.config.checks.common import Findings, unknown
from ironburst.config.cloud_models import Group, Pool
from ironburst.config.load import Finding, path_of
from ironburst.config.models import ClusterConfig

ZONE_MISSING = "has no time zone; write for example 2026-12-01T11:30:00Z"


def instance_types(config: ClusterConfig) -> Findings:
    """Instance types are in the catalogue, and those of nodes have a GPU that it knows."""
    if not config.cloud:
        return
    groups, pools = config.cloud.groups, config.cloud.pools
    named = [(path_of("cloud", "groups", i, "instance_type"), group.instance_type) for i, group in enumerate(groups)]
    for p, pool in enumerate(pools):
        named += [(_type_path(pool, p, t), name) for t, name in enumerate(pool.types)]
    for path, name in named:
        not_known = list(unknown(path, name, catalog.instance_type))
        yield from not_known
        if not not_known and not catalog.instance_type(name).gpu:
            message = f"{name} has no NVIDIA GPU that the catalogue knows; choose a GPU instance type"
            yield Finding(path, name, "no-gpu", message)
    for p, pool in enumerate(pools):
        yield from _interchangeable(pool, p)
    for name in config.cloud.price:
        yield from unknown(path_of("cloud", "price", name), name, catalog.instance_type)


def _type_path(pool: Pool, p: int, t: int) -> str:
    return path_of("cloud", "pools", p, *(("instance_type",) if pool.instance_type else ("instance_types", t)))


def _interchangeable(pool: Pool, p: int) -> Findings:
    """Jobs, and Slurm, see no difference between the types of a pool."""
    kinds = [catalog.instance_types().get(name) for name in pool.types]
    if not all(kind and kind.gpu for kind in kinds):
        return  # said by instance_types()
    first = pool.types[0]
    for t, name in enumerate(pool.types):
        if name in pool.types[:t]:
            yield Finding(_type_path(pool, p, t), name, "duplicate", f"names {name} twice")
        elif _shape(name) != _shape(first):
            message = (
                f"{name} has {_shape(name)}, and {first}, the first of the list, {_shape(first)}; types of one pool "
                "are interchangeable: make it another pool, the policy chooses among pools by cost"
            )
            yield Finding(_type_path(pool, p, t), name, "not-alike", message)
    if len(pool.types) > 1 and pool.capacity_reservation:
        path = path_of("cloud", "pools", p, "capacity_reservation")
        message = "stands beside several instance_types, and a reservation is of one type: make it a pool of its own"
        yield Finding(path, pool.capacity_reservation, "CAP-3", message)


def _shape(name: str) -> str:
    """GPUs and fabric of an instance type, in words."""
    kind = catalog.instance_type(name)
    part = "" if kind.gpu_fraction in (None, 1) else f"{kind.gpu_fraction:g} of "
    fabric = "EFA" if kind.efa_count else "no EFA"
    return f"{kind.gpu_count} x {part}{kind.gpu_model} with {fabric}"


def capacity(config: ClusterConfig, now: datetime) -> Findings:
    """Combinations that AWS refuses, and capacity that is taken back by `now`."""
    if not config.cloud:
        return
    for g, group in enumerate(config.cloud.groups):
        yield from _of_group(group, ("cloud", "groups", g), now)
    for p, pool in enumerate(config.cloud.pools):
        yield from _of_pool(pool, ("cloud", "pools", p), now)


def _of_group(group: Group, here: tuple[str | int, ...], now: datetime) -> Findings:
    block, reservation = group.capacity_block, group.capacity_reservation
    if block and reservation:
        message = "stands beside capacity_block; an instance takes one"
        yield Finding(path_of(*here, "capacity_reservation"), reservation, "CAP-1", message)
    placement = path_of(*here, "placement_group")
    if block and group.placement_group:
        message = "stands beside capacity_block: AWS places a block's instances itself; leave it out"
        yield Finding(placement, True, "AWS-001", message)
    if reservation and group.placement_group:
        message = "stands beside capacity_reservation: EC2 refuses a reservation outside the group; leave one out"
        yield Finding(placement, True, "AWS-002", message)
    if block:
        over = f"the block ended at {block.ends}; AWS has taken it back"
        yield from _ended(path_of(*here, "capacity_block", "ends"), block.ends, now, over)


def _of_pool(pool: Pool, here: tuple[str | int, ...], now: datetime) -> Findings:
    if pool.capacity_ends:
        over = f"the pool's capacity ended at {pool.capacity_ends}; nothing could be rented in it"
        yield from _ended(path_of(*here, "capacity_ends"), pool.capacity_ends, now, over)
    markets = path_of(*here, "markets")
    if pool.capacity_reservation and "spot" in pool.markets:
        message = "names spot beside capacity_reservation; EC2 starts no spot instance in a reservation: leave one out"
        yield Finding(markets, pool.markets, "CAP-2", message)
    if len(set(pool.markets)) < len(pool.markets):
        yield Finding(markets, pool.markets, "duplicate", "names a market twice")


def _ended(path: str, ends: datetime, now: datetime, over: str) -> Findings:
    if ends.tzinfo is None:
        yield Finding(path, str(ends), "time-zone", ZONE_MISSING)
    elif ends <= now:
        yield Finding(path, str(ends), "over", over)
