"""What renting costs, and another price: a document with it is published, which the controller reads at its next tick.

At work `cloud.price` of the stack file says it, and `pulumi up` makes the document. Only that is left out here: no
resource depends on a price.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass

from ironburst.document import ClusterDocument, PoolDocument
from lab.demo import service
from lab.play.kept_lab import BadInput, KeptLab


@dataclass(frozen=True)
class Price:
    """USD of a node-hour, as it is published; None: not known."""

    pool: str
    instance_type: str
    market: str
    usd: float | None


def prices(document: ClusterDocument) -> list[Price]:
    """Of every pool, type and market."""
    return [
        Price(pool.name, kind, market, usd)
        for pool in document.pools
        for kind, of in _tables(pool)
        for market, usd in of.items()
    ]


def _tables(pool: PoolDocument) -> Iterator[tuple[str, dict[str, float | None]]]:
    """(type, {market: USD}); the mappings are the document's own."""
    yield pool.instance_type, pool.usd_per_hour
    for other in pool.other_types:
        yield other.instance_type, other.usd_per_hour


def change(lab: KeptLab, instance_type: str, market: str, usd: float) -> str:
    """Publish it, and give it to the head; what was done. BadInput for what no pool rents."""
    if not (math.isfinite(usd) and usd > 0):
        raise BadInput(f"{usd:g} is no price: write USD for an hour of one instance, above 0")
    document = lab.document().model_copy(deep=True)
    before = {(price.instance_type, price.market): price.usd for price in prices(document)}
    if (instance_type, market) not in before:
        there = ", ".join(f"{kind} {each}" for kind, each in before)
        raise BadInput(f"no pool rents {instance_type} {market}; they rent {there}")
    for pool in document.pools:
        for kind, of in _tables(pool):
            if kind == instance_type and market in of:
                of[market] = usd
    verb = ("publish", "--to", str(lab.inside.document), "--ledger", str(lab.inside.ledger))
    said = lab.inside.run(lab.inside.ironburst(*verb), stdin=json.dumps(document.model_dump(mode="json")))
    lab.put_on_head(service.published_at(lab.inside), lab.inside.document.read_text())
    was = before[instance_type, market]
    old = "unknown" if was is None else f"${was:g}/h"
    serial = said.strip().rsplit(" ", 1)[-1]
    return f"{instance_type} {market}: {old} before, ${usd:g}/h now; published with serial {serial}"
