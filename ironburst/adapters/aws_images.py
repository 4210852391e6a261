"""The EC2 and SSM side of baking the image of a pool: one build instance, its image, and the pool's parameter.

The operator's rights, not the controller's: components/policies.py (`baking`). A build instance has no tag
`ironburst:lease`, by which the controller and its reaper know their instances: they never touch it.
"""

from __future__ import annotations

from typing import Any

import boto3
from botocore.config import Config

from ironburst import naming
from ironburst.adapters.aws import CLUSTER, POOL, Aws
from ironburst.adapters.aws_errors import call
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
        """Start the build instance, tried once; its id."""
        name = f"{build.cluster}-{build.pool}-image-build"
        tags = _spelled({CLUSTER: build.cluster, POOL: build.pool, ROLE: "image-build", "Name": name})
        answer = call(
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
        return str(answer["Instances"][0]["InstanceId"])

    def instance(self, token: str) -> Instance | None:
        """The build instance of a token; None: it isn't shown."""
        instances = self._aws.by_token(token)
        return instances[0] if instances else None

    def end(self, ids: list[str]) -> None:
        """Terminate build instances."""
        self._aws.terminate(ids)

    def create(self, build: Build, instance_id: str, name: str, tags: dict[str, str]) -> str:
        """Make an image of the build instance, tried once; its id."""
        spelled = _spelled({CLUSTER: build.cluster, POOL: build.pool, ROLE: "image", "Name": name} | tags)
        answer = call(
            self._once.create_image,
            InstanceId=instance_id,
            Name=name,
            Description=f"rented nodes of pool {build.pool}",
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
        raw = images[0]
        return Image(raw["ImageId"], raw["State"], (raw.get("StateReason") or {}).get("Message", ""))

    def forget(self, image_id: str) -> None:
        """Deregister an image, its snapshots with it."""
        call(self._ec2.deregister_image, ImageId=image_id, DeleteAssociatedSnapshots=True)

    def published(self, parameter: str) -> str | None:
        """The image id that a pool's parameter holds; None: there is no such parameter."""
        return self._aws.image_id(parameter)

    def publish(self, parameter: str, image_id: str) -> None:
        """Set a pool's parameter."""
        call(self._ssm.put_parameter, Name=parameter, Value=image_id, Type="String", Overwrite=True)


def _spelled(tags: dict[str, str]) -> list[dict[str, str]]:
    return [{"Key": key, "Value": value} for key, value in tags.items()]
