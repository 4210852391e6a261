"""How long a type of cable may be at a speed."""

import functools
from dataclasses import dataclass

from ironburst.catalog.tables import number, table


@dataclass(frozen=True)
class CableReach:
    """Of one speed and type. `exists`: it is made; `max_m` None: not known."""

    speed: str
    type: str
    exists: bool
    max_m: float | None


@functools.cache
def cable_reaches() -> tuple[CableReach, ...]:
    """All that the catalogue has; another speed and type is unknown."""
    rows = table("cable_limits.csv").rows
    return tuple(CableReach(row["speed"], row["type"], row["exists"] == "yes", number(row, "max_m")) for row in rows)
