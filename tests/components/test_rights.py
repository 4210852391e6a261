"""Each statement of each policy of ours: a call that it allows, a call that is refused, and that it is needed. All go
through boto3 to the lab's AWS, which enforces IAM.
"""

import json

import boto3
import pytest
from botocore.exceptions import ClientError

from ironburst.adapters.aws.cloud import Aws
from ironburst.config.aws import policies
from ironburst.nodes.naming import image_parameter
from ironburst.ports import Refused
from lab.aws.testing import REGION, client
from tests.lab_cloud import assumed, clients, server

__all__ = ["clients", "server"]

from tests.components.rights_account import (
    BAKED,
    BUILD,
    CLUSTER,
    FOREIGN,
    GROUP,
    IMAGE,
    KEY,
    OTHER_GROUP,
    P5,
    POOL,
    RENTED,
    SECRET,
    WHERE,
    Site,
    refuses,
    spelled,
)


def without(key, tags=RENTED):
    return {
        "TagSpecifications": spelled(
            {k: v for k, v in tags.items() if k != key}, "instance", "volume", "network-interface"
        )
    }


OWNER = RENTED | {"ironburst:owner": "head-1", "Name": "lab-p5-l1"}
ALLOWED = {
    "node": {
        "JoinsWith": lambda s: s.secret(SECRET),
        "ListData0": lambda s: s.listed("data", "imagenet/"),
        "ReadData0": lambda s: s.object("data", "imagenet/a"),
        "ListData1": lambda s: (s.listed("whole"), s.listed("whole", "imagenet/")),
        "ReadData1": lambda s: s.object("whole", "a"),
        "ListData2": lambda s: s.listed("data", "sealed/"),
        "ReadData2": lambda s: s.object("data", "sealed/a"),
        "DecryptData2": lambda s: s.object("data", "sealed/a"),
    },
    "ending": {
        "EndRented": lambda s: s.end(RENTED),
        "LastWords": lambda s: s.console("ending", RENTED),
        "Look": lambda s: (
            s.sessions["ending"]("ec2").describe_instances(),
            s.sessions["ending"]("ec2").describe_instance_status(),
            s.sessions["ending"]("ec2").describe_spot_price_history(InstanceTypes=[P5]),
        ),
    },
    "launching": {
        "LaunchInstances": lambda s: (s.launch(), s.launch(launch_template_id=s.second)),
        "LaunchParts": lambda s: s.launch(count=2),
        "LaunchFrom": lambda s: s.launch(),
        "LaunchAsThere": lambda s: s.launch(launch_template_id=s.placed),
        "LaunchWithin": lambda s: (
            s.launch(capacity_reservation_id=s.reservation),
            s.launch(capacity_reservation_group_arn=GROUP),
            s.launch(market="spot"),
        ),
        "LaunchImages": lambda s: s.launch(image_id=IMAGE),
        # tags that other parts of the controller bring along are nobody's business here
        "TagAtLaunch": lambda s: s.launch(
            {"TagSpecifications": spelled(OWNER, "instance", "volume", "network-interface")}
        ),
        "PassNodeRole": lambda s: s.launch(),
        "PoolImages": lambda s: s.parameter("launching", "lab"),
        "Interruptions": lambda s: s.messages(s.queue),
    },
    "baking": {
        "Build": lambda s: s.build(),
        "BuildFrom": lambda s: (
            s.build(image=IMAGE),
            s.build(
                CapacityReservationSpecification={
                    "CapacityReservationTarget": {"CapacityReservationResourceGroupArn": GROUP}
                }
            ),
        ),
        "TagAtBirth": lambda s: (s.build(), s.bake(BUILD)),
        "EndBuild": lambda s: (
            s.baker("stop_instances", BUILD),
            s.baker("terminate_instances", BUILD),
            s.console("baking", BUILD),
            s.bake(BUILD),
        ),
        "MakeImage": lambda s: s.bake(BUILD),
        "ForgetImage": lambda s: s.forget(BAKED),
        "Look": lambda s: (
            s.sessions["baking"]("ec2").describe_instances(),
            s.sessions["baking"]("ec2").describe_images(),
            s.sessions["baking"]("ec2").describe_launch_template_versions(LaunchTemplateId=s.template),
        ),
        "PublishImage": lambda s: (s.publish("lab"), s.parameter("baking", "lab")),
    },
    "previewing": {
        "Ask": lambda s: (
            s.sessions["previewing"]("ec2").describe_images(ImageIds=[IMAGE]),
            s.sessions["previewing"]("ec2").describe_instance_type_offerings(),
            s.sessions["previewing"]("ec2").describe_transit_gateways(),
            s.sessions["previewing"]("iam").list_roles(),
            s.sessions["previewing"]("iam").list_open_id_connect_providers(),
        ),
        "LookForData": lambda s: s.sessions["previewing"]("s3").list_objects_v2(Bucket="data", Prefix="imagenet/"),
    },
}
# what would be allowed if the statement asked less: each of its conditions, and a resource beside its own
DENIED = {
    "node": {
        "JoinsWith": [lambda s: s.secret("bmc"), lambda s: s.secret(SECRET + "-2")],
        "ListData0": [
            lambda s: s.listed("data"),
            lambda s: s.listed("data", ""),
            lambda s: s.listed("data", "imagenet"),
            lambda s: s.listed("data", "imagenet-21k/"),
            lambda s: s.listed("elsewhere", "imagenet/"),
        ],
        "ReadData0": [
            lambda s: s.object("data", "imagenet-21k/a"),
            lambda s: s.object("data", "a"),
            lambda s: s.object("elsewhere", "imagenet/a"),
            lambda s: s.sessions["node"]("s3").put_object(Bucket="data", Key="imagenet/b", Body=b"x"),
            lambda s: s.sessions["node"]("s3").delete_object(Bucket="data", Key="imagenet/a"),
        ],
        "ListData1": [lambda s: s.listed("elsewhere"), lambda s: s.sessions["node"]("s3").list_buckets()],
        "ReadData1": [lambda s: s.object("elsewhere", "a")],
        "ListData2": [lambda s: s.listed("data", "sealed")],
        "ReadData2": [lambda s: s.sessions["node"]("s3").get_object_acl(Bucket="data", Key="sealed/a")],
        "DecryptData2": [
            lambda s: s.object("data", "sealed/other"),
            lambda s: s.sessions["node"]("kms").decrypt(CiphertextBlob=b"x", KeyId=KEY),
        ],
    },
    "ending": {
        "EndRented": [
            lambda s: s.end({}),
            lambda s: s.end(CLUSTER | {"ironburst:group": "fixed"}),
            lambda s: s.end(BUILD),
            lambda s: s.end(RENTED | {"ironburst:cluster": "other"}),
        ],
        "LastWords": [lambda s: s.console("ending", CLUSTER), lambda s: s.console("ending", {})],
        "Look": [lambda s: s.sessions["ending"]("ec2").describe_volumes()],
    },
    "launching": {
        "LaunchInstances": [
            lambda s: s.launch({"InstanceType": "g5.xlarge"}),
            lambda s: s.launch(launch_template_id=s.small),
            lambda s: s.alone(),
            lambda s: s.launch(pool="other"),
            lambda s: s.launch(cluster="other"),
            lambda s: s.launch(without("ironburst:lease")),
        ],
        "LaunchParts": [
            lambda s: s.launch({"TagSpecifications": spelled(RENTED, "instance", "volume")}),
        ],
        "LaunchFrom": [
            lambda s: s.launch(launch_template_id=s.other_template),
            lambda s: s.launch(launch_template_id=s.others_template),
            lambda s: s.launch(launch_template_id=s.groups_template),
        ],
        "LaunchAsThere": [
            lambda s: s.launch({"KeyName": "mine"}),
            lambda s: s.launch({"Placement": {"GroupName": "mine"}}),
            # another network of the account, and its security group
            lambda s: s.launch({"NetworkInterfaces": [s.card(SubnetId=s.other_subnet)]}),
            lambda s: s.launch({"NetworkInterfaces": [s.card(Groups=[s.other_group])]}),
        ],
        "LaunchWithin": [lambda s: s.launch(capacity_reservation_group_arn=OTHER_GROUP)],
        "LaunchImages": [lambda s: s.launch(image_id=FOREIGN)],
        "TagAtLaunch": [
            lambda s: s.tag("launching", RENTED, s.instance({})),
            # it would make that template a pool's
            lambda s: s.tag("launching", POOL, s.other_template),
        ],
        "PassNodeRole": [lambda s: s.launch({"IamInstanceProfile": {"Name": "other"}})],
        "PoolImages": [lambda s: s.parameter("launching", "other")],
        "Interruptions": [
            lambda s: s.messages(s.other_queue),
            lambda s: s.sessions["launching"]("sqs").send_message(QueueUrl=s.queue, MessageBody="x"),
        ],
    },
    "baking": {
        "Build": [
            lambda s: s.build(tags=CLUSTER | {"ironburst:pool": "p5"}),
            lambda s: s.build(tags=BUILD | {"ironburst:cluster": "other"}),
        ],
        "BuildFrom": [
            lambda s: s.build(Placement={"GroupName": "mine"}),
            lambda s: s.build(IamInstanceProfile={"Name": "node"}),
        ],
        "TagAtBirth": [lambda s: s.tag("baking", BUILD, s.instance({}))],
        "EndBuild": [
            lambda s: s.baker("stop_instances", RENTED),
            lambda s: s.baker("terminate_instances", RENTED),
            lambda s: s.baker("terminate_instances", BUILD | {"ironburst:cluster": "other"}),
            lambda s: s.console("baking", RENTED),
            lambda s: s.bake(RENTED),
        ],
        "MakeImage": [lambda s: s.bake({})],
        "ForgetImage": [
            lambda s: s.forget({"ironburst:cluster": "lab"}),
            lambda s: s.forget(BAKED | {"ironburst:cluster": "o"}),
        ],
        "Look": [lambda s: s.sessions["baking"]("ec2").describe_volumes()],
        "PublishImage": [lambda s: s.publish("other"), lambda s: s.parameter("baking", "other")],
    },
    "previewing": {
        "Ask": [
            lambda s: s.sessions["previewing"]("ec2").describe_vpn_connections(),
            lambda s: s.sessions["previewing"]("ec2").describe_instances(),
            lambda s: s.sessions["previewing"]("iam").get_role(RoleName="node"),
        ],
        "LookForData": [
            lambda s: s.sessions["previewing"]("s3").list_objects_v2(Bucket="elsewhere"),
            lambda s: s.sessions["previewing"]("s3").get_object(Bucket="data", Key="imagenet/a"),
        ],
    },
}
STATEMENTS = [(policy, sid) for policy, sids in ALLOWED.items() for sid in sids]


@pytest.fixture(scope="module")
def site(server, clients):
    return Site(server, clients)


def test_every_statement_is_tried(site):
    written = {name: {each["Sid"] for each in document["Statement"]} for name, document in site.documents.items()}
    assert (
        written == {name: set(sids) for name, sids in ALLOWED.items()} == {name: set(d) for name, d in DENIED.items()}
    )


@pytest.mark.parametrize(("policy", "sid"), STATEMENTS)
def test_a_statement_allows_what_it_is_for_and_is_needed_for_it(site, policy, sid):
    site.give(policy)
    ALLOWED[policy][sid](site)
    site.give(policy, without=sid)
    refuses(ALLOWED[policy][sid], site)


@pytest.mark.parametrize(
    ("policy", "sid", "number"),
    [(policy, sid, number) for policy, sid in STATEMENTS for number in range(len(DENIED[policy][sid]))],
)
def test_a_statement_allows_no_more(site, policy, sid, number):
    site.give(policy)
    refuses(DENIED[policy][sid][number], site)


# ---- the adapter under these rights
def test_the_controller_lives_on_its_own_policies(site, monkeypatch):
    site.give("launching")
    rights = policies.ending(WHERE, "lab")
    site.iam.put_role_policy(RoleName="own-launching", PolicyName="ending", PolicyDocument=json.dumps(rights))
    monkeypatch.setenv("AWS_ENDPOINT_URL", site.cloud.url)
    aws = Aws(REGION, assumed(site.clients, site.roles["launching"]), read_timeout_s=5)
    first, second = aws.launch(site.request(count=2))
    assert {first.id, second.id} <= {each.id for each in aws.instances("lab")}
    assert aws.image_id(image_parameter("lab", "p5")) == IMAGE
    fixed = site.instance(CLUSTER)
    with pytest.raises(Refused, match="UnauthorizedOperation"):
        aws.terminate([fixed])
    # one that isn't there has no tags, so no right to end it; it keeps no other alive
    assert aws.terminate([first.id, "i-0123456789abcdef0", second.id]) == {first.id, second.id}
    assert aws.terminate(["i-0123456789abcdef0"]) == set()
    site.iam.delete_role_policy(RoleName="own-launching", PolicyName="ending")


def test_a_session_of_no_policy_may_nothing(site):
    session = assumed(site.clients, site.role("empty", json.dumps(policies.assumed_within(WHERE))))
    assert isinstance(session, boto3.Session)
    with pytest.raises(ClientError, match="no policy allows ec2:DescribeInstances"):
        client(site.cloud.url, "ec2", session=session).describe_instances()
