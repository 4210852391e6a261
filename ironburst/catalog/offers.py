"""What all clouds offer: instance types and regions by their names, which no two clouds share, and the price port: what
one hour of an instance costs, where that is known. Sums made from it are estimates.
"""

import functools
import re

from ironburst.catalog.aws import instances as first
from ironburst.catalog.aws import regions as first_regions
from ironburst.catalog.azure import regions as third_regions
from ironburst.catalog.azure import sizes as third
from ironburst.catalog.errors import Unknown, look_up, unknown
from ironburst.catalog.google import machine_types as second
from ironburst.catalog.google import regions as second_regions
from ironburst.catalog.instances import InstanceType, Interruptions, Market, Price, Region, Savings

_ROOMS = (
    (first.instance_types, first_regions.regions),
    (second.machine_types, second_regions.regions),
    (third.sizes, third_regions.regions),
)


@functools.cache
def instance_types(provider: str = "") -> dict[str, InstanceType]:
    """All instance types by name; of a cloud, or of all."""
    every = {name: kind for types, _ in _ROOMS for name, kind in types().items()}
    return {name: kind for name, kind in every.items() if provider in ("", kind.provider)}


@functools.cache
def regions(provider: str = "") -> dict[str, Region]:
    """All regions by name; of a cloud, or of all."""
    every = {name: region for _, those in _ROOMS for name, region in those().items()}
    return {name: region for name, region in every.items() if provider in ("", region.provider)}


def instance_type(name: str, provider: str = "") -> InstanceType:
    """The type with this name ("p5.48xlarge"), of a cloud, or of any; raises Unknown."""
    return look_up("instance type", name, instance_types(provider))


def region(name: str, provider: str = "") -> Region:
    """The region of that name ("us-east-1"); raises Unknown, which also knows a place ("Frankfurt", "N. Virginia")."""
    known = regions(provider)
    if name in known:
        return known[name]
    place = re.sub(r"[^a-z]", "", name.lower())
    there = [each for each, region in known.items() if place and place in re.sub(r"[^a-z]", "", region.name.lower())]
    raise Unknown("region", name, there) if 0 < len(there) <= len(_ROOMS) else unknown("region", name, known)


def fabric(*names: str) -> tuple[str, int]:
    """The fabric between nodes of these types: its name, and the links that one has at least; ("none", 0): some have
    none. Raises Unknown.
    """
    return min((instance_type(name).fabric() for name in names), key=lambda each: each[1])


def price(name: str, market: Market, region: str, override: float | None = None) -> Price | None:
    """The hourly price, or None where it isn't known. A declared price (`override`) comes first; in a capacity block
    an hour costs nothing: all of them were paid for when it was bought. Raises Unknown.
    """
    kind = instance_type(name)
    if market == "capacity-block":
        return Price(0.0, "paid for when it was bought", None)
    if override is not None:
        return Price(float(override), "declared", None)
    return kind.listed(market, region)


def interruptions(name: str, region: str) -> Interruptions | None:
    """How often spot instances of a type are taken back; None where it isn't known. Raises Unknown."""
    return instance_type(name).interruptions(region)


def spot_savings(name: str, region: str) -> Savings | None:
    """What spot saves on on-demand in a region; None where it isn't known. Raises Unknown."""
    return instance_type(name).spot_savings(region)
