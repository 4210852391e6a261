"""What spot costs now, by instance type and zone: the cloud is asked now and then, and the ledger keeps what it
answered. As long as it has answered nothing, the document's prices count, with the day that they are of.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime

from ironburst.controller.ledger import Ledger
from ironburst.controller.records import LeaseRow
from ironburst.controller.site import Site
from ironburst.document import ClusterDocument, PoolDocument
from ironburst.ports import CloudError, SomeSilent

EVERY_S = 600.0
_KEY = "spot_prices"


@dataclass(frozen=True)
class SpotPrices:
    """`usd`: (instance type, zone) -> USD an hour, as the cloud gave it at `asked_s`; `tried_s`: when it was asked last
    for `types`, with the error `failed` if it didn't answer.
    """

    usd: dict[tuple[str, str], float] = field(default_factory=dict)
    asked_s: float | None = None
    tried_s: float | None = None
    types: tuple[str, ...] = ()
    failed: str = ""

    @property
    def day(self) -> str:
        """That they are of, by UTC; empty: of none."""
        return "" if self.asked_s is None else f"{datetime.fromtimestamp(self.asked_s, UTC):%Y-%m-%d}"

    def dearest(self, instance_type: str, zones: Iterable[str] | None = None) -> float | None:
        """Of these zones, or of all; None: nothing is known of any."""
        within = None if zones is None else set(zones)
        known = [
            usd
            for (kind, zone), usd in self.usd.items()
            if kind == instance_type and (within is None or zone in within)
        ]
        return max(known, default=None)


def read(ledger: Ledger) -> SpotPrices:
    """As they were noted last."""
    noted = json.loads(ledger.noted(_KEY) or "null")
    if noted is None:
        return SpotPrices()
    usd = {(kind, zone): price for kind, zones in noted.pop("usd").items() for zone, price in zones.items()}
    return SpotPrices(usd, types=tuple(noted.pop("types")), **noted)


def look(site: Site) -> None:
    """Ask, if it is time, and let the site's document have what spot costs. No answer stops nothing."""
    known, now = read(site.ledger), site.now
    document = site.document
    pools = [pool for pool in document.pools if "spot" in pool.markets]
    types = {pool.instance_type for pool in document.karpenter if pool.market == "spot"}
    types |= {kind for pool in pools for kind in pool.prices}
    asked = types - {kind for pool in pools if site.silent_of(pool.name) for kind in pool.prices}
    fresh = known.tried_s is not None and 0 <= now - known.tried_s < EVERY_S
    if asked and not site.unlisted and not (fresh and asked <= set(known.types)):
        known = _asked(site, known, asked)
        _note(site.ledger, known)
    if known.failed and types:
        of = f"those of {known.day} count on" if known.day else "those of the document count"
        site.tell("trouble", f"spot prices can't be asked for, {of}: {known.failed}")
    site.document = priced(document, known)


def _asked(site: Site, known: SpotPrices, types: set[str]) -> SpotPrices:
    now, wanted = site.now, tuple(sorted(types))
    try:
        usd = site.cloud.spot_prices(wanted)
    except SomeSilent as error:
        return SpotPrices(known.usd | error.answer, now, now, wanted, str(error))
    except CloudError as error:
        return SpotPrices(known.usd, known.asked_s, now, wanted, str(error))
    others = {place: before for place, before in known.usd.items() if place[0] not in types} if site.silent else {}
    return SpotPrices(others | usd, now, now, wanted)


def _note(ledger: Ledger, known: SpotPrices) -> None:
    usd: dict[str, dict[str, float]] = {}
    for (kind, zone), price in known.usd.items():
        usd.setdefault(kind, {})[zone] = price
    noted = {"usd": usd, "asked_s": known.asked_s, "tried_s": known.tried_s, "types": known.types}
    ledger.note(_KEY, json.dumps(noted | {"failed": known.failed}))


def priced(document: ClusterDocument, known: SpotPrices) -> ClusterDocument:
    """The document with the cloud's prices. A pool's node counts as in the dearest of its zones, until it has one; but
    never more than what is paid at most.
    """
    if not known.usd:
        return document
    pools = [_pool(pool, known) if "spot" in pool.markets else pool for pool in document.pools]
    karpenter = [
        pool.model_copy(update={"usd_per_hour": usd})
        if pool.market == "spot" and (usd := known.dearest(pool.instance_type))
        else pool
        for pool in document.karpenter
    ]
    return document.model_copy(update={"pools": pools, "karpenter": karpenter})


def _pool(pool: PoolDocument, known: SpotPrices) -> PoolDocument:
    asked = {kind: known.dearest(kind, pool.zone_names) for kind in pool.prices}
    usd = {
        kind: prices if (now := asked[kind]) is None else prices | {"spot": _at_most(pool, kind, now)}
        for kind, prices in pool.prices.items()
    }
    days = dict(pool.prices_as_of)
    if None not in asked.values():
        days["spot"] = known.day
    on_demand_too = not pool.prices_as_of and len(pool.markets) > 1  # of an older document, which has one day for all
    as_of = pool.price_as_of if on_demand_too else min(days.values(), default=None)
    others = [other.model_copy(update={"usd_per_hour": usd[other.instance_type]}) for other in pool.other_types]
    priced = {"usd_per_hour": usd[pool.instance_type], "other_types": others}
    return pool.model_copy(update=priced | {"prices_as_of": days, "price_as_of": as_of})


def _at_most(pool: PoolDocument, instance_type: str, usd: float) -> float:
    return min(usd, pool.spot_max_usd_per_hour.get(instance_type, usd))


def of_lease(known: SpotPrices, pool: PoolDocument, lease: LeaseRow) -> float | None:
    """What an hour of a spot node costs now, in its zone; None: the cloud hasn't answered, or it is no spot node."""
    usd = known.usd.get((lease.instance_type, lease.zone or "")) if lease.market == "spot" else None
    return None if usd is None else _at_most(pool, lease.instance_type, usd)


def day(document: ClusterDocument) -> str | None:
    """Of the oldest list price of its pools; None: all are declared."""
    return min((pool.price_as_of for pool in document.pools if pool.price_as_of), default=None)
