"""A line of a bill, whoever's it is. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from ironburst.cost.bill_row import plain
from ironburst.cost.causes import INSTANCE, UNEXPLAINED

Kind = Literal["usage", "savings_plan", "reserved", "negation", "discount", "credit", "refund", "tax", "fee", "unknown"]


@dataclass(frozen=True)
class Line:
    """One line. `units`: what it costs, in 1e-10 USD; `use`: INSTANCE, or the cause that it shows; `hours`: of an
    instance, or of its GPUs all together (`of_gpus`), else whatever its usage is counted in; `usd_per_hour`: the price
    that the line itself names (None: it names none); `earlier`: it corrects, or is late for, a period before the
    bill's.
    """

    number: int
    kind: Kind
    resource: str
    usage_type: str
    from_s: float
    to_s: float
    hours: float
    usd_per_hour: float | None
    units: int
    spot: bool
    tags: Mapping[str, str]
    use: str = INSTANCE
    of_gpus: bool = False
    earlier: bool = False
    provider: str = ""  # whose bill it is of, where it has a room

    def tag(self, key: str) -> str:
        """The value of a tag, whose key is written as on the resource; empty: it has none."""
        return self.tags.get(plain(key), "")

    @property
    def of_instance(self) -> bool:
        """Whether it belongs to an instance's hours."""
        return self.kind in ("usage", "savings_plan", "reserved") and self.use == INSTANCE

    @property
    def beside(self) -> str:
        """The cause that one shows that is for no instance's hours: nothing of it is in the estimates."""
        if self.kind in ("discount", "credit", "refund", "tax", "fee"):
            return self.kind
        return {"unknown": UNEXPLAINED, "negation": "savings_plan"}.get(self.kind, self.use)

    def price_cause(self, market: str) -> str:
        """Why an instance's hour costs another price than the ledger assumes for a lease of this market."""
        if self.kind in ("savings_plan", "reserved"):
            return self.kind
        if market == "capacity-block":  # bought before, by the ledger: where it isn't, its hours are its fee
            return "fee"
        if self.spot != (market == "spot"):
            return "other_market"
        return "spot_price" if self.spot else "other_price"
