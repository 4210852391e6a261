"""EC2's answers as the records of ironburst.doctor.aws.account. Values in, values out."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from ironburst.doctor.aws.account import ImageFacts, Reservation, Tunnel, Vpn


def tags(row: Mapping[str, Any]) -> dict[str, str]:
    """Of a resource, by key."""
    return {tag["Key"]: tag["Value"] for tag in row.get("Tags") or ()}


def image(raw: dict[str, Any]) -> ImageFacts:
    """Of DescribeImages."""
    device, ends = raw.get("RootDeviceName") or "", raw.get("DeprecationTime")
    disks = {each.get("DeviceName"): each.get("Ebs") or {} for each in raw.get("BlockDeviceMappings", [])}
    return ImageFacts(
        state=raw["State"],
        architecture=raw.get("Architecture") or "",
        owner=raw.get("OwnerId") or "",
        owner_alias=raw.get("ImageOwnerAlias") or "",
        root_device=device,
        root_device_type=raw.get("RootDeviceType") or "",
        root_gb=int(disks.get(device, {}).get("VolumeSize") or 0),
        ena=bool(raw.get("EnaSupport")),
        boot_mode=raw.get("BootMode") or "",
        deprecated=datetime.fromisoformat(ends).astimezone(UTC) if ends else None,
    )


def vpn(row: dict[str, Any]) -> Vpn:
    """Of DescribeVpnConnections. The tunnels' keys are in the same answer, and go no further."""
    tunnels = tuple(
        Tunnel(
            address=each.get("OutsideIpAddress", ""),
            up=each.get("Status") == "UP",
            message=each.get("StatusMessage") or "",
            routes=int(each.get("AcceptedRouteCount") or 0),
        )
        for each in row.get("VgwTelemetry", [])
    )
    static = bool((row.get("Options") or {}).get("StaticRoutesOnly"))
    return Vpn(row["VpnConnectionId"], tags(row).get("Name", ""), row["State"], tunnels, static)


def reservation(row: dict[str, Any]) -> Reservation:
    """Of DescribeCapacityReservations."""
    return Reservation(
        state=row["State"],
        instance_type=row["InstanceType"],
        zone=row.get("AvailabilityZone", ""),
        count=int(row["TotalInstanceCount"]),
        kind=row.get("ReservationType") or "default",
        starts=row.get("StartDate"),
        ends=row.get("EndDate"),
    )
