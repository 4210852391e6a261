"""What Karpenter has rented within our budget and what it was let, kept in the ledger (docs/adr/0045).

Each NodeClaim is a lease of somebody else's to the ledger's money: it costs from its creation on, and money is set
aside for it up to the latest moment that it may live.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from ironburst.controller import records
from ironburst.controller.ledger import Ledger
from ironburst.controller.records import LeaseRow, Rate
from ironburst.document import KarpenterPool

_KEY = "karpenter"


@dataclass(frozen=True)
class Claim:
    """A NodeClaim as it was seen last."""

    uid: str
    name: str
    node_pool: str
    instance_type: str
    market: str
    created_s: float
    launched: bool
    until_s: float  # it is gone by then
    leaves_s: float | None  # when Karpenter ends it, and counts it no more; None: nobody has said so
    rates: tuple[Rate, ...]  # the oldest first
    to_s: float | None = None  # gone, and paid to

    @property
    def rate(self) -> Rate:
        """What it costs now, and who pays."""
        return self.rates[-1]

    def row(self) -> LeaseRow:
        """As a lease, for the arithmetic of money."""
        state = records.LAUNCHED if self.launched else records.INTENDED
        return LeaseRow(
            id=f"{_KEY}/{self.uid}",
            launch=self.node_pool,
            node=self.name,
            pool=self.node_pool,
            instance_type=self.instance_type,
            market=self.market,
            zone="",
            usd_per_hour=self.rate.usd_per_hour,
            state=records.ENDED if self.to_s is not None else state,
            instance_id=None,
            committed_until_s=self.until_s,
            idle_since_s=None,
            worked=True,
            made_s=self.created_s,
            from_s=self.created_s if self.launched else None,
            joined_s=None,
            to_s=self.to_s,
            changed_s=self.created_s,
            end_reason="",
        )


@dataclass(frozen=True)
class NodePoolLimit:
    """The number of nodes that a NodePool may have from a moment on."""

    from_s: float
    nodes: int


@dataclass(frozen=True)
class Book:
    """All of it. `looked_s`: when the cluster was seen last."""

    looked_s: float = 0.0
    claims: tuple[Claim, ...] = ()
    limits: Mapping[str, tuple[NodePoolLimit, ...]] = field(default_factory=dict)  # by NodePool, the oldest first

    def open_of(self, node_pool: str) -> tuple[Claim, ...]:
        """Its machines that aren't gone."""
        return tuple(each for each in self.claims if each.to_s is None and each.node_pool == node_pool)

    def limit(self, node_pool: str) -> int | None:
        """The last limit of its nodes; None: none was written yet."""
        said = self.limits.get(node_pool)
        return said[-1].nodes if said else None

    def reach(self, node_pool: str, now_s: float, settle_s: float) -> int:
        """The nodes that it may still have, by limits that are in force or were a moment ago: what was decided under
        one may come to be for so long.
        """
        said = self.limits.get(node_pool, ())
        ended_s = [after.from_s for after in said[1:]] + [math.inf] * bool(said)
        return max(
            (each.nodes for each, end_s in zip(said, ended_s, strict=True) if end_s + settle_s > now_s), default=0
        )

    def tidied(self, counts_from_s: float, now_s: float, settle_s: float) -> Book:
        """Without what no ceiling of now pays for, and limits that are long over."""
        claims = tuple(each for each in self.claims if each.to_s is None or each.to_s > counts_from_s)
        limits = {name: _in_force(said, now_s - settle_s) for name, said in self.limits.items()}
        return replace(self, claims=claims, limits=limits)


def _in_force(said: Sequence[NodePoolLimit], at_s: float) -> tuple[NodePoolLimit, ...]:
    """Those that were in force at a moment or came after it."""
    first = max((n for n, each in enumerate(said) if each.from_s <= at_s), default=0)
    return tuple(said[first:])


def span_s(pool: KarpenterPool) -> float:
    """How long a new node costs at most: it takes pods for max_run, and they have as long again."""
    return 2.0 * pool.max_run_s + records.ENDING_S


def read(ledger: Ledger) -> Book:
    """Empty where nothing was written yet. Raises ValueError where it can't be read: what it held is money."""
    said = ledger.noted(_KEY)
    return _book(json.loads(said)) if said else Book()


def write(ledger: Ledger, book: Book) -> None:
    """All of it, in place of what was there."""
    ledger.note(_KEY, json.dumps(asdict(book), separators=(",", ":")))


def _book(said: Mapping[str, Any]) -> Book:
    claims = [{**each, "rates": tuple(Rate(**rate) for rate in each["rates"])} for each in said["claims"]]
    limits = {name: tuple(NodePoolLimit(**each) for each in told) for name, told in said["limits"].items()}
    return Book(said["looked_s"], tuple(Claim(**each) for each in claims), limits)


def rows(ledger: Ledger) -> tuple[list[LeaseRow], dict[str, list[Rate]]]:
    """Every machine as a lease, and what each costs, by that lease's id."""
    found = [(each.row(), list(each.rates)) for each in read(ledger).claims]
    return [row for row, _ in found], {row.id: rates for row, rates in found}
