"""The EC2 and SSM side of baking the image of a pool: one build instance, its image, and the pool's parameter.

The operator's rights, not the controller's: ec2:RunInstances, CreateTags, DescribeInstances,
DescribeLaunchTemplateVersions, GetConsoleOutput, StopInstances, TerminateInstances, DescribeImages, CreateImage,
DeregisterImage, DeleteSnapshot, ssm:GetParameter and ssm:PutParameter. No iam:PassRole: a build instance has no role,
and so nothing on it can ask AWS for anything. It has no tag `ironburst:lease`, by which the controller and its reaper
know their instances: they never touch it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import boto3
from botocore.config import Config

from ironburst.adapters.aws import errors as aws_errors
from ironburst.adapters.aws.cloud import CLUSTER, POOL, Aws, reserved
from ironburst.adapters.aws.errors import call
from ironburst.nodes import naming
from ironburst.ports import CloudError, Instance
from ironburst.ports.images import Build, Image

ROLE = naming.ROLE_TAG  # image-build for the instance, image for what it becomes


class AwsImages:
    """The Images (ironburst.ports.images) of one region."""

    def __init__(self, region: str, session: Any = None):
        """`session`: a boto3.Session, for tests."""
        session = session or boto3.Session()
        self._aws = Aws(region, session)
        self._ec2 = session.client(
            "ec2", region_name=region, config=Config(retries={"mode": "standard", "total_max_attempts": 4})
        )
        self._once = session.client("ec2", region_name=region, config=Config(retries={"total_max_attempts": 1}))
        self._ssm = session.client(
            "ssm", region_name=region, config=Config(retries={"mode": "standard", "total_max_attempts": 4})
        )

    def security_groups(self, place: Mapping[str, Any]) -> tuple[str, ...]:
        """Those of the first interface of the template's newest version."""
        wanted = {"LaunchTemplateId": place["launch_template_id"], "Versions": ["$Latest"]}
        versions = call(self._ec2.describe_launch_template_versions, **wanted)["LaunchTemplateVersions"]
        data = versions[0]["LaunchTemplateData"]
        interfaces = data.get("NetworkInterfaces") or [{}]
        return tuple(interfaces[0].get("Groups") or data.get("SecurityGroupIds") or ())

    def launch(self, build: Build) -> str:
        """Start the build instance, tried once; its id."""
        return str(call(self._once.run_instances, **parameters(build))["Instances"][0]["InstanceId"])

    def instance(self, token: str) -> Instance | None:
        """The build instance of a token; None: it isn't shown."""
        instances = self._aws.by_token(token)
        return instances[0] if instances else None

    def builds(self, cluster: str) -> list[Instance]:
        """By the tags of their launch."""
        return self._aws.builds(cluster)

    def console(self, instance_id: str) -> str:
        """The console output of now; that of some minutes ago on instances that aren't of the Nitro system."""
        try:
            answer = call(self._ec2.get_console_output, InstanceId=instance_id, Latest=True)
        except CloudError as error:
            if error.code != "UnsupportedOperation":
                raise
            answer = call(self._ec2.get_console_output, InstanceId=instance_id)
        return str(answer.get("Output") or "")

    def stop(self, instance_id: str) -> None:
        """StopInstances: a clean shutdown, and the disk stays, whatever a shutdown from within would do."""
        call(self._ec2.stop_instances, InstanceIds=[instance_id])

    def end(self, ids: list[str]) -> None:
        """Terminate build instances."""
        self._aws.terminate(ids)

    def create(self, build: Build, instance_id: str, name: str, tags: dict[str, str]) -> str:
        """Make an image of the build instance, tried once; its id. NoReboot is left out: if the instance ran after
        all, EC2 would shut it down first, and never copy a disk that is written to.
        """
        own = {CLUSTER: build.cluster, POOL: build.pool, ROLE: "image", "Name": name}
        spelled = _spelled(_asked(build) | own | tags)
        answer = call(
            self._once.create_image,
            InstanceId=instance_id,
            Name=name,
            Description=f"rented nodes of pool {build.pool}",
            BlockDeviceMappings=[{"DeviceName": build.root_device, "Ebs": _volume(build)}],
            TagSpecifications=[{"ResourceType": kind, "Tags": spelled} for kind in ("image", "snapshot")],
        )
        return str(answer["ImageId"])

    def named(self, name: str) -> str | None:
        """The id of our image of that name; None: there is none."""
        wanted = [{"Name": "name", "Values": [name]}]
        images = call(self._ec2.describe_images, Owners=["self"], Filters=wanted)["Images"]
        return images[0]["ImageId"] if images else None

    def image(self, image_id: str) -> Image | None:
        """An image and its state; None: there is none of that id."""
        try:
            images = call(self._ec2.describe_images, ImageIds=[image_id])["Images"]
        except CloudError as error:
            if error.code in ("InvalidAMIID.NotFound", "InvalidAMIID.Unavailable", "InvalidAMIID.Malformed"):
                return None
            raise
        if not images:
            return None
        return _image(images[0])

    def baked(self, cluster: str, pool: str) -> list[Image]:
        """By the tags that `create` sets."""
        tags = {CLUSTER: cluster, POOL: pool, ROLE: "image"}
        wanted = [{"Name": f"tag:{key}", "Values": [value]} for key, value in tags.items()]
        return [_image(raw) for raw in call(self._ec2.describe_images, Owners=["self"], Filters=wanted)["Images"]]

    def in_use(self, image_ids: Sequence[str]) -> set[str]:
        """Those of every instance that isn't terminated: a stopped one may be started again."""
        if not image_ids:
            return set()
        alive = ["pending", "running", "stopping", "stopped"]
        wanted = [
            {"Name": "image-id", "Values": list(image_ids)},
            {"Name": "instance-state-name", "Values": alive},
        ]
        try:
            pages = list(self._ec2.get_paginator("describe_instances").paginate(Filters=wanted))
        except aws_errors.raised as error:
            raise aws_errors.of(error, "DescribeInstances") from None
        reservations = [reservation for page in pages for reservation in page["Reservations"]]
        return {raw["ImageId"] for reservation in reservations for raw in reservation["Instances"]}

    def forget(self, image_id: str) -> list[str]:
        """Deregister an image, its snapshots with it; those that EC2 did not delete."""
        answer = call(self._ec2.deregister_image, ImageId=image_id, DeleteAssociatedSnapshots=True)
        results = answer.get("DeleteSnapshotResults", [])
        return [result["SnapshotId"] for result in results if result["ReturnCode"] != "success"]

    def published(self, parameter: str) -> str | None:
        """The image id that a pool's parameter holds; None: there is no such parameter."""
        return self._aws.image_id(parameter)

    def publish(self, parameter: str, image_id: str) -> None:
        """Set a pool's parameter."""
        call(self._ssm.put_parameter, Name=parameter, Value=image_id, Type="String", Overwrite=True)


def parameters(build: Build) -> dict[str, Any]:
    """RunInstances' own parameters of a build: a function of it, so that a repeat is the same call.

    Not the pool's launch template: its dozens of network cards fit no small type, and its role is for nodes. The root
    disk has the name that the base image gives it; another name would add a second disk.
    """
    name = f"{build.cluster}-{build.pool}-image-build"
    own = {CLUSTER: build.cluster, POOL: build.pool, ROLE: "image-build", "Name": name}
    tags = _spelled(_asked(build) | own)
    disk = {"VolumeSize": build.root_gb, "Encrypted": True, **_volume(build)}
    card: dict[str, Any] = {
        "DeviceIndex": 0,
        "SubnetId": build.place["subnet_id"],
        "AssociatePublicIpAddress": False,
        "DeleteOnTermination": True,
    }
    if build.security_groups:
        card["Groups"] = list(build.security_groups)
    out: dict[str, Any] = {
        "MinCount": 1,
        "MaxCount": 1,
        "ClientToken": build.token,
        "ImageId": build.base_image,
        "InstanceType": build.instance_type,
        "NetworkInterfaces": [card],
        "BlockDeviceMappings": [{"DeviceName": build.root_device, "Ebs": disk}],
        "MetadataOptions": {"HttpEndpoint": "enabled", "HttpTokens": "required", "HttpPutResponseHopLimit": 1},
        "InstanceInitiatedShutdownBehavior": "terminate",  # it powers itself off when nobody ends it
        "UserData": build.user_data,  # botocore encodes it as base64
        "TagSpecifications": [
            {"ResourceType": kind, "Tags": tags} for kind in ("instance", "volume", "network-interface")
        ],
    }
    if build.market == "capacity-block":
        out["InstanceMarketOptions"] = {"MarketType": build.market}
    return out | (reserved(build.place) if build.as_nodes else {})


def _volume(build: Build) -> dict[str, Any]:
    """Of the build's root disk and of its image's, which CreateImage is told again: it is nowhere said to inherit the
    throughput. A size or an encryption it refuses there.
    """
    speed = {"Throughput": build.root_mb_s} if build.root_mb_s else {}
    return {"VolumeType": "gp3", "DeleteOnTermination": True, **speed}


def _image(raw: dict[str, Any]) -> Image:
    device = raw.get("RootDeviceName") or ""
    disks = {each.get("DeviceName"): each.get("Ebs") or {} for each in raw.get("BlockDeviceMappings", [])}
    return Image(
        id=raw["ImageId"],
        state=raw["State"],
        reason=(raw.get("StateReason") or {}).get("Message", ""),
        root_device=device,
        root_gb=int(disks.get(device, {}).get("VolumeSize") or 0),
        made=str(raw.get("CreationDate") or ""),
    )


def _asked(build: Build) -> dict[str, str]:
    """The organization's tags."""
    return dict(build.place.get("tags") or {})


def _spelled(tags: dict[str, str]) -> list[dict[str, str]]:
    return [{"Key": key, "Value": value} for key, value in tags.items()]
