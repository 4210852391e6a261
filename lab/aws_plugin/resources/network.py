"""VPC, subnets, gateways to the outside, endpoints."""

from __future__ import annotations

from lab.aws_plugin.spec import Aws, Resource, changed, ec2_tag, first, given, one, pick, tag_map, tag_spec
from lab.aws_plugin.state import same
from lab.provider.service import PluginError
from lab.provider.wire import Props


# ---- Vpc
def create_vpc(aws: Aws, new: Props) -> str:
    return aws.ec2.create_vpc(**given(new, "cidrBlock instanceTenancy"), **tag_spec("vpc", new))["Vpc"]["VpcId"]


def apply_vpc(aws: Aws, rid: str, old: Props, new: Props) -> None:
    defaults = {"enableDnsSupport": True, "enableDnsHostnames": False}
    for name in changed({**defaults, **old}, {**defaults, **new}, " ".join(defaults)):  # EC2 takes one attribute a call
        aws.ec2.modify_vpc_attribute(VpcId=rid, **given({name: {"Value": {**defaults, **new}[name]}}, name))


def read_vpc(aws: Aws, rid: str, _state: Props) -> Props | None:
    vpc = first(aws.ec2.describe_vpcs(VpcIds=[rid])["Vpcs"])

    def default(name: str, value: str) -> list[Props]:
        """Filters for the VPC's own one of its kind."""
        return [{"Name": "vpc-id", "Values": [rid]}, {"Name": name, "Values": [value]}]

    main = one(aws.ec2.describe_route_tables(Filters=default("association.main", "true"))["RouteTables"])
    group = one(aws.ec2.describe_security_groups(Filters=default("group-name", "default"))["SecurityGroups"])
    acl = one(aws.ec2.describe_network_acls(Filters=default("default", "true"))["NetworkAcls"])
    dns = {
        name: aws.ec2.describe_vpc_attribute(VpcId=rid, Attribute=name)[name[:1].upper() + name[1:]]["Value"]
        for name in ("enableDnsSupport", "enableDnsHostnames")
    }
    table = main["RouteTableId"] if main else None
    return {
        **pick(vpc, "cidrBlock instanceTenancy dhcpOptionsId ownerId"),
        **dns,
        "arn": aws.arn("ec2", f"vpc/{rid}"),
        "mainRouteTableId": table,
        "defaultRouteTableId": table,
        "defaultSecurityGroupId": group["GroupId"] if group else None,
        "defaultNetworkAclId": acl["NetworkAclId"] if acl else None,
        "tags": tag_map(vpc.get("Tags")),
    }


# ---- Subnet
def create_subnet(aws: Aws, new: Props) -> str:
    asked = given(new, "vpcId cidrBlock availabilityZone availabilityZoneId")
    return aws.ec2.create_subnet(**asked, **tag_spec("subnet", new))["Subnet"]["SubnetId"]


def apply_subnet(aws: Aws, rid: str, old: Props, new: Props) -> None:
    if bool(old.get("mapPublicIpOnLaunch")) != bool(new.get("mapPublicIpOnLaunch")):
        aws.ec2.modify_subnet_attribute(
            SubnetId=rid, MapPublicIpOnLaunch={"Value": bool(new.get("mapPublicIpOnLaunch"))}
        )


def read_subnet(aws: Aws, rid: str, _state: Props) -> Props | None:
    subnet = first(aws.ec2.describe_subnets(SubnetIds=[rid])["Subnets"])
    return {
        **pick(subnet, "vpcId cidrBlock availabilityZone availabilityZoneId mapPublicIpOnLaunch ownerId"),
        "arn": aws.arn("ec2", f"subnet/{rid}"),
        "tags": tag_map(subnet.get("Tags")),
    }


# ---- InternetGateway
def create_igw(aws: Aws, new: Props) -> str:
    return aws.ec2.create_internet_gateway(**tag_spec("internet-gateway", new))["InternetGateway"]["InternetGatewayId"]


def apply_igw(aws: Aws, rid: str, old: Props, new: Props) -> None:
    if old.get("vpcId") != new.get("vpcId"):
        if old.get("vpcId"):
            aws.ec2.detach_internet_gateway(InternetGatewayId=rid, VpcId=old["vpcId"])
        if new.get("vpcId"):
            aws.ec2.attach_internet_gateway(InternetGatewayId=rid, VpcId=new["vpcId"])


def read_igw(aws: Aws, rid: str, _state: Props) -> Props | None:
    described = first(aws.ec2.describe_internet_gateways(InternetGatewayIds=[rid])["InternetGateways"])
    attached = one(described.get("Attachments", []))
    return {
        "vpcId": attached["VpcId"] if attached else None,
        "ownerId": aws.account,
        "arn": aws.arn("ec2", f"internet-gateway/{rid}"),
        "tags": tag_map(described.get("Tags")),
    }


def delete_igw(aws: Aws, rid: str, _state: Props) -> None:
    for attached in first(aws.ec2.describe_internet_gateways(InternetGatewayIds=[rid])["InternetGateways"]).get(
        "Attachments", []
    ):
        aws.ec2.detach_internet_gateway(InternetGatewayId=rid, VpcId=attached["VpcId"])
    aws.ec2.delete_internet_gateway(InternetGatewayId=rid)


# ---- Eip
def create_eip(aws: Aws, new: Props) -> str:
    asked = {"Domain": "vpc", **given(new, "domain networkBorderGroup publicIpv4Pool")}
    return aws.ec2.allocate_address(**asked, **tag_spec("elastic-ip", new))["AllocationId"]


def read_eip(aws: Aws, rid: str, _state: Props) -> Props | None:
    """Without the association, which appears when a gateway takes the address: every refresh after the first up would
    be a change.
    """
    described = first(aws.ec2.describe_addresses(AllocationIds=[rid])["Addresses"])
    seen = pick(described, "allocationId domain publicIp networkBorderGroup publicIpv4Pool")
    return {**seen, "arn": aws.arn("ec2", f"elastic-ip/{rid}"), "tags": tag_map(described.get("Tags"))}


# ---- NatGateway
def nat(aws: Aws, rid: str) -> Props | None:
    described = one(aws.ec2.describe_nat_gateways(NatGatewayIds=[rid])["NatGateways"])
    return described if described and described["State"] not in ("deleted", "deleting") else None


def create_nat(aws: Aws, new: Props) -> str:
    asked = given(new, "subnetId allocationId connectivityType")
    return aws.ec2.create_nat_gateway(**asked, **tag_spec("natgateway", new))["NatGateway"]["NatGatewayId"]


def read_nat(aws: Aws, rid: str, _state: Props) -> Props | None:
    if not (described := nat(aws, rid)):
        return None
    address = one(described.get("NatGatewayAddresses", [])) or {}
    return {
        **pick(described, "subnetId connectivityType"),
        **pick(address, "allocationId publicIp networkInterfaceId associationId"),
        "privateIp": address.get("PrivateIp"),
        "tags": tag_map(described.get("Tags")),
    }


def delete_nat(aws: Aws, rid: str, _state: Props) -> None:
    aws.ec2.delete_nat_gateway(NatGatewayId=rid)
    aws.wait(
        f"{rid} deleted",
        lambda: (
            (one(aws.ec2.describe_nat_gateways(NatGatewayIds=[rid])["NatGateways"]) or {}).get("State", "deleted")
            == "deleted"
        ),
    )


# ---- VpcEndpoint
ATTACHED = {"routeTableIds": "RouteTableIds", "subnetIds": "SubnetIds", "securityGroupIds": "SecurityGroupIds"}


def endpoint(aws: Aws, rid: str) -> Props | None:
    described = one(aws.ec2.describe_vpc_endpoints(VpcEndpointIds=[rid])["VpcEndpoints"])
    return described if described and described["State"].lower() not in ("deleted", "deleting") else None


def create_endpoint(aws: Aws, new: Props) -> str:
    asked = given(
        {**new, "policyDocument": new.get("policy")},
        "vpcId serviceName vpcEndpointType policyDocument privateDnsEnabled " + " ".join(ATTACHED),
    )
    return aws.ec2.create_vpc_endpoint(**asked, **tag_spec("vpc-endpoint", new))["VpcEndpoint"]["VpcEndpointId"]


def apply_endpoint(aws: Aws, rid: str, old: Props, new: Props) -> None:
    asked: Props = {}
    for name, boto in ATTACHED.items():
        before, after = set(old.get(name) or []), set(new.get(name) or [])
        asked |= {
            key: sorted(ids) for key, ids in ((f"Add{boto}", after - before), (f"Remove{boto}", before - after)) if ids
        }
    if old.get("policy") != new.get("policy"):
        asked |= {"PolicyDocument": new["policy"]} if new.get("policy") else {"ResetPolicy": True}
    if old.get("privateDnsEnabled") != new.get("privateDnsEnabled"):
        asked["PrivateDnsEnabled"] = bool(new.get("privateDnsEnabled"))
    if asked:
        aws.ec2.modify_vpc_endpoint(VpcEndpointId=rid, **asked)


def read_endpoint(aws: Aws, rid: str, _state: Props) -> Props | None:
    if not (described := endpoint(aws, rid)):
        return None
    groups = [g["GroupId"] for g in described.get("Groups", [])]
    return {
        **pick(described, "vpcId serviceName vpcEndpointType state privateDnsEnabled networkInterfaceIds ownerId"),
        "routeTableIds": described.get("RouteTableIds", []),
        "subnetIds": described.get("SubnetIds", []),
        **({"securityGroupIds": groups} if groups else {}),
        **({"policy": described["PolicyDocument"]} if described.get("PolicyDocument") else {}),
        "dnsEntries": [
            {k: v for k, v in (("dnsName", d.get("DnsName")), ("hostedZoneId", d.get("HostedZoneId"))) if v}
            for d in described.get("DnsEntries", [])
        ],
        "arn": aws.arn("ec2", f"vpc-endpoint/{rid}"),
        "tags": tag_map(described.get("Tags")),
    }


def delete_endpoint(aws: Aws, rid: str, _state: Props) -> None:
    if not endpoint(aws, rid):
        return
    failed = aws.ec2.delete_vpc_endpoints(VpcEndpointIds=[rid]).get("Unsuccessful")
    if failed:
        raise PluginError(f"{rid} was not deleted: {failed[0].get('Error', {}).get('Message', failed)}")
    aws.wait(f"{rid} deleted", lambda: endpoint(aws, rid) is None)


def check_endpoint(_olds: Props, news: Props) -> list[tuple[str, str]]:
    gateway = same(news.get("vpcEndpointType", "Gateway"), "Gateway")
    wrong = ("subnetIds", "securityGroupIds", "privateDnsEnabled") if gateway else ("routeTableIds",)
    return [
        (key, f"does not go with an endpoint of type {'Gateway' if gateway else news['vpcEndpointType']}")
        for key in wrong
        if news.get(key)
    ]


SPECS = [
    Resource(
        "aws:ec2/vpc:Vpc",
        "cidrBlock enableDnsSupport enableDnsHostnames instanceTenancy",
        create=create_vpc,
        read=read_vpc,
        delete=lambda aws, rid, _state: aws.ec2.delete_vpc(VpcId=rid),
        apply=apply_vpc,
        finish=True,
        tag=ec2_tag,
        replace="cidrBlock instanceTenancy",
    ),
    Resource(
        "aws:ec2/subnet:Subnet",
        "vpcId cidrBlock availabilityZone availabilityZoneId mapPublicIpOnLaunch",
        create=create_subnet,
        read=read_subnet,
        delete=lambda aws, rid, _state: aws.ec2.delete_subnet(SubnetId=rid),
        apply=apply_subnet,
        finish=True,
        tag=ec2_tag,
        replace="vpcId cidrBlock availabilityZone availabilityZoneId",
    ),
    Resource(
        "aws:ec2/internetGateway:InternetGateway",
        "vpcId",
        create=create_igw,
        read=read_igw,
        delete=delete_igw,
        apply=apply_igw,
        finish=True,
        tag=ec2_tag,
    ),
    Resource(
        "aws:ec2/eip:Eip",
        "domain networkBorderGroup publicIpv4Pool",
        create=create_eip,
        read=read_eip,
        delete=lambda aws, rid, _state: aws.ec2.release_address(AllocationId=rid),
        tag=ec2_tag,
        replace="domain networkBorderGroup publicIpv4Pool",
    ),
    Resource(
        "aws:ec2/natGateway:NatGateway",
        "allocationId subnetId connectivityType",
        create=create_nat,
        read=read_nat,
        delete=delete_nat,
        tag=ec2_tag,
        ready=lambda aws, rid: (nat(aws, rid) or {}).get("State") == "available",
        replace="allocationId subnetId connectivityType",
    ),
    Resource(
        "aws:ec2/vpcEndpoint:VpcEndpoint",
        "vpcId serviceName vpcEndpointType policy privateDnsEnabled routeTableIds subnetIds securityGroupIds",
        create=create_endpoint,
        read=read_endpoint,
        delete=delete_endpoint,
        apply=apply_endpoint,
        tag=ec2_tag,
        check=check_endpoint,
        ready=lambda aws, rid: (endpoint(aws, rid) or {}).get("State", "").lower() == "available",
        replace="vpcId serviceName vpcEndpointType",
    ),
]
