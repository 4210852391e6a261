"""The lab's IAM through boto3: who calls, what a refusal looks like, and for which resources a launch is asked."""

import base64
import json

import boto3
import pytest
from botocore.exceptions import ClientError

from lab.aws import iam_calls, iam_late
from lab.aws.iam_calls import Account
from lab.aws.iam_policy import judge
from lab.aws.testing import REGION, Clients, client, network, refused
from tests.lab_cloud import TRUSTS_EC2, assumed, user

ACCOUNT = "123456789012"
ROOT = f"arn:aws:iam::{ACCOUNT}:root"
EC2 = f"arn:aws:ec2:us-east-1:{ACCOUNT}"
P5 = "p5.48xlarge"


def allow(action, resource="*", **condition):
    statement = {"Effect": "Allow", "Action": action, "Resource": resource}
    return {"Version": "2012-10-17", "Statement": [statement | ({"Condition": condition} if condition else {})]}


def trusts(principal):
    return json.dumps({"Statement": [{"Effect": "Allow", "Principal": principal, "Action": "sts:AssumeRole"}]})


def role(clients, name, trust, *documents):
    iam = clients("iam")
    arn = iam.create_role(RoleName=name, AssumeRolePolicyDocument=trust)["Role"]["Arn"]
    for number, document in enumerate(documents):
        iam.put_role_policy(RoleName=name, PolicyName=str(number), PolicyDocument=json.dumps(document))
    return arn


def acting(cloud, session):
    return Clients(cloud.url, session)


# ---- who calls
def test_an_unknown_key_is_nobody(cloud):
    stranger = acting(cloud, boto3.Session("AKIAXXXXXXXXXXXXXXXX", "x", region_name=REGION))
    assert refused(stranger("ec2").describe_instances) == ("AuthFailure", 401)
    assert refused(stranger("ssm").get_parameter, Name="/x") == ("UnrecognizedClientException", 400)
    assert refused(stranger("sts").assume_role, RoleArn=ROOT, RoleSessionName="x-y") == ("InvalidClientTokenId", 403)


def test_a_stolen_key_without_its_session_token_is_nobody(cloud, clients):
    arn = role(clients, "r", trusts({"AWS": ROOT}), allow("ec2:DescribeInstances"))
    keys = assumed(clients, arn).get_credentials()
    alone = acting(cloud, boto3.Session(keys.access_key, keys.secret_key, region_name=REGION))
    assert refused(alone("ec2").describe_instances) == ("AuthFailure", 401)


def test_a_session_ends(cloud, clients):
    arn = role(clients, "r", trusts({"AWS": ROOT}), allow("ec2:DescribeInstances"))
    session = acting(cloud, assumed(clients, arn))
    cloud.pass_by(3590)
    assert session("ec2").describe_instances()["Reservations"] == []
    cloud.pass_by(20)
    assert refused(session("ec2").describe_instances) == ("RequestExpired", 400)
    assert refused(session("sts").get_caller_identity) == ("ExpiredToken", 403)
    assert refused(session("ssm").get_parameter, Name="/x") == ("ExpiredTokenException", 400)
    assert refused(session("s3").list_buckets)[0] == "ExpiredToken"
    again = acting(cloud, assumed(clients, arn))
    assert again("ec2").describe_instances()["Reservations"] == []


def test_a_session_is_no_longer_than_its_role_allows(cloud, clients):
    arn = role(clients, "r", trusts({"AWS": ROOT}), allow("ec2:DescribeInstances"))

    def taken(seconds):
        return clients("sts").assume_role(RoleArn=arn, RoleSessionName="test", DurationSeconds=seconds)["Credentials"]

    with pytest.raises(ClientError, match="exceeds the MaxSessionDuration set for this role") as error:
        taken(10800)
    assert error.value.response["Error"]["Code"] == "ValidationError"
    clients("iam").update_role(RoleName="r", MaxSessionDuration=10800)
    got = taken(10800)
    assert got["Expiration"] > taken(3600)["Expiration"]
    session = boto3.Session(got["AccessKeyId"], got["SecretAccessKey"], got["SessionToken"], region_name=REGION)
    cloud.pass_by(10700)
    assert acting(cloud, session)("ec2").describe_instances()["Reservations"] == []


def test_a_role_that_a_role_took_ends_after_an_hour(cloud, clients):
    first = role(clients, "first", trusts({"AWS": ROOT}), allow("sts:AssumeRole"))
    second = role(clients, "second", trusts({"AWS": first}), allow("ec2:DescribeInstances"))
    clients("iam").update_role(RoleName="second", MaxSessionDuration=43200)
    sts = acting(cloud, assumed(clients, first))("sts")
    with pytest.raises(ClientError, match="1 hour session limit for roles assumed by role chaining"):
        sts.assume_role(RoleArn=second, RoleSessionName="test", DurationSeconds=3601)
    assert sts.assume_role(RoleArn=second, RoleSessionName="test", DurationSeconds=3600)


# ---- what IAM is told arrives late
def test_a_new_profile_is_unknown_to_ec2_for_a_while(cloud, clients):
    iam_late.late(iam_late.LATE_S)
    role(clients, "node", TRUSTS_EC2)
    clients("iam").create_instance_profile(InstanceProfileName="node")
    clients("iam").add_role_to_instance_profile(InstanceProfileName="node", RoleName="node")
    cloud.register_image("", "ami-0123456789abcdef0")
    _, subnet = network(clients("ec2"))
    asked = {
        "ImageId": "ami-0123456789abcdef0",
        "InstanceType": P5,
        "MinCount": 1,
        "MaxCount": 1,
        "SubnetId": subnet,
        "IamInstanceProfile": {"Name": "node"},
    }
    with pytest.raises(ClientError, match="Invalid IAM Instance Profile name") as error:
        clients("ec2").run_instances(**asked)
    assert error.value.response["Error"]["Code"] == "InvalidParameterValue"
    cloud.pass_by(iam_late.LATE_S)
    assert clients("ec2").run_instances(**asked)["Instances"]


def test_a_new_policy_counts_after_a_while_and_one_taken_away_as_long(cloud, clients):
    iam_late.late(iam_late.LATE_S)
    arn = role(clients, "r", trusts({"AWS": ROOT}))
    with pytest.raises(ClientError, match="AccessDenied"):
        assumed(clients, arn)  # it isn't known yet itself
    cloud.pass_by(iam_late.LATE_S)
    session = acting(cloud, assumed(clients, arn))
    look = json.dumps(allow("ec2:DescribeInstances"))
    clients("iam").put_role_policy(RoleName="r", PolicyName="p", PolicyDocument=look)
    assert refused(session("ec2").describe_instances) == ("UnauthorizedOperation", 403)
    cloud.pass_by(iam_late.LATE_S)
    assert session("ec2").describe_instances()["Reservations"] == []
    clients("iam").delete_role_policy(RoleName="r", PolicyName="p")
    assert session("ec2").describe_instances()["Reservations"] == []
    cloud.pass_by(iam_late.LATE_S)
    assert refused(session("ec2").describe_instances) == ("UnauthorizedOperation", 403)


def test_a_user_may_nothing_until_a_policy_says_so(cloud, clients):
    nobody = acting(cloud, user(clients, "nobody"))
    assert refused(nobody("ec2").describe_instances) == ("UnauthorizedOperation", 403)
    assert nobody("sts").get_caller_identity()["Arn"] == f"arn:aws:iam::{ACCOUNT}:user/nobody"
    somebody = acting(cloud, user(clients, "somebody", allow("ec2:Describe*")))
    assert somebody("ec2").describe_instances()["Reservations"] == []


def test_a_policy_that_is_attached_counts_as_one_inside(cloud, clients):
    session = acting(cloud, user(clients, "u"))
    made = clients("iam").create_policy(PolicyName="look", PolicyDocument=json.dumps(allow("ec2:DescribeInstances")))
    clients("iam").attach_user_policy(UserName="u", PolicyArn=made["Policy"]["Arn"])
    assert session("ec2").describe_instances()["Reservations"] == []


# ---- what a refusal looks like
def test_each_service_refuses_in_its_own_words(cloud, clients):
    nobody = acting(cloud, user(clients, "nobody"))
    queue = clients("sqs").create_queue(QueueName="q")["QueueUrl"]
    assert refused(nobody("sqs").receive_message, QueueUrl=queue)[0] == "AccessDeniedException"
    assert refused(nobody("ssm").get_parameter, Name="/x") == ("AccessDeniedException", 400)
    assert refused(nobody("secretsmanager").get_secret_value, SecretId="x") == ("AccessDeniedException", 400)
    assert refused(nobody("iam").list_roles) == ("AccessDenied", 403)
    assert refused(nobody("sts").assume_role, RoleArn=ROOT, RoleSessionName="x-y") == ("AccessDenied", 403)


def test_ec2_says_what_was_asked_encoded(cloud, clients):
    nobody = acting(cloud, user(clients, "nobody"))
    with pytest.raises(nobody("ec2").exceptions.ClientError) as error:
        nobody("ec2").terminate_instances(InstanceIds=["i-0123456789abcdef0"])
    text = error.value.response["Error"]["Message"]
    assert "user/nobody is not authorized to perform: ec2:TerminateInstances on resource: " in text
    asked = json.loads(base64.b64decode(text.rpartition(": ")[2]))
    assert asked["context"]["resource"] == f"{EC2}:instance/i-0123456789abcdef0"


def test_a_policy_that_the_lab_cannot_judge_refuses_and_says_so(cloud, clients):
    strange = allow("ec2:DescribeInstances", IpAddress={"aws:SourceIp": "10.0.0.0/8"})
    someone = acting(cloud, user(clients, "u", strange))
    with pytest.raises(someone("ec2").exceptions.ClientError, match="knows no operator IpAddress"):
        someone("ec2").describe_instances()


# ---- roles
def test_a_role_is_taken_only_by_whom_it_trusts(cloud, clients):
    for_ec2 = role(clients, "node", TRUSTS_EC2)
    assert refused(assumed, clients, for_ec2)[0] == "AccessDenied"  # not even by the administrator
    for_account = role(clients, "controller", trusts({"AWS": ROOT}))
    assert assumed(clients, for_account)
    # the account leaves it to its own policies
    nobody, head = user(clients, "nobody"), user(clients, "head", allow("sts:AssumeRole", for_account))
    assert refused(assumed, acting(cloud, nobody), for_account)[0] == "AccessDenied"
    assert assumed(acting(cloud, head), for_account)
    # a role that names a user asks no other policy
    assert assumed(acting(cloud, nobody), role(clients, "own", trusts({"AWS": f"arn:aws:iam::{ACCOUNT}:user/nobody"})))


def test_an_instance_gets_no_credentials_of_a_role_that_does_not_trust_ec2(cloud, clients):
    cloud.register_image("", "ami-0123456789abcdef0")
    for name, trust in (("good", TRUSTS_EC2), ("bad", trusts({"AWS": ROOT}))):
        role(clients, name, trust)
        clients("iam").create_instance_profile(InstanceProfileName=name)
        clients("iam").add_role_to_instance_profile(InstanceProfileName=name, RoleName=name)
    subnet = network(clients("ec2"))[1]
    held = {}
    for name in ("good", "bad"):
        made = clients("ec2").run_instances(
            ImageId="ami-0123456789abcdef0",
            InstanceType=P5,
            MinCount=1,
            MaxCount=1,
            SubnetId=subnet,
            IamInstanceProfile={"Name": name},
        )
        held[name] = cloud.credentials(cloud.instance_at(made["Instances"][0]["PrivateIpAddress"]))
    assert held["good"]["Code"] == "Success" and held["bad"] is None


# ---- a launch
@pytest.fixture
def launch(cloud, clients):
    """A launch from a template with everything, and `launch(documents)`: by a user with these policies."""
    ec2, iam = clients("ec2"), clients("iam")
    cloud.register_image("", "ami-0123456789abcdef0")
    vpc, subnet = network(ec2)
    group = ec2.create_security_group(GroupName="gpu", Description="d", VpcId=vpc)["GroupId"]
    ec2.create_placement_group(GroupName="gang", Strategy="cluster")
    ec2.create_key_pair(KeyName="ops")
    role(clients, "node", TRUSTS_EC2)
    iam.create_instance_profile(InstanceProfileName="node")
    iam.add_role_to_instance_profile(InstanceProfileName="node", RoleName="node")
    data = {
        "InstanceType": P5,
        "NetworkInterfaces": [{"DeviceIndex": 0, "SubnetId": subnet, "Groups": [group]}],
        "Placement": {"GroupName": "gang"},
        "KeyName": "ops",
        "IamInstanceProfile": {"Name": "node"},
        "BlockDeviceMappings": [{"DeviceName": "/dev/sda1", "Ebs": {"VolumeSize": 200, "Encrypted": True}}],
        "TagSpecifications": [{"ResourceType": "volume", "Tags": [{"Key": "from", "Value": "template"}]}],
    }
    made = ec2.create_launch_template(LaunchTemplateName="p5", LaunchTemplateData=data)["LaunchTemplate"]
    names = {
        "subnet": subnet,
        "security-group": group,
        "launch-template": made["LaunchTemplateId"],
        "key-pair": "ops",
        "placement-group": "gang",
    }
    request = {
        "MinCount": 1,
        "MaxCount": 1,
        "ImageId": "ami-0123456789abcdef0",
        "LaunchTemplate": {"LaunchTemplateId": made["LaunchTemplateId"], "Version": "1"},
        "InstanceMarketOptions": {"MarketType": "spot"},
        "TagSpecifications": [{"ResourceType": "instance", "Tags": [{"Key": "a", "Value": "b"}]}],
    }
    return names, request


def asked(request):
    return iam_calls.checks(Account(ACCOUNT, REGION), "ec2", "RunInstances", request)


def test_a_launch_is_asked_for_every_resource_it_makes_or_uses(launch):
    names, request = launch
    resources = [check.resource for check in asked(request) if check.action == "ec2:RunInstances"]
    made = [f"{EC2}:{kind}/*" for kind in ("instance", "volume", "network-interface", "spot-instances-request")]
    used = [f"{EC2}:{kind}/{name}" for kind, name in names.items()]
    image = "arn:aws:ec2:us-east-1::image/ami-0123456789abcdef0"
    assert sorted(resources) == sorted([*made, *used, image])
    others = [(check.action, check.resource) for check in asked(request) if check.action != "ec2:RunInstances"]
    assert sorted(others) == [
        ("ec2:CreateTags", f"{EC2}:instance/*"),
        ("ec2:CreateTags", f"{EC2}:volume/*"),
        ("iam:PassRole", f"arn:aws:iam::{ACCOUNT}:role/node"),
    ]


def test_each_resource_of_a_launch_has_its_own_keys(launch):
    names, request = launch
    by = {check.resource.rpartition(":")[2].split("/")[0]: check.context for check in asked(request)[:10]}
    assert by["instance"]["ec2:instancetype"] == [P5] and by["instance"]["aws:requesttag/a"] == ["b"]
    assert by["instance"]["ec2:launchtemplate"] == [f"{EC2}:launch-template/{names['launch-template']}"]
    assert by["volume"]["aws:requesttag/from"] == ["template"] and by["volume"]["ec2:encrypted"] == ["true"]
    assert by["image"]["ec2:owner"] == [ACCOUNT] and by["image"]["ec2:islaunchtemplateresource"] == ["false"]
    assert by["subnet"]["ec2:islaunchtemplateresource"] == ["true"]
    for kind in ("volume", "network-interface", "image", "subnet"):
        assert "ec2:instancetype" not in by[kind], kind
    for kind in ("network-interface", "image", "subnet", "launch-template"):
        assert "aws:requesttag/a" not in by[kind] and "aws:tagkeys" not in by[kind], kind
    assert not any("ec2:launchtemplateversion" in context for context in by.values())


def test_a_launch_needs_every_one_of_them(cloud, clients, launch):
    _, request = launch
    needed = asked(request)
    statements = [{"Effect": "Allow", "Action": check.action, "Resource": check.resource} for check in needed]
    ec2 = client(cloud.url, "ec2", session=user(clients, "u"))
    for left_out in range(len(statements)):
        document = {"Version": "2012-10-17", "Statement": statements[:left_out] + statements[left_out + 1 :]}
        assert not judge([document], needed[left_out]).allowed
        clients("iam").put_user_policy(UserName="u", PolicyName="p", PolicyDocument=json.dumps(document))
        assert refused(ec2.run_instances, **request) == ("UnauthorizedOperation", 403), needed[left_out]
    document = {"Version": "2012-10-17", "Statement": statements}
    clients("iam").put_user_policy(UserName="u", PolicyName="p", PolicyDocument=json.dumps(document))
    assert ec2.run_instances(**request)["Instances"]


def test_what_has_no_entry_is_allowed_only_by_a_policy_for_everything(cloud, clients):
    narrow = acting(cloud, user(clients, "narrow", allow("ec2:CreateVpc", f"{EC2}:vpc/*")))
    wide = acting(cloud, user(clients, "wide", allow("ec2:CreateVpc")))
    assert refused(narrow("ec2").create_vpc, CidrBlock="10.1.0.0/16") == ("UnauthorizedOperation", 403)
    assert wide("ec2").create_vpc(CidrBlock="10.1.0.0/16")["Vpc"]["VpcId"]
