"""Helpers for tests that talk to a Cloud with boto3."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError

REGION = "us-east-1"


def client(url: str, service: str = "ec2", *, session: boto3.Session | None = None, **config: Any) -> Any:
    """A boto3 client without retries; `config` are botocore Config fields. `session` None: the lab's administrator."""
    return (session or boto3.Session("lab", "lab", region_name=REGION)).client(
        service, endpoint_url=url, config=Config(retries={"total_max_attempts": 1}, **config)
    )


class Clients:
    """clients("sqs"): one boto3 client a service, made on first use (making one costs 0.1 s)."""

    def __init__(self, url: str, session: boto3.Session | None = None):
        self.url, self.session, self.made = url, session, {}

    def __call__(self, service: str = "ec2") -> Any:
        if service not in self.made:
            self.made[service] = client(self.url, service, session=self.session)
        return self.made[service]


def refused(call: Callable[..., Any], *args: Any, **kwargs: Any) -> tuple[str, int]:
    """The error code and HTTP status of a call that must fail."""
    try:
        call(*args, **kwargs)
    except ClientError as error:
        return error.response["Error"]["Code"], error.response["ResponseMetadata"]["HTTPStatusCode"]
    raise AssertionError("the call was not refused")


def live(ec2: Any) -> list[dict[str, Any]]:
    """Instances that are pending or running."""
    states = {"Name": "instance-state-name", "Values": ["pending", "running"]}
    reservations = ec2.describe_instances(Filters=[states])["Reservations"]
    return [instance for reservation in reservations for instance in reservation["Instances"]]


def network(
    ec2: Any, cidr: str = "10.90.0.0/16", subnet: str = "10.90.0.0/20", zone: str = "us-east-1a"
) -> tuple[str, str]:
    """A VPC with one subnet: their ids."""
    vpc = ec2.create_vpc(CidrBlock=cidr)["Vpc"]["VpcId"]
    return vpc, ec2.create_subnet(VpcId=vpc, CidrBlock=subnet, AvailabilityZone=zone)["Subnet"]["SubnetId"]
