"""The policies of the role that does `up`: what a stack needs, and no way to a right that its boundary doesn't have.

Roles are made and changed only with the boundary, below the path, and passed on to the services that run them. In EC2
it makes what it wants in its region, and changes and takes away what has the stack's tag; all else is by name. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ironburst.config.aws import policies, roles
from ironburst.config.aws.models import AwsCloud
from ironburst.config.models import ClusterConfig
from ironburst.nodes.naming import CLUSTER_TAG, cluster_object

Document = dict[str, Any]
ROLES, RESOURCES = "up-roles", "up-resources"
"""names of the two managed policies"""

_READ = [
    *("iam:GetRole", "iam:GetRolePolicy", "iam:ListRolePolicies", "iam:ListAttachedRolePolicies"),
    *("iam:ListInstanceProfilesForRole", "iam:ListRoleTags"),
]
_WITH_BOUNDARY = ["iam:CreateRole", "iam:PutRolePolicy", "iam:DeleteRolePolicy", "iam:PutRolePermissionsBoundary"]
_KEEP = [
    *("iam:DeleteRole", "iam:UpdateRole", "iam:UpdateRoleDescription", "iam:UpdateAssumeRolePolicy"),
    *("iam:TagRole", "iam:UntagRole"),
]
_PROFILES = [
    f"iam:{name}"
    for name in (
        *("CreateInstanceProfile", "DeleteInstanceProfile", "GetInstanceProfile", "AddRoleToInstanceProfile"),
        *("RemoveRoleFromInstanceProfile", "TagInstanceProfile", "UntagInstanceProfile"),
    )
]
_POLICIES = [
    f"iam:{name}"
    for name in (
        *("CreatePolicy", "CreatePolicyVersion", "DeletePolicy", "DeletePolicyVersion", "GetPolicy"),
        *("GetPolicyVersion", "ListPolicyVersions", "TagPolicy", "UntagPolicy"),
    )
]
_UNBOUND = ["iam:CreatePolicyVersion", "iam:DeletePolicy", "iam:DeletePolicyVersion", "iam:SetDefaultPolicyVersion"]
_MADE = [
    *("AllocateAddress", "CreateInternetGateway", "CreateLaunchTemplate", "CreateNatGateway", "CreatePlacementGroup"),
    *("CreateRouteTable", "CreateSecurityGroup", "CreateSubnet", "CreateVpc", "CreateVpcEndpoint"),
    # of an association no tag is known
    *("DisassociateAddress", "DisassociateRouteTable", "ReplaceRouteTableAssociation"),
]
_OWN = [
    *("AssociateRouteTable", "AttachInternetGateway", "AuthorizeSecurityGroupEgress", "AuthorizeSecurityGroupIngress"),
    *("CreateLaunchTemplateVersion", "CreateRoute", "DetachInternetGateway", "ModifyLaunchTemplate"),
    *("ModifySubnetAttribute", "ModifyVpcAttribute", "ModifyVpcEndpoint", "ReplaceRoute", "RevokeSecurityGroupEgress"),
    *("RevokeSecurityGroupIngress", "UpdateSecurityGroupRuleDescriptionsEgress"),
    *("UpdateSecurityGroupRuleDescriptionsIngress", "DeleteInternetGateway", "DeleteLaunchTemplate"),
    *("DeleteNatGateway", "DeletePlacementGroup", "DeleteRoute", "DeleteRouteTable", "DeleteSecurityGroup"),
    *("DeleteSubnet", "DeleteVpc", "DeleteVpcEndpoints", "ReleaseAddress"),
]
"""a template of another team's, above all: whoever changes one gives its instances' role away"""
_LINKS_MADE = [
    *("CreateCustomerGateway", "CreateTransitGatewayVpcAttachment", "CreateVpnConnection", "CreateVpnGateway"),
]
_LINKS_OWN = [
    *("AttachVpnGateway", "DetachVpnGateway", "DisableVgwRoutePropagation", "EnableVgwRoutePropagation"),
    *("ModifyVpnConnectionOptions", "ModifyVpnTunnelOptions", "DeleteCustomerGateway", "DeleteVpnConnection"),
    *("DeleteVpnGateway", "DeleteTransitGatewayVpcAttachment", "ModifyTransitGatewayVpcAttachment"),
]
_NODES_OWN = [
    *("AssociateIamInstanceProfile", "ReplaceIamInstanceProfileAssociation", "ModifyInstanceAttribute"),
    *("ModifyInstanceMetadataOptions", "StopInstances", "TerminateInstances"),
]


_EKS = [
    *("DescribeCluster", "DeleteCluster", "UpdateClusterConfig", "UpdateClusterVersion", "DescribeUpdate"),
    *("CreateAccessEntry", "DescribeAccessEntry", "UpdateAccessEntry", "DeleteAccessEntry", "AssociateAccessPolicy"),
    *("DisassociateAccessPolicy", "ListAssociatedAccessPolicies", "TagResource", "UntagResource"),
    "ListTagsForResource",
]


def policies_of(config: ClusterConfig, cloud: AwsCloud, scope: policies.Scope) -> dict[str, Document]:
    """Name -> managed policy: both are attached to the role that does `up`. Needs a declared boundary."""
    documents = {ROLES: [*_roles(config, cloud, scope)], RESOURCES: [*_resources(config, cloud, scope)]}
    return {name: policies.document(*statements) for name, statements in documents.items()}


def _roles(config: ClusterConfig, cloud: AwsCloud, scope: policies.Scope) -> Iterator[Document]:
    boundary = cloud.iam.permissions_boundary
    assert boundary

    def named(kind: str) -> list[str]:
        return [scope.arn("iam", f"{kind}{cloud.iam.path or '/'}{config.name}-*", region="")]

    eks = bool(config.kubernetes and config.kubernetes.eks)
    bounded = {"StringEquals": {"iam:PermissionsBoundary": boundary}}
    asked = ["iam:ListRoles", "iam:ListOpenIDConnectProviders", "iam:GetOpenIDConnectProvider"]
    yield policies.allow("Ask", asked, ["*"])
    yield policies.allow("MakeBounded", _WITH_BOUNDARY, named("role"), bounded)
    if eks:
        keys = {"iam:PolicyARN": [scope.managed_policy(name) for name in roles.EKS_NODE + roles.EKS_PLANE]}
        attached = {**bounded, "ArnEquals": keys}
        yield policies.allow("AttachBounded", ["iam:AttachRolePolicy", "iam:DetachRolePolicy"], named("role"), attached)
        made = {"StringEquals": {"iam:AWSServiceName": "eks.amazonaws.com"}}
        own = [scope.arn("iam", "role/aws-service-role/*", region="")]
        yield policies.allow("ServiceRole", ["iam:CreateServiceLinkedRole"], own, made)
    yield policies.allow("Keep", _READ + _KEEP, named("role"))
    yield policies.allow("Profiles", _PROFILES, named("instance-profile"))
    yield policies.allow("Policies", _POLICIES, named("policy"))
    services = ["ec2", *(["eks"] if eks else []), *(["rolesanywhere"] if cloud.controller else [])]
    suffix = "amazonaws.com.cn" if scope.partition == "aws-cn" else "amazonaws.com"
    to = {"StringEquals": {"iam:PassedToService": [f"{name}.{suffix}" for name in services]}}
    yield policies.allow("Pass", ["iam:PassRole"], named("role"), to)
    yield policies.deny("KeepBoundary", _UNBOUND, [boundary])
    yield policies.deny("StayBounded", ["iam:DeleteRolePermissionsBoundary"], ["*"])


def _resources(config: ClusterConfig, cloud: AwsCloud, scope: policies.Scope) -> Iterator[Document]:
    """EC2 and what is beside it; a service that isn't declared is left out."""
    name, links = config.name, bool(cloud.network.links)
    here = {"StringEquals": {"aws:RequestedRegion": scope.region}}
    own = {"StringEquals": {f"aws:ResourceTag/{CLUSTER_TAG}": name}}
    made = _MADE + (_LINKS_MADE if links else []) + (["RunInstances"] if cloud.groups else [])
    changed = _OWN + (_LINKS_OWN if links else []) + (_NODES_OWN if cloud.groups else [])
    yield policies.allow("Look", ["ec2:Describe*"], ["*"])
    yield policies.allow("Make", [f"ec2:{each}" for each in made], ["*"], here)
    yield policies.allow("Own", [f"ec2:{each}" for each in changed], ["*"], own)
    yield policies.allow("TagAtBirth", ["ec2:CreateTags"], ["*"], {"Null": {"ec2:CreateAction": "false"}})
    yield policies.allow("TagOwn", ["ec2:CreateTags", "ec2:DeleteTags"], ["*"], own)
    queues, rules = scope.arn("sqs", f"{name}-*"), scope.arn("events", f"rule/{name}-*")
    if cloud.pools:
        of_queue = ("CreateQueue", "DeleteQueue", "GetQueueAttributes", "SetQueueAttributes", "ListQueueTags")
        actions = [f"sqs:{each}" for each in (*of_queue, "GetQueueUrl", "TagQueue", "UntagQueue")]
        yield policies.allow("Queue", actions, [queues])
        of_rule = ("PutRule", "DeleteRule", "DescribeRule", "PutTargets", "RemoveTargets", "ListTargetsByRule")
        actions = [f"events:{each}" for each in (*of_rule, "ListTagsForResource", "TagResource", "UntagResource")]
        yield policies.allow("Rule", actions, [rules])
    if cloud.pools and config.budget:
        of_budget = ("ViewBudget", "ModifyBudget", "ListTagsForResource", "TagResource", "UntagResource")
        budgets = [scope.arn("budgets", f"budget/{name}-*", region="")]
        yield policies.allow("Budget", [f"budgets:{each}" for each in of_budget], budgets)
    if any(link.kind == "direct-connect" for link in cloud.network.links):
        verbs = ("Create", "Delete", "Describe", "Update")
        nouns = ("Associations" if verb == "Describe" else "Association" for verb in verbs)
        actions = [f"directconnect:{verb}DirectConnectGateway{noun}" for verb, noun in zip(verbs, nouns, strict=True)]
        yield policies.allow("DirectConnect", actions, ["*"])
    if cloud.controller:
        of_both = ("Create", "Delete", "Get", "Update", "Enable", "Disable")
        actions = [f"rolesanywhere:{verb}{noun}" for noun in ("TrustAnchor", "Profile") for verb in of_both]
        actions += [f"rolesanywhere:{each}" for each in ("ListTagsForResource", "TagResource", "UntagResource")]
        yield policies.allow("SignIn", actions, ["*"], here)
    if config.kubernetes and config.kubernetes.eks:
        called = cluster_object(name)
        arns = [scope.arn("eks", f"cluster/{called}"), scope.arn("eks", f"access-entry/{called}/*")]
        yield policies.allow("MakeEks", ["eks:CreateCluster"], ["*"], here)
        yield policies.allow("Eks", [f"eks:{each}" for each in _EKS], arns)
    if buckets := roles.buckets(cloud):
        arns = [scope.arn("s3", bucket, region="", account="") for bucket in buckets]
        yield policies.allow("LookForData", ["s3:ListBucket", "s3:GetBucketLocation"], arns)
