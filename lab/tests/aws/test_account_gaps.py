"""What the lab's AWS says of an account, as AWS says it."""

import json

import pytest
from botocore.exceptions import ClientError

from lab.aws.account_gaps import given
from lab.aws.testing import REGION, network, refused
from tests.lab_cloud import TRUSTS_EC2, user

IMAGE = "ami-0123456789abcdef0"


def test_a_new_account_has_no_gpus_and_fewer_cpus_than_a_build(cloud, clients):
    ask = clients("service-quotas").get_service_quota
    values = [ask(ServiceCode="ec2", QuotaCode=code)["Quota"]["Value"] for code in ("L-417A185B", "L-1216C47A")]
    assert values == [0.0, 5.0]
    assert refused(ask, ServiceCode="ec2", QuotaCode="L-00000000") == ("NoSuchResourceException", 400)
    default = clients("service-quotas").get_aws_default_service_quota(ServiceCode="vpc", QuotaCode="L-F678F1CE")
    assert default["Quota"]["Value"] == 5.0


def test_zones_that_nobody_opted_in_to_are_shown_only_when_asked_for_all(cloud, clients):
    ask = clients("ec2").describe_availability_zones
    shown = {row["ZoneName"]: row["OptInStatus"] for row in ask()["AvailabilityZones"]}
    every = {row["ZoneName"]: row["OptInStatus"] for row in ask(AllAvailabilityZones=True)["AvailabilityZones"]}
    assert set(every) - set(shown) == {f"{REGION}-dfw-2a"} and every[f"{REGION}-dfw-2a"] == "not-opted-in"
    assert set(shown.values()) == {"opt-in-not-required"}
    (one,) = ask(ZoneNames=["us-east-1b"])["AvailabilityZones"]
    assert one["ZoneName"] == "us-east-1b"
    assert refused(ask, ZoneNames=["us-east-1z"])[0] == "InvalidParameterValue"


def statement(effect, action, **condition):
    return {"Effect": effect, "Action": action, "Resource": "*"} | ({"Condition": condition} if condition else {})


def test_the_simulator_knows_what_it_is_given_and_no_tag_beside(cloud, clients):
    iam = clients("iam")
    arn = iam.create_role(RoleName="r", AssumeRolePolicyDocument=TRUSTS_EC2)["Role"]["Arn"]
    of_lab = {"StringEquals": {"ec2:ResourceTag/cluster": "lab"}}
    said = [statement("Allow", "ec2:TerminateInstances", **of_lab), statement("Allow", "ec2:DescribeImages")]
    said.append(statement("Deny", "ec2:StopInstances"))
    iam.put_role_policy(
        RoleName="r", PolicyName="p", PolicyDocument=json.dumps({"Version": "2012-10-17", "Statement": said})
    )

    def ask(action, **tags):
        given = [
            {"ContextKeyName": f"ec2:ResourceTag/{key}", "ContextKeyValues": [value], "ContextKeyType": "string"}
            for key, value in tags.items()
        ]
        answer = iam.simulate_principal_policy(PolicySourceArn=arn, ActionNames=[action], ContextEntries=given)
        (result,) = answer["EvaluationResults"]
        return result["EvalDecision"], result["MissingContextValues"]

    assert ask("ec2:TerminateInstances", cluster="lab") == ("allowed", [])
    assert ask("ec2:TerminateInstances", cluster="other") == ("implicitDeny", [])
    # as AWS: keys of all statements, of other actions too
    assert ask("ec2:DescribeImages") == ("allowed", ["ec2:resourcetag/cluster"])
    assert ask("ec2:StopInstances")[0] == "explicitDeny"


def test_the_simulator_takes_a_role_and_no_session_of_one(cloud, clients):
    ask = clients("iam").simulate_principal_policy
    session = "arn:aws:sts::123456789012:assumed-role/r/s"
    assert refused(ask, PolicySourceArn=session, ActionNames=["ec2:RunInstances"])[0] == "InvalidInput"
    gone = "arn:aws:iam::123456789012:role/gone"
    assert refused(ask, PolicySourceArn=gone, ActionNames=["ec2:RunInstances"])[0] == "NoSuchEntity"
    nobody = user(clients, "nobody")
    with pytest.raises(ClientError, match="AccessDenied"):
        nobody.client("iam", endpoint_url=cloud.url).simulate_principal_policy(
            PolicySourceArn=gone, ActionNames=["a:b"]
        )


def test_a_dry_run_looks_at_what_it_names_and_at_no_capacity(cloud, clients):
    ec2 = clients("ec2")
    _, subnet = network(ec2)
    cloud.register_image("", IMAGE)
    cloud.capacity["p5.48xlarge", "us-east-1a", "on-demand"] = 0
    asked = {"MinCount": 1, "MaxCount": 1, "InstanceType": "p5.48xlarge", "SubnetId": subnet, "DryRun": True}
    assert refused(ec2.run_instances, ImageId=IMAGE, **asked) == ("DryRunOperation", 412)
    assert refused(ec2.run_instances, ImageId="ami-0000000000000000f", **asked) == ("InvalidAMIID.NotFound", 400)
    assert refused(ec2.run_instances, ImageId=IMAGE, KeyName="gone", **asked)[0] == "InvalidKeyPair.NotFound"
    nobody = user(clients, "nobody").client("ec2", endpoint_url=cloud.url)
    assert refused(nobody.run_instances, ImageId=IMAGE, **asked) == ("UnauthorizedOperation", 403)
    assert ec2.describe_instances()["Reservations"] == []


def test_a_refusal_is_decoded_for_who_may(cloud, clients):
    nobody = user(clients, "nobody").client("ec2", endpoint_url=cloud.url)
    with pytest.raises(ClientError) as error:
        nobody.describe_images()
    encoded = error.value.response["Error"]["Message"].rsplit(" ", 1)[-1]
    said = clients("sts").decode_authorization_message(EncodedMessage=encoded)["DecodedMessage"]
    assert json.loads(said)["context"]["action"] == "ec2:DescribeImages"
    ask = clients("sts").decode_authorization_message
    assert refused(ask, EncodedMessage="é")[0] == "InvalidAuthorizationMessageException"


def test_only_a_payer_account_is_told_of_cost_tags(cloud, clients):
    ask = clients("ce").list_cost_allocation_tags
    assert ask()["CostAllocationTags"] == []
    given("123456789012", REGION, "cost tags")["member"] = True
    assert refused(ask) == ("AccessDeniedException", 400)


def test_images_boot_where_the_types_of_gpus_do(cloud, clients):
    cloud.register_image("", IMAGE)
    (image,) = clients("ec2").describe_images(ImageIds=[IMAGE])["Images"]
    assert image["EnaSupport"] is True and image["BootMode"] == "uefi-preferred"
