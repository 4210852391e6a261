"""A launch as Compute Engine is asked for it. Pure: a repeat is the same call.

What `LaunchRequest.place` has for a zone: `machine_type`; `network_interfaces`: [{subnetwork, nic_type?}], the node's
address is in the first; `boot_disk_type`, `boot_disk_gb`. Or not: `local_ssds` (a count, where the type doesn't bring
them), `boot_disk_mb_s`, `service_account`, `network_tags`, `labels` (the organization's), `placement_policy`,
`max_run_s`, `reservation` (a name, or projects/P/reservations/NAME): the only one that its nodes run in;
`reservation_bound`: its machines are bound to it.
"""

from __future__ import annotations

import hashlib
import json
import re
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from ironburst.nodes import naming
from ironburst.ports import LaunchRequest, Malformed

# Labels: lower case, no colon (naming's tags with a hyphen), 63 characters at most
CLUSTER, LEASE, POOL = "ironburst-cluster", "ironburst-lease", "ironburst-pool"
OWNER, MARKET, ACCOUNT, PRICE = "ironburst-owner", "ironburst-market", "ironburst-account", "ironburst-usd-per-hour"
TOKEN, ASKED = "ironburst-token", "ironburst-asked"
"""its launch's token, and a hash of all that was asked for with it"""

LEAD, LEAD_S = "preemptionNoticeDuration", 120
"""how long before its shutdown a spot instance is told; without it: not at all. 120 s is the one value that Google's
pages have
"""
_TOKENS = uuid.UUID("6f2f1a52-5a0c-5d0e-9f57-6d3f4a3a2d10")
_EMPTY: tuple[Any, ...] = (None, "", 0, False, [], {})
_LABEL = 63
_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyz0123456789-")
_USER_DATA = 262_144  # bytes of a value of metadata
_BASE = 44  # characters of a name before its launch's hash and index: 63 at most


@dataclass(frozen=True)
class Launch:
    """`names`: of its instances, in the order of their index. `asked`: a hash of the request, among its labels."""

    zone: str
    token: str
    request_id: str
    names: tuple[str, ...]
    asked: str
    body: Mapping[str, Any]
    spot: bool


def request_id(token: str) -> str:
    """Compute Engine takes UUIDs alone."""
    return str(uuid.uuid5(_TOKENS, token))


def of(request: LaunchRequest) -> Launch:
    """Raises Malformed for what can't be asked for."""
    id = request_id(request.token)
    begins = naming.rented_prefix(request.cluster)
    readable = re.sub(r"[^a-z0-9-]+", "-", f"{begins}{request.pool}-{request.launch}".lower())
    base = f"{readable[:_BASE].rstrip('-')}-{id.partition('-')[0]}"
    names = tuple(f"{base}-{index}" for index in range(request.count))
    properties = _properties(request)
    # of the request, not of the body: a newer ironburst may ask with other words for the same. What an older one didn't
    # know is empty
    values = {each.name: getattr(request, each.name) for each in fields(request)}
    values["place"] = {key: value for key, value in request.place.items() if value not in _EMPTY}
    said = json.dumps({key: value for key, value in values.items() if value not in (None, "")}, sort_keys=True)
    asked = hashlib.sha256(said.encode()).hexdigest()[:40]
    properties["labels"] |= {ASKED: asked}
    # no minCount: all or nothing is what that means
    body = {
        "count": str(request.count),
        "perInstanceProperties": {name: {} for name in names},
        "instanceProperties": properties,
    }
    return Launch(request.zone, request.token, id, names, asked, body, request.market == "spot")


def index_of(name: str) -> int:
    """The place of an instance in its launch."""
    return int(name.rpartition("-")[2])


def _properties(request: LaunchRequest) -> dict[str, Any]:
    place = request.place
    try:
        nics = [_nic(each) for each in place["network_interfaces"]]
        out = {
            "machineType": place["machine_type"],
            "disks": [_boot_disk(request), *_local_ssds(place)],
            "networkInterfaces": nics,
        }
    except (KeyError, TypeError) as error:
        raise Malformed(f"the place of pool {request.pool} in {request.zone} lacks {error}", "Place") from None
    if len(request.user_data.encode()) > _USER_DATA:
        raise Malformed(f"the user data of pool {request.pool} is above {_USER_DATA} bytes", "UserData")
    optional = {
        "tags": {"items": list(place["network_tags"])} if place.get("network_tags") else None,
        "resourcePolicies": [place["placement_policy"]] if place.get("placement_policy") else None,
        "serviceAccounts": [_identity(place["service_account"])] if place.get("service_account") else None,
    }
    out |= {key: value for key, value in optional.items() if value is not None}
    return out | {
        "labels": _labels(request),
        "metadata": {"items": [{"key": "user-data", "value": request.user_data}]},
        "scheduling": _scheduling(request),
        "reservationAffinity": _reservation(request),
    }


def _nic(said: Mapping[str, Any]) -> dict[str, Any]:
    """No access config: it has no address outside."""
    return {"subnetwork": said["subnetwork"]} | ({"nicType": said["nic_type"]} if said.get("nic_type") else {})


def _boot_disk(request: LaunchRequest) -> dict[str, Any]:
    place = request.place
    made = {
        "sourceImage": request.image_id,
        "diskType": place["boot_disk_type"],
        "diskSizeGb": str(place["boot_disk_gb"]),
        "labels": _labels(request),
    } | ({"provisionedThroughput": str(place["boot_disk_mb_s"])} if place.get("boot_disk_mb_s") else {})
    return {"boot": True, "autoDelete": True, "initializeParams": made}


def _local_ssds(place: Mapping[str, Any]) -> list[dict[str, Any]]:
    made = {"diskType": "local-ssd"}
    one = {"type": "SCRATCH", "interface": "NVME", "autoDelete": True, "initializeParams": made}
    return [one for _ in range(place.get("local_ssds") or 0)]


def _identity(email: str) -> dict[str, Any]:
    return {"email": email, "scopes": ["https://www.googleapis.com/auth/cloud-platform"]}


def _scheduling(request: LaunchRequest) -> dict[str, Any]:
    """GPUs don't migrate; what stops is not started again behind us; what the provider ends leaves no disk behind."""
    models = {"spot": "SPOT", "capacity-block": "RESERVATION_BOUND"}
    on_demand = "RESERVATION_BOUND" if request.place.get("reservation_bound") else "STANDARD"
    out: dict[str, Any] = {
        "provisioningModel": models.get(request.market, on_demand),
        "onHostMaintenance": "TERMINATE",
        "automaticRestart": False,
    }
    longest_s = request.place.get("max_run_s")
    if longest_s:
        out["maxRunDuration"] = {"seconds": str(int(longest_s))}
    if longest_s or request.market == "spot":
        out["instanceTerminationAction"] = "DELETE"
    if request.market == "spot":
        out[LEAD] = {"seconds": str(LEAD_S)}
    return out


def without_lead(body: Mapping[str, Any]) -> dict[str, Any]:
    """The same request, for a notice that comes with the shutdown."""
    properties = body["instanceProperties"]
    scheduling = {key: value for key, value in properties["scheduling"].items() if key != LEAD}
    return {**body, "instanceProperties": {**properties, "scheduling": scheduling}}


def _reservation(request: LaunchRequest) -> dict[str, Any]:
    """Said always: without a word an instance uses up whatever open reservation the project has."""
    name = request.place.get("reservation")
    if request.market == "capacity-block" and not name:
        raise Malformed(f"pool {request.pool} is of a bought block, and its place names no reservation", "Place")
    if not name or request.market == "spot":
        return {"consumeReservationType": "NO_RESERVATION"}
    key = "compute.googleapis.com/reservation-name"
    return {"consumeReservationType": "SPECIFIC_RESERVATION", "key": key, "values": [name]}


def _labels(request: LaunchRequest) -> dict[str, str]:
    price = "" if request.usd_per_hour is None else repr(request.usd_per_hour)
    said = {
        CLUSTER: request.cluster,
        LEASE: request.launch,
        POOL: request.pool,
        TOKEN: request.token,
        OWNER: request.owner,
        MARKET: request.market,
        ACCOUNT: request.account,
        PRICE: price,
    }
    spelled = {key: label_value(text) for key, text in said.items()}
    for key in (CLUSTER, LEASE, TOKEN):
        if not spelled[key]:
            raise Malformed(f"{key} {said[key]!r} doesn't fit into a label's {_LABEL} characters", "Label")
    return dict(request.place.get("labels") or {}) | {key: value for key, value in spelled.items() if value}


def label_value(text: str) -> str:
    """Any text as a label's value: what isn't plain is spelled as _xx. Empty for a text that doesn't fit."""
    value = "".join(each if each in _PLAIN else "".join(f"_{byte:02x}" for byte in each.encode()) for each in text)
    return value if len(value) <= _LABEL else ""


def of_label(value: str) -> str:
    """The text of a label's value."""
    parts = re.split(r"_([0-9a-f]{2})", value)
    said = b"".join(bytes.fromhex(part) if n % 2 else part.encode() for n, part in enumerate(parts))
    return said.decode(errors="replace")
