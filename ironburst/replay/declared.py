"""What a trace is played on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ironburst.burst import Policy
from ironburst.replay.home import Home
from ironburst.replay.provider import SimulatedCloud


@dataclass(frozen=True)
class DeclaredCarbon:
    """What a tonne of CO2e weighs, what a kWh emits where a pool is (g), by pool, and the power of a node at work (W),
    by type.
    """

    usd_per_tonne: float
    gco2_per_kwh: Mapping[str, float]
    watts: Mapping[str, float]


@dataclass(frozen=True)
class Declared:
    """A declared cluster, as a trace is played on it."""

    name: str
    home: Home
    policy: Policy
    cloud: SimulatedCloud
    prices_as_of: str | None
    usd_per_month: float | None  # the budget
    carbon: DeclaredCarbon | None = None  # None: it weighs nothing, or nothing is known of it
