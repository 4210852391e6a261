"""Block devices of images and launches, as EC2 treats them: a mapping under the image's own root device changes that
volume, one under any other name adds a volume. moto mixes the two up.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from moto.ec2.models.amis import Ami

from lab.aws.faults import Ec2Error
from lab.aws.launch_spec import Params

ROOT_DEVICE = "/dev/sda1"  # as in Ubuntu's, Rocky's and RHEL's images; Debian's and Amazon's have /dev/xvda
ROOT_GB = 8
EBS = {"VolumeType": "gp3", "DeleteOnTermination": True, "Encrypted": False}


def mapping(image: Any, device: str, size_gb: int, snapshot: Any = None, **ebs: Any) -> Params:
    """One volume of an image with a snapshot of that size in GiB; moto's own is its root's."""
    if snapshot is None:
        backend = image.ec2_backend
        volume = backend.create_volume(size=size_gb, zone_name=backend.region_name + "a")
        snapshot = backend.create_snapshot(volume.id, f"for {image.id}", image.owner_id, from_ami=image.id)
        backend.delete_volume(volume.id)
    snapshot.volume.size = size_gb
    return {"DeviceName": device, "Ebs": {**EBS, **ebs, "SnapshotId": snapshot.id, "VolumeSize": size_gb}}


def registered(image: Any, root_device: str, size_gb: int) -> None:
    """The root volume of a registered image."""
    image.root_device_name = root_device
    image.disks = [mapping(image, root_device, size_gb, image.ebs_snapshot)]


def taken_from(image: Any, instance: Any) -> None:
    """The volumes of an image that is made of an instance: size, type and encryption are inherited."""
    image.root_device_name = instance.root_device_name
    image.disks = []
    for device, attached in instance.get_block_device_mapping:
        volume = image.ec2_backend.get_volume(attached.volume_id)
        kept = {"VolumeType": volume.volume_type or "gp3", "Encrypted": volume.encrypted}
        snapshot = image.ebs_snapshot if device == instance.root_device_name else None
        own = mapping(image, device, volume.size, snapshot, DeleteOnTermination=attached.delete_on_termination, **kept)
        image.disks.append(own)


def snapshots(image: Any) -> list[str]:
    """The snapshots behind an image's volumes."""
    return [disk["Ebs"]["SnapshotId"] for disk in image.disks]


def launched(backend: Any, image_id: str, asked: list[Params]) -> list[Params]:
    """The volumes of a launch: the image's, changed and joined by what was asked, device by device.

    InvalidBlockDeviceMapping for one below its snapshot, or without a size.
    """
    image = backend.amis[image_id]
    disks = {disk["DeviceName"]: copy.deepcopy(disk["Ebs"]) for disk in image.disks}
    for wanted in asked:
        if ebs := wanted.get("Ebs"):
            device = wanted["DeviceName"]
            disks[device] = {**disks.get(device, EBS), **ebs}
    for device, ebs in disks.items():
        if not ebs.get("VolumeSize"):
            message = f"Either snapshot ID or volume size must be provided for: {device}"
            raise Ec2Error("InvalidBlockDeviceMapping", message)
        if snapshot := ebs.get("SnapshotId"):
            least = backend.snapshots[snapshot].volume.size
            if int(ebs["VolumeSize"]) < least:
                raise Ec2Error(
                    "InvalidBlockDeviceMapping",
                    f"Volume of size {ebs['VolumeSize']}GB is smaller than snapshot '{snapshot}', "
                    f"expect size >= {least}GB",
                )
    return [{"DeviceName": device, "Ebs": ebs} for device, ebs in disks.items()]


def patch(replace: Callable[[Any, str, Any], None]) -> None:
    """What DescribeImages shows."""
    replace(Ami, "block_device_mappings", property(lambda image: image.disks))
