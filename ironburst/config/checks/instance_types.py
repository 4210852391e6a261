"""Instance types of cloud nodes: that the cloud has them, and that those of a pool are interchangeable."""

from __future__ import annotations

import functools

from ironburst import catalog
from ironburst.config.checks.common import Findings, unknown
from ironburst.config.cloud_models import Pool
from ironburst.config.finding import Finding, path_of
from ironburst.config.models import ClusterConfig


def instance_types(config: ClusterConfig) -> Findings:
    """Instance types are in the catalogue, and those of nodes have a GPU that it knows."""
    if not config.cloud:
        return
    look_up = functools.partial(catalog.instance_type, provider=config.cloud.provider)
    groups, pools = config.cloud.groups, config.cloud.pools
    named = [(path_of("cloud", "groups", i, "instance_type"), group.instance_type) for i, group in enumerate(groups)]
    for p, pool in enumerate(pools):
        named += [(_type_path(pool, p, t), name) for t, name in enumerate(pool.types)]
    for path, name in named:
        not_known = list(unknown(path, name, look_up))
        yield from not_known
        if not not_known and not catalog.instance_type(name).gpu:
            message = f"{name} has no NVIDIA GPU that the catalogue knows; choose a GPU instance type"
            yield Finding(path, name, "no-gpu", message)
        elif not not_known:
            yield from unknown(path, name, catalog.fabric)
    for p, pool in enumerate(pools):
        yield from _interchangeable(pool, p)
    for name in config.cloud.price:
        yield from unknown(path_of("cloud", "price", name), name, look_up)


def _type_path(pool: Pool, p: int, t: int) -> str:
    return path_of("cloud", "pools", p, *(("instance_type",) if pool.instance_type else ("instance_types", t)))


def _interchangeable(pool: Pool, p: int) -> Findings:
    """Jobs, and Slurm, see no difference between the types of a pool."""
    try:
        if not all(catalog.instance_type(name).gpu for name in pool.types):
            return  # said, too
        shapes = {name: _shape(name) for name in pool.types}
    except catalog.Unknown:
        return  # said by instance_types()
    first = pool.types[0]
    for t, name in enumerate(pool.types):
        if name in pool.types[:t]:
            yield Finding(_type_path(pool, p, t), name, "duplicate", f"names {name} twice")
        elif shapes[name] != shapes[first]:
            message = (
                f"{name} has {shapes[name]}, and {first}, the first of the list, {shapes[first]}; types of one pool "
                "are interchangeable: make it another pool, the policy chooses among pools by cost"
            )
            yield Finding(_type_path(pool, p, t), name, "not-alike", message)


def _shape(name: str) -> str:
    """GPUs and fabric of an instance type, in words."""
    kind = catalog.instance_type(name)
    part = "" if kind.gpu_fraction in (None, 1) else f"{kind.gpu_fraction:g} of "
    fabric, links = kind.fabric()
    with_it = fabric.upper() if links else "no fabric between nodes"
    return f"{kind.gpu_count} x {part}{kind.gpu_model} with {with_it}"
