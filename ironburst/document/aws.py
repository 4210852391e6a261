"""What a document says in AWS's words, which only AWS's rooms read; and documents of before version 6, which had no
other cloud.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field

from ironburst.document.part import Part

PROVIDER: Literal["aws"] = "aws"
LOGIN_USERS = {"debian": "admin", "ubuntu": "ubuntu", "rhel": "ec2-user"}
"""who logs in at the stock images of a distribution; Rocky's has `rocky`, which is declared"""


class Hosted(Part):
    """The part of the document's scheduler that says whether its control plane is the cloud's own."""

    eks: str = Field(default="", description="what AWS calls it; its nodes sign in by IAM. Empty: no cluster of EKS")

    @property
    def signs_in(self) -> dict[str, str]:
        """What a rented node signs in with, by its role in the cloud; empty: it joins with a token."""
        return {"eks": self.eks} if self.eks else {}


class AwsPlace(Part):
    """Where and how a launch is asked for."""

    provider: Literal["aws"] = PROVIDER
    subnet_id: str
    launch_template_id: str
    launch_template_version: str = Field(default="$Latest", description="a number; documents of before 0.2: $Latest")
    capacity_reservation_id: str | None = Field(default=None, description="a capacity block's id, too")
    capacity_reservation_group_arn: str | None = Field(
        default=None, description="resource group with the reservations that its nodes run in"
    )
    tags: dict[str, str] = Field(default={}, description="the organization's own, on all that a launch or a bake makes")
    volume_init_mb_s: int | None = Field(
        default=None, description="MiB/s at which its root volume is filled from the image; null: as it is read"
    )

    @classmethod
    def unknown(cls) -> AwsPlace:
        """Before Pulumi has made it."""
        return cls(subnet_id="", launch_template_id="")


def of_before_6(said: Mapping[str, Any]) -> dict[str, Any]:
    """A document of version 1 to 5 as one of version 6 says it. What isn't as it was then is left to the reader."""
    new = {key: value for key, value in said.items() if key != "region"} | {"version": 6}
    region, pools = said.get("region"), said.get("pools")
    new.setdefault("cloud", {"provider": PROVIDER, "region": region} if region else None)
    if isinstance(pools, list):
        new["pools"] = [_pool(pool) if isinstance(pool, Mapping) else pool for pool in pools]
    return new


def _pool(said: Mapping[str, Any]) -> dict[str, Any]:
    bought = {key: said.get(key) for key in ("capacity_reservation_id", "capacity_reservation_group_arn")}
    new = {key: value for key, value in said.items() if key not in bought}
    new["bought"] = any(bought.values())
    if "image_parameter" in said:
        new["image"] = new.pop("image_parameter")
    new["notices"] = new.pop("interruption_queue_url", None) or ""
    zones = said.get("zones")
    if isinstance(zones, list):
        new["zones"] = [_zone(zone, bought) if isinstance(zone, Mapping) else zone for zone in zones]
    return new


def _zone(said: Mapping[str, Any], bought: Mapping[str, Any]) -> dict[str, Any]:
    new = {key: said[key] for key in ("zone", "instance_type") if key in said}
    return new | {"place": {key: value for key, value in said.items() if key not in new} | dict(bought)}
