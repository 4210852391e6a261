"""What IAM is asked for one call: each action on each of its resources, with the condition keys that these two have.

The facts are those of AWS's Service Authorization Reference (EC2, IAM, SQS, Systems Manager, Secrets Manager, STS).
RunInstances is asked for every resource that it makes or uses, and CreateTags and PassRole beside it. A call that has
no entry here is asked on "*": only a policy for all resources allows it.

A pinned version of a launch template can't be asked for: IAM has no such key (ec2:LaunchTemplateVersion stands in
decoded messages and is documented nowhere).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from moto.ec2.models import ec2_backends
from moto.iam.models import iam_backends
from moto.secretsmanager.models import secretsmanager_backends

from lab.aws.capacity import stash
from lab.aws.iam_policy import Check
from lab.aws.launch_spec import Params, market_of, spec_of, zone_of

Keys = dict[str, list[str]]
# what a resource id begins with -> its type in an ARN; images and snapshots have no account there
TYPES = {
    "i": "instance",
    "vol": "volume",
    "eni": "network-interface",
    "subnet": "subnet",
    "sg": "security-group",
    "lt": "launch-template",
    "cr": "capacity-reservation",
    "ami": "image",
    "snap": "snapshot",
    "sir": "spot-instances-request",
    "vpc": "vpc",
    "rtb": "route-table",
    "igw": "internet-gateway",
    "nat": "natgateway",
    "eipalloc": "elastic-ip",
    "vpce": "vpc-endpoint",
    "vgw": "vpn-gateway",
    "cgw": "customer-gateway",
    "vpn": "vpn-connection",
    "tgw": "transit-gateway",
    "tgw-attach": "transit-gateway-attachment",
}
WITHOUT_ACCOUNT = {"image", "snapshot"}
BORN = {"instance", "volume", "network-interface", "spot-instances-request"}
"""in a launch; moto keeps a template's own tags beside these"""
ON_INSTANCES = {"TerminateInstances", "StopInstances", "StartInstances", "RebootInstances"}
ON_INSTANCE = {"GetConsoleOutput", "GetConsoleScreenshot", "ModifyInstanceAttribute"}
ON_NAMED = {
    "DeleteVpc": "VpcId",
    "ModifyVpcAttribute": "VpcId",
    "DeleteSubnet": "SubnetId",
    "ModifySubnetAttribute": "SubnetId",
    "DeleteRouteTable": "RouteTableId",
    "CreateRoute": "RouteTableId",
    "ReplaceRoute": "RouteTableId",
    "DeleteRoute": "RouteTableId",
    "AssociateRouteTable": "RouteTableId SubnetId",
    "DeleteInternetGateway": "InternetGatewayId",
    "AttachInternetGateway": "InternetGatewayId VpcId",
    "DetachInternetGateway": "InternetGatewayId VpcId",
    "DeleteNatGateway": "NatGatewayId",
    "ReleaseAddress": "AllocationId",
    "DeleteVpcEndpoints": "VpcEndpointIds",
    "ModifyVpcEndpoint": "VpcEndpointId",
    "DeleteSecurityGroup": "GroupId",
    **{f"{verb}SecurityGroup{way}": "GroupId" for verb in ("Authorize", "Revoke") for way in ("Ingress", "Egress")},
    "DeleteLaunchTemplate": "LaunchTemplateId",
    "CreateLaunchTemplateVersion": "LaunchTemplateId",
    "ModifyLaunchTemplate": "LaunchTemplateId",
    "DeleteVpnGateway": "VpnGatewayId",
    "AttachVpnGateway": "VpnGatewayId VpcId",
    "DetachVpnGateway": "VpnGatewayId VpcId",
    "EnableVgwRoutePropagation": "RouteTableId GatewayId",
    "DisableVgwRoutePropagation": "RouteTableId GatewayId",
    "DeleteCustomerGateway": "CustomerGatewayId",
    "DeleteVpnConnection": "VpnConnectionId",
    **{f"{verb}TransitGatewayVpcAttachment": "TransitGatewayAttachmentId" for verb in ("Delete", "Modify")},
}
"""EC2's actions: the parameters that name what they are on, each of which is asked for"""


class Account:
    """One account's region, and what IAM knows of its resources."""

    def __init__(self, account: str, region: str, partition: str = "aws"):
        self.account, self.region, self.partition = account, region, partition
        self.ec2: Any = ec2_backends[account][region]
        self.iam: Any = iam_backends[account][partition]
        self.secrets: Any = secretsmanager_backends[account][region]

    def arn(self, service: str, resource: str, *, region: str | None = None, account: str | None = None) -> str:
        region = self.region if region is None else region
        account = self.account if account is None else account
        return f"arn:{self.partition}:{service}:{region}:{account}:{resource}"

    def ec2_arn(self, kind: str, name: str = "*") -> str:
        return self.arn("ec2", f"{kind}/{name}", account="" if kind in WITHOUT_ACCOUNT else None)

    def check(self, action: str, resource: str, *keys: Keys) -> Check:
        """With the keys that every call has."""
        common = {"aws:RequestedRegion": [self.region]} | ({"ec2:Region": [self.region]} if "ec2:" in action else {})
        merged = {key.lower(): values for part in (common, *keys) for key, values in part.items()}
        return Check(action, resource, merged)

    def existing(self, action: str, resource_id: str, *keys: Keys) -> Check:
        """On an EC2 resource by its id, with its tags. One that isn't there has none."""
        kind = TYPES.get(resource_id.rpartition("-")[0], "unknown")
        tags = self.ec2.tags.get(resource_id, {})
        own = {f"{prefix}:ResourceTag/{key}": [value] for key, value in tags.items() for prefix in ("ec2", "aws")}
        if kind == "image" and (image := self.ec2.amis.get(resource_id)):
            public = str(bool(getattr(image, "is_public", False))).lower()
            own |= {"ec2:Owner": [str(image.owner_id)], "ec2:ImageID": [resource_id], "ec2:Public": [public]}
        if kind == "instance" and (instance := self._instance(resource_id)):
            own |= {"ec2:InstanceType": [instance.instance_type], "ec2:AvailabilityZone": [instance.availability_zone]}
        return self.check(action, self.ec2_arn(kind, resource_id), own, *keys)

    def _instance(self, instance_id: str) -> Any:
        return next((each for each in self.ec2.all_instances() if each.id == instance_id), None)

    def role_of(self, profile: Params | None) -> str | None:
        """The ARN of the role in an instance profile."""
        wanted = {(profile or {}).get("Name"), (profile or {}).get("Arn")} - {None}
        for known in self.iam.instance_profiles.values():
            if wanted & {known.name, known.arn} and known.roles:
                return str(known.roles[0].arn)
        return None


def tagging(tags: dict[str, str]) -> Keys:
    """The keys of tags that a request brings."""
    asked = {f"aws:RequestTag/{key}": [value] for key, value in tags.items()}
    return asked | ({"aws:TagKeys": sorted(tags)} if tags else {})


def asked_tags(params: Params) -> dict[str, dict[str, str]]:
    """Resource type -> the tags that a request's TagSpecifications give it."""
    return {s["ResourceType"]: {t["Key"]: t["Value"] for t in s["Tags"]} for s in params.get("TagSpecifications", [])}


def _tagged_at(where: Account, action: str, kinds: dict[str, dict[str, str]]) -> list[Check]:
    created = {"ec2:CreateAction": [action]}
    return [
        where.check("ec2:CreateTags", where.ec2_arn(kind), tagging(tags), created)
        for kind, tags in kinds.items()
        if tags
    ]


def run_instances(where: Account, p: Params) -> list[Check]:
    """Every resource of the launch, CreateTags for those that are born with tags, PassRole for the nodes' role."""
    spec, action = spec_of(where.ec2, p), "ec2:RunInstances"
    tags, used = {kind: own for kind, own in asked_tags(spec).items() if kind in BORN}, spec.get("LaunchTemplate")
    template = where.ec2_arn("launch-template", used["Id"]) if used else ""
    subnet, zone = zone_of(where.ec2, spec)
    market = market_of(spec)

    def common(*parameters: str) -> Keys:
        """`parameters`: whose presence in the request overrides the template."""
        whole = str(not any(p.get(name) for name in parameters)).lower()
        return {"ec2:LaunchTemplate": [template], "ec2:IsLaunchTemplateResource": [whole]} if used else {}

    instance = {
        "ec2:InstanceType": [str(spec.get("InstanceType"))],
        "ec2:AvailabilityZone": [zone],
        "ec2:InstanceMarketType": [market],
        "ec2:Tenancy": [(spec.get("Placement") or {}).get("Tenancy") or "default"],
        "ec2:MetadataHttpTokens": [(spec.get("MetadataOptions") or {}).get("HttpTokens") or "optional"],
        "ec2:RootDeviceType": ["ebs"],
    }
    found = [
        where.check(
            action, where.ec2_arn("instance"), instance, tagging(tags.get("instance", {})), common("InstanceType")
        )
    ]
    disks = [disk["Ebs"] for disk in spec.get("BlockDeviceMappings", []) if disk.get("Ebs")] or [{}]
    found += [
        where.check(
            action, where.ec2_arn("volume"), _disk(disk), tagging(tags.get("volume", {})), common("BlockDeviceMappings")
        )
        for disk in disks
    ]
    interface = {"ec2:AvailabilityZone": [zone]} | ({"ec2:Subnet": [where.ec2_arn("subnet", subnet)]} if subnet else {})
    found += [
        where.check(
            action,
            where.ec2_arn("network-interface"),
            interface,
            tagging(tags.get("network-interface", {})),
            common("NetworkInterfaces"),
        )
    ]
    found += [where.existing(action, each, common(*names)) for names, each in _used(spec, subnet) if each]
    found += [where.existing(action, used["Id"], common())] if used else []
    if market == "spot":
        asked = tagging(tags.get("spot-instances-request", {}))
        found.append(
            where.check(action, where.ec2_arn("spot-instances-request"), asked, common("InstanceMarketOptions"))
        )
    for kind, name, parameter in (
        ("key-pair", spec.get("KeyName"), "KeyName"),
        ("placement-group", (spec.get("Placement") or {}).get("GroupName"), "Placement"),
    ):
        found += [where.check(action, where.ec2_arn(kind, name), common(parameter))] if name else []
    if group := _target(spec).get("CapacityReservationResourceGroupArn"):  # which of its reservations is EC2's choice
        for arn in (group, where.ec2_arn("capacity-reservation")):
            found.append(where.check(action, arn, common("CapacityReservationSpecification")))
    return found + _tagged_at(where, "RunInstances", tags) + _passed(where, spec)


def _used(spec: Params, subnet: str | None) -> list[tuple[tuple[str, ...], str | None]]:
    """(parameters that could have named it, id) of what is there before the launch."""
    groups = {group for nic in spec.get("NetworkInterfaces", []) for group in nic.get("Groups", [])}
    snapshots = [d["Ebs"].get("SnapshotId") for d in spec.get("BlockDeviceMappings", []) if d.get("Ebs")]
    return [
        (("ImageId",), spec.get("ImageId")),
        (("SubnetId", "NetworkInterfaces"), subnet),
        *(
            (("SecurityGroupIds", "NetworkInterfaces"), group)
            for group in sorted(groups | set(spec.get("SecurityGroupIds", [])))
        ),
        (("CapacityReservationSpecification",), _target(spec).get("CapacityReservationId")),
        *((("BlockDeviceMappings",), snapshot) for snapshot in snapshots),
    ]


def _target(spec: Params) -> Params:
    return (spec.get("CapacityReservationSpecification") or {}).get("CapacityReservationTarget") or {}


def _disk(ebs: Params) -> Keys:
    asked = {"ec2:VolumeSize": "VolumeSize", "ec2:VolumeType": "VolumeType", "ec2:Encrypted": "Encrypted"}
    return {key: [str(ebs[name]).lower()] for key, name in asked.items() if ebs.get(name) is not None}


def _passed(where: Account, spec: Params) -> list[Check]:
    role = where.role_of(spec.get("IamInstanceProfile"))
    return [where.check("iam:PassRole", role, {"iam:PassedToService": ["ec2.amazonaws.com"]})] if role else []


def create_image(where: Account, p: Params) -> list[Check]:
    tags = asked_tags(p)
    made = [
        where.check("ec2:CreateImage", where.ec2_arn(kind), tagging(tags.get(kind, {})))
        for kind in ("image", "snapshot")
    ]
    instance = where.existing("ec2:CreateImage", p["InstanceId"])
    return [instance, *made, *_tagged_at(where, "CreateImage", tags)]


def deregister_image(where: Account, p: Params) -> list[Check]:
    """With its snapshots: each is asked for as well."""
    found = [where.existing("ec2:DeregisterImage", p["ImageId"])]
    image = where.ec2.amis.get(p["ImageId"])
    if str(p.get("DeleteAssociatedSnapshots", "")).lower() == "true" and image:
        found.append(where.existing("ec2:DeleteSnapshot", image.ebs_snapshot.id))
    return found


def tags_of_existing(action: str) -> Callable[[Account, Params], list[Check]]:
    def asked(where: Account, p: Params) -> list[Check]:
        tags = {tag["Key"]: str(tag.get("Value", "")) for tag in p.get("Tags", [])}
        return [where.existing(f"ec2:{action}", each, tagging(tags)) for each in p["Resources"]]

    return asked


def on_ids(action: str, parameter: str) -> Callable[[Account, Params], list[Check]]:
    """An EC2 action on what a parameter names, or each of several."""

    def asked(where: Account, p: Params) -> list[Check]:
        given = [p[each] for each in parameter.split() if each in p]
        ids = [each for value in given for each in (value if isinstance(value, list) else [value])]
        return [where.existing(f"ec2:{action}", each) for each in ids] or [where.check(f"ec2:{action}", "*")]

    return asked


def parameters(action: str) -> Callable[[Account, Params], list[Check]]:
    """Of Systems Manager, by name."""

    def asked(where: Account, p: Params) -> list[Check]:
        names = p.get("Names") or [p["Name"]]
        return [where.check(f"ssm:{action}", where.arn("ssm", f"parameter/{name.lstrip('/')}")) for name in names]

    return asked


def queue(action: str) -> Callable[[Account, Params], list[Check]]:
    """Of SQS; a batch is asked for as the call itself."""

    def asked(where: Account, p: Params) -> list[Check]:
        name = p.get("QueueName") or p["QueueUrl"].rstrip("/").rsplit("/", 1)[-1]
        return [where.check(f"sqs:{action}", where.arn("sqs", name))]

    return asked


def secret(action: str) -> Callable[[Account, Params], list[Check]]:
    """By name or ARN; of a name that isn't there the six characters behind it can't be known."""

    def asked(where: Account, p: Params) -> list[Check]:
        name = p["SecretId"]
        known = name in where.secrets.secrets
        arn = where.secrets.secrets[name].arn if known else where.arn("secretsmanager", f"secret:{name}")
        return [where.check(f"secretsmanager:{action}", name if name.startswith("arn:") else arn)]

    return asked


def assume_role(where: Account, p: Params) -> list[Check]:
    return [where.check("sts:AssumeRole", p["RoleArn"])]


def budgets(action: str) -> Callable[[Account, Params], list[Check]]:
    """By its name, or by the ARN of what is tagged; a list is asked for on all."""

    def asked(where: Account, p: Params) -> list[Check]:
        name = p.get("BudgetName") or p.get("Budget", {}).get("BudgetName") or "*"
        arn = p.get("ResourceARN") or where.arn("budgets", f"budget/{name}", region="")
        return [where.check(f"budgets:{action}", arn)]

    return asked


def event_rule(action: str) -> Callable[[Account, Params], list[Check]]:
    """Of the default bus."""

    def asked(where: Account, p: Params) -> list[Check]:
        arn = p.get("ResourceARN") or where.arn("events", f"rule/{p.get('Name') or p.get('Rule')}")
        return [where.check(f"events:{action}", arn)]

    return asked


def cluster(action: str) -> Callable[[Account, Params], list[Check]]:
    """Of EKS: a cluster by its name, or an entry of one; what is tagged, by its ARN. Of a new cluster nothing is known
    to IAM, and its role is passed on.
    """

    def asked(where: Account, p: Params) -> list[Check]:
        name, who = p.get("clusterName") or p.get("name"), p.get("principalArn")
        arn = where.arn("eks", f"cluster/{name}")
        if who and action != "CreateAccessEntry":
            kind, _, called = str(who).rpartition(":")[2].partition("/")
            arn = where.arn("eks", f"access-entry/{name}/{kind}/{where.account}/{called.rpartition('/')[2]}/*")
        tags = tagging({key: str(value) for key, value in (p.get("tags") or {}).items()})
        if action != "CreateCluster":
            return [where.check(f"eks:{action}", p.get("resourceArn") or arn, tags)]
        passed = {"iam:PassedToService": ["eks.amazonaws.com"]}
        return [where.check("eks:CreateCluster", "*", tags), where.check("iam:PassRole", p["roleArn"], passed)]

    return asked


def placement_group(where: Account, p: Params) -> list[Check]:
    known = stash(where.ec2, "groups").get(p["GroupName"], {})
    tags = {tag["Key"]: tag["Value"] for tag in known.get("Tags", [])}
    own = {f"{prefix}:ResourceTag/{key}": [value] for key, value in tags.items() for prefix in ("ec2", "aws")}
    return [where.check("ec2:DeletePlacementGroup", where.ec2_arn("placement-group", p["GroupName"]), own)]


def simulated(where: Account, p: Params) -> list[Check]:
    return [where.check("iam:SimulatePrincipalPolicy", p["PolicySourceArn"])]


# ---- IAM itself
def of_role(action: str) -> Callable[[Account, Params], list[Check]]:
    """The boundary is the one that the request brings, else the role's."""

    def asked(where: Account, p: Params) -> list[Check]:
        name = p["RoleName"]
        role = next((each for each in where.iam.roles.values() if each.name == name), None)
        arn = role.arn if role else where.arn("iam", f"role{p.get('Path') or '/'}{name}", region="")
        boundary = p.get("PermissionsBoundary") or (role and role.permissions_boundary_arn)
        keys = {"iam:PermissionsBoundary": boundary, "iam:PolicyARN": p.get("PolicyArn")}
        known = {key: [str(value)] for key, value in keys.items() if value}
        return [where.check(f"iam:{action}", arn, known, tagging(_listed_tags(p)))]

    return asked


def of_profile(action: str) -> Callable[[Account, Params], list[Check]]:
    """A role that comes into one is passed on."""

    def asked(where: Account, p: Params) -> list[Check]:
        name = p["InstanceProfileName"]
        known = next((each for each in where.iam.instance_profiles.values() if each.name == name), None)
        arn = known.arn if known else where.arn("iam", f"instance-profile{p.get('Path') or '/'}{name}", region="")
        found = [where.check(f"iam:{action}", arn, tagging(_listed_tags(p)))]
        if action == "AddRoleToInstanceProfile":
            role = next((each for each in where.iam.roles.values() if each.name == p["RoleName"]), None)
            passed = {"iam:PassedToService": ["ec2.amazonaws.com"]}
            found += [where.check("iam:PassRole", role.arn, passed)] if role else []
        return found

    return asked


def of_policy(action: str) -> Callable[[Account, Params], list[Check]]:
    def asked(where: Account, p: Params) -> list[Check]:
        made = where.arn("iam", f"policy{p.get('Path') or '/'}{p.get('PolicyName')}", region="")
        return [where.check(f"iam:{action}", p.get("PolicyArn") or made, tagging(_listed_tags(p)))]

    return asked


def _listed_tags(p: Params) -> dict[str, str]:
    return {tag["Key"]: tag["Value"] for tag in p.get("Tags") or []}


ON_ROLES = (
    *("CreateRole", "DeleteRole", "GetRole", "UpdateRole", "UpdateRoleDescription", "UpdateAssumeRolePolicy"),
    *("PutRolePolicy", "DeleteRolePolicy", "GetRolePolicy", "ListRolePolicies", "ListAttachedRolePolicies"),
    *("AttachRolePolicy", "DetachRolePolicy", "PutRolePermissionsBoundary", "DeleteRolePermissionsBoundary"),
    *("TagRole", "UntagRole", "ListRoleTags", "ListInstanceProfilesForRole"),
)
ON_PROFILES = (
    *("CreateInstanceProfile", "DeleteInstanceProfile", "GetInstanceProfile", "AddRoleToInstanceProfile"),
    *("RemoveRoleFromInstanceProfile", "TagInstanceProfile", "UntagInstanceProfile"),
)
ON_QUEUES = (
    *("ReceiveMessage", "GetQueueAttributes", "GetQueueUrl", "PurgeQueue", "CreateQueue", "DeleteQueue"),
    *("SetQueueAttributes", "ListQueueTags", "TagQueue", "UntagQueue"),
)
OF_EKS = (
    *("CreateCluster", "DescribeCluster", "DeleteCluster", "UpdateClusterConfig", "UpdateClusterVersion"),
    *("DescribeUpdate", "CreateAccessEntry", "DescribeAccessEntry", "UpdateAccessEntry", "DeleteAccessEntry"),
    *("AssociateAccessPolicy", "DisassociateAccessPolicy", "ListAssociatedAccessPolicies", "ListTagsForResource"),
    *("TagResource", "UntagResource"),
)
ON_RULES = (
    *("PutRule", "DeleteRule", "DescribeRule", "PutTargets", "RemoveTargets", "ListTargetsByRule"),
    *("ListTagsForResource", "TagResource", "UntagResource"),
)
OF_BUDGETS = {
    **{f"Describe{name}": "ViewBudget" for name in ("Budgets", "Budget", "NotificationsForBudget")},
    "DescribeSubscribersForNotification": "ViewBudget",
    **{
        f"{verb}{noun}": "ModifyBudget"
        for verb in ("Create", "Update", "Delete")
        for noun in ("Budget", "Notification", "Subscriber")
    },
    **{name: name for name in ("ListTagsForResource", "TagResource", "UntagResource")},
}
"""call -> right"""
ON_POLICIES = (
    *("CreatePolicy", "DeletePolicy", "GetPolicy", "CreatePolicyVersion", "DeletePolicyVersion", "GetPolicyVersion"),
    *("ListPolicyVersions", "SetDefaultPolicyVersion", "TagPolicy", "UntagPolicy"),
)


Asked = Callable[[Account, Params], Iterable[Check]]
CALLS: dict[tuple[str, str], Asked] = {
    ("ec2", "RunInstances"): run_instances,
    ("ec2", "CreateImage"): create_image,
    ("ec2", "DeregisterImage"): deregister_image,
    ("ec2", "DeleteSnapshot"): on_ids("DeleteSnapshot", "SnapshotId"),
    ("sts", "AssumeRole"): assume_role,
    ("ec2", "DeletePlacementGroup"): placement_group,
    **{("budgets", name): budgets(right) for name, right in OF_BUDGETS.items()},
    **{("events", name): event_rule(name) for name in ON_RULES},
    **{("eks", name): cluster(name) for name in OF_EKS},
    ("iam", "SimulatePrincipalPolicy"): simulated,
    **{("iam", name): of_role(name) for name in ON_ROLES},
    **{("iam", name): of_profile(name) for name in ON_PROFILES},
    **{("iam", name): of_policy(name) for name in ON_POLICIES},
    **{("ec2", name): on_ids(name, parameter) for name, parameter in ON_NAMED.items()},
    **{("ec2", name): on_ids(name, "InstanceIds") for name in ON_INSTANCES},
    **{("ec2", name): on_ids(name, "InstanceId") for name in ON_INSTANCE},
    **{("ec2", name): tags_of_existing(name) for name in ("CreateTags", "DeleteTags")},
    **{
        ("ssm", name): parameters(name) for name in ("GetParameter", "GetParameters", "PutParameter", "DeleteParameter")
    },
    **{("sqs", name): queue(name) for name in ON_QUEUES},
    **{
        ("sqs", name + batch): queue(name)
        for name in ("SendMessage", "DeleteMessage", "ChangeMessageVisibility")
        for batch in ("", "Batch")
    },
    **{("secretsmanager", name): secret(name) for name in ("GetSecretValue", "DescribeSecret", "PutSecretValue")},
}
FREE = {("sts", "GetCallerIdentity")}  # nobody can be kept from it
PREFIXES = {"service-quotas": "servicequotas"}
"""services that IAM calls otherwise than moto"""


def checks(where: Account, service: str, action: str, params: Params) -> list[Check]:
    """What IAM is asked for a call. Raises Ec2Error where the call itself is wrong before that."""
    if (service, action) in FREE:
        return []
    asked = CALLS.get((service, action))
    return list(asked(where, params)) if asked else [where.check(f"{PREFIXES.get(service, service)}:{action}", "*")]
