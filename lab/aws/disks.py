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
GP3_IOPS, GP3_MIB_S, GP3_MOST_MIB_S = 3000, 125, 2000


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


def taken_from(image: Any, instance: Any, asked: list[Params]) -> None:
    """The volumes of an image that is made of an instance: size, type and encryption are inherited, and can't be given
    anew; the throughput is what CreateImage was told, for EC2 says nowhere that it is inherited.
    """
    told = {each["DeviceName"]: each.get("Ebs") or {} for each in asked}
    if wrong := sorted({key for ebs in told.values() for key in ("VolumeSize", "Encrypted") if key in ebs}):
        raise Ec2Error(
            "InvalidBlockDeviceMapping", f"{wrong[0]} can't be changed for an existing volume of the instance"
        )
    image.root_device_name = instance.root_device_name
    image.disks = []
    for device, attached in instance.get_block_device_mapping:
        volume = image.ec2_backend.get_volume(attached.volume_id)
        kept = {
            "VolumeType": volume.volume_type or "gp3",
            "Encrypted": volume.encrypted,
            "DeleteOnTermination": attached.delete_on_termination,
        }
        snapshot = image.ebs_snapshot if device == instance.root_device_name else None
        own = mapping(image, device, volume.size, snapshot, **kept | told.get(device, {}))
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
        _check_speed(ebs)
        _check_rate(ebs)
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


def _check_speed(ebs: Params) -> None:
    """What a volume can be: gp3 alone takes a throughput, within its bounds and a quarter MiB/s for each IOPS."""
    if (asked := ebs.get("Throughput")) is None:
        return
    kind, mib_s, iops = ebs.get("VolumeType", "gp3"), int(asked), int(ebs.get("Iops") or GP3_IOPS)
    if kind != "gp3":
        raise Ec2Error("InvalidParameterCombination", f"The parameter throughput is not supported for {kind} volumes")
    if not GP3_MIB_S <= mib_s <= GP3_MOST_MIB_S:
        bounds = f"it must be between {GP3_MIB_S} and {GP3_MOST_MIB_S}"
        raise Ec2Error("InvalidParameterValue", f"Invalid value '{mib_s}' for throughput: {bounds}")
    if mib_s / iops > 0.25:
        ratio = (
            f"Throughput (MiBps) to iops ratio of {mib_s / iops:.6f} is too high; maximum is 0.250000 MiBps per iops."
        )
        raise Ec2Error("InvalidParameterValue", ratio)


def _check_rate(ebs: Params) -> None:
    """At which a volume is filled from its snapshot."""
    if (asked := ebs.get("VolumeInitializationRate")) is None:
        return
    if not ebs.get("SnapshotId"):
        text = "The parameter VolumeInitializationRate is supported only for volumes created from snapshots"
        raise Ec2Error("InvalidParameterCombination", text)
    if not 100 <= int(asked) <= 300:
        raise Ec2Error("InvalidParameterValue", f"Volume initialization rate {asked} must be between 100 and 300 MiB/s")


def provisioned(backend: Any, instance: Any, volumes: list[Params]) -> None:
    """The throughput of an instance's volumes, which moto doesn't take from a launch."""
    asked = {each["DeviceName"]: each["Ebs"] for each in volumes}
    for device, attached in instance.get_block_device_mapping:
        mib_s = int(asked.get(device, {}).get("Throughput") or GP3_MIB_S)
        volume = backend.get_volume(attached.volume_id)
        volume.throughput, rate = mib_s, asked.get(device, {}).get("VolumeInitializationRate")
        volume.volume_initialization_rate = None if rate is None else int(rate)


def patch(replace: Callable[[Any, str, Any], None]) -> None:
    """What DescribeImages shows."""
    replace(Ami, "block_device_mappings", property(lambda image: image.disks))
