"""What a played trace rents from: declared pools, and a provider that refuses and takes back as a seed has it. Pure.

Two plays with the same seed meet the same shortages at the same moments; interruptions are drawn lease by lease.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from ironburst.burst import Pool
from ironburst.replay.spot_trace import SpotTrace


@dataclass(frozen=True)
class Shortage:
    """An offering (type, zone, market) has no capacity for this part of the time, in spells of `mean_s` on average."""

    part: float
    mean_s: float

    def __post_init__(self) -> None:
        if not (0 <= self.part < 1 and 0 < self.mean_s < math.inf):
            told = f"a shortage for {self.part} of the time in spells of {self.mean_s} s"
            raise ValueError(f"{told}: allowed is 0 <= part < 1, and over 0 s")


@dataclass(frozen=True)
class SimulatedCloud:
    """What is declared, and how the provider behaves. Times in seconds.

    `pools`: as the policy is to see them (their idle histories begin empty and are kept by the play). A launch takes
    the pool's `boot_s`, gate included. A pool's `interruptions_per_hour` (by market) says how often an instance is
    taken back, its `checkpoint_s` how often the jobs there save their work (0: never). Prepaid markets are paid for all
    nodes of their pool from the first submit to the last end.
    `shortages`: by market; a market without one always has capacity. `cool_down_s`: as the controller is configured.
    `spot`: by zone (empty: all), when spot is to be had, in the place of its shortage and its rate of interruptions.
    """

    pools: tuple[Pool, ...]
    seed: int = 0
    shortages: Mapping[str, Shortage] = field(default_factory=dict)
    cool_down_s: float = 600.0
    spot: Mapping[str, SpotTrace] = field(default_factory=dict)

    def spot_of(self, market: str, zone: str) -> SpotTrace | None:
        """None: seed, shortages and rates say it."""
        return (self.spot.get(zone) or self.spot.get("")) if market == "spot" else None


@dataclass
class Capacity:
    """Whether an offering has capacity at a moment: spells without it and
    spells with it take turns, both exponential.
    """

    cloud: SimulatedCloud
    begins_s: float = 0.0  # before any question
    _turns: dict[tuple[str, str, str], tuple[np.random.Generator, list[float]]] = field(default_factory=dict)

    def has(self, instance_type: str, zone: str, market: str, now_s: float) -> bool:
        """Whether there is any now; a moment before one that was asked for isn't asked for."""
        if trace := self.cloud.spot_of(market, zone):
            return trace.there(now_s)
        shortage = self.cloud.shortages.get(market)
        if shortage is None or shortage.part == 0:
            return True
        place = instance_type, zone, market
        if place not in self._turns:
            random = np.random.default_rng([self.cloud.seed, zlib.crc32("/".join(place).encode())])
            # turns at even places end capacity; where there is none at first, a spell with it has no length
            first = 0.0 if random.random() < shortage.part else random.exponential(self._with_s(shortage))
            self._turns[place] = random, [self.begins_s + first]
        random, turns = self._turns[place]
        while turns[-1] <= now_s:
            turns.append(turns[-1] + random.exponential(shortage.mean_s if len(turns) % 2 else self._with_s(shortage)))
        while len(turns) > 2 and turns[1] <= now_s:  # time only goes on
            del turns[:2]
        return now_s < turns[0]

    @staticmethod
    def _with_s(shortage: Shortage) -> float:
        return shortage.mean_s * (1 - shortage.part) / shortage.part


def taken_back_after_s(cloud: SimulatedCloud, pool: Pool, market: str, lease: int) -> float:
    """How long the provider leaves the lease with this number; infinite where it never takes one back."""
    rate = pool.interruptions_per_hour.get(market, 0.0)
    if rate <= 0:
        return math.inf
    return 3600 * float(np.random.default_rng([cloud.seed, 7, lease]).exponential(1 / rate))
