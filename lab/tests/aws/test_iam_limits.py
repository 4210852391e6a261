"""IAM's quotas, in its own words (those of https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_iam-quotas.html)."""

import json

import pytest
from botocore.exceptions import ClientError

from tests.lab_cloud import TRUSTS_EC2


def document(size):
    """A policy of so many characters as IAM counts, written with white space that it doesn't count."""
    statement = {"Effect": "Allow", "Action": "ec2:DescribeInstances", "Resource": "*", "Sid": ""}
    text = json.dumps({"Version": "2012-10-17", "Statement": [statement]}, indent=4)
    missing = size - sum(not character.isspace() for character in text)
    return text.replace('"Sid": ""', f'"Sid": "{"x" * missing}"')


def said(call, **asked):
    with pytest.raises(ClientError) as refused:
        call(**asked)
    answer = refused.value.response
    return answer["Error"]["Code"], answer["Error"]["Message"], answer["ResponseMetadata"]["HTTPStatusCode"]


@pytest.fixture
def iam(cloud, clients):
    clients("iam").create_role(RoleName="r", AssumeRolePolicyDocument=TRUSTS_EC2)
    return clients("iam")


def test_the_inline_policies_of_a_role_together(iam):
    iam.put_role_policy(RoleName="r", PolicyName="one", PolicyDocument=document(6_000))
    iam.put_role_policy(RoleName="r", PolicyName="two", PolicyDocument=document(4_240))
    iam.put_role_policy(RoleName="r", PolicyName="two", PolicyDocument=document(4_240))  # written again, counted once
    asked = {"RoleName": "r", "PolicyName": "two", "PolicyDocument": document(4_241)}
    message = "Maximum policy size of 10240 bytes exceeded for role r"
    assert said(iam.put_role_policy, **asked) == ("LimitExceeded", message, 409)


def test_a_managed_policy_and_its_versions(iam):
    arn = iam.create_policy(PolicyName="p", PolicyDocument=document(6_144))["Policy"]["Arn"]
    refused = ("LimitExceeded", "Cannot exceed quota for PolicySize: 6144", 409)
    assert said(iam.create_policy, PolicyName="q", PolicyDocument=document(6_145)) == refused
    assert said(iam.create_policy_version, PolicyArn=arn, PolicyDocument=document(6_145)) == refused


def test_a_trust_policy(iam):
    trust = json.loads(TRUSTS_EC2)
    trust["Statement"]["Sid"] = "x" * 2_048
    refused = ("LimitExceeded", "Cannot exceed quota for ACLSizePerRole: 2048", 409)
    assert said(iam.create_role, RoleName="s", AssumeRolePolicyDocument=json.dumps(trust)) == refused
    assert said(iam.update_assume_role_policy, RoleName="r", PolicyDocument=json.dumps(trust)) == refused


def test_the_name_of_a_role(iam):
    iam.create_role(RoleName="x" * 64, AssumeRolePolicyDocument=TRUSTS_EC2)
    code, message, _ = said(iam.create_role, RoleName="x" * 65, AssumeRolePolicyDocument=TRUSTS_EC2)
    assert code == "ValidationError" and "less than or equal to 64" in message


def test_policies_that_are_attached_to_a_role(iam):
    arns = [iam.create_policy(PolicyName=f"p{n}", PolicyDocument=document(200))["Policy"]["Arn"] for n in range(11)]
    for arn in arns[:10]:
        iam.attach_role_policy(RoleName="r", PolicyArn=arn)
    iam.attach_role_policy(RoleName="r", PolicyArn=arns[0])  # it is attached already
    refused = ("LimitExceeded", "Cannot exceed quota for PoliciesPerRole: 10", 409)
    assert said(iam.attach_role_policy, RoleName="r", PolicyArn=arns[10]) == refused
