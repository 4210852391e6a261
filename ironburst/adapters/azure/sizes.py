"""Where a region offers which sizes to this subscription: Azure's catalogue, Resource SKUs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ironburst.adapters.answers import read
from ironburst.adapters.azure.api import Api, Json

_KEPT_S = 3600.0
_LIST = "resource_skus.list"


class Sizes:
    """Of one region; asked for when something about them is refused, and kept for an hour."""

    def __init__(self, api: Api, region: str, now: Callable[[], float]):
        self._api, self._region, self._now = api, region, now
        self._read: tuple[float, Mapping[str, Json]] | None = None

    def never(self, size: str, zone: str) -> str:
        """Why this size is never to be had here, whatever its capacity; empty: it is. `zone`: its number, or empty.
        Raises CloudError.
        """
        sku = self._of_region().get(size.lower())
        if sku is None:
            return f"{self._region} offers no {size}"
        why: str = read(_LIST, lambda raw: _restricted(raw, self._region, zone), sku)
        return f"{size}: {why}" if why else ""

    def zones(self, size: str) -> list[str]:
        """The places of a size, as region and region-1. Raises CloudError."""
        sku = self._of_region().get(size.lower())
        if sku is None:
            return []
        numbers = read(_LIST, lambda raw: _zones(raw, self._region), sku)
        return [self._region, *(f"{self._region}-{number}" for number in sorted(numbers))]

    def _of_region(self) -> Mapping[str, Json]:
        if self._read is None or not 0 <= self._now() - self._read[0] < _KEPT_S:
            found = self._api.all(_LIST, filter=f"location eq '{self._region}'")
            of_machines = [each for each in found if each.get("resourceType") == "virtualMachines"]
            self._read = self._now(), {str(each.get("name")).lower(): each for each in of_machines}
        return self._read[1]


def _zones(sku: Json, region: str) -> set[str]:
    places = [each for each in sku["locationInfo"] if each["location"].lower() == region]
    return {str(zone) for each in places for zone in each.get("zones") or []}


def _restricted(sku: Json, region: str, zone: str) -> str:
    def concerns(restriction: Mapping[str, Any]) -> bool:
        if restriction["type"] == "Location":
            return True
        return zone in ((restriction.get("restrictionInfo") or {}).get("zones") or [])

    for each in sku.get("restrictions") or []:
        if concerns(each):
            where = f" in zone {zone}" if each["type"] == "Zone" else ""
            return f"not offered to this subscription{where} ({each.get('reasonCode', 'no reason is given')})"
    if zone and zone not in _zones(sku, region):
        return f"not offered in zone {zone} of {region}"
    return ""
