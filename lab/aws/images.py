"""CreateImage: an instance's disk becomes an image that can be launched. moto's own is available at once and holds
nothing.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import Any

from moto.ec2.models.amis import Ami

from lab.aws import disks
from lab.aws.capacity import stash, tagged
from lab.aws.faults import Ec2Error
from lab.aws.launch_spec import Params


def new_id() -> str:
    return f"ami-{secrets.token_hex(9)[:17]}"


def boots(image: Any) -> None:
    """As the stock images of today: drivers for Nitro, and by UEFI where the type can. moto's boot by UEFI alone, and
    P4d doesn't.
    """
    image.ena_support, image.boot_mode = True, "uefi-preferred"


def create_image(backend: Any, p: Params, started: Callable[[Any, Any], None]) -> Params:
    """A pending image of a running or stopped instance; `started(instance, image)` makes it available or failed,
    later.
    """
    instance = backend.get_instance(p["InstanceId"])
    if instance.state not in ("running", "stopped"):
        raise Ec2Error("IncorrectState", f"Instance '{instance.id}' is {instance.state}: it must be running or stopped")
    if same := [i.id for i in backend.amis.values() if i.name == p["Name"]]:
        raise Ec2Error("InvalidAMIName.Duplicate", f"AMI name {p['Name']} is already in use by AMI {same[0]}")
    if instance.state == "running" and str(p.get("NoReboot", "")).lower() == "true":
        raise Ec2Error(
            "UnsupportedOperation",
            "The lab's cloud copies disks at rest only: stop the instance, or leave NoReboot out.",
        )
    image = Ami(
        backend,
        new_id(),
        instance=instance,
        name=p["Name"],
        description=p.get("Description"),
        state="pending",
        virtualization_type="hvm",
        architecture="x86_64",
        root_device_type="ebs",
        hypervisor="xen",
    )
    disks.taken_from(image, instance, p.get("BlockDeviceMappings", []))
    boots(image)
    image.state_reason = None
    for kind, resource in (("image", image), ("snapshot", image.ebs_snapshot)):
        resource.add_tags({t["Key"]: t["Value"] for t in tagged(p, kind)})
    backend.amis[image.id] = image
    started(instance, image)
    return {"ImageId": image.id}


def deregister_image(backend: Any, p: Params) -> Params:
    """Instances that run from it go on. Its snapshot stays unless the request says otherwise, and tells of it."""
    image = backend.amis.get(p["ImageId"])
    backend.deregister_image(p["ImageId"])
    if str(p.get("DeleteAssociatedSnapshots", "")).lower() != "true":
        return {"Return": True}
    results = []
    for snapshot in dict.fromkeys(disks.snapshots(image)):
        code = "client-error" if snapshot in stash(backend, "locked snapshots") else "success"
        if code == "success" and snapshot in backend.snapshots:
            backend.delete_snapshot(snapshot)
        results.append({"SnapshotId": snapshot, "ReturnCode": code})
    return {"Return": True, "DeleteSnapshotResults": results}


def need_available(backend: Any, image_id: str) -> None:
    """What RunInstances says of an image that isn't there, or not yet."""
    if image_id not in backend.amis:
        raise Ec2Error("InvalidAMIID.NotFound", f"The image id '[{image_id}]' does not exist")
    if backend.amis[image_id].state != "available":
        raise Ec2Error(
            "InvalidAMIID.Unavailable", f"The image ID '{image_id}' is {backend.amis[image_id].state}, not available"
        )
