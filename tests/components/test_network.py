import ipaddress

import pytest

from components.aws.network import Network
from ironburst.config.aws.network_models import ENDPOINTS, CloudNetwork

ZONES = ["us-east-1a", "us-east-1b"]
DIRECT = "0a1b2c3d-4e5f-6789-abcd-ef0123456789"
TRANSIT = "tgw-0123456789abcdef0"
VPN = {"kind": "vpn", "hall": "hall-a", "peer_address": "203.0.113.10", "peer_asn": 65010}


@pytest.fixture
def network(run):
    def build(in_use=ZONES, **changes):
        declared = CloudNetwork.model_validate({"cidr": "10.90.0.0/16", "zones": ZONES} | changes)
        halls = {"hall-a": "10.78.0.0/21", "hall-b": "10.79.0.0/21"}
        return run(
            lambda: (
                Network(
                    "lab", network=declared, region="us-east-1", hall_cidrs=halls, zones_in_use=list(in_use)
                ).subnet_ids
            )
        )

    return build


def test_subnets_lie_in_the_network_and_do_not_overlap(network):
    subnets = network().all("ec2/subnet:Subnet")
    assert len(subnets) == 4
    cidrs = [ipaddress.ip_network(each.inputs["cidrBlock"]) for each in subnets]
    assert all(cidr.subnet_of(ipaddress.ip_network("10.90.0.0/16")) for cidr in cidrs)
    assert not any(a.overlaps(b) for a in cidrs for b in cidrs if a is not b)
    assert {each.inputs["availabilityZone"] for each in subnets} == set(ZONES)


def test_no_subnet_gives_public_addresses(network):
    assert all(each.inputs["mapPublicIpOnLaunch"] is False for each in network().all("ec2/subnet:Subnet"))


def test_private_routes_leave_by_the_nat_of_their_zone_and_not_by_the_internet_gateway(network):
    recording = network()
    for zone in ZONES:
        table = recording.one("ec2/routeTable:RouteTable", f"lab-routes-{zone}").inputs
        assert table["routes"] == [{"cidrBlock": "0.0.0.0/0", "natGatewayId": f"lab-nat-{zone}-id"}]
        assert (
            recording.one("ec2/natGateway:NatGateway", f"lab-nat-{zone}").inputs["subnetId"] == f"lab-public-{zone}-id"
        )
        association = recording.one("RouteTableAssociation", f"lab-routes-{zone}-1")
        assert association.inputs == {"subnetId": f"lab-private-{zone}-id", "routeTableId": f"lab-routes-{zone}-id"}
    public = recording.one("ec2/routeTable:RouteTable", "lab-routes-public").inputs
    assert public["routes"] == [{"cidrBlock": "0.0.0.0/0", "gatewayId": "lab-internet-id"}]
    assert public["propagatingVgws"] == []
    members = [each.inputs["subnetId"] for each in recording.all("RouteTableAssociation") if "public" in each.name]
    assert members == [f"lab-public-{zone}-id" for zone in ZONES]


def test_the_way_to_s3_costs_nothing_and_is_always_there(network):
    for egress in ("nat", "endpoints"):
        recording = network(egress=egress)
        s3 = recording.one("VpcEndpoint", "lab-endpoint-s3").inputs
        assert (s3["vpcEndpointType"], s3["serviceName"]) == ("Gateway", "com.amazonaws.us-east-1.s3")
        assert s3["routeTableIds"] == [f"lab-routes-{zone}-id" for zone in ZONES]


def test_a_zone_without_nodes_has_nothing_that_costs_by_the_hour(network):
    recording = network(in_use=["us-east-1b"])
    assert [each.name for each in recording.all("NatGateway")] == ["lab-nat-us-east-1b"]
    assert [each.name for each in recording.all("Eip")] == ["lab-nat-us-east-1b"]
    assert recording.one("RouteTable", "lab-routes-us-east-1a").inputs["routes"] == []
    endpoint = network(in_use=["us-east-1b"], egress="endpoints").one("VpcEndpoint", "lab-endpoint-secretsmanager")
    assert endpoint.inputs["subnetIds"] == ["lab-private-us-east-1b-id"]
    recording = network(in_use=[])
    assert not recording.all("NatGateway") and not recording.all("InternetGateway")


def test_the_security_group_lets_efa_talk_to_itself_both_ways(network):
    group = network().one("SecurityGroup").inputs
    for rules in (group["ingress"], group["egress"]):
        (itself,) = [rule for rule in rules if rule.get("self")]
        assert (itself["protocol"], itself["fromPort"], itself["toPort"]) == ("-1", 0, 0)


def test_only_the_nodes_and_the_hall_may_come_in(network):
    rules = network().one("SecurityGroup").inputs["ingress"]
    assert [(rule.get("self"), rule.get("cidrBlocks")) for rule in rules] == [
        (True, None),
        (None, ["10.78.0.0/21"]),
        (None, ["10.79.0.0/21"]),
    ]
    assert not any("ipv6CidrBlocks" in rule or "securityGroups" in rule for rule in rules)


def test_a_vpn_to_the_hall_with_routes_by_bgp(network):
    recording = network(hall_link=VPN)
    assert recording.one("CustomerGateway").inputs["bgpAsn"] == "65010"
    assert recording.one("CustomerGateway").inputs["ipAddress"] == "203.0.113.10"
    connection = recording.one("VpnConnection").inputs
    assert (connection["vpnGatewayId"], connection["customerGatewayId"]) == ("lab-hall-id", "lab-hall-hall-a-id")
    assert connection["staticRoutesOnly"] is False
    assert not any(key.startswith("tunnel") for key in connection)  # AWS makes the keys; none in the program
    tables = {each.name: each.inputs["propagatingVgws"] for each in recording.all("ec2/routeTable:RouteTable")}
    assert tables == {"lab-routes-public": [], **{f"lab-routes-{zone}": ["lab-hall-id"] for zone in ZONES}}


def test_a_direct_connect_to_the_hall(network):
    recording = network(hall_link={"kind": "direct-connect", "hall": "hall-a", "gateway_id": DIRECT})
    association = recording.one("GatewayAssociation").inputs
    assert association == {
        "dxGatewayId": DIRECT,
        "associatedGatewayId": "lab-hall-id",
        "allowedPrefixes": ["10.90.0.0/16"],
    }
    assert not recording.all("VpnConnection") and not recording.all("CustomerGateway")
    assert recording.one("RouteTable", "lab-routes-us-east-1a").inputs["propagatingVgws"] == ["lab-hall-id"]


def test_several_halls_share_the_one_vpn_gateway(network):
    second = {"kind": "vpn", "hall": "hall-b", "peer_address": "203.0.113.20", "peer_asn": 65020}
    recording = network(hall_links=[VPN, second])
    assert [each.name for each in recording.all("VpnGateway")] == ["lab-hall"]
    connections = {each.name: each.inputs for each in recording.all("VpnConnection")}
    assert set(connections) == {"lab-hall-hall-a", "lab-hall-hall-b"}
    assert {each["vpnGatewayId"] for each in connections.values()} == {"lab-hall-id"}
    both = {each.name: each.inputs["bgpAsn"] for each in recording.all("CustomerGateway")}
    assert both == {"lab-hall-hall-a": "65010", "lab-hall-hall-b": "65020"}
    recording = network(
        hall_links=[{"kind": "direct-connect", "hall": hall, "gateway_id": DIRECT} for hall in ("hall-a", "hall-b")]
    )
    assert [each.inputs["dxGatewayId"] for each in recording.all("GatewayAssociation")] == [DIRECT]


def test_transit_gateway_routes_are_written_for_nothing_propagates_them(network):
    links = [{"kind": "transit-gateway", "hall": hall, "gateway_id": TRANSIT} for hall in ("hall-a", "hall-b")]
    recording = network(hall_links=links)
    attachment = recording.one("ec2transitgateway/vpcAttachment:VpcAttachment").inputs
    assert attachment["subnetIds"] == [f"lab-private-{zone}-id" for zone in ZONES]
    assert (attachment["transitGatewayId"], attachment["applianceModeSupport"]) == (TRANSIT, "disable")
    for zone in ZONES:
        table = recording.one("ec2/routeTable:RouteTable", f"lab-routes-{zone}").inputs
        assert table["routes"] == [
            {"cidrBlock": "0.0.0.0/0", "natGatewayId": f"lab-nat-{zone}-id"},
            {"cidrBlock": "10.78.0.0/21", "transitGatewayId": TRANSIT},
            {"cidrBlock": "10.79.0.0/21", "transitGatewayId": TRANSIT},
        ]
        assert table["propagatingVgws"] == []
    assert not recording.all("VpnGateway")


def test_no_link_no_gateway(network):
    assert not network().all("VpnGateway")


def test_endpoints_instead_of_nat(network):
    recording = network(egress="endpoints")
    for token in ("NatGateway", "InternetGateway", "Eip"):
        assert not recording.all(token)
    assert [each.inputs["routes"] for each in recording.all("ec2/routeTable:RouteTable")] == [[], []]
    assert len(recording.all("ec2/subnet:Subnet")) == 2  # no public ones
    endpoints = {each.inputs["serviceName"]: each.inputs["vpcEndpointType"] for each in recording.all("VpcEndpoint")}
    assert endpoints.pop("com.amazonaws.us-east-1.s3") == "Gateway"
    assert endpoints == {f"com.amazonaws.us-east-1.{service}": "Interface" for service in ENDPOINTS}


def test_an_existing_network_gets_a_security_group_and_nothing_else(network):
    recording = network(
        existing={"vpc_id": "vpc-0a", "subnets": {"us-east-1a": "subnet-0a", "us-east-1b": "subnet-0b"}}
    )
    assert {each.token.split(":")[-1] for each in recording.resources if each.custom} == {
        "SecurityGroup",
    }
    assert recording.one("SecurityGroup").inputs["vpcId"] == "vpc-0a"
    assert recording.result == {"us-east-1a": "subnet-0a", "us-east-1b": "subnet-0b"}
