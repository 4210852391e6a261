"""EKS of the lab's AWS: what the real one refuses, and what it takes its time for."""

import json

import pytest
from botocore.exceptions import ClientError

from lab.aws.testing import network

TRUST = {"Effect": "Allow", "Principal": {"Service": "eks.amazonaws.com"}, "Action": "sts:AssumeRole"}
BY_EC2 = {**TRUST, "Principal": {"Service": "ec2.amazonaws.com"}}


def role(clients, name, trust=TRUST):
    document = json.dumps({"Version": "2012-10-17", "Statement": [trust]})
    return clients("iam").create_role(RoleName=name, AssumeRolePolicyDocument=document)["Role"]["Arn"]


@pytest.fixture
def eks(clients):
    return clients("eks")


@pytest.fixture
def asked(cloud, clients, ec2):
    """What a cluster can be made with."""
    vpc, first = network(ec2)
    second = ec2.create_subnet(VpcId=vpc, CidrBlock="10.90.16.0/20", AvailabilityZone="us-east-1b")["Subnet"][
        "SubnetId"
    ]
    return {
        "name": "gpus",
        "version": "1.35",
        "roleArn": role(clients, "control-plane"),
        "resourcesVpcConfig": {"subnetIds": [first, second], "endpointPrivateAccess": True},
        "accessConfig": {"authenticationMode": "API"},
    }


def until_active(eks, name="gpus"):
    seen = []
    while not seen or seen[-1]["status"] != "ACTIVE":
        assert len(seen) < 10
        seen.append(eks.describe_cluster(name=name)["cluster"])
    return seen


@pytest.fixture
def there(eks, asked):
    """An active one."""
    eks.create_cluster(**asked)
    return until_active(eks)[-1]


def refused(call, **given):
    with pytest.raises(ClientError) as raised:
        call(**given)
    return raised.value.response["Error"]["Code"], raised.value.response["Error"]["Message"]


def test_a_cluster_takes_its_time_and_shows_its_endpoint_only_then(eks, asked):
    eks.create_cluster(**asked)
    seen = until_active(eks)
    assert [each["status"] for each in seen[:-1]] == ["CREATING"] * (len(seen) - 1) and len(seen) > 2
    assert "endpoint" not in seen[0] and seen[-1]["endpoint"].startswith("https://")
    assert seen[-1]["certificateAuthority"]["data"]


def test_until_it_is_there_nothing_else_may_be_asked(eks, asked, clients):
    eks.create_cluster(**asked)
    arn = role(clients, "nodes", BY_EC2)
    assert refused(eks.create_access_entry, clusterName="gpus", principalArn=arn)[0] == "ResourceInUseException"
    assert refused(eks.delete_cluster, name="gpus")[0] == "ResourceInUseException"


def test_it_is_gone_some_time_after_it_was_deleted(eks, there):
    eks.delete_cluster(name="gpus")
    assert eks.describe_cluster(name="gpus")["cluster"]["status"] == "DELETING"
    for _ in range(10):
        try:
            eks.describe_cluster(name="gpus")
        except eks.exceptions.ResourceNotFoundException:
            break
    assert eks.list_clusters()["clusters"] == []


@pytest.mark.parametrize(
    ("change", "code", "words"),
    [
        ({"version": "1.22"}, "InvalidParameterException", "unsupported Kubernetes version"),
        ({"version": "1.36.3"}, "InvalidParameterException", "unsupported Kubernetes version"),
        ({"name": "-gpus"}, "InvalidParameterException", "cluster name"),
        (
            {"kubernetesNetworkConfig": {"serviceIpv4Cidr": "10.90.128.0/20"}},
            "InvalidParameterException",
            "overlaps the VPC's 10.90.0.0/16",
        ),
        (
            {"kubernetesNetworkConfig": {"serviceIpv4Cidr": "8.8.0.0/16"}},
            "InvalidParameterException",
            "must be a private network",
        ),
    ],
)
def test_what_a_cluster_can_not_be(eks, asked, change, code, words):
    found = refused(eks.create_cluster, **(asked | change))
    assert found[0] == code and words in found[1]
    assert eks.list_clusters()["clusters"] == []


def test_its_subnets_are_of_two_zones_of_one_vpc(eks, asked, ec2):
    first = asked["resourcesVpcConfig"]["subnetIds"][0]
    for subnets, words in (([first], "at least two different AZs"), ([first, "subnet-0a"], "does not exist")):
        assert words in refused(eks.create_cluster, **(asked | {"resourcesVpcConfig": {"subnetIds": subnets}}))[1]
    _, other = network(ec2, "10.91.0.0/16", "10.91.0.0/20", "us-east-1b")
    given = {"resourcesVpcConfig": {"subnetIds": [first, other]}}
    assert "same VPC" in refused(eks.create_cluster, **(asked | given))[1]
    unseen = {
        "resourcesVpcConfig": asked["resourcesVpcConfig"]
        | {"endpointPrivateAccess": False, "endpointPublicAccess": False}
    }
    assert "cannot be false" in refused(eks.create_cluster, **(asked | unseen))[1]


def test_its_role_is_one_that_eks_may_assume(eks, asked, clients):
    found = refused(eks.create_cluster, **(asked | {"roleArn": role(clients, "nodes", BY_EC2)}))
    assert found[0] == "InvalidParameterException" and "cannot be assumed by eks.amazonaws.com" in found[1]


def test_versions_follow_one_another_and_zones_stay(eks, there, ec2):
    for version in ("1.37", "1.34", "1.35"):
        assert (
            "Unsupported Kubernetes minor version update"
            in refused(eks.update_cluster_version, name="gpus", version=version)[1]
        )
    eks.update_cluster_version(name="gpus", version="1.36")
    assert refused(eks.update_cluster_version, name="gpus", version="1.36")[0] == "ResourceInUseException"
    assert until_active(eks)[-1]["version"] == "1.36"
    vpc, subnets = there["resourcesVpcConfig"]["vpcId"], there["resourcesVpcConfig"]["subnetIds"]
    third = ec2.create_subnet(VpcId=vpc, CidrBlock="10.90.32.0/20", AvailabilityZone="us-east-1c")["Subnet"]["SubnetId"]
    wider = {"subnetIds": [*subnets, third]}
    assert "not those of the cluster" in refused(eks.update_cluster_config, name="gpus", resourcesVpcConfig=wider)[1]


def test_who_makes_a_cluster_has_an_entry_already(eks, there):
    assert eks.list_access_entries(clusterName="gpus")["accessEntries"] == ["arn:aws:iam::123456789012:root"]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"type": "EC2", "username": "system:node:{{SessionName}}"}, "can't be given"),
        ({"type": "EC2_LINUX", "kubernetesGroups": ["system:nodes"]}, "can't be given"),
        ({"kubernetesGroups": ["system:masters"]}, "can't start with system:"),
        ({"username": "eks:me"}, "can't start with"),
        ({"type": "ON_PREM"}, "is no type of access entries"),
    ],
)
def test_what_an_entry_can_not_be(eks, there, clients, given, words):
    code, message = refused(
        eks.create_access_entry, clusterName="gpus", principalArn=role(clients, "nodes", BY_EC2), **given
    )
    assert code == "InvalidParameterException" and words in message


def test_nodes_sign_in_under_the_name_that_their_entrys_type_gives(eks, there, clients):
    for kind, user in (("EC2", "system:node:{{SessionName}}"), ("EC2_LINUX", "system:node:{{EC2PrivateDNSName}}")):
        made = eks.create_access_entry(clusterName="gpus", principalArn=role(clients, kind, BY_EC2), type=kind)
        assert (made["accessEntry"]["username"], made["accessEntry"]["kubernetesGroups"]) == (user, ["system:nodes"])


def test_an_entry_is_there_once_for_somebody_who_exists_and_nodes_get_no_policy(eks, there, clients):
    arn = role(clients, "nodes", BY_EC2)
    nobody = refused(eks.create_access_entry, clusterName="gpus", principalArn=arn + "x")
    assert nobody == ("InvalidParameterException", "The specified principalArn is invalid: invalid principal.")
    eks.create_access_entry(clusterName="gpus", principalArn=arn, type="EC2")
    assert refused(eks.create_access_entry, clusterName="gpus", principalArn=arn)[0] == "ResourceInUseException"
    policy = "arn:aws:eks::aws:cluster-access-policy/AmazonEKSClusterAdminPolicy"
    given = {"clusterName": "gpus", "principalArn": arn, "policyArn": policy, "accessScope": {"type": "cluster"}}
    assert refused(eks.associate_access_policy, **given)[0] == "InvalidRequestException"


def test_a_cluster_of_the_config_map_has_no_entries(eks, asked, clients):
    eks.create_cluster(**{key: value for key, value in asked.items() if key != "accessConfig"})
    until_active(eks)
    found = refused(eks.create_access_entry, clusterName="gpus", principalArn=role(clients, "nodes", BY_EC2))
    assert found[0] == "InvalidRequestException" and "authentication mode" in found[1]
