"""IAM and queue policies as pure functions: what a node and the controller may do, and no more."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ironburst.config.aws.data_models import DataSet
from ironburst.nodes.naming import CLUSTER_TAG, LEASE_TAG, POOL_TAG, ROLE_TAG, image_parameter

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

    def managed_policy(self, name: str) -> str:
        """The ARN of a policy that AWS keeps."""
        return f"arn:{self.partition}:iam::aws:policy/{name}"

    def access_policy(self, name: str) -> str:
        """The ARN of EKS's rights in a cluster."""
        return f"arn:{self.partition}:eks::aws:cluster-access-policy/{name}"


def ec2(partition: str) -> str:
    """The principal that EC2 is in a policy. China's has an ending of its own; EKS and EventBridge have none there."""
    return "ec2.amazonaws.com.cn" if partition == "aws-cn" else "ec2.amazonaws.com"


def document(*statements: Document) -> Document:
    """A policy of these statements."""
    return {"Version": "2012-10-17", "Statement": list(statements)}


def allow(sid: str, actions: Sequence[str], resources: Any, condition: Document | None = None) -> Document:
    """A statement."""
    statement = {"Sid": sid, "Effect": "Allow", "Action": list(actions), "Resource": resources}
    return statement | ({"Condition": condition} if condition else {})


def deny(sid: str, actions: Sequence[str], resources: Any) -> Document:
    """A statement that no other one lifts."""
    return {"Sid": sid, "Effect": "Deny", "Action": list(actions), "Resource": resources}


def assumed_by_ec2(partition: str = "aws") -> Document:
    """Trust policy of the nodes' role."""
    return document({"Effect": "Allow", "Principal": {"Service": ec2(partition)}, "Action": "sts:AssumeRole"})


def assumed_by_eks() -> Document:
    """Trust policy of a control plane's role."""
    return document({"Effect": "Allow", "Principal": {"Service": "eks.amazonaws.com"}, "Action": "sts:AssumeRole"})


def assumed_within(scope: Scope) -> Document:
    """Trust policy of the controller's role: a principal of the account that is itself allowed to assume it."""
    root = scope.arn("iam", "root", region="")
    return document({"Effect": "Allow", "Principal": {"AWS": root}, "Action": "sts:AssumeRole"})


def assumed_with_certificate(trust_anchor_arn: str, common_name: str) -> Document:
    """Trust policy of the controller's role: IAM Roles Anywhere, for one trust anchor and one subject. Nobody else."""
    return document(
        {
            "Effect": "Allow",
            "Principal": {"Service": "rolesanywhere.amazonaws.com"},
            "Action": ["sts:AssumeRole", "sts:TagSession", "sts:SetSourceIdentity"],
            "Condition": {
                "ArnEquals": {"aws:SourceArn": trust_anchor_arn},
                "StringEquals": {"aws:PrincipalTag/x509Subject/CN": common_name},
            },
        }
    )


def assumed_by_ci(scope: Scope, issuer: str, audience: str, subjects: Sequence[str]) -> Document:
    """Trust policy of CI's role: tokens of one issuer, for this audience and these subjects, each as a whole."""
    provider = scope.arn("iam", f"oidc-provider/{issuer}", region="")
    return document(
        {
            "Effect": "Allow",
            "Principal": {"Federated": provider},
            "Action": "sts:AssumeRoleWithWebIdentity",
            "Condition": {"StringEquals": {f"{issuer}:aud": audience, f"{issuer}:sub": list(subjects)}},
        }
    )


def previewing(scope: Scope, buckets: Sequence[str] = ()) -> Document:
    """What a preview asks of the account and of the buckets with declared data (account.py). No refresh: that
    would have to read, among others, VPN connections, and EC2 shows their pre-shared keys with them.
    """
    actions = [
        "ec2:DescribeImages",
        "ec2:DescribeInstanceTypeOfferings",
        "ec2:DescribeTransitGateways",
        "iam:GetOpenIDConnectProvider",
        "iam:ListOpenIDConnectProviders",
        "iam:ListRoles",
    ]
    statements = [allow("Ask", actions, ["*"])]
    if buckets:
        arns = [scope.arn("s3", bucket, region="", account="") for bucket in buckets]
        statements.append(allow("LookForData", ["s3:ListBucket"], arns))
    return document(*statements)


def node(scope: Scope, joins_with: Sequence[str], data: Sequence[DataSet] = ()) -> Document:
    """A rented node reads what it joins with (references into Secrets Manager; a fixed one: none) and its data,
    nothing else.

    A secret under a key of one's own in KMS needs kms:Decrypt on that key, too: in the key's policy, for this role.
    """
    return document(*([_joining(scope, joins_with)] if joins_with else []), *_reading(scope.partition, data))


def _joining(scope: Scope, references: Sequence[str]) -> Document:
    return allow("JoinsWith", ["secretsmanager:GetSecretValue"], [_secret(scope, each) for each in references])


def _secret(scope: Scope, reference: str) -> str:
    """The ARN of a reference into Secrets Manager, which puts a hyphen and six random characters behind the name."""
    name = reference.partition(":")[2].partition("#")[0]
    return name if name.startswith("arn:") else scope.arn("secretsmanager", f"secret:{name}-??????")


def _reading(partition: str, data: Sequence[DataSet]) -> list[Document]:
    """The objects of these data sets, those in S3. A bucket that is listed without its prefix, or with a neighbour's
    (imagenet-21k beside imagenet), shows nothing. A bucket of another account has to let this role in itself.
    """
    statements = []
    for n, declared in enumerate(declared for declared in data if declared.s3):
        bucket, _, prefix = (declared.s3 or "").partition("/")
        arn, key = f"arn:{partition}:s3:::{bucket}", declared.kms_key
        listed = {"StringEquals": {"s3:prefix": f"{prefix}/"}} if prefix else None
        statements.append(allow(f"ListData{n}", ["s3:ListBucket"], [arn], listed))
        objects = f"{arn}/{prefix}/*" if prefix else f"{arn}/*"
        statements.append(allow(f"ReadData{n}", ["s3:GetObject"], [objects]))
        if key:
            by_s3 = {"StringLike": {"kms:ViaService": f"s3.{key.split(':')[3]}.amazonaws.com*"}}  # China's has .cn
            statements.append(allow(f"DecryptData{n}", ["kms:Decrypt"], [key], by_s3))
    return statements


@dataclass(frozen=True)
class Pools:
    """What the controller may launch: names and instance types of the pools, and the ARNs that nothing else bounds."""

    names: Sequence[str]
    instance_types: Sequence[str]
    bought_arns: Sequence[str]
    """capacity reservations, and groups of them"""
    spot: bool
    """whether any pool may rent in the spot market"""
    queue_arns: Sequence[str]
    image_owners: Sequence[str]
    """account numbers, amazon or aws-marketplace"""
    join_token: str | None = None
    """reference of the secret that the controller puts the token into that Kubernetes nodes join with"""


def _rented(cluster: str) -> Document:
    """The instances that a controller of this cluster launched, of whichever pool: only those carry a lease."""
    return {
        "StringEquals": {f"ec2:ResourceTag/{CLUSTER_TAG}": cluster},
        "Null": {f"ec2:ResourceTag/{LEASE_TAG}": "false"},
    }


def ending(scope: Scope, cluster: str) -> Document:
    """The controller sees instances, and ends those that it rented. By their tags, not by what is declared: a pool
    that is declared no more still has to be given back.
    """
    instances = [scope.arn("ec2", "instance/*")]
    return document(
        allow("EndRented", ["ec2:TerminateInstances"], instances, _rented(cluster)),
        allow("LastWords", ["ec2:GetConsoleOutput"], instances, _rented(cluster)),
        # they know no resource-level permission
        allow(
            "Look",
            [f"ec2:Describe{what}" for what in ("Images", "Instances", "InstanceStatus", "SpotPriceHistory")],
            ["*"],
        ),
    )


def launching(scope: Scope, cluster: str, pools: Pools, node_role_arns: Sequence[str]) -> Document:
    """The controller launches the declared types from the pools' templates, as these are, and images of the declared
    owners, with the tags by which it may end them.

    A role takes 10,240 characters (docs/adr/0099), so neither templates nor what they name are listed: a template is a
    pool's by its tags, and of the rest of a launch nothing may be another than the template's.
    IAM can limit kinds and tags, not how many: the count is the ledger's,
    the budget's and the account's quotas' business. Nor the version of a template: the document names it.
    """
    wanted = {f"aws:RequestTag/{CLUSTER_TAG}": cluster, f"aws:RequestTag/{POOL_TAG}": list(pools.names)}
    templates = scope.arn("ec2", "launch-template/*")
    launched = {
        "StringEquals": wanted | {"ec2:InstanceType": list(pools.instance_types)},
        "Null": {f"aws:RequestTag/{LEASE_TAG}": "false"},
        "ArnLike": {"ec2:LaunchTemplate": templates},
    }
    of_pools = {
        "StringEquals": {f"ec2:ResourceTag/{CLUSTER_TAG}": cluster},
        "Null": {f"ec2:ResourceTag/{POOL_TAG}": "false"},
    }
    instance = scope.arn("ec2", "instance/*")
    parts = [scope.arn("ec2", "volume/*"), scope.arn("ec2", "network-interface/*")]
    spot = [scope.arn("ec2", "spot-instances-request/*")] if pools.spot else []
    within = [*pools.bought_arns, *spot]
    named = [scope.arn("ec2", f"{kind}/*") for kind in ("subnet", "security-group", "key-pair", "placement-group")]
    images, owners = [scope.arn("ec2", "image/*", account="")], {"ec2:Owner": list(pools.image_owners)}
    return document(
        allow("LaunchInstances", ["ec2:RunInstances"], [instance], launched),
        allow("LaunchParts", ["ec2:RunInstances"], parts, {"StringEquals": wanted}),
        allow("LaunchFrom", ["ec2:RunInstances"], [templates], of_pools),
        allow("LaunchAsThere", ["ec2:RunInstances"], named, {"Bool": {"ec2:IsLaunchTemplateResource": "true"}}),
        *([allow("LaunchWithin", ["ec2:RunInstances"], within)] if within else []),
        allow("LaunchImages", ["ec2:RunInstances"], images, {"StringEquals": owners}),
        allow(
            "TagAtLaunch",
            ["ec2:CreateTags"],
            [instance, *parts, *spot],
            {"StringEquals": {"ec2:CreateAction": "RunInstances"}},
        ),
        # by name: which role may be passed can't be told by its tags
        allow(
            "PassNodeRole",
            ["iam:PassRole"],
            list(node_role_arns),
            {"StringEquals": {"iam:PassedToService": ec2(scope.partition)}},
        ),
        allow("PoolImages", ["ssm:GetParameter"], [_images(scope, cluster)]),
        *_interruptions(pools.queue_arns),
        *([_handing_out(scope, pools.join_token)] if pools.join_token else []),
    )


def _images(scope: Scope, cluster: str) -> str:
    """The parameters that name the images of the cluster's pools."""
    return scope.arn("ssm", f"parameter{image_parameter(cluster, '*')}")


def _handing_out(scope: Scope, reference: str) -> Document:
    return allow("JoinToken", ["secretsmanager:PutSecretValue"], [_secret(scope, reference)])


def _interruptions(queue_arns: Sequence[str]) -> list[Document]:
    """None where there is no queue. DeleteMessage covers DeleteMessageBatch."""
    received = ["sqs:ReceiveMessage", "sqs:DeleteMessage"]
    return [allow("Interruptions", received, list(queue_arns))] if queue_arns else []


def baking(scope: Scope, cluster: str) -> Document:
    """What `ironburst image` needs, for the people and the CI that bake: build instances and images by their tags, and
    the pools' parameters. Any base image may be built on; a build has no role, so none may be passed.
    """
    mine = {f"aws:RequestTag/{CLUSTER_TAG}": cluster, f"aws:RequestTag/{ROLE_TAG}": "image-build"}
    there = f"ec2:ResourceTag/{CLUSTER_TAG}", f"ec2:ResourceTag/{ROLE_TAG}"
    building, baked = (
        {"StringEquals": dict(zip(there, (cluster, role), strict=True))} for role in ("image-build", "image")
    )
    instance, image, snapshot = (
        scope.arn("ec2", "instance/*"),
        scope.arn("ec2", "image/*", account=""),
        scope.arn("ec2", "snapshot/*", account=""),
    )
    made = [instance, scope.arn("ec2", "volume/*"), scope.arn("ec2", "network-interface/*")]
    used = [scope.arn("ec2", f"{kind}/*") for kind in ("subnet", "security-group", "capacity-reservation")]
    used += [scope.arn("resource-groups", "group/*")]
    creating = {"StringEquals": {"ec2:CreateAction": ["RunInstances", "CreateImage"]}}
    return document(
        allow("Build", ["ec2:RunInstances"], made, {"StringEquals": mine}),
        allow("BuildFrom", ["ec2:RunInstances"], [*used, image]),
        allow("TagAtBirth", ["ec2:CreateTags"], [*made, image, snapshot], creating),
        allow(
            "EndBuild",
            ["ec2:StopInstances", "ec2:TerminateInstances", "ec2:GetConsoleOutput", "ec2:CreateImage"],
            [instance],
            building,
        ),
        allow("MakeImage", ["ec2:CreateImage"], [image, snapshot]),
        allow("ForgetImage", ["ec2:DeregisterImage", "ec2:DeleteSnapshot"], [image, snapshot], baked),
        allow(
            "Look",
            ["ec2:DescribeInstances", "ec2:DescribeImages", "ec2:DescribeLaunchTemplateVersions"],
            ["*"],
        ),
        allow("PublishImage", ["ssm:GetParameter", "ssm:PutParameter"], [_images(scope, cluster)]),
    )


def queue(queue_arn: str, rule_arns: Sequence[str]) -> Document:
    """The event rules, and nobody else, may send to the queue."""
    return document(
        {
            "Sid": "Events",
            "Effect": "Allow",
            "Principal": {"Service": "events.amazonaws.com"},
            "Action": "sqs:SendMessage",
            "Resource": queue_arn,
            "Condition": {"ArnEquals": {"aws:SourceArn": list(rule_arns)}},
        }
    )
