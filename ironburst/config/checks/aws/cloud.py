"""Cloud nodes: combinations of capacity that AWS refuses."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from ironburst.config.aws.models import AwsCloud, AwsGroup, AwsPool, CapacityBlock
from ironburst.config.checks.capacity import ZONE_MISSING, dead_man, ended
from ironburst.config.checks.common import Findings
from ironburst.config.finding import Finding, path_of
from ironburst.config.models import ClusterConfig

BOUGHT = ("capacity_block", "capacity_reservation", "capacity_reservation_group")


def capacity(config: ClusterConfig, now: datetime) -> Findings:
    """Combinations that AWS refuses, and capacity that is taken back by `now`."""
    if not (cloud := config.cloud_by_class(AwsCloud)):
        return
    yield from _group_regions(cloud)
    for g, group in enumerate(cloud.groups):
        yield from _of_group(group, ("cloud", "groups", g), now)
    for p, pool in enumerate(cloud.pools):
        yield from _of_pool(pool, ("cloud", "pools", p), now)
        yield from dead_man(("cloud", "pools", p), pool, config.burst)


def _of_group(group: AwsGroup, here: tuple[str | int, ...], now: datetime) -> Findings:
    yield from _bought_once(group, here)
    yield from _block(group.capacity_block, here, now)
    block = group.capacity_block
    if block and block.starts and block.starts.tzinfo and block.starts > now:
        message = f"the block begins at {block.starts}, and EC2 starts no fixed node before: declare the group then"
        yield Finding(path_of(*here, "capacity_block", "starts"), str(block.starts), "CAP-3", message)


def _of_pool(pool: AwsPool, here: tuple[str | int, ...], now: datetime) -> Findings:
    yield from _bought_once(pool, here)
    yield from _block(pool.capacity_block, here, now)
    if pool.capacity_ends and pool.capacity_block:
        message = "stands beside capacity_block, whose own end counts; leave it out"
        yield Finding(path_of(*here, "capacity_ends"), str(pool.capacity_ends), "CAP-1", message)
    elif pool.capacity_ends:
        over = "the pool's capacity ended at {}; nothing could be rented in it"
        yield from ended(path_of(*here, "capacity_ends"), pool.capacity_ends, now, over)
    yield from _markets(pool, here)
    for key in ("capacity_reservation", "capacity_block"):
        if len(pool.types) > 1 and getattr(pool, key):
            message = f"stands beside several instance_types, and a {key.split('_')[1]} is of one: make it its own pool"
            yield Finding(path_of(*here, key), str(getattr(pool, key)), "CAP-3", message)


def _markets(pool: AwsPool, here: tuple[str | int, ...]) -> Findings:
    markets, block = path_of(*here, "markets"), "capacity-block" in pool.markets
    if pool.capacity_block and pool.markets != ["capacity-block"]:
        message = "beside capacity_block a pool has the market capacity-block alone: leave markets out"
        yield Finding(markets, pool.markets, "CAP-2", message)
    elif block and not pool.capacity_block:
        message = "names capacity-block without a block: write capacity_block with its id and its end"
        yield Finding(markets, pool.markets, "CAP-2", message)
    if (pool.capacity_block or pool.capacity_reservation) and len(pool.zones) > 1:
        what = "capacity block" if pool.capacity_block else "reservation"
        message = f"names more than one zone, and a {what} lies in one: name that one alone"
        yield Finding(path_of(*here, "zones"), pool.zones, "AWS-003", message)
    reserved = "capacity_reservation" if pool.capacity_reservation else "capacity_reservation_group"
    if getattr(pool, reserved) and "spot" in pool.markets:
        message = f"names spot beside {reserved}; EC2 starts no spot instance in a reservation: leave one out"
        yield Finding(markets, pool.markets, "CAP-2", message)
    if len(set(pool.markets)) < len(pool.markets):
        yield Finding(markets, pool.markets, "duplicate", "names a market twice")


def _bought_once(nodes: AwsGroup | AwsPool, here: tuple[str | int, ...]) -> Findings:
    """One of block, reservation and group of reservations, none of them with a placement group of ours."""
    bought = [key for key in BOUGHT if getattr(nodes, key)]
    for key in bought[1:]:
        message = f"stands beside {bought[0]}; an instance takes one"
        yield Finding(path_of(*here, key), str(getattr(nodes, key)), "CAP-1", message)
    if not bought or not nodes.placement_group:
        return
    placement = path_of(*here, "placement_group")
    if nodes.capacity_block:
        message = "stands beside capacity_block: AWS places a block's instances itself; leave it out"
        yield Finding(placement, True, "AWS-001", message)
    else:
        message = f"stands beside {bought[0]}: EC2 refuses a reservation outside the group; leave one out"
        yield Finding(placement, True, "AWS-002", message)


def _block(block: CapacityBlock | None, here: tuple[str | int, ...], now: datetime) -> Findings:
    if block is None:
        return
    starts, ends = (path_of(*here, "capacity_block", key) for key in ("starts", "ends"))
    yield from ended(ends, block.ends, now, "the block ended at {}; AWS has taken it back")
    if block.starts and block.starts.tzinfo is None:
        yield Finding(starts, str(block.starts), "time-zone", ZONE_MISSING)
    elif block.starts and block.ends.tzinfo and block.starts >= block.ends:
        message = f"is not before the block's end, {block.ends}: give both as AWS says them"
        yield Finding(starts, str(block.starts), "order", message)


def _group_regions(cloud: AwsCloud) -> Findings:
    """A resource group's ARN names its region."""
    lists: tuple[tuple[str, Sequence[AwsGroup | AwsPool]], ...] = (("groups", cloud.groups), ("pools", cloud.pools))
    for kind, declared in lists:
        for n, nodes in enumerate(declared):
            arn = nodes.capacity_reservation_group
            if arn and arn.split(":")[3] != cloud.region:
                message = f"is a group of {arn.split(':')[3]}, and the nodes run in {cloud.region}: name one of theirs"
                yield Finding(path_of("cloud", kind, n, "capacity_reservation_group"), arn, "region", message)
