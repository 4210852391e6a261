"""What a kWh of electricity emits, by country."""

from __future__ import annotations

import functools
from dataclasses import dataclass

from ironburst.catalog.errors import Unknown
from ironburst.catalog.tables import table
from ironburst.system.near import nearest


@dataclass(frozen=True)
class Electricity:
    """A country (its code of ISO 3166) in a year: grams of CO2 equivalents of a kWh that it generates, as Ember has
    it.
    """

    country: str
    name: str
    year: int
    gco2_per_kwh: float


@functools.cache
def _by_country() -> dict[str, Electricity]:
    return {
        row["country"]: Electricity(row["country"], row["name"], int(row["year"]), float(row["gco2_per_kwh"]))
        for row in table("carbon_intensity.csv").rows
    }


def electricity(country: str) -> Electricity:
    """By the code; raises Unknown, which also knows names ("Germany" is DE)."""
    known = _by_country()
    if country in known:
        return known[country]
    named = {each.name: code for code, each in known.items()}
    near = [named[name] for name in nearest(country, named)]
    raise Unknown("country", country, near or nearest(country, known))
