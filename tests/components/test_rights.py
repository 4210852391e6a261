"""Each statement of each policy of ours: a call that it allows, a call that is refused, and that it is needed. All go
through boto3 to the lab's AWS, which enforces IAM.
"""

import itertools
import json

import boto3
import pytest
from botocore.exceptions import ClientError

from ironburst.adapters.aws.cloud import Aws, parameters
from ironburst.config.aws import policies
from ironburst.config.aws.data_models import DataSet
from ironburst.nodes.naming import image_parameter
from ironburst.ports import LaunchRequest, Refused
from lab.aws.testing import REGION, Clients, client, network, refused
from tests import pki
from tests.lab_cloud import TRUSTS_EC2, allow_spot, assumed, clients, server, user

__all__ = ["clients", "server"]

WHERE = policies.Scope("aws", REGION, "123456789012")
SECRET = "ironburst/lab/munge-key"
P5EN = "p5en.48xlarge"  # the pool's other type
P5, IMAGE, FOREIGN = "p5.48xlarge", "ami-0123456789abcdef0", "ami-0fedcba9876543210"
CLUSTER = {"ironburst:cluster": "lab"}
POOL = CLUSTER | {"ironburst:pool": "p5"}
RENTED = POOL | {"ironburst:lease": "l1"}
BUILD = CLUSTER | {"ironburst:pool": "p5", "ironburst:role": "image-build"}
BAKED = BUILD | {"ironburst:role": "image"}
KEY, OTHER_KEY = (f"arn:aws:kms:us-east-1:123456789012:key/{n}a1b2c3d-0000-4000-8000-000000000000" for n in (0, 1))
DATA = [DataSet(s3="data/imagenet"), DataSet(s3="whole"), DataSet(s3="data/sealed", kms_key=KEY)]
GROUP = WHERE.arn("resource-groups", "group/training")
OTHER_GROUP = WHERE.arn("resource-groups", "group/other")
NO = {"UnauthorizedOperation", "AccessDenied", "AccessDeniedException"}


def spelled(tags, *kinds):
    listed = [{"Key": key, "Value": value} for key, value in tags.items()]
    return [{"ResourceType": kind, "Tags": listed} for kind in kinds]


class Site:
    """An account as `up` leaves it, and a session for each policy of ours."""

    def __init__(self, cloud, clients):
        self.cloud, self.clients, self.numbers = cloud, clients, itertools.count()
        self.ec2, self.iam = clients("ec2"), clients("iam")
        allow_spot(self.iam)
        cloud.register_image("", IMAGE)
        cloud.register_image("", FOREIGN, owner="999999999999")
        vpc, self.subnet = network(self.ec2)
        other_vpc, self.other_subnet = network(self.ec2, "10.91.0.0/16", "10.91.0.0/20")
        self.group, self.other_group = (
            self.ec2.create_security_group(GroupName="nodes", Description="d", VpcId=each)["GroupId"]
            for each in (vpc, other_vpc)
        )
        self.reservation = self.ec2.create_capacity_reservation(
            InstanceType=P5, InstancePlatform="Linux/UNIX", AvailabilityZone="us-east-1a", InstanceCount=20
        )["CapacityReservation"]["CapacityReservationId"]
        placed = self.ec2.create_placement_group(GroupName="p5-a", Strategy="cluster")
        self.placement = placed["PlacementGroup"]["GroupArn"]
        cloud.capacity.groups |= {GROUP: [self.reservation], OTHER_GROUP: [self.reservation]}
        self.ec2.create_key_pair(KeyName="ops")
        self.node_role = self.role("node", TRUSTS_EC2)
        self.other_role = self.role("other", TRUSTS_EC2)
        self.template = self.make_template("p5", P5)
        self.other_template = self.make_template("mine", P5, tags={})
        self.others_template = self.make_template("others", P5, tags=POOL | {"ironburst:cluster": "other"})
        self.groups_template = self.make_template("group", P5, tags=CLUSTER | {"ironburst:group": "fixed"})
        self.small = self.make_template("small", "g5.xlarge")
        self.placed = self.make_template("placed", P5, Placement={"GroupName": "p5-a"})
        self.second = self.make_template("p5-p5en", P5EN)
        self.queue = self.make_queue("interruptions")
        self.other_queue = self.make_queue("other")
        for name in (image_parameter("lab", "p5"), image_parameter("other", "p5")):
            clients("ssm").put_parameter(Name=name, Value=IMAGE, Type="String")
        for name in (SECRET, SECRET + "-2", "bmc"):
            clients("secretsmanager").create_secret(Name=name, SecretString="x")
        self.fill_buckets()
        self.documents = {
            "node": policies.node(WHERE, [f"aws-secretsmanager:{SECRET}"], DATA),
            "ending": policies.ending(WHERE, "lab"),
            "launching": policies.launching(WHERE, "lab", self.pools(), [self.node_role]),
            "baking": policies.baking(WHERE, "lab"),
            "previewing": policies.previewing(WHERE, ["data"]),
        }
        trust = json.dumps(policies.assumed_within(WHERE))
        self.roles = {name: self.role(f"own-{name}", trust) for name in self.documents}
        self.sessions = {name: Clients(cloud.url, assumed(clients, arn)) for name, arn in self.roles.items()}

    def role(self, name, trust):
        arn = self.iam.create_role(RoleName=name, AssumeRolePolicyDocument=trust)["Role"]["Arn"]
        self.iam.create_instance_profile(InstanceProfileName=name)
        self.iam.add_role_to_instance_profile(InstanceProfileName=name, RoleName=name)
        return arn

    def make_template(self, name, instance_type, profile="node", tags=POOL, **more):
        data = {
            "InstanceType": instance_type,
            "NetworkInterfaces": [self.card()],
            "KeyName": "ops",
            "IamInstanceProfile": {"Name": profile},
            "TagSpecifications": spelled(POOL, "instance", "volume"),
            **more,
        }
        own = {"TagSpecifications": spelled(tags, "launch-template")} if tags else {}
        made = self.ec2.create_launch_template(LaunchTemplateName=name, LaunchTemplateData=data, **own)
        return made["LaunchTemplate"]["LaunchTemplateId"]

    def fill_buckets(self):
        s3 = self.clients("s3")
        for bucket in ("data", "whole", "elsewhere"):
            s3.create_bucket(Bucket=bucket)
            for key in ("imagenet/a", "imagenet-21k/a", "a"):
                s3.put_object(Bucket=bucket, Key=key, Body=b"x")
        for name, key in (("a", KEY), ("other", OTHER_KEY)):
            sealed = {"ServerSideEncryption": "aws:kms", "SSEKMSKeyId": key}
            s3.put_object(Bucket="data", Key=f"sealed/{name}", Body=b"x", **sealed)

    def make_queue(self, name):
        return self.clients("sqs").create_queue(QueueName=name)["QueueUrl"]

    def pools(self):
        return policies.Pools(
            names=["p5"],
            instance_types=[P5, P5EN],
            bought_arns=[WHERE.arn("ec2", "capacity-reservation/*"), GROUP],  # a group's, which EC2 chooses
            spot=True,
            queue_arns=[WHERE.arn("sqs", "interruptions")],
            image_owners=[WHERE.account],
        )

    def give(self, name, without=None):
        """Let the session of a policy have it, but for one statement."""
        document = dict(self.documents[name])
        document["Statement"] = [each for each in document["Statement"] if each["Sid"] != without]
        role = f"own-{name}"
        if document["Statement"]:
            self.iam.put_role_policy(RoleName=role, PolicyName="p", PolicyDocument=json.dumps(document))
        else:  # IAM takes no policy without a statement
            self.iam.delete_role_policy(RoleName=role, PolicyName="p")

    def request(self, **more):
        """A launch as the controller asks for it."""
        values = {
            "token": f"ib-{next(self.numbers)}",
            "launch": "l1",
            "cluster": "lab",
            "pool": "p5",
            "zone": "us-east-1a",
            "market": "on-demand",
            "count": 1,
            "launch_template_id": self.template,
            "launch_template_version": "1",
            "image_id": IMAGE,
            "user_data": "{}",
        }
        return LaunchRequest.recorded(values | more)

    def launch(self, _changes=None, **more):
        """By the controller; `_changes`: what somebody who stole its credentials would ask otherwise."""
        return self.sessions["launching"]("ec2").run_instances(**(parameters(self.request(**more)) | (_changes or {})))

    def card(self, **changes):
        """A network interface as the template has it."""
        return {"DeviceIndex": 0, "SubnetId": self.subnet, "Groups": [self.group]} | changes

    def alone(self):
        """A launch without a template."""
        asked = {key: value for key, value in parameters(self.request()).items() if key != "LaunchTemplate"}
        return self.sessions["launching"]("ec2").run_instances(
            **asked, InstanceType=P5, SubnetId=self.subnet, SecurityGroupIds=[self.group]
        )

    def build(self, image=FOREIGN, tags=BUILD, **more):
        """By those who bake."""
        return self.sessions["baking"]("ec2").run_instances(
            MinCount=1,
            MaxCount=1,
            ImageId=image,
            InstanceType=P5,
            SubnetId=self.subnet,
            TagSpecifications=spelled(tags, "instance", "volume", "network-interface"),
            **more,
        )

    def instance(self, tags):
        """One that the administrator made."""
        made = self.ec2.run_instances(
            MinCount=1,
            MaxCount=1,
            ImageId=IMAGE,
            InstanceType=P5,
            SubnetId=self.subnet,
            TagSpecifications=spelled(tags, "instance") if tags else [],
        )
        return made["Instances"][0]["InstanceId"]

    def image(self, tags):
        """One that the administrator made: its id and its snapshot's."""
        made = self.ec2.create_image(
            InstanceId=self.instance({}),
            Name=f"i-{next(self.numbers)}",
            TagSpecifications=spelled(tags, "image", "snapshot"),
        )["ImageId"]
        self.cloud.settle()
        return made

    # ---- calls, by who makes them
    def end(self, tags):
        return self.sessions["ending"]("ec2").terminate_instances(InstanceIds=[self.instance(tags)])

    def console(self, who, tags):
        return self.sessions[who]("ec2").get_console_output(InstanceId=self.instance(tags))

    def bake(self, tags):
        return self.sessions["baking"]("ec2").create_image(
            InstanceId=self.instance(tags),
            Name=f"i-{next(self.numbers)}",
            TagSpecifications=spelled(BAKED, "image", "snapshot"),
        )

    def forget(self, tags):
        return self.sessions["baking"]("ec2").deregister_image(ImageId=self.image(tags), DeleteAssociatedSnapshots=True)

    def baker(self, call, tags):
        return getattr(self.sessions["baking"]("ec2"), call)(InstanceIds=[self.instance(tags)])

    def secret(self, name):
        return self.sessions["node"]("secretsmanager").get_secret_value(SecretId=name)

    def listed(self, bucket, prefix=None):
        asked = {"Prefix": prefix} if prefix is not None else {}
        return self.sessions["node"]("s3").list_objects_v2(Bucket=bucket, **asked)

    def object(self, bucket, key):
        return self.sessions["node"]("s3").get_object(Bucket=bucket, Key=key)

    def tag(self, who, tags, on):
        return self.sessions[who]("ec2").create_tags(
            Resources=[on], Tags=[{"Key": key, "Value": value} for key, value in tags.items()]
        )

    def messages(self, queue):
        sqs, admin = self.sessions["launching"]("sqs"), self.clients("sqs")
        for number in range(2):
            admin.send_message(QueueUrl=queue, MessageBody=str(number))
        first, second = (sqs.receive_message(QueueUrl=queue)["Messages"][0]["ReceiptHandle"] for _ in range(2))
        sqs.delete_message(QueueUrl=queue, ReceiptHandle=first)
        entries = [{"Id": "1", "ReceiptHandle": second}]
        return sqs.delete_message_batch(QueueUrl=queue, Entries=entries)["Successful"]

    def parameter(self, who, cluster):
        return self.sessions[who]("ssm").get_parameter(Name=image_parameter(cluster, "p5"))

    def publish(self, cluster):
        name = image_parameter(cluster, "p5")
        return self.sessions["baking"]("ssm").put_parameter(Name=name, Value=IMAGE, Type="String", Overwrite=True)


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


def refuses(call, *arguments):
    code, _ = refused(call, *arguments)
    assert code in NO, f"refused, but not for lack of a right: {code}"


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


# ---- trust policies and the queue's
def test_the_nodes_role_is_for_instances_alone(site):
    trust = json.dumps(policies.assumed_by_ec2())
    site.role("trust-node", trust)
    made = site.ec2.run_instances(
        MinCount=1,
        MaxCount=1,
        ImageId=IMAGE,
        InstanceType=P5,
        SubnetId=site.subnet,
        IamInstanceProfile={"Name": "trust-node"},
    )
    view = site.cloud.instance_at(made["Instances"][0]["PrivateIpAddress"])
    assert site.cloud.credentials(view)["Code"] == "Success"
    assert refused(assumed, site.clients, view.role_arn)[0] == "AccessDenied"
    site.iam.update_assume_role_policy(RoleName="trust-node", PolicyDocument=json.dumps(EMPTY))
    assert site.cloud.credentials(view) is None


def test_the_controllers_role_is_for_whom_the_account_lets_take_it(site):
    arn = site.role("trust-controller", json.dumps(policies.assumed_within(WHERE)))
    may = {"Version": "2012-10-17", "Statement": {"Effect": "Allow", "Action": "sts:AssumeRole", "Resource": arn}}
    head, stranger = user(site.clients, "head", may), user(site.clients, "stranger")
    assert assumed(Clients(site.cloud.url, head), arn)
    assert refused(assumed, Clients(site.cloud.url, stranger), arn)[0] == "AccessDenied"
    made = site.ec2.run_instances(
        MinCount=1,
        MaxCount=1,
        ImageId=IMAGE,
        InstanceType=P5,
        SubnetId=site.subnet,
        IamInstanceProfile={"Name": "trust-controller"},
    )
    assert site.cloud.credentials(site.cloud.instance_at(made["Instances"][0]["PrivateIpAddress"])) is None
    site.iam.update_assume_role_policy(RoleName="trust-controller", PolicyDocument=json.dumps(EMPTY))
    assert refused(assumed, Clients(site.cloud.url, head), arn)[0] == "AccessDenied"


def test_the_controllers_role_is_for_one_certificate_where_that_is_declared(site):
    anywhere, authority = site.clients("rolesanywhere"), pki.issue("authority", ca=True)
    source = {"sourceType": "CERTIFICATE_BUNDLE", "sourceData": {"x509CertificateData": authority.pem}}
    anchors = [
        anywhere.create_trust_anchor(name=name, source=source, enabled=True)["trustAnchor"]["trustAnchorArn"]
        for name in ("ours", "theirs")
    ]
    role = site.role("trust-certificate", json.dumps(policies.assumed_with_certificate(anchors[0], "head.hall-a")))
    profile = anywhere.create_profile(name="ours", roleArns=[role], enabled=True)["profile"]["profileArn"]

    def signs_in(name, anchor=anchors[0]):
        asked = {"trustAnchorArn": anchor, "profileArn": profile, "roleArn": role}
        return pki.session(site.cloud.url, pki.issue(name, authority), **asked)

    assert signs_in("head.hall-a")["accessKeyId"]
    for refused_one in (lambda: signs_in("dgx01.hall-a"), lambda: signs_in("head.hall-a", anchors[1])):
        with pytest.raises(PermissionError, match="Unable to assume role"):
            refused_one()
    may = {"Version": "2012-10-17", "Statement": {"Effect": "Allow", "Action": "sts:AssumeRole", "Resource": role}}
    insider = Clients(site.cloud.url, user(site.clients, "insider", may))
    assert refused(assumed, insider, role)[0] == "AccessDenied"


EMPTY = {
    "Version": "2012-10-17",
    "Statement": {"Effect": "Deny", "Principal": {"AWS": WHERE.account}, "Action": "sts:AssumeRole"},
}


def test_only_the_pools_event_rules_send_to_its_queue(site):
    events, sqs = site.clients("events"), site.clients("sqs")
    queue = site.make_queue("policy")
    arn = WHERE.arn("sqs", "policy")
    pattern = json.dumps({"source": ["test"]})
    rules = {name: events.put_rule(Name=name, EventPattern=pattern)["RuleArn"] for name in ("ours", "theirs")}

    def arrived():
        for name in rules:
            events.put_targets(Rule=name, Targets=[{"Id": "1", "Arn": arn}])
        events.put_events(Entries=[{"Source": "test", "DetailType": "x", "Detail": "{}"}])
        return len(sqs.receive_message(QueueUrl=queue, MaxNumberOfMessages=10).get("Messages", []))

    assert arrived() == 0
    sqs.set_queue_attributes(QueueUrl=queue, Attributes={"Policy": json.dumps(policies.queue(arn, [rules["ours"]]))})
    assert arrived() == 1
    nobody = client(site.cloud.url, "sqs", session=user(site.clients, "nobody"))
    refuses(lambda: nobody.send_message(QueueUrl=queue, MessageBody="forged"))


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
