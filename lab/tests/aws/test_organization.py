"""An organization's policies and permissions boundaries, in AWS's words: whoever calls, they come first."""

import json

import pytest
from botocore.exceptions import ClientError

from lab.aws.organization import no_launch_without, no_role_without
from lab.aws.testing import Clients, network
from tests.lab_cloud import TRUSTS_EC2, assumed, user

BOUNDARY = "arn:aws:iam::123456789012:policy/boundary"
TRUST = json.dumps({"Statement": {"Effect": "Allow", "Principal": {"AWS": "123456789012"}, "Action": "sts:AssumeRole"}})


def allow(*actions):
    statement = {"Effect": "Allow", "Action": list(actions), "Resource": "*"}
    return {"Version": "2012-10-17", "Statement": [statement]}


def said(call, **asked):
    with pytest.raises(ClientError) as refused:
        call(**asked)
    return refused.value.response["Error"]["Code"], refused.value.response["Error"]["Message"]


@pytest.fixture
def iam(cloud, clients):
    iam = clients("iam")
    iam.create_policy(PolicyName="boundary", PolicyDocument=json.dumps(allow("ec2:DescribeInstances")))
    return iam


def test_nobody_makes_a_role_without_the_boundary_not_even_the_administrator(cloud, clients, iam):
    cloud.organization.append(no_role_without(BOUNDARY))
    asked = {"RoleName": "r", "AssumeRolePolicyDocument": TRUSTS_EC2}
    code, message = said(iam.create_role, **asked)
    assert code == "AccessDenied" and message.endswith(
        "is not authorized to perform: iam:CreateRole on resource: arn:aws:iam::123456789012:role/r "
        "with an explicit deny in a service control policy"
    )
    assert said(iam.create_role, **asked, PermissionsBoundary=BOUNDARY + "2")[0] == "AccessDenied"
    iam.create_role(**asked, PermissionsBoundary=BOUNDARY)
    assert said(iam.delete_role_permissions_boundary, RoleName="r")[0] == "AccessDenied"
    ci = Clients(cloud.url, user(clients, "ci", allow("iam:*")))
    assert said(ci("iam").create_role, **asked | {"RoleName": "s"})[0] == "AccessDenied"


@pytest.mark.parametrize("kinds", [(), ("instance",), ("volume",)])
def test_nothing_is_launched_without_the_tag_on_instance_and_volume(cloud, clients, kinds):
    cloud.organization.append(no_launch_without("CostCenter"))
    cloud.register_image("", "ami-0123456789abcdef0")
    asked = {"ImageId": "ami-0123456789abcdef0", "InstanceType": "p5.48xlarge", "MinCount": 1, "MaxCount": 1}
    asked["SubnetId"] = network(clients("ec2"))[1]

    def tagged(*kinds):
        tags = [{"Key": "CostCenter", "Value": "4711"}]
        return {"TagSpecifications": [{"ResourceType": kind, "Tags": tags} for kind in kinds]} if kinds else {}

    code, message = said(clients("ec2").run_instances, **asked, **tagged(*kinds))
    assert code == "UnauthorizedOperation" and message.startswith("You are not authorized to perform this operation. ")
    missing = "volume" if "instance" in kinds else "instance"
    assert f"ec2:RunInstances on resource: arn:aws:ec2:us-east-1:123456789012:{missing}/*" in message
    assert "with an explicit deny in a service control policy. Encoded authorization failure message: " in message
    assert clients("ec2").run_instances(**asked, **tagged("instance", "volume"))["Instances"]


def test_a_role_may_what_its_policies_and_its_boundary_allow(cloud, clients, iam):
    made = iam.create_role(RoleName="r", AssumeRolePolicyDocument=TRUST, PermissionsBoundary=BOUNDARY)["Role"]
    document = json.dumps(allow("ec2:DescribeInstances", "ec2:DescribeVpcs"))
    iam.put_role_policy(RoleName="r", PolicyName="p", PolicyDocument=document)
    ec2 = Clients(cloud.url, assumed(clients, made["Arn"]))("ec2")
    assert ec2.describe_instances()["Reservations"] == []
    code, message = said(ec2.describe_vpcs)
    assert code == "UnauthorizedOperation"
    assert "because no permissions boundary allows the ec2:DescribeVpcs action" in message
    iam.delete_role_policy(RoleName="r", PolicyName="p")  # a boundary gives no right
    assert "because no policy allows ec2:DescribeInstances" in said(ec2.describe_instances)[1]


def test_a_reset_leaves_no_organization(cloud, iam):
    cloud.organization.append(no_role_without(BOUNDARY))
    cloud.reset()
    assert iam.create_role(RoleName="r", AssumeRolePolicyDocument=TRUSTS_EC2)["Role"]["RoleName"] == "r"


@pytest.mark.parametrize(
    ("kind", "key", "more", "words"),
    [
        ("instance", "acme.com/cost", {"MetadataOptions": {"InstanceMetadataTags": "enabled"}}, "not a valid tag key"),
        ("instance", "_index", {"MetadataOptions": {"InstanceMetadataTags": "enabled"}}, "not a valid tag key"),
        ("instance", "aws:cost", {}, "reserved for internal use"),
        # API_LaunchTemplateTagSpecificationRequest: "the instance launch fails"
        ("spot-instances-request", "CostCenter", {}, "not a valid taggable resource type"),
    ],
)
def test_tags_that_a_launch_cannot_give(cloud, clients, kind, key, more, words):
    cloud.register_image("", "ami-0123456789abcdef0")
    asked = {"ImageId": "ami-0123456789abcdef0", "InstanceType": "p5.48xlarge", "MinCount": 1, "MaxCount": 1, **more}
    tags = [{"ResourceType": kind, "Tags": [{"Key": key, "Value": "4711"}]}]
    code, message = said(clients("ec2").run_instances, **asked, TagSpecifications=tags)
    assert code == "InvalidParameterValue" and words in message
    many = [{"Key": f"k{n}", "Value": ""} for n in range(51)]
    tags = [{"ResourceType": "instance", "Tags": many}]
    assert said(clients("ec2").run_instances, **asked, TagSpecifications=tags)[0] == "TagLimitExceeded"
