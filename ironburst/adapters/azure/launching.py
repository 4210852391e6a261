"""A launch as Azure is asked for it. Pure: a repeat is the same calls.

Each launch has a resource group of its own, named by its token: what was made for it is there and nowhere else, and
goes with it. Its machines are named by it and their index.

What `LaunchRequest.place` has for a zone: `vm_size`, `subnet_id`, `os_disk_type`, `os_disk_gb`, `ssh_public_key` (Azure
makes no Linux machine without one). Or not: `infiniband` (one scale set for the launch), `accelerated_networking` (True
if it isn't said), `security_group_id`, `identity_id`, `security_type`, `tags` (the organization's),
`capacity_reservation_group` (an id): the only one that its nodes run in. A zone is REGION-1, or a region's name.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from typing import Any

from ironburst.nodes import naming
from ironburst.ports import LaunchRequest, Malformed

TOKEN, ASKED = "ironburst:token", "ironburst:asked"
"""its launch's token, and a hash of all that was asked for with it"""
COUNT, BEGUN, LAUNCHED, FAILED = "ironburst:count", "ironburst:begun", "ironburst:launched", "ironburst:failed"
"""of a group: how many machines it was made for, when (seconds since 1970), that all were there, and why not"""
UNTIL = "ironburst:until"
"""of a group: when the reaper deletes it (components/azure), as 2026-11-28T20:30:00Z: it compares texts"""

_TAG = 256  # characters of a value
_USER_DATA = 65_536  # bytes, in base64 ("can't exceed 64 KB")
_SET_OF = 100  # machines of a scale set with one placement group
_PLAIN = re.compile(r"[a-z0-9][a-z0-9-]{0,49}(?<!-)")  # Azure answers names in any case
SET = "fabric"
"""the name of a launch's scale set"""


@dataclass(frozen=True)
class GroupLaunch:
    """`group`: its resource group; `names`: of its machines, in the order of their index; `tags`: of the group.
    `bodies`: of the machines; `scale_set`: that of theirs, None: they need none. `reservation`: the id of the group of
    reservations that they must run in; empty: none.
    """

    token: str
    group: str
    names: tuple[str, ...]
    asked: str
    region: str
    zone: str
    size: str
    tags: Mapping[str, str]
    bodies: tuple[Mapping[str, Any], ...]
    scale_set: Mapping[str, Any] | None
    reservation: str
    block: bool
    hard_limit_s: int


def group_of(token: str) -> str:
    """The resource group of the launch with a token."""
    return token if _PLAIN.fullmatch(token) else "ib-" + hashlib.sha256(token.encode()).hexdigest()[:40]


def names_of(group: str, count: int) -> tuple[str, ...]:
    """Of the machines of a launch."""
    return tuple(f"{group}-{index}" for index in range(count))


def index_of(name: str) -> int:
    """The place of a machine in its launch."""
    return int(name.rpartition("-")[2])


def region_of(zone: str) -> tuple[str, str]:
    """eastus-1 as its region and the number of its zone; empty: none."""
    found = re.fullmatch(r"([a-z0-9]+)-([0-9]+)", zone)
    return (found[1], found[2]) if found else (zone, "")


def of(request: LaunchRequest, subscription: str) -> GroupLaunch:
    """Raises Malformed for what can't be asked for."""
    place, group = request.place, group_of(request.token)
    region, zone = region_of(request.zone)
    _sound(request)
    values = {each.name: getattr(request, each.name) for each in fields(request)}
    said = json.dumps({key: value for key, value in values.items() if value not in (None, "")}, sort_keys=True)
    asked = hashlib.sha256(said.encode()).hexdigest()[:40]
    tags = _tags(request) | {ASKED: asked}
    common: dict[str, Any] = {"location": region, "tags": tags} | ({"zones": [zone]} if zone else {})
    scale_set = None
    within = f"/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.Compute"
    if place.get("infiniband"):
        # a fabric ends at a scale set's edge; one placement group is one fabric
        set_is = {"orchestrationMode": "Flexible", "singlePlacementGroup": True, "platformFaultDomainCount": 1}
        scale_set = common | {"properties": set_is}
    names = names_of(group, request.count)
    bodies = []
    for name in names:
        properties = _properties(request, name, tags)
        if scale_set:
            properties["virtualMachineScaleSet"] = {"id": f"{within}/virtualMachineScaleSets/{SET}"}
        identity = place.get("identity_id")
        bodies.append(
            common
            | ({"identity": {"type": "UserAssigned", "userAssignedIdentities": {identity: {}}}} if identity else {})
            | {"properties": properties}
        )
    return GroupLaunch(
        token=request.token,
        group=group,
        names=names,
        asked=asked,
        region=region,
        zone=zone,
        size=str(place["vm_size"]),
        tags=tags | {COUNT: str(request.count)},
        bodies=tuple(bodies),
        scale_set=scale_set,
        reservation=str(place.get("capacity_reservation_group") or ""),
        block=request.market == "capacity-block",
        hard_limit_s=request.hard_limit_s,
    )


def _sound(request: LaunchRequest) -> None:
    place, pool = request.place, request.pool
    for key in ("vm_size", "subnet_id", "os_disk_type", "os_disk_gb", "ssh_public_key"):
        if not place.get(key):
            raise Malformed(f"the place of pool {pool} in {request.zone} lacks {key!r}", "Place")
    if len(_in_base64(request.user_data)) > _USER_DATA:
        raise Malformed(f"the user data of pool {pool} is above {_USER_DATA} bytes in base64", "UserData")
    reserved = place.get("capacity_reservation_group")
    if request.market == "capacity-block" and not reserved:
        raise Malformed(f"pool {pool} is of a bought block, and its place names no group of reservations", "Place")
    if reserved and request.market == "spot":
        raise Malformed(f"pool {pool} is of spot, which no reservation has", "Place")
    if reserved and place.get("infiniband") and request.market != "capacity-block":
        raise Malformed(f"pool {pool}: a reservation on demand has no InfiniBand (no single placement group)", "Place")
    if place.get("infiniband") and request.count > _SET_OF:
        raise Malformed(f"pool {pool}: {request.count} nodes are above the {_SET_OF} of one InfiniBand fabric", "Place")


def _properties(request: LaunchRequest, name: str, tags: Mapping[str, str]) -> dict[str, Any]:
    """What is made beside a machine goes with it: said of each, for it stays by default."""
    place = request.place
    disk = {
        "createOption": "FromImage",
        "deleteOption": "Delete",
        "diskSizeGB": int(place["os_disk_gb"]),
        "managedDisk": {"storageAccountType": place["os_disk_type"]},
    }
    out: dict[str, Any] = {
        "hardwareProfile": {"vmSize": place["vm_size"]},
        "storageProfile": {"imageReference": {"id": request.image_id}, "osDisk": disk},
        "osProfile": _system(request, name),
        "networkProfile": {
            "networkApiVersion": "2022-11-01",
            "networkInterfaceConfigurations": [_nic(place, name, tags)],
        },
        "diagnosticsProfile": {"bootDiagnostics": {"enabled": True}},
        "priority": "Spot" if request.market == "spot" else "Regular",
        "userData": _in_base64(request.user_data),  # its metadata service shows it to a machine, custom data no more
    }
    if place.get("security_type"):
        out["securityProfile"] = {"securityType": place["security_type"]}
    if request.market == "spot":
        most = request.max_usd_per_hour
        out |= {"evictionPolicy": "Delete", "billingProfile": {"maxPrice": -1.0 if most is None else most}}
    elif reserved := place.get("capacity_reservation_group"):
        out["capacityReservation"] = {"capacityReservationGroup": {"id": reserved}}
    else:  # without a word it may use up an open reservation that others bought
        out["capacityReservation"] = {"disableCapacityReservationAssignment": True}
    return out


def _system(request: LaunchRequest, name: str) -> dict[str, Any]:
    user = request.place.get("admin_user") or "ironburst"
    key = {"path": f"/home/{user}/.ssh/authorized_keys", "keyData": request.place["ssh_public_key"]}
    return {
        "computerName": name,
        "adminUsername": user,
        "linuxConfiguration": {"disablePasswordAuthentication": True, "ssh": {"publicKeys": [key]}},
    }


def _nic(place: Mapping[str, Any], name: str, tags: Mapping[str, str]) -> dict[str, Any]:
    """It has no address outside."""
    address = {"name": "ip", "properties": {"primary": True, "subnet": {"id": place["subnet_id"]}}}
    group = place.get("security_group_id")
    properties = {
        "primary": True,
        "deleteOption": "Delete",
        "enableAcceleratedNetworking": place.get("accelerated_networking", True),
        "ipConfigurations": [address],
    } | ({"networkSecurityGroup": {"id": group}} if group else {})
    return {"name": f"{name}-nic", "tags": dict(tags), "properties": properties}


def _tags(request: LaunchRequest) -> dict[str, str]:
    price = "" if request.usd_per_hour is None else repr(request.usd_per_hour)
    said = {
        naming.CLUSTER_TAG: request.cluster,
        naming.LEASE_TAG: request.launch,
        naming.POOL_TAG: request.pool,
        TOKEN: request.token,
        naming.OWNER_TAG: request.owner,
        naming.MARKET_TAG: request.market,
        naming.ACCOUNT_TAG: request.account,
        naming.PRICE_TAG: price,
    }
    for key in (naming.CLUSTER_TAG, naming.LEASE_TAG, TOKEN):
        if not 0 < len(said[key]) <= _TAG:
            raise Malformed(f"{key} {said[key]!r} doesn't fit into a tag's {_TAG} characters", "Tag")
    return dict(request.place.get("tags") or {}) | {key: text for key, text in said.items() if 0 < len(text) <= _TAG}


def _in_base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def moment(at_s: float) -> str:
    """As UNTIL has it."""
    return datetime.fromtimestamp(at_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def failure(text: str) -> str:
    """As a tag's value."""
    return text[:_TAG]
