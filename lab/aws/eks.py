"""EKS, which moto has without access entries and takes nearly everything for: clusters, and who may sign in to them.

As AWS: a cluster is not there at once, nor gone at once, and until it is ACTIVE nothing else may be asked of it; it
takes subnets of two zones of one VPC, and keeps to those zones; a role that EKS may assume; versions one after the
other; an access entry of nodes has no groups and no user, one of people none that looks like the system's own; whoever
makes a cluster with bootstrapClusterCreatorAdminPermissions has an entry already.
"""

from __future__ import annotations

import base64
import ipaddress
import re
import time
import uuid
from typing import Any

from moto.ec2.models import ec2_backends
from moto.iam.models import iam_backends

from lab.aws import iam
from lab.aws.capacity import stash
from lab.aws.iam_calls import Account
from lab.aws.launch_spec import Params
from lab.aws.rest import Refused, RestService

SERVICE, PRINCIPAL = "eks", "eks.amazonaws.com"
NAME = re.compile(r"[0-9A-Za-z][A-Za-z0-9_-]{0,99}")
OFFERED = tuple(f"1.{minor}" for minor in range(31, 37))
NO_ZONES = ("use1-az3", "usw1-az2", "cac1-az3")
"""ids of zones in which EKS makes no interfaces"""
LOOKS = 2
"""times that a cluster is looked at before it has become what was asked for"""
LEAST_ADDRESSES = 6
OF_NODES = ("EC2", "EC2_LINUX", "EC2_WINDOWS", "FARGATE_LINUX", "HYBRID_LINUX", "HYPERPOD_LINUX")
SYSTEMS_OWN = ("system:", "eks:", "aws:", "amazon:", "iam:")
ACCESS_POLICY = "arn:aws:eks::aws:cluster-access-policy/"
AUTHORITY = base64.b64encode(b"-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n").decode()


def wrong(message: str) -> Refused:
    return Refused("InvalidParameterException", message)


def in_use(message: str) -> Refused:
    return Refused("ResourceInUseException", message, 409)


def missing(message: str) -> Refused:
    return Refused("ResourceNotFoundException", message, 404)


class Eks(RestService):
    """The service. `behind`: URL and authority (PEM) of an API server that stands behind new clusters; None: nothing
    answers there.
    """

    service = SERVICE
    behind: tuple[str, str] | None = None

    def answered(self, where: Account, call: str, p: Params) -> Params:
        """The answer of one call."""
        if call not in CALLS:
            raise Refused("UnknownOperationException", f"the lab's EKS has no {call}", 404)
        answer: Params = CALLS[call](where, p)
        if call == "CreateCluster" and self.behind:
            server, authority = self.behind
            data = base64.b64encode(authority.encode()).decode()
            table(where)[p["name"]] |= {"endpoint": server, "certificateAuthority": {"data": data}}
        return answer


def table(where: Account) -> dict[str, Params]:
    """Name -> cluster, with `entries`, `looks` (until it is what was asked for) and `to` (that status) beside it."""
    return stash(iam_backends[where.account]["aws"], SERVICE).setdefault(where.region, {})


def kept(where: Account, name: str, *, active: bool = True) -> Params:
    """A cluster; `active`: it must be."""
    row = table(where).get(name)
    if row is None:
        raise missing(f"No cluster found for name: {name}.")
    if active and row["status"] != "ACTIVE":
        raise in_use(f"Cluster {name} is {row['status']}")
    return row


def shown(row: Params) -> Params:
    seen = {key: value for key, value in row.items() if key not in ("entries", "looks")}
    if row["status"] == "CREATING":
        for key in ("endpoint", "certificateAuthority"):
            seen.pop(key)
    return seen


# ---- clusters
def create_cluster(where: Account, p: Params) -> Params:
    name, access = p["name"], p.get("accessConfig", {})
    if not NAME.fullmatch(name):
        raise wrong(f"cluster name {name!r}: letters, digits, - and _, 100 at most")
    if name in table(where):
        raise in_use(f"Cluster already exists with name: {name}")
    version = p.get("version", OFFERED[-1])
    if version not in OFFERED:
        raise wrong(f"unsupported Kubernetes version {version}")
    may_be_assumed(where, p["roleArn"])
    vpc = checked_network(where, p["resourcesVpcConfig"])
    services = p.get("kubernetesNetworkConfig", {}).get("serviceIpv4Cidr", "10.100.0.0/16")
    checked_services(where, services, vpc["vpcId"])
    row = {
        "name": name,
        "arn": where.arn(SERVICE, f"cluster/{name}"),
        "createdAt": time.time(),
        "version": version,
        "platformVersion": "eks.1",
        "endpoint": f"https://{uuid.uuid4().hex.upper()}.gr7.{where.region}.eks.amazonaws.com",
        "certificateAuthority": {"data": AUTHORITY},
        "roleArn": p["roleArn"],
        "resourcesVpcConfig": vpc,
        "kubernetesNetworkConfig": {"serviceIpv4Cidr": services, "ipFamily": "ipv4"},
        "accessConfig": {"authenticationMode": access.get("authenticationMode", "CONFIG_MAP")},
        "tags": dict(p.get("tags", {})),
        "status": "CREATING",
        "looks": LOOKS,
        "entries": {},
    }
    if access.get("bootstrapClusterCreatorAdminPermissions", True):
        row["entries"][where.arn("iam", "root", region="")] = entry_of(where, row, {"type": "STANDARD"})
    table(where)[name] = row
    return {"cluster": shown(row)}


def may_be_assumed(where: Account, role_arn: str) -> None:
    trust = iam.trust_policy(where, role_arn)
    if PRINCIPAL not in str(trust):
        raise wrong(f"The role {role_arn} cannot be assumed by {PRINCIPAL}")


def checked_network(where: Account, p: Params) -> Params:
    """The network of a cluster as it is shown. Raises what AWS answers to one that it doesn't take."""
    ec2 = ec2_backends[where.account][where.region]
    known = {subnet.id: subnet for each in ec2.subnets.values() for subnet in each.values()}
    if unknown := sorted(set(p.get("subnetIds", [])) - known.keys()):
        raise wrong(f"The subnet ID '{unknown[0]}' does not exist")
    subnets = [known[each] for each in p.get("subnetIds", [])]
    if len({subnet.availability_zone for subnet in subnets}) < 2:
        raise wrong("Subnets specified must be in at least two different AZs")
    if bad := [subnet for subnet in subnets if subnet.availability_zone_id in NO_ZONES]:
        text = f"Cannot create cluster: {bad[0].availability_zone} does not currently have sufficient capacity"
        raise Refused("UnsupportedAvailabilityZoneException", text)
    if len({subnet.vpc_id for subnet in subnets}) > 1:
        raise wrong("Subnets must be in the same VPC")
    for subnet in subnets:
        if subnet.available_ip_address_count < LEAST_ADDRESSES:
            raise wrong(f"{subnet.id} has fewer than {LEAST_ADDRESSES} free addresses")
    groups = [ec2.get_security_group_from_id(each) for each in p.get("securityGroupIds", [])]
    if any(group is None or group.vpc_id != subnets[0].vpc_id for group in groups):
        raise wrong("The security groups must be in the VPC of the subnets")
    public, private = p.get("endpointPublicAccess", True), p.get("endpointPrivateAccess", False)
    if not (public or private):
        raise wrong("Private and public endpoint access cannot be false")
    return {
        "subnetIds": list(p["subnetIds"]),
        "securityGroupIds": list(p.get("securityGroupIds", [])),
        "clusterSecurityGroupId": "sg-" + uuid.uuid4().hex[:17],
        "vpcId": subnets[0].vpc_id,
        "endpointPublicAccess": public,
        "endpointPrivateAccess": private,
        "publicAccessCidrs": list(p.get("publicAccessCidrs") or (["0.0.0.0/0"] if public else [])),
    }


def checked_services(where: Account, cidr: str, vpc_id: str) -> None:
    network = ipaddress.IPv4Network(cidr)
    if not network.is_private or not 12 <= network.prefixlen <= 24:
        raise wrong(f"serviceIpv4Cidr {cidr} must be a private network between /12 and /24")
    vpc = ec2_backends[where.account][where.region].get_vpc(vpc_id)
    if network.overlaps(ipaddress.IPv4Network(vpc.cidr_block)):
        raise wrong(f"serviceIpv4Cidr {cidr} overlaps the VPC's {vpc.cidr_block}")


def describe_cluster(where: Account, p: Params) -> Params:
    row = kept(where, p["name"], active=False)
    if row["status"] != "ACTIVE":
        row["looks"] -= 1
        if row["looks"] < 0 and row["status"] == "DELETING":
            del table(where)[p["name"]]
            raise missing(f"No cluster found for name: {p['name']}.")
        if row["looks"] < 0:
            row["status"] = "ACTIVE"
    return {"cluster": shown(row)}


def delete_cluster(where: Account, p: Params) -> Params:
    row = kept(where, p["name"])
    row |= {"status": "DELETING", "looks": LOOKS}
    return {"cluster": shown(row)}


def update_cluster_config(where: Account, p: Params) -> Params:
    row = kept(where, p["name"])
    if "resourcesVpcConfig" in p:
        before = row["resourcesVpcConfig"]
        after = checked_network(where, {**before, **p["resourcesVpcConfig"]})
        if zones(where, after["subnetIds"]) != zones(where, before["subnetIds"]):
            raise wrong("Provided subnets belong to the AZs that are not those of the cluster")
        row["resourcesVpcConfig"] = after | {"clusterSecurityGroupId": before["clusterSecurityGroupId"]}
    return updating(row, "VpcConfigUpdate")


def zones(where: Account, subnet_ids: list[str]) -> set[str]:
    ec2 = ec2_backends[where.account][where.region]
    return {ec2.get_subnet(each).availability_zone for each in subnet_ids}


def update_cluster_version(where: Account, p: Params) -> Params:
    row = kept(where, p["name"])
    old, new = (int(each.partition(".")[2]) for each in (row["version"], p["version"]))
    if p["version"] not in OFFERED or new != old + 1:
        raise wrong(f"Unsupported Kubernetes minor version update from {row['version']} to {p['version']}")
    row["version"] = p["version"]
    return updating(row, "VersionUpdate")


def updating(row: Params, kind: str) -> Params:
    row |= {"status": "UPDATING", "looks": LOOKS}
    update = {"id": str(uuid.uuid4()), "status": "InProgress", "type": kind, "params": [], "createdAt": time.time()}
    return {"update": update}


# ---- access entries
def with_entries(where: Account, p: Params) -> Params:
    row = kept(where, p["clusterName"])
    if row["accessConfig"]["authenticationMode"] == "CONFIG_MAP":
        modes = "[API, API_AND_CONFIG_MAP]"
        text = f"The cluster's authentication mode must be set to one of {modes} to perform this operation."
        raise Refused("InvalidRequestException", text)
    return row


def entry(where: Account, p: Params) -> Params:
    found = with_entries(where, p)["entries"].get(p["principalArn"])
    if found is None:
        raise missing(f"The specified principalArn could not be found: {p['principalArn']}")
    return found


def create_access_entry(where: Account, p: Params) -> Params:
    row, arn = with_entries(where, p), p["principalArn"]
    if arn in row["entries"]:
        raise in_use("The specified access entry resource is already in use on this cluster.")
    principals = [*where.iam.roles.values(), *where.iam.users.values()]
    if arn not in {each.arn for each in principals}:
        raise wrong("The specified principalArn is invalid: invalid principal.")
    made = entry_of(where, row, {**p, "type": p.get("type", "STANDARD")})
    row["entries"][arn] = made
    return {"accessEntry": public(made)}


def entry_of(where: Account, row: Params, p: Params) -> Params:
    kind, groups, user = p["type"], p.get("kubernetesGroups", []), p.get("username", "")
    if kind in OF_NODES and (groups or user):
        raise wrong(f"kubernetesGroups and username can't be given for an access entry of type {kind}")
    if kind not in (*OF_NODES, "STANDARD"):
        raise wrong(f"{kind} is no type of access entries")
    if kind in OF_NODES and ":role/" not in p["principalArn"]:
        raise wrong(f"an access entry of type {kind} needs a role")
    if bad := [name for name in [*groups, user] if name.startswith(SYSTEMS_OWN)]:
        raise wrong(f"{bad[0]} is invalid: it can't start with {', '.join(SYSTEMS_OWN)}")
    if kind in OF_NODES:
        groups, user = (
            ["system:nodes"],
            "system:node:{{%s}}" % ("SessionName" if kind == "EC2" else "EC2PrivateDNSName"),
        )
    arn = p.get("principalArn", where.arn("iam", "root", region=""))
    return {
        "clusterName": row["name"],
        "principalArn": arn,
        "kubernetesGroups": groups,
        "accessEntryArn": where.arn(SERVICE, f"access-entry/{row['name']}/{arn.rpartition('/')[2]}/{uuid.uuid4()}"),
        "createdAt": time.time(),
        "modifiedAt": time.time(),
        "tags": dict(p.get("tags", {})),
        "username": user or arn,
        "type": kind,
        "policies": {},
    }


def public(found: Params) -> Params:
    return {key: value for key, value in found.items() if key != "policies"}


def delete_access_entry(where: Account, p: Params) -> Params:
    entry(where, p)
    del with_entries(where, p)["entries"][p["principalArn"]]
    return {}


def associate(where: Account, p: Params) -> Params:
    found = entry(where, p)
    if found["type"] != "STANDARD":
        raise Refused("InvalidRequestException", f"no access policy can be associated with a {found['type']} entry")
    if not p["policyArn"].startswith(ACCESS_POLICY):
        raise wrong("The policyArn parameter format is not valid")
    found["policies"][p["policyArn"]] = p["accessScope"]
    return {"associatedAccessPolicy": policies(found)[0]}


def disassociate(where: Account, p: Params) -> Params:
    entry(where, p)["policies"].pop(p["policyArn"], None)
    return {}


def policies(found: Params) -> list[Params]:
    return [
        {"policyArn": arn, "accessScope": scope, "associatedAt": found["createdAt"], "modifiedAt": found["createdAt"]}
        for arn, scope in found["policies"].items()
    ]


# ---- tags
def tagged(where: Account, p: Params) -> Params:
    """The tags of a cluster or an access entry, by its ARN."""
    for row in table(where).values():
        for thing in (row, *row["entries"].values()):
            if p["resourceArn"] in (thing.get("arn"), thing.get("accessEntryArn")):
                return thing["tags"]
    raise missing(f"{p['resourceArn']} does not exist")


def tag(where: Account, p: Params) -> Params:
    tagged(where, p).update(p["tags"])
    return {}


def untag(where: Account, p: Params) -> Params:
    for key in p["tagKeys"]:
        tagged(where, p).pop(key, None)
    return {}


CALLS: dict[str, Any] = {
    "CreateCluster": create_cluster,
    "DescribeCluster": describe_cluster,
    "DeleteCluster": delete_cluster,
    "ListClusters": lambda where, _p: {"clusters": list(table(where))},
    "UpdateClusterConfig": update_cluster_config,
    "UpdateClusterVersion": update_cluster_version,
    "CreateAccessEntry": create_access_entry,
    "DescribeAccessEntry": lambda where, p: {"accessEntry": public(entry(where, p))},
    "DeleteAccessEntry": delete_access_entry,
    "ListAccessEntries": lambda where, p: {"accessEntries": list(with_entries(where, p)["entries"])},
    "AssociateAccessPolicy": associate,
    "DisassociateAccessPolicy": disassociate,
    "ListAssociatedAccessPolicies": lambda where, p: {"associatedAccessPolicies": policies(entry(where, p))},
    "TagResource": tag,
    "UntagResource": untag,
    "ListTagsForResource": lambda where, p: {"tags": tagged(where, p)},
}
