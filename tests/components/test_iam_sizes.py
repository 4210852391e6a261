"""The largest site's roles and policies, as its program registers them, in an account with IAM's quotas."""

import pytest

from ironburst.config.aws import sizes
from ironburst.config.load import from_value
from tests.components.conftest import ACCOUNT
from tests.lab_cloud import clients, cloud, server
from tests.unit.largest_cloud import enlarge

__all__ = ["clients", "cloud", "server"]
SUFFIX = "-0a1b2c3"  # with which Pulumi's provider makes names unique
MOCK = "arn:aws:mock:us-east-1:123456789012:"


@pytest.fixture
def largest(cluster, value, monkeypatch):
    def offered(args):
        (types,) = [each["values"] for each in args["filters"]]
        rows = [(kind, f"us-east-1{letter}") for kind in types for letter in "abcd"]
        return {"instanceTypes": [kind for kind, _ in rows], "locations": [zone for _, zone in rows]}

    monkeypatch.setitem(ACCOUNT, "aws:ec2/getInstanceTypeOfferings:getInstanceTypeOfferings", offered)
    return cluster(enlarge(value, region="us-east-1"))


def test_an_account_takes_every_role_and_policy_of_the_largest_site(largest, value, clients, cloud):
    iam, arns = clients("iam"), {}
    for role in largest.all("iam/role:Role"):
        asked = {"RoleName": f"{role.name}{SUFFIX}", "AssumeRolePolicyDocument": role.inputs["assumeRolePolicy"]}
        arns[f"{MOCK}{role.name}"] = iam.create_role(**asked)["Role"]["Arn"]
    assert len(arns) == 15  # the controller's, the nodes', the fixed nodes', 12 of pools with data
    for queue in largest.all("sqs/queue:Queue"):
        arns[f"{MOCK}{queue.name}"] = f"arn:aws:sqs:us-east-1:123456789012:{queue.name}{SUFFIX}"
    there = {}
    for policy in largest.all("iam/rolePolicy:RolePolicy"):
        text, role = policy.inputs["policy"], policy.inputs["role"]
        for mock, arn in arns.items():
            text = text.replace(f'"{mock}"', f'"{arn}"')
        iam.put_role_policy(RoleName=f"{role}{SUFFIX}", PolicyName=policy.name, PolicyDocument=text)
        there[role] = there.get(role, 0) + sum(not character.isspace() for character in text)
    for policy in largest.all("iam/policy:Policy"):
        iam.create_policy(PolicyName=policy.name, PolicyDocument=policy.inputs["policy"])
    # what `validate` counts is what there is
    config = from_value(value)
    counted = {f"{config.name}-{each.role}": each.size for each in sizes.of(config, config.cloud)}
    assert there == {role: counted[role] for role in there}
