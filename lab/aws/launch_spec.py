"""Launch requests and launch templates, merged as EC2 merges them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from moto.core.types import Base64EncodedString

from lab.aws.faults import Ec2Error

Params = dict[str, Any]


def plain(value: Any) -> Any:
    """moto's parsed parameters as ordinary dicts and lists, with the API's own names."""
    if hasattr(value, "original_dict"):
        value = value.original_dict()
    if isinstance(value, Mapping):
        return {k: plain(v) for k, v in value.items()}
    return (
        [plain(v) for v in value]
        if isinstance(value, list)
        else str(value)
        if isinstance(value, Base64EncodedString)
        else value
    )


def merged(template: Params, request: Params) -> Params:
    """A launch request over its template: structures and tags merge, anything else the request replaces whole."""
    out = {**template, **{k: v for k, v in request.items() if v is not None}}
    for key in (
        "Placement",
        "MetadataOptions",
        "Monitoring",
        "CapacityReservationSpecification",
        "InstanceMarketOptions",
    ):
        if template.get(key) and request.get(key):
            out[key] = {**template[key], **request[key]}
    tags: dict[str, dict[str, str]] = {}
    for spec in template.get("TagSpecifications", []) + request.get("TagSpecifications", []):
        tags.setdefault(spec["ResourceType"], {}).update({t["Key"]: t["Value"] for t in spec["Tags"]})
    return {
        **out,
        "TagSpecifications": [
            {"ResourceType": kind, "Tags": [{"Key": k, "Value": v} for k, v in own.items()]}
            for kind, own in tags.items()
        ],
    }


def spec_of(backend: Any, p: Params) -> Params:
    """A RunInstances request with its launch template in it, as EC2 reads it."""
    if not (named := p.get("LaunchTemplate")):
        return merged({}, p)
    template = (
        backend.get_launch_template(named["LaunchTemplateId"])
        if named.get("LaunchTemplateId")
        else backend.get_launch_template_by_name(named["LaunchTemplateName"])
    )
    version = template.get_version(named.get("Version") or "$Default")
    return {**merged(plain(version.data), p), "LaunchTemplate": {"Id": template.id, "Version": version.number}}


def zone_of(backend: Any, spec: Params) -> tuple[str | None, str]:
    """The subnet (of the primary interface) and the zone of a merged request."""
    subnet = spec.get("SubnetId") or next(
        (n["SubnetId"] for n in spec.get("NetworkInterfaces", []) if n.get("SubnetId")), None
    )
    asked = (spec.get("Placement") or {}).get("AvailabilityZone") or f"{backend.region_name}a"
    return subnet, backend.get_subnet(subnet).availability_zone if subnet else asked


def primary_first(nics: list[Params]) -> None:
    """InvalidParameterValue unless the interfaces can be numbered as EC2 wants: one primary (card 0, device 0), each
    card and device index once.
    """
    seats = [(int(n.get("NetworkCardIndex") or 0), int(n.get("DeviceIndex") or 0)) for n in nics]
    if nics and seats[0] != (0, 0):
        raise Ec2Error(
            "InvalidParameterValue",
            f"The first network interface has card {seats[0][0]} and device {seats[0][1]}: "
            "the primary interface (card 0, device 0) must be listed first in the lab",
        )
    if len(set(seats)) < len(seats):
        raise Ec2Error(
            "InvalidParameterValue", "Each network interface requires a unique combination of card and device index."
        )


def market_of(spec: Params) -> str:
    """Of a merged request: spot, capacity-block or on-demand."""
    return str((spec.get("InstanceMarketOptions") or {}).get("MarketType") or "on-demand")
