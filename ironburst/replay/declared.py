"""What a trace is played on."""

from __future__ import annotations

from dataclasses import dataclass

from ironburst.burst import Policy
from ironburst.replay.home import Home
from ironburst.replay.provider import SimulatedCloud


@dataclass(frozen=True)
class Declared:
    """A declared cluster, as a trace is played on it."""

    name: str
    home: Home
    policy: Policy
    cloud: SimulatedCloud
    prices_as_of: str | None
    usd_per_month: float | None  # the budget
