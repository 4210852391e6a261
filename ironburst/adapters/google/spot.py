"""What spot costs: Google's list price of a machine type in a region, by its history."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ironburst.adapters.answers import read
from ironburst.adapters.google.api import Api, Json
from ironburst.adapters.google.instances import tail
from ironburst.ports import CloudError, OutcomeUnknown

_KEPT_S = 600.0


class SpotPrices:
    """Of one region. `usd` is asked for at every launch with a ceiling, and kept for ten minutes."""

    def __init__(self, api: Api, region: str, now: Callable[[], float]):
        self._api, self._region, self._now = api, region, now
        self._kept: dict[str, tuple[float, float | None]] = {}
        self._zones: list[str] | None = None

    def usd(self, machine_type: str) -> float | None:
        """An hour, in USD; None: it isn't sold so, or its price isn't said. Raises CloudError."""
        asked_s, usd = self._kept.get(machine_type, (0.0, None))
        if not 0 <= self._now() - asked_s < _KEPT_S:
            usd = self._asked(machine_type)
            self._kept[machine_type] = self._now(), usd
        return usd

    def _asked(self, machine_type: str) -> float | None:
        wanted = {"machineType": machine_type, "scheduling": {"provisioningModel": "SPOT"}}
        place = {"location": f"projects/{self._api.project}/regions/{self._region}"}
        body = {"instanceProperties": wanted, "locationPolicy": place, "types": ["PRICE"]}
        answer = self._api.call("advice", "capacityHistory", region=self._region, body=body)
        found: float | None = read("advice.capacityHistory", _in_force, answer)
        return found

    def by_zone(self, types: Sequence[str]) -> dict[tuple[str, str], float]:
        """(type, zone) -> USD an hour. A type that isn't sold there hides no other. Raises CloudError, also if
        none is.
        """
        if not types:
            return {}
        if self._zones is None:
            answer: Json = self._api.call("regions", "get", region=self._region)
            self._zones = [tail(url) for url in answer.get("zones", [])]
        found, refused = dict[str, float](), None
        for kind in sorted(types):
            try:
                usd = self._asked(kind)
            except OutcomeUnknown:
                raise
            except CloudError as error:
                refused = error
                continue
            if usd is not None:
                found[kind] = usd
        if refused and not found:
            raise refused
        return {(kind, zone): usd for kind, usd in found.items() for zone in self._zones}


def _in_force(answer: Mapping[str, Any]) -> float | None:
    """The price of the newest interval."""
    records = [each for each in answer.get("priceHistory", []) if each["listPrice"]["currencyCode"] == "USD"]
    if not records:
        return None
    newest = max(records, key=lambda each: str(each["interval"].get("startTime", "")))["listPrice"]
    usd = int(newest.get("units", 0)) + int(newest.get("nanos", 0)) / 1e9
    return usd if usd > 0 else None
