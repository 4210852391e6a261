"""Azure's virtual machines as the port's instances. A name is used again, a vmId never: an id has both."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any, NamedTuple

from ironburst.adapters.azure import launching
from ironburst.adapters.azure.api import refused
from ironburst.nodes import naming
from ironburst.ports import Instance

# A machine that its guest shut down is stopped, and paid for. Of a deallocated one only the disk is: it isn't gone.
POWER = {
    "creating": "pending",
    "starting": "pending",
    "running": "running",
    "stopping": "stopping",
    "stopped": "stopped",
    "deallocating": "stopping",
    "deallocated": "stopped",
    "hibernating": "stopping",
    "hibernated": "stopped",
}
_ID = re.compile(r"([\w.()-]{1,90})/([A-Za-z0-9][\w.-]{0,63})/([0-9a-fA-F-]{36})")
TAKEN = "gone"
"""why a machine isn't there that nobody here has ended: Azure says no more of one that was evicted or deleted"""


class Id(NamedTuple):
    """ib-1a2b/ib-1a2b-0/6f2f1a52-... as its parts: group, name, vmId."""

    group: str
    name: str
    number: str

    @classmethod
    def of(cls, id: str) -> Id:
        """Raises Refused for one that no machine of Azure's has: nothing is said of those."""
        found = _ID.fullmatch(id)
        if not found:
            raise refused(f"{id!r} is no id of a machine in Azure (GROUP/NAME/VMID)")
        return cls(*found.groups())

    def __str__(self) -> str:
        return "/".join(self)


def group_in(resource_id: str) -> str:
    """The resource group in a resource's id, whose words come in any case."""
    parts = resource_id.split("/")
    return parts[[part.lower() for part in parts].index("resourcegroups") + 1].lower()


def instance(raw: Mapping[str, Any], view: Mapping[str, Any] | None = None) -> Instance:
    """Raises KeyError or ValueError for what isn't one. `view`: its instance view, if it came by another call. Its
    address is its network interface's.
    """
    properties, tags = raw["properties"], raw.get("tags") or {}
    zones, region = raw.get("zones") or [], str(raw["location"]).lower().replace(" ", "")
    image = (properties.get("storageProfile") or {}).get("imageReference") or {}
    return Instance(
        id=str(Id(group_in(raw["id"]), raw["name"], str(properties["vmId"]).lower())),
        index=launching.index_of(raw["name"]),
        state=state(properties, view or properties.get("instanceView")),
        address=None,
        zone=f"{region}-{zones[0]}" if zones else region,
        launch=tags.get(naming.LEASE_TAG, ""),
        token=tags.get(launching.TOKEN, ""),
        launched_s=datetime.fromisoformat(properties["timeCreated"]).timestamp(),
        pool=tags.get(naming.POOL_TAG, ""),
        market=tags.get(naming.MARKET_TAG, ""),
        owner=tags.get(naming.OWNER_TAG, ""),
        account=tags.get(naming.ACCOUNT_TAG, ""),
        usd_per_hour=naming.price(tags.get(naming.PRICE_TAG, "")),
        instance_type=str((properties.get("hardwareProfile") or {}).get("vmSize", "")),
        image_id=str(image.get("id", "")),
    )


def state(properties: Mapping[str, Any], view: Mapping[str, Any] | None) -> str:
    """One of ironburst.ports.ALIVE: a machine that is there may cost money, failed ones too."""
    if properties["provisioningState"] == "Deleting":
        return "stopping"  # when its bill ends isn't documented
    power = statuses(view, "PowerState/")
    if power:
        return POWER.get(power[0], "running")  # a state that is new: it may cost money
    return "pending" if properties["provisioningState"] == "Creating" else "running"


def statuses(view: Mapping[str, Any] | None, prefix: str) -> list[str]:
    """The codes of an instance view that begin so, without that."""
    codes = [str(each.get("code", "")) for each in (view or {}).get("statuses") or []]
    return [code.removeprefix(prefix) for code in codes if code.startswith(prefix)]


def gone(was: Instance, *, ours: bool) -> Instance:
    """One that isn't there any more. `ours`: we ended it."""
    return replace(was, state="terminated", reason="" if ours else TAKEN, taken=not ours)
