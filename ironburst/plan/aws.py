"""AWS's kinds of resources."""

from __future__ import annotations

from ironburst.plan.kinds import Kinds

_INSTANCE, _CLUSTER = "aws:ec2/instance:Instance", "aws:eks/cluster:Cluster"
AWS = Kinds(
    nodes={_INSTANCE: "fixed node", _CLUSTER: "control plane"},
    control_planes=frozenset({_CLUSTER}),
    stops={
        _INSTANCE: frozenset(
            {"instanceType", "ebsOptimized", "userData", "userDataBase64", "cpuOptions", "hibernation"}
        )
    },
    words={
        "aws:ec2/launchTemplate:LaunchTemplate": "launch template",
        "aws:ec2/securityGroup:SecurityGroup": "security group",
        "aws:ec2/vpc:Vpc": "network (VPC)",
        "aws:ec2/natGateway:NatGateway": "NAT gateway",
        "aws:ec2/vpnConnection:VpnConnection": "VPN connection",
        "aws:iam/role:Role": "IAM role",
        "aws:iam/rolePolicy:RolePolicy": "rights of an IAM role",
        "aws:iam/policy:Policy": "IAM policy",
        "aws:sqs/queue:Queue": "queue (SQS)",
        "aws:budgets/budget:Budget": "budget alarm",
    },
    firewalls={"aws:ec2/securityGroup:SecurityGroup": "ingress"},
    rules=(":SecurityGroupRule", ":SecurityGroupIngressRule"),
    secrets=("aws:secretsmanager/secret",),
)
