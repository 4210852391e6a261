"""An account as `up` leaves it, with a role for each policy of ours: for the tests of rights. All go through boto3 to
the lab's AWS, which enforces IAM.
"""

import itertools
import json

from ironburst.adapters.aws.cloud import parameters
from ironburst.config.aws import policies
from ironburst.config.aws.data_models import DataSet
from ironburst.nodes.naming import image_parameter
from ironburst.ports import LaunchRequest
from lab.aws.testing import REGION, Clients, network, refused
from tests.lab_cloud import TRUSTS_EC2, allow_spot, assumed

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


def refuses(call, *arguments):
    code, _ = refused(call, *arguments)
    assert code in NO, f"refused, but not for lack of a right: {code}"
