"""Compute Engine's instances as the port's. A name is used again, a number never: an id has both."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any, NamedTuple

from ironburst.adapters.google import launching
from ironburst.adapters.google.api import refused
from ironburst.nodes import naming
from ironburst.ports import LAUNCHING, Instance

# TERMINATED is one that was stopped: it is there, and its disks are paid for. One that is gone has no state.
STATES = {
    "PENDING": "pending",
    "PROVISIONING": "pending",
    "STAGING": "pending",
    "RUNNING": "running",
    "REPAIRING": "running",  # and a trouble
    "PENDING_STOP": "stopping",
    "STOPPING": "stopping",
    "SUSPENDING": "stopping",
    "DEPROVISIONING": "stopping",  # when its bill ends isn't documented: it may cost money
    "STOPPED": "stopped",
    "SUSPENDED": "stopped",
    "TERMINATED": "stopped",
}
_ID = re.compile(r"([a-z][-a-z0-9]*)/([a-z][-a-z0-9]*)/([0-9]{1,20})")
TAKEN = "compute.instances.preempted"
"""type of the operation by which Google takes a spot instance back"""


class Id(NamedTuple):
    """us-central1-a/ib-lab-p5-x-0/4711 as its parts."""

    zone: str
    name: str
    number: str

    @classmethod
    def of(cls, id: str) -> Id:
        """Raises Refused for one that no instance of Google's has: nothing is said of those."""
        found = _ID.fullmatch(id)
        if not found:
            raise refused(f"{id!r} is no id of an instance in Google Cloud (ZONE/NAME/NUMBER)")
        return cls(*found.groups())

    def __str__(self) -> str:
        return "/".join(self)


def tail(url: str) -> str:
    """The name at the end of a URL."""
    return url.rpartition("/")[2]


def time_s(text: str) -> float:
    """RFC 3339, as seconds since 1970."""
    return datetime.fromisoformat(text).timestamp()


def instance(raw: Mapping[str, Any]) -> Instance:
    """Raises KeyError or ValueError for what isn't one. Which image it was made from its description doesn't say."""
    labels, zone = raw.get("labels") or {}, tail(raw["zone"])
    said = {key: launching.of_label(str(value)) for key, value in labels.items()}
    nics = raw.get("networkInterfaces") or [{}]
    return Instance(
        id=str(Id(zone, raw["name"], str(int(raw["id"])))),
        index=launching.index_of(raw["name"]),
        state=STATES.get(raw["status"], "running"),  # a state that is new: it may cost money
        address=nics[0].get("networkIP"),
        zone=zone,
        launch=said.get(launching.LEASE, ""),
        token=said.get(launching.TOKEN, ""),
        launched_s=time_s(raw["creationTimestamp"]),
        pool=said.get(launching.POOL, ""),
        market=said.get(launching.MARKET, ""),
        owner=said.get(launching.OWNER, ""),
        account=said.get(launching.ACCOUNT, ""),
        usd_per_hour=naming.price(said.get(launching.PRICE, "")),
        instance_type=tail(raw.get("machineType", "")),
    )


def ended(id: Id, reason: str, began_s: float) -> Instance:
    """One that is gone, by what operations on it say."""
    return Instance(
        id=str(id),
        index=launching.index_of(id.name),
        state="terminated",
        address=None,
        zone=id.zone,
        launch="",
        token="",
        launched_s=began_s,
        reason=reason,
        taken=reason == TAKEN,
    )


def provisional(shown: Instance) -> bool:
    """Whether it may be one whose launch isn't over."""
    return shown.state in (LAUNCHING, "pending", "running", "stopping", "stopped")
