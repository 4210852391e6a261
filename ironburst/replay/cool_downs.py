"""Places that refused a launch and aren't tried for a while, as the controller does. Pure."""

from __future__ import annotations

from typing import NamedTuple

from ironburst.burst import CoolDown, backoff

Place = tuple[str, str, str, str]  # pool, type (empty: its only one), zone, market


class _Refused(NamedTuple):
    cool_down: CoolDown
    refusals: int  # in a row
    since_s: float
    until_s: float


class CoolDowns:
    """By place and number of nodes. `first_s`: how long the first one of a place is, in seconds."""

    def __init__(self, first_s: float):
        self.first_s = first_s
        self._refused: dict[tuple[Place, int], _Refused] = {}

    def refuse(self, place: Place, nodes: int, now_s: float) -> None:
        """The place had no capacity for that many nodes."""
        key = place, nodes
        refusals = self._refused[key].refusals + 1 if key in self._refused else 1
        until_s = now_s + backoff.lasts_s(self.first_s, refusals)
        pool, instance_type, zone, market = place
        cool_down = CoolDown(pool, zone, market, nodes, until_s, "InsufficientInstanceCapacity", instance_type)
        self._refused[key] = _Refused(cool_down, refusals, now_s, until_s)

    def forget(self, place: Place) -> None:
        """A launch there succeeded, of whatever size."""
        self._refused = {key: refused for key, refused in self._refused.items() if key[0] != place}

    def at(self, now_s: float) -> tuple[CoolDown, ...]:
        """Those that hold at a moment. What is long over is forgotten, with the refusals before it."""
        for key, (_, _, since_s, until_s) in list(self._refused.items()):
            if until_s + backoff.FORGIVEN_AFTER * (until_s - since_s) < now_s:
                del self._refused[key]
        return tuple(refused.cool_down for refused in self._refused.values() if refused.until_s > now_s)
