"""A case of every kind of resource of the aws stand-in, and what others need to be there for it."""

# ruff: noqa: E731  (inputs are functions of the world, and a table of lambdas reads best)
from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from lab.aws.cloud import Cloud
from lab.aws.testing import client
from lab.aws_plugin.harness import Engine
from lab.provider.harness import Held
from tests import pki

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJcFIXQeFgQ6IMu+Q2Fk9iqZ5YCY6VWcFH8eDvxBcXEA test"
POLICY = json.dumps(
    {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": ["s3:GetObject"], "Resource": "*"}]}
)
OTHER_POLICY = POLICY.replace("GetObject", "PutObject")
TRUST = json.dumps(
    {
        "Version": "2012-10-17",
        "Statement": [{"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"Service": "ec2.amazonaws.com"}}],
    }
)
EKS_TRUST = TRUST.replace("ec2.amazonaws.com", "eks.amazonaws.com")
ROLE_ARN = "arn:aws:iam::123456789012:role/%s"
PATTERN = json.dumps({"source": ["aws.ec2"], "detail-type": ["EC2 Spot Instance Interruption Warning"]})
Make = Callable[["World"], dict[str, Any]]


@dataclass
class World:
    """The plugin, the cloud, and resources that others need: made on first use, through the plugin."""

    engine: Engine
    cloud: Cloud
    image: str
    made: dict[str, Held] = field(default_factory=dict)

    @cached_property
    def direct_connect(self) -> str:
        """A Direct Connect gateway, which is there before."""
        made = client(self.cloud.url, "directconnect").create_direct_connect_gateway(directConnectGatewayName="hall")
        return made["directConnectGateway"]["directConnectGatewayId"]

    @cached_property
    def transit(self) -> str:
        return client(self.cloud.url).create_transit_gateway()["TransitGateway"]["TransitGatewayId"]

    def need(self, name: str) -> str:
        if name not in self.made:
            token, inputs = NEEDED[name]
            self.made[name] = self.engine.create(token, name, inputs(self))
        return self.made[name].id


NEEDED: dict[str, tuple[str, Make]] = {
    "vpc": ("aws:ec2/vpc:Vpc", lambda w: {"cidrBlock": "10.90.0.0/16"}),
    "vpc2": ("aws:ec2/vpc:Vpc", lambda w: {"cidrBlock": "10.91.0.0/16"}),
    "subnet": (
        "aws:ec2/subnet:Subnet",
        lambda w: {"vpcId": w.need("vpc"), "cidrBlock": "10.90.1.0/24", "availabilityZone": "us-east-1a"},
    ),
    "subnet2": (
        "aws:ec2/subnet:Subnet",
        lambda w: {"vpcId": w.need("vpc"), "cidrBlock": "10.90.2.0/24", "availabilityZone": "us-east-1b"},
    ),
    "igw": ("aws:ec2/internetGateway:InternetGateway", lambda w: {"vpcId": w.need("vpc")}),
    "eip": ("aws:ec2/eip:Eip", lambda w: {"domain": "vpc"}),
    "table": ("aws:ec2/routeTable:RouteTable", lambda w: {"vpcId": w.need("vpc")}),
    "table2": ("aws:ec2/routeTable:RouteTable", lambda w: {"vpcId": w.need("vpc")}),
    "group": ("aws:ec2/securityGroup:SecurityGroup", lambda w: {"vpcId": w.need("vpc"), "description": "needed"}),
    "cgw": (
        "aws:ec2/customerGateway:CustomerGateway",
        lambda w: {"bgpAsn": "65010", "ipAddress": "203.0.113.10", "type": "ipsec.1"},
    ),
    "cgw2": (
        "aws:ec2/customerGateway:CustomerGateway",
        lambda w: {"bgpAsn": "65011", "ipAddress": "203.0.113.11", "type": "ipsec.1"},
    ),
    "vgw": ("aws:ec2/vpnGateway:VpnGateway", lambda w: {"vpcId": w.need("vpc"), "amazonSideAsn": "64512"}),
    "role": ("aws:iam/role:Role", lambda w: {"assumeRolePolicy": TRUST, "name": "needed"}),
    "subnet3": (
        "aws:ec2/subnet:Subnet",
        lambda w: {"vpcId": w.need("vpc"), "cidrBlock": "10.90.3.0/24", "availabilityZone": "us-east-1a"},
    ),
    "eks_role": ("aws:iam/role:Role", lambda w: {"assumeRolePolicy": EKS_TRUST, "name": "control-plane"}),
    "eks": ("aws:eks/cluster:Cluster", lambda w: CONTROL_PLANE(w) | {"name": "needed"}),
    "entry": ("aws:eks/accessEntry:AccessEntry", lambda w: ENTRY(w) | {"principalArn": ROLE_ARN % w.need("role2")}),
    "role2": ("aws:iam/role:Role", lambda w: {"assumeRolePolicy": TRUST, "name": "needed2"}),
    "policy": ("aws:iam/policy:Policy", lambda w: {"policy": POLICY, "name": "needed"}),
    "profile": ("aws:iam/instanceProfile:InstanceProfile", lambda w: {"role": w.need("role"), "name": "needed"}),
    "queue": ("aws:sqs/queue:Queue", lambda w: {"name": "needed"}),
    "rule": ("aws:cloudwatch/eventRule:EventRule", lambda w: {"name": "needed", "eventPattern": PATTERN}),
    "topic": ("aws:sns/topic:Topic", lambda w: {"name": "needed"}),
    "template": ("aws:ec2/launchTemplate:LaunchTemplate", lambda w: efa_template(w)),
}


def efa_template(w: World) -> dict[str, Any]:
    nic = {"subnetId": w.need("subnet"), "securityGroups": [w.need("group")], "deleteOnTermination": "true"}
    return {
        "instanceType": "p5.48xlarge",
        "networkInterfaces": [
            {**nic, "deviceIndex": 0, "networkCardIndex": 0, "interfaceType": "efa"},
            {**nic, "deviceIndex": 1, "networkCardIndex": 1, "interfaceType": "efa-only"},
        ],
    }


@dataclass(frozen=True)
class Case:
    """Inputs; a change in place (None: the kind has none); a change that replaces, and what it replaces for."""

    inputs: Make
    change: Make | None = None
    replace: Make | None = None
    because: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()


def merged(base: Make, **more: Any) -> Make:
    return lambda w: {**base(w), **{k: v(w) if callable(v) else v for k, v in more.items()}}


VPC: Make = lambda w: {
    "cidrBlock": "10.99.0.0/16",
    "enableDnsSupport": True,
    "enableDnsHostnames": True,
    "tags": {"Name": "x"},
}
SUBNET: Make = lambda w: {
    "vpcId": w.need("vpc"),
    "cidrBlock": "10.90.9.0/24",
    "availabilityZone": "us-east-1a",
    "tags": {"a": "b"},
}
NAT: Make = lambda w: {"allocationId": w.need("eip"), "subnetId": w.need("subnet"), "tags": {"a": "b"}}
ROUTE: Make = lambda w: {
    "routeTableId": w.need("table"),
    "destinationCidrBlock": "0.0.0.0/0",
    "gatewayId": w.need("igw"),
}
GROUP: Make = lambda w: {
    "vpcId": w.need("vpc"),
    "description": "d",
    "tags": {"a": "b"},
    "ingress": [
        {"protocol": "-1", "fromPort": 0, "toPort": 0, "self": True},
        {"protocol": "tcp", "fromPort": 22, "toPort": 22, "cidrBlocks": ["10.78.0.0/16", "10.90.0.0/16"]},
    ],
    "egress": [{"protocol": "-1", "fromPort": 0, "toPort": 0, "cidrBlocks": ["0.0.0.0/0"]}],
}
RULE: Make = lambda w: {
    "securityGroupId": w.need("group"),
    "ipProtocol": "tcp",
    "fromPort": 22,
    "toPort": 22,
    "cidrIpv4": "10.78.0.0/16",
    "tags": {"a": "b"},
}
S3: Make = lambda w: {
    "vpcId": w.need("vpc"),
    "serviceName": "com.amazonaws.us-east-1.s3",
    "routeTableIds": [w.need("table")],
}
INSTANCE: Make = lambda w: {
    "ami": w.image,
    "instanceType": "t3.micro",
    "subnetId": w.need("subnet"),
    "tags": {"Name": "n"},
    "vpcSecurityGroupIds": [w.need("group")],
    "iamInstanceProfile": w.need("profile"),
    "userData": "{}",
    "metadataOptions": {"httpEndpoint": "enabled", "httpTokens": "required"},
    "rootBlockDevice": {"volumeSize": 20, "volumeType": "gp3"},
}
VPN: Make = lambda w: {
    "customerGatewayId": w.need("cgw"),
    "vpnGatewayId": w.need("vgw"),
    "type": "ipsec.1",
    "tags": {"a": "b"},
    "tunnel1PresharedKey": "abcdefgh12345",
    "tunnel1InsideCidr": "169.254.20.0/30",
}
ALARM: Make = lambda w: {
    "comparisonOperator": "GreaterThanThreshold",
    "evaluationPeriods": 1,
    "metricName": "m",
    "namespace": "n",
    "period": 60,
    "statistic": "Maximum",
    "threshold": 1.5,
    "dimensions": {"Cluster": "lab"},
    "tags": {"a": "b"},
    "alarmActions": [w.need("topic")],
}
BUDGET: Make = lambda w: {
    "budgetType": "COST",
    "limitAmount": "20000",
    "limitUnit": "USD",
    "timeUnit": "MONTHLY",
    "timePeriodStart": "2025-01-01_00:00",
    "tags": {"a": "b"},
    "costFilters": [{"name": "TagKeyValue", "values": ["user:ironburst:cluster$lab"]}],
    "notifications": [
        {
            "comparisonOperator": "GREATER_THAN",
            "notificationType": "ACTUAL",
            "threshold": 80,
            "thresholdType": "PERCENTAGE",
            "subscriberEmailAddresses": ["ops@example.org"],
        }
    ],
}
TEMPLATE: Make = lambda w: {
    **efa_template(w),
    "userData": "e30=",
    "ebsOptimized": "true",
    "updateDefaultVersion": True,
    "metadataOptions": {"httpTokens": "required", "httpPutResponseHopLimit": 2},
    "blockDeviceMappings": [{"deviceName": "/dev/sda1", "ebs": {"volumeSize": 100, "encrypted": "true"}}],
    "tagSpecifications": [{"resourceType": "instance", "tags": {"ironburst:pool": "p5"}}],
    "tags": {"a": "b"},
    "iamInstanceProfile": {"name": w.need("profile")},
}
CGW: Make = lambda w: {"bgpAsn": "65010", "ipAddress": "203.0.113.9", "type": "ipsec.1", "tags": {"a": "b"}}
ROLE: Make = lambda w: {"assumeRolePolicy": TRUST, "managedPolicyArns": [w.need("policy")], "tags": {"a": "b"}}
QUEUE: Make = lambda w: {"messageRetentionSeconds": 300, "sqsManagedSseEnabled": True, "tags": {"a": "b"}}
SUBSCRIPTION: Make = lambda w: {
    "topic": w.need("topic"),
    "protocol": "sqs",
    "endpoint": "arn:aws:sqs:us-east-1:123456789012:needed",
}
EVENT: Make = lambda w: {"eventPattern": PATTERN, "description": "d", "tags": {"a": "b"}}
ATTACHMENT: Make = lambda w: {
    "transitGatewayId": w.transit,
    "vpcId": w.need("vpc"),
    "subnetIds": [w.need("subnet")],
    "applianceModeSupport": "disable",
    "tags": {"a": "b"},
}
ASSOCIATION: Make = lambda w: {
    "dxGatewayId": w.direct_connect,
    "associatedGatewayId": w.need("vgw"),
    "allowedPrefixes": ["10.90.0.0/16"],
}
AUTHORITY = pki.issue("authority", ca=True).pem
ANCHOR: Make = lambda w: {
    "name": "hall",
    "enabled": True,
    "source": {"sourceType": "CERTIFICATE_BUNDLE", "sourceData": {"x509CertificateData": AUTHORITY}},
    "tags": {"a": "b"},
}
ANYWHERE: Make = lambda w: {"name": "hall", "enabled": True, "roleArns": [], "tags": {"a": "b"}}
CONTROL_PLANE: Make = lambda w: {
    "name": "gpus",
    "roleArn": ROLE_ARN % w.need("eks_role"),
    "version": "1.35",
    "vpcConfig": {
        "subnetIds": [w.need("subnet"), w.need("subnet2")],
        "securityGroupIds": [w.need("group")],
        "endpointPrivateAccess": True,
        "endpointPublicAccess": False,
    },
    "accessConfig": {"authenticationMode": "API", "bootstrapClusterCreatorAdminPermissions": True},
    "kubernetesNetworkConfig": {"serviceIpv4Cidr": "172.20.0.0/16"},
    "tags": {"a": "b"},
}
ENTRY: Make = lambda w: {
    "clusterName": w.need("eks"),
    "principalArn": ROLE_ARN % w.need("role"),
    "type": "STANDARD",
    "userName": "controller",
    "tags": {"a": "b"},
}
RIGHT: Make = lambda w: {
    "clusterName": w.need("eks"),
    "principalArn": w.need("entry").partition(":")[2],
    "policyArn": "arn:aws:eks::aws:cluster-access-policy/AmazonEKSClusterAdminPolicy",
    "accessScope": {"type": "cluster"},
}
TARGET: Make = lambda w: {"rule": w.need("rule"), "arn": "arn:aws:sqs:us-east-1:123456789012:needed"}

CASES: dict[str, Case] = {
    "aws:ec2/vpc:Vpc": Case(
        VPC,
        merged(VPC, enableDnsHostnames=False, tags={"Name": "y", "k": "v"}),
        merged(VPC, cidrBlock="10.98.0.0/16"),
        ("cidrBlock",),
        ("arn", "mainRouteTableId", "defaultSecurityGroupId", "ownerId"),
    ),
    "aws:ec2/subnet:Subnet": Case(
        SUBNET,
        merged(SUBNET, mapPublicIpOnLaunch=True, tags={}),
        merged(SUBNET, cidrBlock="10.90.8.0/24"),
        ("cidrBlock",),
        ("arn", "availabilityZoneId"),
    ),
    "aws:ec2/internetGateway:InternetGateway": Case(
        lambda w: {"vpcId": w.need("vpc2"), "tags": {"a": "b"}}, lambda w: {"tags": {"a": "c"}}
    ),
    "aws:ec2/eip:Eip": Case(
        lambda w: {"domain": "vpc", "tags": {"a": "b"}},
        lambda w: {"domain": "vpc", "tags": {"a": "c"}},
        outputs=("publicIp", "allocationId"),
    ),
    "aws:ec2/natGateway:NatGateway": Case(
        NAT,
        merged(NAT, tags={"a": "c"}),
        merged(NAT, subnetId=lambda w: w.need("subnet2")),
        ("subnetId",),
        ("publicIp",),
    ),
    "aws:ec2/routeTable:RouteTable": Case(
        lambda w: {
            "vpcId": w.need("vpc"),
            "routes": [{"cidrBlock": "0.0.0.0/0", "gatewayId": w.need("igw")}],
            "propagatingVgws": [w.need("vgw")],
        },
        lambda w: {
            "vpcId": w.need("vpc"),
            "routes": [{"cidrBlock": "10.50.0.0/16", "gatewayId": w.need("igw")}],
            "propagatingVgws": [],
        },
        lambda w: {"vpcId": w.need("vpc2")},
        ("vpcId",),
        ("arn",),
    ),
    "aws:ec2/route:Route": Case(
        ROUTE,
        merged(ROUTE, gatewayId=lambda w: w.need("vgw")),
        merged(ROUTE, destinationCidrBlock="10.7.0.0/16"),
        ("destinationCidrBlock",),
        ("state",),
    ),
    "aws:ec2/routeTableAssociation:RouteTableAssociation": Case(
        lambda w: {"subnetId": w.need("subnet"), "routeTableId": w.need("table")},
        lambda w: {"subnetId": w.need("subnet"), "routeTableId": w.need("table2")},
        lambda w: {"subnetId": w.need("subnet2"), "routeTableId": w.need("table")},
        ("subnetId",),
    ),
    "aws:ec2/vpnGatewayRoutePropagation:VpnGatewayRoutePropagation": Case(
        lambda w: {"vpnGatewayId": w.need("vgw"), "routeTableId": w.need("table")},
        None,
        lambda w: {"vpnGatewayId": w.need("vgw"), "routeTableId": w.need("table2")},
        ("routeTableId",),
    ),
    "aws:ec2/securityGroup:SecurityGroup": Case(
        GROUP,
        merged(GROUP, ingress=[], revokeRulesOnDelete=True),
        merged(GROUP, description="e"),
        ("description",),
        ("arn", "name"),
    ),
    "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule": Case(
        RULE,
        merged(RULE, toPort=23),
        merged(RULE, securityGroupId="sg-other"),
        ("securityGroupId",),
        ("securityGroupRuleId",),
    ),
    "aws:vpc/securityGroupEgressRule:SecurityGroupEgressRule": Case(
        lambda w: {
            "securityGroupId": w.need("group"),
            "ipProtocol": "-1",
            "referencedSecurityGroupId": w.need("group"),
        },
        lambda w: {"securityGroupId": w.need("group"), "ipProtocol": "-1", "cidrIpv4": "0.0.0.0/0"},
    ),
    "aws:ec2/vpcEndpoint:VpcEndpoint": Case(
        S3,
        merged(S3, tags={"a": "b"}),
        merged(S3, serviceName="com.amazonaws.us-east-1.dynamodb"),
        ("serviceName",),
        ("arn", "state"),
    ),
    "aws:ec2/placementGroup:PlacementGroup": Case(
        lambda w: {"strategy": "cluster"}, None, lambda w: {"strategy": "spread"}, ("strategy",), ("placementGroupId",)
    ),
    "aws:ec2/launchTemplate:LaunchTemplate": Case(
        TEMPLATE,
        merged(TEMPLATE, instanceType="p5en.48xlarge", ebsOptimized="false"),
        merged(TEMPLATE, name="other"),
        ("name",),
        ("latestVersion", "defaultVersion", "arn"),
    ),
    "aws:ec2/instance:Instance": Case(
        INSTANCE,
        merged(INSTANCE, metadataOptions={"httpTokens": "optional"}, tags={"Name": "m"}, sourceDestCheck=False),
        merged(INSTANCE, subnetId=lambda w: w.need("subnet2")),
        ("subnetId",),
        ("privateIp", "privateDns", "arn", "primaryNetworkInterfaceId", "instanceState"),
    ),
    "aws:ec2/keyPair:KeyPair": Case(
        lambda w: {"publicKey": KEY},
        lambda w: {"publicKey": KEY, "tags": {"a": "b"}},
        lambda w: {"publicKey": KEY, "keyName": "other"},
        ("keyName",),
        ("fingerprint", "keyPairId"),
    ),
    "aws:ec2/customerGateway:CustomerGateway": Case(
        CGW, merged(CGW, tags={"a": "c"}), merged(CGW, bgpAsn="65099"), ("bgpAsn",)
    ),
    "aws:ec2/vpnGateway:VpnGateway": Case(
        lambda w: {"vpcId": w.need("vpc2")},
        lambda w: {"tags": {"a": "b"}},
        lambda w: {"amazonSideAsn": "64999"},
        ("amazonSideAsn",),
    ),
    "aws:ec2/vpnConnection:VpnConnection": Case(
        VPN,
        merged(VPN, customerGatewayId=lambda w: w.need("cgw2"), tunnel1PresharedKey="zyxwvuts9876"),
        merged(VPN, staticRoutesOnly=True),
        ("staticRoutesOnly",),
        ("tunnel1Address", "tunnel2PresharedKey"),
    ),
    "aws:iam/role:Role": Case(
        ROLE,
        merged(ROLE, managedPolicyArns=[], maxSessionDuration=7200),
        merged(ROLE, path="/x/"),
        ("path",),
        ("arn", "uniqueId"),
    ),
    "aws:iam/rolePolicy:RolePolicy": Case(
        lambda w: {"role": w.need("role"), "policy": POLICY},
        lambda w: {"role": w.need("role"), "policy": OTHER_POLICY},
        lambda w: {"role": w.need("role2"), "policy": POLICY},
        ("role",),
    ),
    "aws:iam/rolePolicyAttachment:RolePolicyAttachment": Case(
        lambda w: {"role": w.need("role"), "policyArn": w.need("policy")},
        None,
        lambda w: {"role": w.need("role2"), "policyArn": w.need("policy")},
        ("role",),
    ),
    "aws:iam/instanceProfile:InstanceProfile": Case(
        lambda w: {"role": w.need("role")},
        lambda w: {"role": w.need("role2"), "tags": {"a": "b"}},
        lambda w: {"path": "/x/"},
        ("path",),
        ("arn",),
    ),
    "aws:iam/policy:Policy": Case(
        lambda w: {"policy": POLICY},
        lambda w: {"policy": OTHER_POLICY},
        lambda w: {"policy": POLICY, "description": "d"},
        ("description",),
        ("arn",),
    ),
    "aws:sqs/queue:Queue": Case(
        QUEUE,
        merged(QUEUE, messageRetentionSeconds=600, tags={}),
        merged(QUEUE, name="other"),
        ("name",),
        ("url", "arn"),
    ),
    "aws:sqs/queuePolicy:QueuePolicy": Case(
        lambda w: {"queueUrl": w.need("queue"), "policy": POLICY},
        lambda w: {"queueUrl": w.need("queue"), "policy": OTHER_POLICY},
        lambda w: {"queueUrl": "http://127.0.0.1/other", "policy": POLICY},
        ("queueUrl",),
    ),
    "aws:cloudwatch/eventRule:EventRule": Case(
        EVENT, merged(EVENT, description="e"), merged(EVENT, name="other"), ("name",), ("arn",)
    ),
    "aws:cloudwatch/eventTarget:EventTarget": Case(
        TARGET, merged(TARGET, arn="arn:aws:sqs:us-east-1:123456789012:other"), merged(TARGET, rule="other"), ("rule",)
    ),
    "aws:cloudwatch/metricAlarm:MetricAlarm": Case(
        ALARM, merged(ALARM, threshold=2, tags={"a": "c"}), merged(ALARM, name="other"), ("name",), ("arn",)
    ),
    "aws:sns/topic:Topic": Case(
        lambda w: {"displayName": "d"},
        lambda w: {"displayName": "e", "tags": {"a": "b"}},
        lambda w: {"name": "o"},
        ("name",),
    ),
    "aws:sns/topicSubscription:TopicSubscription": Case(
        SUBSCRIPTION,
        merged(SUBSCRIPTION, rawMessageDelivery=True),
        merged(SUBSCRIPTION, endpoint="arn:aws:sqs:us-east-1:123456789012:other"),
        ("endpoint",),
    ),
    "aws:ssm/parameter:Parameter": Case(
        lambda w: {"type": "String", "value": "one"},
        lambda w: {"type": "String", "value": "two", "description": "d"},
        lambda w: {"type": "String", "value": "one", "name": "/other"},
        ("name",),
        ("version", "arn"),
    ),
    "aws:budgets/budget:Budget": Case(
        BUDGET, merged(BUDGET, limitAmount="30000", notifications=[]), merged(BUDGET, name="other"), ("name",), ("arn",)
    ),
    "aws:ec2transitgateway/vpcAttachment:VpcAttachment": Case(
        ATTACHMENT,
        merged(ATTACHMENT, subnetIds=lambda w: [w.need("subnet"), w.need("subnet2")], tags={"c": "d"}),
        merged(ATTACHMENT, vpcId=lambda w: w.need("vpc2")),
        ("vpcId",),
        ("arn", "vpcOwnerId"),
    ),
    "aws:directconnect/gatewayAssociation:GatewayAssociation": Case(
        ASSOCIATION,
        merged(ASSOCIATION, allowedPrefixes=["10.90.0.0/16", "10.91.0.0/16"]),
        merged(ASSOCIATION, dxGatewayId="0a1b2c3d-4e5f-6789-abcd-ef0123456789"),
        ("dxGatewayId",),
        ("dxGatewayAssociationId", "associatedGatewayType"),
    ),
    "aws:eks/cluster:Cluster": Case(
        CONTROL_PLANE,
        lambda w: (
            CONTROL_PLANE(w)
            | {"version": "1.36", "tags": {}}
            | {"vpcConfig": CONTROL_PLANE(w)["vpcConfig"] | {"subnetIds": [w.need("subnet3"), w.need("subnet2")]}}
        ),
        merged(CONTROL_PLANE, kubernetesNetworkConfig={"serviceIpv4Cidr": "172.21.0.0/16"}),
        ("kubernetesNetworkConfig",),
        ("arn", "endpoint", "certificateAuthority"),
    ),
    "aws:eks/accessEntry:AccessEntry": Case(
        ENTRY, merged(ENTRY, tags={"c": "d"}), merged(ENTRY, userName="other"), ("userName",), ("accessEntryArn",)
    ),
    "aws:eks/accessPolicyAssociation:AccessPolicyAssociation": Case(
        RIGHT, None, merged(RIGHT, accessScope={"type": "namespace", "namespaces": ["a"]}), ("accessScope",)
    ),
    "aws:rolesanywhere/trustAnchor:TrustAnchor": Case(ANCHOR, merged(ANCHOR, enabled=False, tags={}), outputs=("arn",)),
    "aws:rolesanywhere/profile:Profile": Case(
        ANYWHERE, merged(ANYWHERE, durationSeconds=900, tags={"c": "d"}), outputs=("arn",)
    ),
    "aws:secretsmanager/secret:Secret": Case(
        lambda w: {"description": "d", "recoveryWindowInDays": 0, "tags": {"a": "b"}},
        lambda w: {"description": "e", "recoveryWindowInDays": 0, "tags": {}},
        lambda w: {"name": "other"},
        ("name",),
        ("arn",),
    ),
}
