"""An account of the lab's AWS as `pulumi up` of a stack leaves it, with all that a doctor looks at in order; a test
breaks one thing of it.
"""

import json
from copy import deepcopy
from datetime import UTC, datetime
from pathlib import Path

import boto3

from ironburst.adapters.aws.doctor import AwsAccount
from ironburst.config.aws import policies
from ironburst.config.load import from_value, read_value
from ironburst.doctor.aws.site import AwsSite
from ironburst.document import PoolZone
from ironburst.document.aws import AwsPlace
from ironburst.document.build import CloudInstance, Observed, build
from ironburst.nodes.naming import image_parameter, tags
from lab.aws.account_gaps import given
from lab.aws.cloud import ACCOUNT
from lab.aws.testing import REGION
from lab.aws.vpn_gaps import hall_answers
from tests.lab_cloud import TRUSTS_EC2

WHERE = policies.Scope("aws", REGION, ACCOUNT)
STACK = Path(__file__).parents[1] / "stacks" / "Pulumi.lab.yaml"
LAB = read_value(STACK)
LAB["cloud"]["price"] = {"p5.48xlarge": {"on_demand": 50.0}}  # of today
IMAGE, GROUPS_IMAGE, SECRET = "ami-0123456789abcdef0", "ami-0ba5e0000000000a1", "ironburst/lab/munge-key"
P_ON_DEMAND, P5_SPOT, STANDARD = "L-417A185B", "L-C4BD4855", "L-1216C47A"
ADMINISTRATOR = boto3.Session("lab", "lab", region_name=REGION)  # one for all tests: it reads the SDK's models once
NOW = datetime(2026, 11, 21, tzinfo=UTC)
EVENTS = json.dumps({"source": ["aws.ec2"], "detail-type": ["EC2 Spot Instance Interruption Warning"]})


def spelled(kind, name, **more):
    listed = [{"Key": key, "Value": value} for key, value in tags("lab", name, **more).items()]
    return {"TagSpecifications": [{"ResourceType": kind, "Tags": listed}]}


class Made:
    """What `up` has made; `site()` is what the doctor reads of it."""

    def __init__(self, cloud, clients):
        self.cloud, self.clients = cloud, clients
        self.ec2, self.iam = clients("ec2"), clients("iam")
        cloud.register_image("", IMAGE, root_gb=200)
        cloud.register_image("", GROUPS_IMAGE, root_gb=8)
        clients("ssm").put_parameter(Name=image_parameter("lab", "p5"), Value=IMAGE, Type="String")
        self.ec2.create_key_pair(KeyName="lab")
        self._network()
        self._link()
        self._queue()
        self._roles()
        secrets = clients("secretsmanager")
        self.secret = secrets.create_secret(Name=SECRET, SecretString="not to be shown")["ARN"]
        budget = {"BudgetName": "lab-rented-0a1b2c3", "BudgetType": "COST", "TimeUnit": "MONTHLY"}
        clients("budgets").create_budget(
            AccountId=ACCOUNT, Budget=budget | {"BudgetLimit": {"Amount": "1", "Unit": "USD"}}
        )
        self.given("cost tags")["ironburst:pool"] = "Active"
        self.given("quotas").update({P_ON_DEMAND: 768, P5_SPOT: 576, STANDARD: 8})

    def given(self, what):
        return given(ACCOUNT, REGION, what)

    def _network(self):
        self.vpc = self.ec2.create_vpc(CidrBlock="10.90.0.0/16", **spelled("vpc", "vpc"))["Vpc"]["VpcId"]
        self.subnets, self.tables = {}, {}
        for n, zone in enumerate(("us-east-1a", "us-east-1b")):
            asked = {"VpcId": self.vpc, "CidrBlock": f"10.90.{64 * (n + 1)}.0/18", "AvailabilityZone": zone}
            self.subnets[zone] = self.ec2.create_subnet(**asked)["Subnet"]["SubnetId"]
            made = self.ec2.create_route_table(VpcId=self.vpc, **spelled("route-table", f"routes-{zone}"))
            self.tables[zone] = made["RouteTable"]["RouteTableId"]
        address = self.ec2.allocate_address(Domain="vpc", **spelled("elastic-ip", "nat-us-east-1a"))["AllocationId"]
        asked = {"SubnetId": self.subnets["us-east-1a"], "AllocationId": address}
        made = self.ec2.create_nat_gateway(**asked, **spelled("natgateway", "nat-us-east-1a"))
        way = {"DestinationCidrBlock": "0.0.0.0/0", "NatGatewayId": made["NatGateway"]["NatGatewayId"]}
        self.ec2.create_route(RouteTableId=self.tables["us-east-1a"], **way)
        group = self.ec2.create_security_group(GroupName="nodes", Description="d", VpcId=self.vpc)["GroupId"]
        self.group, self.templates = group, {}
        self.iam.create_instance_profile(InstanceProfileName="node")
        for zone, subnet in self.subnets.items():
            data = {
                "InstanceType": "p5.48xlarge",
                "NetworkInterfaces": [{"DeviceIndex": 0, "SubnetId": subnet, "Groups": [group]}],
                "KeyName": "lab",
                "IamInstanceProfile": {"Name": "node"},
            }
            asked = {"LaunchTemplateName": f"p5-{zone}", "LaunchTemplateData": data}
            made = self.ec2.create_launch_template(**asked, **spelled("launch-template", "p5", pool="p5"))
            self.templates[zone] = made["LaunchTemplate"]["LaunchTemplateId"]

    def _link(self):
        made = self.ec2.create_vpn_gateway(Type="ipsec.1", **spelled("vpn-gateway", "hall"))
        self.gateway = gateway = made["VpnGateway"]["VpnGatewayId"]
        self.ec2.attach_vpn_gateway(VpcId=self.vpc, VpnGatewayId=gateway)
        peer = self.ec2.create_customer_gateway(Type="ipsec.1", BgpAsn=65010, PublicIp="203.0.113.10")
        asked = {"CustomerGatewayId": peer["CustomerGateway"]["CustomerGatewayId"], "VpnGatewayId": gateway}
        made = self.ec2.create_vpn_connection(Type="ipsec.1", **asked, **spelled("vpn-connection", "hall-hall-a"))
        self.vpn = made["VpnConnection"]["VpnConnectionId"]
        for table in self.tables.values():
            self.ec2.enable_vgw_route_propagation(RouteTableId=table, GatewayId=gateway)
        self.hall(2, ["10.78.0.0/21"])

    def hall(self, up, networks):
        hall_answers(self.cloud.backend, up, networks)

    def _queue(self):
        self.queue = self.clients("sqs").create_queue(QueueName="lab-interruptions")["QueueUrl"]
        events = self.clients("events")
        events.put_rule(Name="lab-interruptions", EventPattern=EVENTS)
        arn = WHERE.arn("sqs", "lab-interruptions")
        events.put_targets(Rule="lab-interruptions", Targets=[{"Id": "1", "Arn": arn}])

    def _roles(self):
        self.node = self._role("node", TRUSTS_EC2)
        self.iam.add_role_to_instance_profile(InstanceProfileName="node", RoleName="lab-node-0a1b2c3")
        self.controller = self._role("controller", json.dumps(policies.assumed_within(WHERE)))
        pools = policies.Pools(
            names=["p5"],
            instance_types=["p5.48xlarge"],
            bought_arns=[],
            spot=True,
            queue_arns=[WHERE.arn("sqs", "lab-interruptions")],
            image_owners=[ACCOUNT],
        )
        self.documents = {
            ("node", "node"): policies.node(WHERE, [f"aws-secretsmanager:{SECRET}"]),
            ("controller", "controller"): policies.ending(WHERE, "lab"),
            ("controller", "launch"): policies.launching(WHERE, "lab", pools, [self.node]),
        }
        for role, name in self.documents:
            self.policy(role, name)

    def _role(self, name, trust):
        listed = [{"Key": key, "Value": value} for key, value in tags("lab", name).items()]
        made = self.iam.create_role(RoleName=f"lab-{name}-0a1b2c3", AssumeRolePolicyDocument=trust, Tags=listed)
        return made["Role"]["Arn"]

    def policy(self, role, name, without=()):
        """Write a role's policy, but for some statements."""
        document = deepcopy(self.documents[role, name])
        document["Statement"] = [each for each in document["Statement"] if each["Sid"] not in without]
        said = json.dumps(document)
        self.iam.put_role_policy(RoleName=f"lab-{role}-0a1b2c3", PolicyName=name, PolicyDocument=said)

    def site(self, *, session=None, change=lambda value: None, published=True, accounts=()):
        """`change`: of the declaration as plain data; its document is as it was published before."""
        value = deepcopy(LAB)
        change(value)
        config = from_value(value)
        assert config.cloud
        return AwsSite(
            config=config,
            cloud=config.cloud,
            account=AwsAccount(REGION, session or ADMINISTRATOR),
            now=NOW,
            document=self.document() if published else None,
            accounts=accounts,
        )

    def document(self):
        zones = [
            PoolZone(
                zone=zone,
                place=AwsPlace(subnet_id=self.subnets[zone], launch_template_id=each, launch_template_version="1"),
            )
            for zone, each in self.templates.items()
        ]
        observed = Observed(
            instances={"fixed-1": CloudInstance(id="i-0123456789abcdef0", address="10.90.64.9")},
            pool_zones={"p5": zones},
            notices={"p5": self.queue},
        )
        return build(from_value(deepcopy(LAB)), observed)
