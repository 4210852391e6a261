"""What Compute Engine says of an instance's host."""

from __future__ import annotations

from collections.abc import Iterator

from ironburst.adapters.answers import read
from ironburst.adapters.google.api import Json
from ironburst.adapters.google.instances import instance, time_s
from ironburst.ports import InstanceTrouble

_LIST = "instances.list"


def troubles_of(raw: Json) -> Iterator[InstanceTrouble]:
    """Of an instance's description."""
    id = read(_LIST, instance, raw).id
    if raw.get("status") == "REPAIRING":
        yield InstanceTrouble(id, "Google repairs its host")
    planned = (raw.get("resourceStatus") or {}).get("upcomingMaintenance")
    if planned and planned.get("maintenanceStatus", "PENDING") in ("PENDING", "ONGOING", "UNKNOWN"):
        begins = planned.get("windowStartTime")
        when = f" from {begins} on" if begins else ""
        kind = str(planned.get("type", "")).lower().replace("unknown_type", "")
        text = f"Google has scheduled maintenance of its host{f' ({kind})' if kind else ''}{when}"
        yield InstanceTrouble(id, text, read(_LIST, lambda _: time_s(begins) if begins else 0.0, raw))
