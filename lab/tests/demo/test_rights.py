"""The demo's controller has its role's rights, not the administrator's."""

import json
import os
import subprocess
import sys
from types import SimpleNamespace

import pytest

from ironburst.config.aws import policies
from lab.aws.leftovers import leftovers
from lab.demo import rights
from tests.lab_cloud import clients, cloud, server

__all__ = ["clients", "cloud", "server"]
WHO = "import boto3; print(boto3.client('sts').get_caller_identity()['Arn']); boto3.client('ec2').describe_instances()"
MAKES = "import boto3; boto3.client('ec2').create_vpc(CidrBlock='10.1.0.0/16')"


@pytest.fixture
def inside(cloud, tmp_path):
    """What lab.demo.rights needs of an Inside: commands run with the administrator's key."""
    env = {key: value for key, value in os.environ.items() if not key.startswith("AWS_")} | {
        "AWS_ENDPOINT_URL": cloud.url,
        "AWS_ACCESS_KEY_ID": "lab",
        "AWS_SECRET_ACCESS_KEY": "lab",
        "AWS_DEFAULT_REGION": "us-east-1",
    }

    def run(command):
        done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return SimpleNamespace(aws_config=tmp_path / "aws-config", run=run)


def as_controller(inside, program):
    """A Python program as the service on the head runs: with the role's profile alone, no administrator's key."""
    without = ["-u", "AWS_ACCESS_KEY_ID", "-u", "AWS_SECRET_ACCESS_KEY"]
    profile = [f"AWS_CONFIG_FILE={inside.aws_config}", f"AWS_PROFILE={rights.PROFILE}"]
    return inside.run(["env", *without, *profile, sys.executable, "-c", program])


def test_the_controller_takes_its_role_and_nothing_else(inside, cloud, clients):
    where = policies.Scope("aws", "us-east-1", "123456789012")
    trust = json.dumps(policies.assumed_within(where))
    role = clients("iam").create_role(RoleName="controller", AssumeRolePolicyDocument=trust)["Role"]["Arn"]
    document = json.dumps(policies.ending(where, "lab"))
    clients("iam").put_role_policy(RoleName="controller", PolicyName="p", PolicyDocument=document)
    rights.prepare(inside, role)
    who = as_controller(inside, WHO).strip()
    assert who == "arn:aws:sts::123456789012:assumed-role/controller/ironburst"
    with pytest.raises(AssertionError, match="UnauthorizedOperation"):
        as_controller(inside, MAKES)
    assert inside.aws_config.stat().st_mode & 0o077 == 0
    rights.take_away(inside)
    assert "users" not in leftovers(cloud.url)
