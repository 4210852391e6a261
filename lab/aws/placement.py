"""Placement groups (moto has none)."""

from __future__ import annotations

import uuid
from typing import Any

from lab.aws.capacity import matches, stash, tagged
from lab.aws.faults import Ec2Error
from lab.aws.launch_spec import Params


def create_placement_group(backend: Any, p: Params) -> Params:
    name, groups = p["GroupName"], stash(backend, "groups")
    if name in groups:
        raise Ec2Error("InvalidPlacementGroup.Duplicate", f"The Placement Group '{name}' already exists.")
    groups[name] = {
        "GroupName": name,
        "GroupId": f"pg-{uuid.uuid4().hex[:17]}",
        "State": "available",
        "Strategy": p.get("Strategy", "cluster"),
        "GroupArn": f"arn:aws:ec2:{backend.region_name}:{backend.account_id}:placement-group/{name}",
        "PartitionCount": p.get("PartitionCount"),
        "SpreadLevel": p.get("SpreadLevel"),
        "Tags": tagged(p, "placement-group"),
    }
    return {"PlacementGroup": groups[name]}


def describe_placement_groups(backend: Any, p: Params) -> Params:
    groups, names, ids = stash(backend, "groups"), p.get("GroupNames") or [], p.get("GroupIds")
    for name in names:
        need_group(backend, name)
    return {
        "PlacementGroups": [
            g
            for g in groups.values()
            if (not names or g["GroupName"] in names)
            and (not ids or g["GroupId"] in ids)
            and matches(p, g, {"group-name": "GroupName", "state": "State", "strategy": "Strategy"})
        ]
    }


def delete_placement_group(backend: Any, p: Params) -> None:
    need_group(backend, p["GroupName"])
    arn = stash(backend, "groups")[p["GroupName"]]["GroupArn"]
    held = [r for r in stash(backend, "reservations").values() if r.get("PlacementGroupArn") == arn]
    if any(r["State"] == "active" for r in held) or any(
        i.state != "terminated" and i.placement.group_name == p["GroupName"] for i in backend.all_instances()
    ):
        raise Ec2Error(
            "InvalidPlacementGroup.InUse", f"The placement group '{p['GroupName']}' is in use and may not be deleted."
        )
    del stash(backend, "groups")[p["GroupName"]]


def need_group(backend: Any, name: str) -> None:
    """InvalidPlacementGroup.Unknown unless the group exists."""
    if name not in stash(backend, "groups"):
        raise Ec2Error("InvalidPlacementGroup.Unknown", f"The Placement Group '{name}' is unknown.")


ACTIONS = {f.__name__: f for f in (create_placement_group, describe_placement_groups, delete_placement_group)}
