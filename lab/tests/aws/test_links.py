"""Links of a VPC to a hall: what EC2 and Direct Connect refuse, and what waits for somebody else."""

import pytest
from botocore.exceptions import ClientError

from lab.aws.capacity import stash
from lab.aws.testing import network, refused

OWNER = "999999999999"


@pytest.fixture
def vpc(cloud, clients):
    """(VPC, its subnet, a route table)"""
    ec2 = clients("ec2")
    made, subnet = network(ec2)
    return made, subnet, ec2.create_route_table(VpcId=made)["RouteTable"]["RouteTableId"]


def shared(backend, auto_accept="disable"):
    """A gateway of another account that this one may use."""
    options = {"AutoAcceptSharedAttachments": auto_accept}
    gateway = backend.create_transit_gateway(description="shared", options=options)
    stash(backend, "foreign")[gateway.id] = OWNER
    return gateway.id


def attach(ec2, gateway, vpc, *subnets):
    made = ec2.create_transit_gateway_vpc_attachment(TransitGatewayId=gateway, VpcId=vpc, SubnetIds=list(subnets))
    return made["TransitGatewayVpcAttachment"]


def route(ec2, table, gateway, cidr="10.30.0.0/20"):
    ec2.create_route(RouteTableId=table, DestinationCidrBlock=cidr, TransitGatewayId=gateway)


def test_a_route_needs_the_vpc_attached(clients, vpc):
    ec2, (vpc_id, subnet, table) = clients("ec2"), vpc
    gateway = ec2.create_transit_gateway()["TransitGateway"]["TransitGatewayId"]
    assert refused(route, ec2, table, gateway)[0] == "InvalidTransitGatewayID.NotFound"
    attach(ec2, gateway, vpc_id, subnet)
    route(ec2, table, gateway)
    (written,) = [
        each
        for each in ec2.describe_route_tables(RouteTableIds=[table])["RouteTables"][0]["Routes"]
        if each.get("TransitGatewayId") == gateway
    ]
    assert written["DestinationCidrBlock"] == "10.30.0.0/20"
    ec2.replace_route(RouteTableId=table, DestinationCidrBlock="10.30.0.0/20", TransitGatewayId=gateway)
    other = ec2.create_transit_gateway()["TransitGateway"]["TransitGatewayId"]
    asked = {"RouteTableId": table, "DestinationCidrBlock": "10.30.0.0/20", "TransitGatewayId": other}
    assert refused(ec2.replace_route, **asked)[0] == "InvalidTransitGatewayID.NotFound"


def test_another_accounts_gateway_waits_for_its_owner(cloud, clients, vpc):
    ec2, (vpc_id, subnet, table) = clients("ec2"), vpc
    gateway = shared(cloud.backend)
    (shown,) = ec2.describe_transit_gateways(TransitGatewayIds=[gateway])["TransitGateways"]
    assert shown["OwnerId"] == OWNER
    made = attach(ec2, gateway, vpc_id, subnet)
    assert made["State"] == "pendingAcceptance"
    assert refused(route, ec2, table, gateway)[0] == "InvalidTransitGatewayID.NotFound"
    cloud.backend.transit_gateway_attachments[made["TransitGatewayAttachmentId"]].state = "available"
    route(ec2, table, gateway)
    open_one = shared(cloud.backend, "enable")
    assert attach(ec2, open_one, vpc_id, subnet)["State"] == "available"


def test_an_attachment_has_one_subnet_a_zone_and_holds_it(clients, vpc):
    ec2, (vpc_id, subnet, _) = clients("ec2"), vpc
    gateway = ec2.create_transit_gateway()["TransitGateway"]["TransitGatewayId"]
    second = ec2.create_subnet(VpcId=vpc_id, CidrBlock="10.90.16.0/20", AvailabilityZone="us-east-1a")["Subnet"]
    assert refused(attach, ec2, gateway, vpc_id, subnet, second["SubnetId"])[0] == "DuplicateSubnetsInSameZone"
    made = attach(ec2, gateway, vpc_id, subnet)
    assert refused(attach, ec2, gateway, vpc_id, subnet)[0] == "DuplicateTransitGatewayAttachment"
    assert refused(ec2.delete_subnet, SubnetId=subnet)[0] == "DependencyViolation"
    ec2.delete_transit_gateway_vpc_attachment(TransitGatewayAttachmentId=made["TransitGatewayAttachmentId"])
    ec2.delete_subnet(SubnetId=subnet)
    assert subnet not in [each["SubnetId"] for each in ec2.describe_subnets()["Subnets"]]


def test_a_vpn_gateway_is_associated_once_and_only_where_it_is_attached(clients, vpc):
    ec2, direct = clients("ec2"), clients("directconnect")
    gateway = ec2.create_vpn_gateway(Type="ipsec.1")["VpnGateway"]["VpnGatewayId"]
    made = direct.create_direct_connect_gateway(directConnectGatewayName="hall")["directConnectGateway"]
    asked = {"directConnectGatewayId": made["directConnectGatewayId"], "gatewayId": gateway}
    with pytest.raises(ClientError, match="not attached"):
        direct.create_direct_connect_gateway_association(**asked)
    ec2.attach_vpn_gateway(VpnGatewayId=gateway, VpcId=vpc[0])
    with pytest.raises(ClientError, match="does not exist"):
        direct.create_direct_connect_gateway_association(**asked | {"directConnectGatewayId": "dxgw-0a1b2c3d"})
    assert direct.create_direct_connect_gateway_association(**asked)["directConnectGatewayAssociation"]
    other = direct.create_direct_connect_gateway(directConnectGatewayName="other")["directConnectGateway"]
    with pytest.raises(ClientError, match="already associated"):
        direct.create_direct_connect_gateway_association(
            **asked | {"directConnectGatewayId": other["directConnectGatewayId"]}
        )
