"""The demo in AWS: moto, with what ironburst needs beside it (lab/aws)."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from lab import names
from lab.demo import rights
from lab.demo.cloud import MUNGE_KEY, Commands, Room
from lab.hosts import rootfs

FIXED_IMAGE = "ami-0ba5e0000000000a1"  # of the fixed node in stacks/Pulumi.lab.yaml
MUNGE_SECRET = "ironburst/lab/munge-key"
CREATE_SECRET = (
    "import boto3, sys; client = boto3.client('secretsmanager');"
    "client.create_secret(Name=sys.argv[1], SecretString=sys.stdin.read())"
)
ALLOW_SPOT = "import boto3; boto3.client('iam').create_service_linked_role(AWSServiceName='spot.amazonaws.com')"
KEY_PAIR = "lab"  # ssh.key_name of the stack: what fixed nodes let in
IMPORT_KEY = (
    "import boto3, sys; client = boto3.client('ec2');"
    "client.import_key_pair(KeyName=sys.argv[1], PublicKeyMaterial=sys.stdin.buffer.read())"
)
# what the operator prepared before the first `up`, and takes away after `destroy`: a secret, the cluster's parameters,
# key pairs
PREPARED = (
    "import boto3, sys; secrets = boto3.client('secretsmanager'); secret, cluster, *keys = sys.argv[1:]\n"
    "secrets.delete_secret(SecretId=secret, ForceDeleteWithoutRecovery=True)\n"
    "ssm = boto3.client('ssm')\n"
    "for page in ssm.get_paginator('describe_parameters').paginate():\n"
    "    for parameter in page['Parameters']:\n"
    "        if parameter['Name'].startswith(f'/ironburst/{cluster}/'): ssm.delete_parameter(Name=parameter['Name'])\n"
    "for key in keys: boto3.client('ec2').delete_key_pair(KeyName=key)\n"
)


class Aws(Room):
    """`prepared`: by the operator, as arguments of PREPARED."""

    name, stack, instance_type = "AWS", "lab", "p5.48xlarge"
    capacity: ClassVar = {
        ("us-east-1a", "spot"): 0,
        ("us-east-1b", "spot"): 2,
        ("us-east-1a", "on-demand"): 3,
        ("us-east-1b", "on-demand"): 1,
    }
    no_capacity = "InsufficientInstanceCapacity"
    notice_s = 5.0  # EC2 gives 120
    base_image, login, stand_in = FIXED_IMAGE, "admin", "AWS (moto)"

    def __init__(self, prepared: tuple[str, ...] = (MUNGE_SECRET, "lab", KEY_PAIR)):
        self.prepared = prepared

    def environment(self, _run: Path) -> dict[str, str]:
        """The administrator's."""
        return {
            "AWS_ENDPOINT_URL": names.AWS_ENDPOINT,
            "AWS_ACCESS_KEY_ID": "lab",
            "AWS_SECRET_ACCESS_KEY": "lab",
            "AWS_DEFAULT_REGION": "us-east-1",
        }

    def start(self, inside: Commands) -> str:
        """The API; spot is allowed, a stock image, the munge key, a key pair."""
        self.serve(inside, "aws")
        inside.run([sys.executable, "-c", ALLOW_SPOT])
        self.control(inside, "POST", "/lab/images", image_id=FIXED_IMAGE, name="debian-13")
        inside.run([sys.executable, "-c", CREATE_SECRET, MUNGE_SECRET], stdin=MUNGE_KEY)
        public = rootfs.ssh_key(inside.box.root).with_suffix(".pub").read_text()
        inside.run([sys.executable, "-c", IMPORT_KEY, KEY_PAIR], stdin=public)
        return "the AWS API (moto, a stand-in) answers; the munge key lies in Secrets Manager"

    def sign_in(self, inside: Commands, outputs: Mapping[str, str]) -> None:
        """A user of the head, who may take the controller's role."""
        rights.prepare(inside, outputs["controller_role_arn"])

    def on_head(self, inside: Commands) -> dict[str, tuple[str, int]]:
        """The profile, with the user's key."""
        return {"etc/ironburst/aws/config": (inside.aws_config.read_text(), 0o400)}

    def settings(self, inside: Commands) -> dict[str, str]:
        """No administrator's key."""
        own = {name: value for name, value in inside.env.items() if name.startswith("AWS_") and "KEY" not in name}
        return own | {"AWS_PROFILE": rights.PROFILE}

    def libraries(self, _folder: Path, _root: Path) -> str:
        """boto3 is Debian's."""
        return ""

    def take_away(self, inside: Commands) -> None:
        """What the operator prepared, and the head's user."""
        inside.run([sys.executable, "-c", PREPARED, *self.prepared])
        rights.take_away(inside)


AWS = Aws()
