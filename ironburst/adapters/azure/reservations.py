"""Reserved capacity. One that is full lets a machine run beside it, for full price and without a word, unless it is a
block: places are counted before a launch, and looked up after it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ironburst.adapters.answers import read
from ironburst.adapters.azure.api import Api, Json, refused
from ironburst.adapters.azure.launching import GroupLaunch
from ironburst.ports import InsufficientCapacity, Refused

FULL = "ReservationFull"
"""the code of what is no capacity because a reservation is full; no size is to blame for it"""
_GET = "capacity_reservation_groups.get"
_ID = re.compile(
    r"/subscriptions/[^/]+/resourceGroups/([^/]+)/providers/Microsoft\.Compute/capacityReservationGroups/([^/]+)",
    re.IGNORECASE,
)


def before(api: Api, launch: GroupLaunch) -> None:
    """Raises InsufficientCapacity where not all of a launch has a place in its reservation."""
    if not launch.reservation:
        return
    path = _path(launch.reservation)
    group = api.get(_GET, *path, expand="instanceView")
    kind = (group.get("properties") or {}).get("reservationType") or "Targeted"
    if kind == "Open" or (launch.block and kind != "Block"):
        wanted = "a bought block" if launch.block else "targeted"
        raise Refused(f"{_GET}: {path[1]} is of type {kind}, not {wanted}", "ReservationType")
    of_group = api.all("capacity_reservations.list_by_capacity_reservation_group", *path)
    names = {str(each.get("name")) for each in of_group if read(_GET, lambda raw: _fits(raw, launch), each)}
    if not names:
        where = f"{launch.region}-{launch.zone}" if launch.zone else launch.region
        raise Refused(f"{_GET}: {path[1]} reserves no {launch.size} in {where}", "NoReservation")
    free: int = read(_GET, lambda raw: sum(_free(each) for each in _views(raw) if each["name"] in names), group)
    if free < len(launch.names):
        text = f"{path[1]} has {free} free places for {len(launch.names)} {launch.size}"
        raise InsufficientCapacity(f"{_GET}: {text}", FULL)


def beside(api: Api, machines: Sequence[Json]) -> list[str]:
    """The names of machines that were to run in their reservation, and don't."""
    found = list[str]()
    for id in sorted({_reservation(each) for each in machines} - {""}):
        group = api.get(_GET, *_path(id), expand="instanceView")
        if (group.get("properties") or {}).get("reservationType") == "Block":
            continue
        inside: set[str] = read(_GET, lambda raw: {place for each in _views(raw) for place in _taken(each)}, group)
        found += [each["name"] for each in machines if _reservation(each) == id and each["id"].lower() not in inside]
    return found


def _reservation(machine: Json) -> str:
    profile = machine["properties"].get("capacityReservation") or {}
    return str((profile.get("capacityReservationGroup") or {}).get("id", ""))


def _path(id: str) -> tuple[str, str]:
    found = _ID.fullmatch(id)
    if not found:
        raise refused(f"{id!r} is no id of a group of capacity reservations")
    return found[1], found[2]


def _fits(reservation: Json, launch: GroupLaunch) -> bool:
    zones = [str(zone) for zone in reservation.get("zones") or []]
    return bool(
        reservation["sku"]["name"].lower() == launch.size.lower() and zones == [launch.zone] * bool(launch.zone)
    )


def _views(group: Json) -> list[Json]:
    return list(((group["properties"].get("instanceView") or {}).get("capacityReservations")) or [])


def _taken(view: Json) -> list[str]:
    info = view.get("utilizationInfo") or {}
    return [str(each["id"]).lower() for each in info.get("virtualMachinesAllocated") or []]


def _free(view: Json) -> int:
    info = view["utilizationInfo"]
    elsewhere: int = sum((info.get("usedReservedCountBySubscription") or {}).values())
    return max(0, int(info["currentCapacity"]) - max(len(_taken(view)), elsewhere))
