"""What the rest of the lab sees of an instance: no moto types."""

from __future__ import annotations

import dataclasses
from typing import Any


@dataclasses.dataclass(frozen=True)
class InstanceView:
    """One instance at one moment; what the hooks and the metadata service get."""

    instance_id: str
    instance_type: str
    zone: str
    address: str  # private, of the primary interface
    launch_index: int  # AmiLaunchIndex: position in its RunInstances call
    image_id: str
    image_folder: str  # what the image id was registered with; "" if with none
    market: str  # on-demand | spot | capacity-block
    state: str  # pending | running | terminated
    subnet_id: str | None
    placement_group: str  # "" if none
    role_arn: str | None  # the role of its instance profile
    tags: dict[str, str]
    user_data: str | None
    spot_action: str | None  # the JSON of spot/instance-action once the warning is out
    client_token: str | None
    metadata_enabled: bool = True
    tags_in_metadata: bool = False
    public_key: str = ""  # of its key pair, as OpenSSH writes it
    key_name: str = ""

    @property
    def hostname(self) -> str:
        """EC2's IP-based name, e.g. ip-10-90-3-7."""
        return "ip-" + self.address.replace(".", "-")


def view_of(instance: Any) -> InstanceView:
    """moto's instance as an InstanceView."""
    image = instance.ec2_backend.amis.get(instance.image_id)
    profile = getattr(instance, "profile", None)
    roles = profile.roles if profile else []
    options = instance.metadata_options
    pair = instance.ec2_backend.key_pairs.get(instance.key_name) if instance.key_name else None
    return InstanceView(
        instance_id=instance.id,
        instance_type=instance.instance_type,
        zone=instance.availability_zone,
        address=instance.private_ip,
        launch_index=instance.ami_launch_index,
        image_id=instance.image_id,
        image_folder=getattr(image, "folder", ""),
        market=instance.lifecycle or "on-demand",
        state=instance.state,
        subnet_id=instance.subnet_id,
        placement_group=instance.placement.group_name,
        role_arn=roles[0].arn if roles else None,
        tags={t["key"]: t["value"] for t in instance.get_tags()},
        user_data=instance.user_data.decode() if instance.user_data else None,
        spot_action=getattr(instance, "spot_action", None),
        client_token=instance.client_token,
        metadata_enabled=options.http_endpoint == "enabled",
        tags_in_metadata=options.instance_metadata_tags == "enabled",
        public_key=_text(pair.material_public) if pair else "",
        key_name=instance.key_name or "",
    )


def _text(material: str | bytes | None) -> str:
    return (material.decode() if isinstance(material, bytes) else material or "").strip()
