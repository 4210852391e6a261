"""Declared nodes of a cloud, and what spot costs them, as the doctors of all clouds have them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from ironburst.config.cloud_models import Cloud, Group, Pool
from ironburst.config.prices import spot_max
from ironburst.doctor.checks import CheckResult

G = TypeVar("G", bound=Group)
P = TypeVar("P", bound=Pool)


def named(groups: Sequence[G], pools: Sequence[P]) -> list[tuple[str, G | P]]:
    """Fixed groups and pools, each with what people call it."""
    return [*((f"group {group.name}", group) for group in groups), *((f"pool {pool.name}", pool) for pool in pools)]


def zones_of(nodes: Group | Pool) -> list[str]:
    """The zones that they may be in."""
    return [nodes.zone] if isinstance(nodes, Group) else list(nodes.zones)


def most(nodes: Group | Pool) -> int:
    """How many there may be at once."""
    return nodes.count if isinstance(nodes, Group) else nodes.max_nodes


def markets_of(nodes: Group | Pool) -> list[str]:
    """on-demand, spot, capacity-block."""
    return ["on-demand"] if isinstance(nodes, Group) else list(nodes.markets)


def image_of(cloud: Cloud, cluster: str, who: str, nodes: Group | Pool) -> tuple[str, str]:
    """What names the image that they boot, and what to do where it is none for them."""
    if isinstance(nodes, Group):
        return nodes.image, f"declare another at {who}"
    return cloud.image_place(cluster, nodes.name), f"bake one: ironburst image {nodes.name}"


def spot(
    check: str, who: str, nodes: Group | Pool, cloud: Cloud, usd_of: Callable[[str], float | None]
) -> Iterator[CheckResult]:
    """What an hour of each type costs now. `usd_of`: by its name, None where it isn't sold so."""
    for kind in nodes.types:
        usd, most_usd, what = usd_of(kind), spot_max(cloud, kind), f"spot of {who}"
        if usd is None:
            todo = f"leave spot out at {who}, or declare another type"
            yield CheckResult(check, what, "fail", f"{kind} isn't sold as spot in {cloud.region}", todo)
        elif most_usd is not None and usd > most_usd:
            todo = f"nothing is rented as long as that is so: raise cloud.price.{kind}.spot_max, or wait"
            yield CheckResult(check, what, "warn", f"{kind} costs {usd:g} an hour now, above {most_usd:g}", todo)
        else:
            yield CheckResult(check, what, "ok", f"{kind} costs {usd:g} an hour now")
