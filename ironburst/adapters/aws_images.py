"""The EC2 and SSM side of baking the image of a pool: one build instance, its image, and the pool's parameter.

The operator's rights, not the controller's: ec2:RunInstances, CreateTags, DescribeInstances, TerminateInstances,
DescribeImages, CreateImage, DeregisterImage, DeleteSnapshot, ssm:GetParameter, ssm:PutParameter, and iam:PassRole for
the nodes' role. A build instance has no tag `ironburst:lease`, by which the controller and its reaper know their
instances: they never touch it.
"""

from __future__ import annotations

from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from ironburst import naming
from ironburst.adapters import aws_errors
from ironburst.adapters.aws import CLUSTER, POOL, Aws
from ironburst.images import Build, Image
from ironburst.ports import CloudError, Instance

ROLE = naming.ROLE_TAG  # image-build for the instance, image for what it becomes


class AwsImages:
    """The Images (ironburst.images) of one region."""

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

    def launch(self, build: Build) -> str:
        name = f"{build.cluster}-{build.pool}-image-build"
        tags = _spelled({CLUSTER: build.cluster, POOL: build.pool, ROLE: "image-build", "Name": name})
        answer = self._call(
            self._once.run_instances,
            MinCount=1,
            MaxCount=1,
            ClientToken=build.token,
            ImageId=build.base_image,
            LaunchTemplate={"LaunchTemplateId": build.launch_template_id, "Version": "$Latest"},
            TagSpecifications=[
                {"ResourceType": kind, "Tags": tags} for kind in ("instance", "volume", "network-interface")
            ],
        )
        return answer["Instances"][0]["InstanceId"]

    def instance(self, token: str) -> Instance | None:
        found = self._aws.by_token(token)
        return found[0] if found else None

    def end(self, ids: list[str]) -> None:
        self._aws.terminate(ids)

    def create(self, build: Build, instance_id: str, name: str, tags: dict[str, str]) -> str:
        spelled = _spelled({CLUSTER: build.cluster, POOL: build.pool, ROLE: "image", "Name": name} | tags)
        return self._call(
            self._once.create_image,
            InstanceId=instance_id,
            Name=name,
            Description=f"rented nodes of pool {build.pool}",
            TagSpecifications=[{"ResourceType": kind, "Tags": spelled} for kind in ("image", "snapshot")],
        )["ImageId"]

    def named(self, name: str) -> str | None:
        found = self._call(self._ec2.describe_images, Owners=["self"], Filters=[{"Name": "name", "Values": [name]}])[
            "Images"
        ]
        return found[0]["ImageId"] if found else None

    def image(self, image_id: str) -> Image | None:
        try:
            found = self._call(self._ec2.describe_images, ImageIds=[image_id])["Images"]
        except CloudError as error:
            if error.code in ("InvalidAMIID.NotFound", "InvalidAMIID.Unavailable", "InvalidAMIID.Malformed"):
                return None
            raise
        return (
            Image(found[0]["ImageId"], found[0]["State"], (found[0].get("StateReason") or {}).get("Message", ""))
            if found
            else None
        )

    def forget(self, image_id: str) -> None:
        self._call(self._ec2.deregister_image, ImageId=image_id, DeleteAssociatedSnapshots=True)

    def published(self, parameter: str) -> str | None:
        return self._aws.image_id(parameter)

    def publish(self, parameter: str, image_id: str) -> None:
        self._call(self._ssm.put_parameter, Name=parameter, Value=image_id, Type="String", Overwrite=True)

    @staticmethod
    def _call(method: Any, **parameters: Any) -> Any:
        try:
            return method(**parameters)
        except (ClientError, BotoCoreError) as error:
            raise aws_errors.of(error, "".join(part.capitalize() for part in method.__name__.split("_"))) from None


def _spelled(tags: dict[str, str]) -> list[dict[str, str]]:
    return [{"Key": key, "Value": value} for key, value in tags.items()]
