"""What the benchmarks rent: the cheapest instance types at list prices, as burst pools; and reserved ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ironburst import catalog
from ironburst.burst import Pool, Resources

REGION, ON_DEMAND, SPOT, RESERVED = "us-east-1", "on-demand", "spot", "reservation"
GPU_MEMORY_GB = 24  # of the machines with 8 GPUs that the trace was recorded on, as its README has it
CHEAPEST = 2  # types of each number of GPUs, by each market
NODES = {1: 512, 4: 192, 8: 128}  # of a pool, at most, by the GPUs of its type: more than is ever needed
BOOT_S, MIN_BILLING_S, LONGEST_IDLE_S, CHECKPOINT_S = 600.0, 60.0, 3600.0, 1800.0
# of the on-demand price, for each hour of the period, used or not. The data has no reservation prices: this is declared
RESERVATION = 0.43


def pools(markets: Sequence[str], memory_gb: int = GPU_MEMORY_GB, region: str = REGION) -> tuple[Pool, ...]:
    """The cheapest types with GPUs of at least so much memory, of each number of GPUs and by each market, as burst
    pools.
    """
    offers = [offer for name in catalog.instance_types("aws") if (offer := _offer(name, memory_gb, region))]
    chosen: dict[str, _Offer] = {}
    for count in NODES:
        alike = [offer for offer in offers if offer.gpus == count]
        for market in (ON_DEMAND, SPOT):
            sold = sorted((offer for offer in alike if market in offer.usd), key=lambda offer: offer.usd[market])
            chosen |= {offer.name: offer for offer in sold[:CHEAPEST]}
    candidates = (_pool(offer, markets) for offer in chosen.values())
    return tuple(pool for pool in candidates if pool.markets)


@dataclass(frozen=True)
class _Offer:
    """An instance type, its USD per hour by market, and how often spot is taken back."""

    name: str
    gpus: int
    zones: tuple[str, ...]
    usd: Mapping[str, float]
    interruptions_per_hour: Mapping[str, float]


def _offer(name: str, memory_gb: int, region: str) -> _Offer | None:
    """None: it isn't one of those that are rented."""
    kind, price = catalog.instance_types("aws")[name], catalog.price(name, ON_DEMAND, region)
    large = kind.gpu and (kind.gpu.memory_gb or 0) >= memory_gb and kind.gpu_fraction in (None, 1.0)
    if not (large and price and kind.gpu_count in NODES):
        return None
    spot, often = catalog.price(name, SPOT, region), catalog.interruptions(name, region)
    usd = {ON_DEMAND: price.usd_per_hour} | ({SPOT: spot.usd_per_hour} if spot and often else {})
    return _Offer(name, kind.gpu_count, kind.zones(region), usd, {SPOT: often.per_hour} if often else {})


def _pool(offer: _Offer, markets: Sequence[str]) -> Pool:
    usd = {market: offer.usd[market] for market in (SPOT, ON_DEMAND) if market in markets and offer.usd.get(market)}
    return Pool(
        name=offer.name,
        partition=f"burst-{offer.name}",
        nodes=tuple(f"{offer.name}-{n}" for n in range(NODES[offer.gpus])),
        instance_type=offer.name,
        each=Resources(offer.gpus),
        gpu_type="",
        markets=tuple(usd),
        usd_per_hour=usd,
        zones=offer.zones,
        boot_s=BOOT_S,
        idle_s=LONGEST_IDLE_S,
        max_run_s=float("inf"),
        min_billing_s=MIN_BILLING_S,
        interruptions_per_hour=dict(offer.interruptions_per_hour),
        checkpoint_s=CHECKPOINT_S,
    )


def reserved(kinds: Mapping[str, int], part: float = RESERVATION) -> tuple[Pool, ...]:
    """Pools of so many reserved instances of each type."""
    return tuple(
        _reserved(pool, count, part) for pool in pools((ON_DEMAND,)) if (count := kinds.get(pool.instance_type, 0))
    )


def _reserved(pool: Pool, count: int, part: float) -> Pool:
    name = f"{pool.name}-reserved"
    return replace(
        pool,
        name=name,
        partition=f"burst-{name}",
        nodes=tuple(f"{name}-{n}" for n in range(count)),
        markets=(RESERVED,),
        usd_per_hour={RESERVED: part * (pool.usd_per_hour[ON_DEMAND] or 0.0)},
        prepaid_markets=(RESERVED,),
        interruptions_per_hour={},
        zones=pool.zones[:1],
    )
