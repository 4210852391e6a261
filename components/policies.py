"""IAM and queue policies as pure functions: what a node and the controller may do, and no more."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ironburst.naming import CLUSTER_TAG, POOL_TAG

Document = dict[str, Any]


@dataclass(frozen=True)
class Scope:
    """Where the ARNs lie: partition (aws, aws-cn, aws-us-gov), region and account number."""

    partition: str
    region: str
    account: str

    def arn(self, service: str, resource: str, *, region: str | None = None, account: str | None = None) -> str:
        """The ARN of a service's resource; IAM's have no region, public images no account."""
        region = self.region if region is None else region
        account = self.account if account is None else account
        return f"arn:{self.partition}:{service}:{region}:{account}:{resource}"


def _document(*statements: Document) -> Document:
    return {"Version": "2012-10-17", "Statement": list(statements)}


def _allow(sid: str, actions: Sequence[str], resources: Any, condition: Document | None = None) -> Document:
    statement = {"Sid": sid, "Effect": "Allow", "Action": list(actions), "Resource": resources}
    return statement | ({"Condition": condition} if condition else {})


def assumed_by_ec2() -> Document:
    """Trust policy of the nodes' role."""
    return _document({"Effect": "Allow", "Principal": {"Service": "ec2.amazonaws.com"}, "Action": "sts:AssumeRole"})


def assumed_within(scope: Scope) -> Document:
    """Trust policy of the controller's role: a principal of the account that is itself allowed to assume it."""
    root = scope.arn("iam", "root", region="")
    return _document({"Effect": "Allow", "Principal": {"AWS": root}, "Action": "sts:AssumeRole"})


def node(scope: Scope, munge_key: str) -> Document:
    """A node reads its munge key (a reference into Secrets Manager), nothing else."""
    name = munge_key.partition(":")[2].partition("#")[0]
    # Secrets Manager puts a hyphen and six random characters behind the name.
    secret = name if name.startswith("arn:") else scope.arn("secretsmanager", f"secret:{name}-??????")
    return _document(_allow("MungeKey", ["secretsmanager:GetSecretValue"], [secret]))


@dataclass(frozen=True)
class Pools:
    """What the controller may launch: names and instance types of the pools, and the ARNs that their launches touch."""

    names: Sequence[str]
    instance_types: Sequence[str]
    template_arns: Sequence[str]
    used_arns: Sequence[str]
    """what the templates and the launches name: subnets, security group, key pair, capacity reservations"""
    spot: bool
    """whether any pool may rent in the spot market"""
    queue_arns: Sequence[str]
    image_parameter_arns: Sequence[str]


def controller(scope: Scope, cluster: str, pools: Pools, node_role_arn: str) -> Document:
    """The controller launches the declared types from the pools' templates with the cluster's
    tags, and ends only instances of the pools.

    IAM can limit kinds and tags, not how many: the count is the ledger's,
    the budget's and the account's quotas' business.
    """
    wanted = {f"aws:RequestTag/{CLUSTER_TAG}": cluster, f"aws:RequestTag/{POOL_TAG}": list(pools.names)}
    present = {f"ec2:ResourceTag/{CLUSTER_TAG}": cluster, f"ec2:ResourceTag/{POOL_TAG}": list(pools.names)}
    launched = {
        "StringEquals": wanted | {"ec2:InstanceType": list(pools.instance_types)},
        "ArnEquals": {"ec2:LaunchTemplate": list(pools.template_arns)},
    }
    instance = scope.arn("ec2", "instance/*")
    parts = [scope.arn("ec2", "volume/*"), scope.arn("ec2", "network-interface/*")]
    used = [*pools.template_arns, *pools.used_arns, scope.arn("ec2", "image/*", account="")]
    used += [scope.arn("ec2", "spot-instances-request/*")] if pools.spot else []
    return _document(
        _allow("LaunchInstances", ["ec2:RunInstances"], [instance], launched),
        _allow("LaunchParts", ["ec2:RunInstances"], parts, {"StringEquals": wanted}),
        _allow("LaunchFrom", ["ec2:RunInstances"], used),
        _allow(
            "TagAtLaunch",
            ["ec2:CreateTags"],
            [instance, *parts],
            {"StringEquals": {"ec2:CreateAction": "RunInstances"}},
        ),
        _allow("EndPoolInstances", ["ec2:TerminateInstances"], [instance], {"StringEquals": present}),
        # these know no resource-level permission
        _allow("Look", ["ec2:DescribeInstances", "ec2:DescribeInstanceStatus"], ["*"]),
        _allow(
            "PassNodeRole",
            ["iam:PassRole"],
            [node_role_arn],
            {"StringEquals": {"iam:PassedToService": "ec2.amazonaws.com"}},
        ),
        _allow("PoolImages", ["ssm:GetParameter"], list(pools.image_parameter_arns)),
        *(
            [_allow("Interruptions", ["sqs:ReceiveMessage", "sqs:DeleteMessage"], list(pools.queue_arns))]
            if pools.queue_arns
            else []
        ),
    )


def queue(queue_arn: str, rule_arns: Sequence[str]) -> Document:
    """The event rules, and nobody else, may send to the queue."""
    return _document(
        {
            "Sid": "Events",
            "Effect": "Allow",
            "Principal": {"Service": "events.amazonaws.com"},
            "Action": "sqs:SendMessage",
            "Resource": queue_arn,
            "Condition": {"ArnEquals": {"aws:SourceArn": list(rule_arns)}},
        }
    )
