"""The lab's cloud (moto in process, on loopback), for tests that talk to it with boto3: fixtures for a conftest, and
who else may call it.
"""

import json
from collections.abc import Mapping
from typing import Any

import boto3
import pytest

from lab.aws.cloud import Cloud
from lab.aws.iam_gaps import SPOT_SERVICE
from lab.aws.testing import REGION, Clients

TRUSTS_EC2 = json.dumps(
    {"Statement": {"Effect": "Allow", "Principal": {"Service": "ec2.amazonaws.com"}, "Action": "sts:AssumeRole"}}
)


def allow_spot(iam):
    """What an operator does once in an account before anybody may rent on the spot market."""
    iam.create_service_linked_role(AWSServiceName=SPOT_SERVICE)


@pytest.fixture(scope="module")
def server():
    """One cloud a module: it takes seconds to start."""
    cloud = Cloud(seed=7)
    yield cloud
    cloud.close()


@pytest.fixture(scope="module")
def clients(server):
    return Clients(server.url)


@pytest.fixture
def cloud(server, clients):
    """The module's cloud with nothing in it but the role that an account needs once for the spot market."""
    server.reset()
    allow_spot(clients("iam"))
    return server


def user(clients: Clients, name: str, *documents: Mapping[str, Any]) -> boto3.Session:
    """The session of a new IAM user who may what `documents` say."""
    iam = clients("iam")
    iam.create_user(UserName=name)
    for number, document in enumerate(documents):
        iam.put_user_policy(UserName=name, PolicyName=str(number), PolicyDocument=json.dumps(document))
    key = iam.create_access_key(UserName=name)["AccessKey"]
    return boto3.Session(key["AccessKeyId"], key["SecretAccessKey"], region_name=REGION)


def assumed(clients: Clients, role_arn: str, session_name: str = "test") -> boto3.Session:
    """A session of a role. Raises ClientError where its trust policy, or the caller's own, says no."""
    got = clients("sts").assume_role(RoleArn=role_arn, RoleSessionName=session_name)["Credentials"]
    return boto3.Session(got["AccessKeyId"], got["SecretAccessKey"], got["SessionToken"], region_name=REGION)
