"""The lab's cloud: what moto lacks and our components use, dependencies, and the list of leftovers."""

import json
import xml.etree.ElementTree as ElementTree

import pytest

from lab.aws.leftovers import leftovers
from lab.aws.testing import network, refused

ACCOUNT = "123456789012"
RULES = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "ec2:Describe*", "Resource": "*"}]}


# ---- hall link
@pytest.fixture
def link(ec2):
    vpc, _ = network(ec2)
    answer = ec2.create_customer_gateway(BgpAsn=65010, IpAddress="203.0.113.10", Type="ipsec.1")
    customer = answer["CustomerGateway"]["CustomerGatewayId"]
    gateway = ec2.create_vpn_gateway(Type="ipsec.1", AmazonSideAsn=64900)["VpnGateway"]["VpnGatewayId"]
    return vpc, customer, gateway


def test_vpn_connection_options_are_kept(ec2, link):
    _, customer, gateway = link
    made = ec2.create_vpn_connection(
        Type="ipsec.1",
        CustomerGatewayId=customer,
        VpnGatewayId=gateway,
        Options={
            "StaticRoutesOnly": True,
            "TunnelOptions": [{"TunnelInsideCidr": "169.254.44.40/30", "PreSharedKey": "a.b_c12345"}, {}],
        },
        TagSpecifications=[{"ResourceType": "vpn-connection", "Tags": [{"Key": "Name", "Value": "hall"}]}],
    )["VpnConnection"]
    shown = ec2.describe_vpn_connections(VpnConnectionIds=[made["VpnConnectionId"]])["VpnConnections"][0]
    tunnels = shown["Options"]["TunnelOptions"]
    assert shown["Options"]["StaticRoutesOnly"] is True and shown["Tags"] == [{"Key": "Name", "Value": "hall"}]
    assert (tunnels[0]["TunnelInsideCidr"], tunnels[0]["PreSharedKey"]) == ("169.254.44.40/30", "a.b_c12345")
    assert len({t["OutsideIpAddress"] for t in tunnels}) == 2 and len(tunnels[1]["PreSharedKey"]) >= 8
    root = ElementTree.fromstring(shown["CustomerGatewayConfiguration"])
    first = root.findall("ipsec_tunnel")[0]
    assert first.findtext("ike/pre_shared_key") == "a.b_c12345"
    assert first.findtext("customer_gateway/tunnel_inside_address/ip_address") == "169.254.44.42"
    assert first.findtext("vpn_gateway/tunnel_outside_address/ip_address") == tunnels[0]["OutsideIpAddress"]
    assert first.findtext("vpn_gateway/bgp/asn") == "64900"
    assert shown["VgwTelemetry"][0]["OutsideIpAddress"] == tunnels[0]["OutsideIpAddress"]
    vpn = {"VpnConnectionId": made["VpnConnectionId"]}
    ec2.create_vpn_connection_route(**vpn, DestinationCidrBlock="10.78.0.0/21")
    assert ec2.describe_vpn_connections()["VpnConnections"][0]["Routes"][0]["DestinationCidrBlock"] == "10.78.0.0/21"
    ec2.delete_vpn_connection_route(**vpn, DestinationCidrBlock="10.78.0.0/21")
    changed = ec2.modify_vpn_tunnel_options(
        **vpn, VpnTunnelOutsideIpAddress=tunnels[1]["OutsideIpAddress"], TunnelOptions={"PreSharedKey": "another_key"}
    )["VpnConnection"]
    assert changed["Options"]["TunnelOptions"][1]["PreSharedKey"] == "another_key" and not changed.get("Routes")
    assert refused(ec2.delete_vpn_gateway, VpnGatewayId=gateway) == ("IncorrectState", 400)
    ec2.delete_vpn_connection(**vpn)
    ec2.delete_vpn_gateway(VpnGatewayId=gateway)


def test_an_account_has_a_halls_device_once_and_a_vpc_a_vpn_gateway(ec2, link):
    vpc, customer, gateway = link
    again = ec2.create_customer_gateway(BgpAsn=65010, IpAddress="203.0.113.10", Type="ipsec.1")
    assert again["CustomerGateway"]["CustomerGatewayId"] == customer
    another = ec2.create_customer_gateway(BgpAsn=65011, IpAddress="203.0.113.10", Type="ipsec.1")
    assert another["CustomerGateway"]["CustomerGatewayId"] != customer
    ends = {"CustomerGatewayId": customer, "VpnGatewayId": gateway}
    vpn = ec2.create_vpn_connection(Type="ipsec.1", **ends)["VpnConnection"]["VpnConnectionId"]
    assert ec2.create_vpn_connection(Type="ipsec.1", **ends)["VpnConnection"]["VpnConnectionId"] == vpn
    assert refused(ec2.delete_customer_gateway, CustomerGatewayId=customer) == ("IncorrectState", 400)
    ec2.delete_vpn_connection(VpnConnectionId=vpn)
    assert ec2.create_vpn_connection(Type="ipsec.1", **ends)["VpnConnection"]["VpnConnectionId"] != vpn
    ec2.attach_vpn_gateway(VpcId=vpc, VpnGatewayId=gateway)
    second = ec2.create_vpn_gateway(Type="ipsec.1")["VpnGateway"]["VpnGatewayId"]
    assert refused(ec2.attach_vpn_gateway, VpcId=vpc, VpnGatewayId=second) == ("InvalidVpcState", 400)
    ec2.detach_vpn_gateway(VpcId=vpc, VpnGatewayId=gateway)
    left(ec2, gateway)
    ec2.attach_vpn_gateway(VpcId=vpc, VpnGatewayId=second)


def left(ec2, gateway):
    """Look until a VPN gateway has left its VPC; how often it was shown on its way out."""
    for looks in range(10):
        (shown,) = ec2.describe_vpn_gateways(VpnGatewayIds=[gateway])["VpnGateways"]
        if shown["VpcAttachments"][0]["State"] == "detached":
            return looks
    raise AssertionError(shown)


def test_a_vpn_gateway_is_in_use_until_it_has_left_its_vpc(ec2, link):
    _, _, gateway = link
    vpc = ec2.create_vpc(CidrBlock="10.1.0.0/16")["Vpc"]["VpcId"]  # with nothing else in it
    ec2.attach_vpn_gateway(VpcId=vpc, VpnGatewayId=gateway)
    second = ec2.create_vpn_gateway(Type="ipsec.1")["VpnGateway"]["VpnGatewayId"]
    assert refused(ec2.delete_vpn_gateway, VpnGatewayId=gateway) == ("IncorrectState", 400)
    ec2.detach_vpn_gateway(VpcId=vpc, VpnGatewayId=gateway)
    assert refused(ec2.delete_vpn_gateway, VpnGatewayId=gateway) == ("IncorrectState", 400)
    assert refused(ec2.attach_vpn_gateway, VpcId=vpc, VpnGatewayId=second) == ("InvalidVpcState", 400)
    assert refused(ec2.delete_vpc, VpcId=vpc) == ("DependencyViolation", 400)
    assert left(ec2, gateway) == 1
    ec2.delete_vpn_gateway(VpnGatewayId=gateway)
    ec2.delete_vpc(VpcId=vpc)


def test_route_propagation(ec2, link):
    vpc, _, gateway = link
    table = ec2.create_route_table(VpcId=vpc)["RouteTable"]["RouteTableId"]
    ask = {"RouteTableId": table, "GatewayId": gateway}
    assert refused(ec2.enable_vgw_route_propagation, **ask) == ("Gateway.NotAttached", 400)
    ec2.attach_vpn_gateway(VpcId=vpc, VpnGatewayId=gateway)
    ec2.enable_vgw_route_propagation(**ask)
    assert ec2.describe_route_tables(RouteTableIds=[table])["RouteTables"][0]["PropagatingVgws"] == [
        {"GatewayId": gateway}
    ]
    ec2.disable_vgw_route_propagation(**ask)
    assert ec2.describe_route_tables(RouteTableIds=[table])["RouteTables"][0]["PropagatingVgws"] == []


def test_an_address_has_one_nat_gateway(ec2):
    """As an `up` meets it whose predecessor was killed while AWS made one."""
    asked = {"SubnetId": network(ec2)[1], "AllocationId": ec2.allocate_address(Domain="vpc")["AllocationId"]}
    ec2.create_nat_gateway(**asked)
    interfaces = ec2.describe_network_interfaces()["NetworkInterfaces"]
    assert refused(ec2.create_nat_gateway, **asked)[0] == "Resource.AlreadyAssociated"
    assert len(ec2.describe_network_interfaces()["NetworkInterfaces"]) == len(interfaces)


# ---- budgets
def test_budgets_update_subscribers_and_tags(cloud, clients):
    budgets = clients("budgets")
    budget = {
        "BudgetName": "lab",
        "BudgetType": "COST",
        "TimeUnit": "MONTHLY",
        "BudgetLimit": {"Amount": "20000", "Unit": "USD"},
    }
    rule = {
        "NotificationType": "FORECASTED",
        "ComparisonOperator": "GREATER_THAN",
        "Threshold": 80.0,
        "ThresholdType": "PERCENTAGE",
    }
    mail = [{"SubscriptionType": "EMAIL", "Address": f"{who}@example.org"} for who in ("ops", "boss")]
    budgets.create_budget(
        AccountId=ACCOUNT,
        Budget=budget,
        ResourceTags=[{"Key": "cluster", "Value": "lab"}],
        NotificationsWithSubscribers=[{"Notification": rule, "Subscribers": mail[:1]}],
    )
    arn = f"arn:aws:budgets::{ACCOUNT}:budget/lab"
    ask = {"AccountId": ACCOUNT, "BudgetName": "lab"}
    budgets.update_budget(AccountId=ACCOUNT, NewBudget={**budget, "BudgetLimit": {"Amount": "30000", "Unit": "USD"}})
    assert budgets.describe_budget(**ask)["Budget"]["BudgetLimit"]["Amount"] == "30000"
    budgets.create_subscriber(**ask, Notification=rule, Subscriber=mail[1])
    assert budgets.describe_subscribers_for_notification(**ask, Notification=rule)["Subscribers"] == mail
    budgets.delete_subscriber(**ask, Notification=rule, Subscriber=mail[0])
    new = {**rule, "Threshold": 90.0}
    budgets.update_notification(**ask, OldNotification=rule, NewNotification=new)
    assert budgets.describe_notifications_for_budget(**ask)["Notifications"] == [new]
    assert budgets.describe_subscribers_for_notification(**ask, Notification=new)["Subscribers"] == mail[1:]
    budgets.tag_resource(ResourceARN=arn, ResourceTags=[{"Key": "team", "Value": "ml"}])
    budgets.untag_resource(ResourceARN=arn, ResourceTagKeys=["cluster"])
    assert budgets.list_tags_for_resource(ResourceARN=arn)["ResourceTags"] == [{"Key": "team", "Value": "ml"}]
    expected = ("NotFoundException", 400)
    assert refused(budgets.update_budget, AccountId=ACCOUNT, NewBudget={**budget, "BudgetName": "x"}) == expected
    expected = ("NotFoundException", 400)
    assert refused(budgets.describe_subscribers_for_notification, **ask, Notification=rule) == expected


# ---- instances
def test_placement_of_a_stopped_instance(cloud, ec2):
    _, subnet = network(ec2)
    ec2.create_placement_group(GroupName="gang", Strategy="cluster")
    instance = ec2.run_instances(
        ImageId=cloud.register_image(""), InstanceType="p5.48xlarge", MinCount=1, MaxCount=1, SubnetId=subnet
    )["Instances"][0]["InstanceId"]
    expected = ("IncorrectInstanceState", 400)
    assert refused(ec2.modify_instance_placement, InstanceId=instance, GroupName="gang") == expected
    ec2.stop_instances(InstanceIds=[instance])  # possible here: no host stands behind this cloud
    assert (
        refused(ec2.modify_instance_placement, InstanceId=instance, GroupName="none")[0]
        == "InvalidPlacementGroup.Unknown"
    )
    ec2.modify_instance_placement(InstanceId=instance, GroupName="gang")
    ec2.modify_instance_capacity_reservation_attributes(
        InstanceId=instance, CapacityReservationSpecification={"CapacityReservationPreference": "none"}
    )
    shown = ec2.describe_instances(InstanceIds=[instance])["Reservations"][0]["Instances"][0]
    assert shown["Placement"]["GroupName"] == "gang"
    assert shown["CapacityReservationSpecification"]["CapacityReservationPreference"] == "none"


# ---- dependencies and leftovers
def everything(cloud, clients):
    """One of each kind that the components make; returns the calls that remove it, in an order that works."""
    ec2, iam, sqs, events, ssm = clients(), clients("iam"), clients("sqs"), clients("events"), clients("ssm")
    vpc, subnet = network(ec2)
    ec2.modify_vpc_attribute(VpcId=vpc, EnableDnsHostnames={"Value": True})
    group = ec2.create_security_group(GroupName="efa", Description="d", VpcId=vpc)["GroupId"]
    igw = ec2.create_internet_gateway()["InternetGateway"]["InternetGatewayId"]
    ec2.attach_internet_gateway(InternetGatewayId=igw, VpcId=vpc)
    eip = ec2.allocate_address(Domain="vpc")["AllocationId"]
    nat = ec2.create_nat_gateway(SubnetId=subnet, AllocationId=eip)["NatGateway"]["NatGatewayId"]
    table = ec2.create_route_table(VpcId=vpc)["RouteTable"]["RouteTableId"]
    ec2.create_route(RouteTableId=table, DestinationCidrBlock="0.0.0.0/0", NatGatewayId=nat)
    endpoint = ec2.create_vpc_endpoint(
        VpcId=vpc,
        ServiceName="com.amazonaws.us-east-1.ec2",
        VpcEndpointType="Interface",
        SubnetIds=[subnet],
        SecurityGroupIds=[group],
    )["VpcEndpoint"]["VpcEndpointId"]
    answer = ec2.create_vpc_endpoint(VpcId=vpc, ServiceName="com.amazonaws.us-east-1.s3", RouteTableIds=[table])
    s3 = answer["VpcEndpoint"]["VpcEndpointId"]
    answer = ec2.create_customer_gateway(BgpAsn=65010, IpAddress="203.0.113.10", Type="ipsec.1")
    customer = answer["CustomerGateway"]["CustomerGatewayId"]
    vgw = ec2.create_vpn_gateway(Type="ipsec.1")["VpnGateway"]["VpnGatewayId"]
    ec2.attach_vpn_gateway(VpcId=vpc, VpnGatewayId=vgw)
    answer = ec2.create_vpn_connection(Type="ipsec.1", CustomerGatewayId=customer, VpnGatewayId=vgw)
    vpn = answer["VpnConnection"]["VpnConnectionId"]
    ec2.create_launch_template(LaunchTemplateName="pool-p5", LaunchTemplateData={"InstanceType": "p5.48xlarge"})
    ec2.create_placement_group(GroupName="gang", Strategy="cluster")
    ec2.create_key_pair(KeyName="key")
    held = ec2.create_capacity_reservation(
        InstanceType="p5.48xlarge", InstancePlatform="Linux/UNIX", AvailabilityZone="us-east-1a", InstanceCount=1
    )["CapacityReservation"]["CapacityReservationId"]
    instance = ec2.run_instances(
        ImageId=cloud.register_image(""),
        InstanceType="g6.xlarge",
        MinCount=1,
        MaxCount=1,
        SubnetId=subnet,
        SecurityGroupIds=[group],
    )["Instances"][0]["InstanceId"]
    disk = ec2.create_volume(AvailabilityZone="us-east-1a", Size=10)["VolumeId"]
    iam.create_role(RoleName="node", AssumeRolePolicyDocument="{}")
    iam.put_role_policy(RoleName="node", PolicyName="p", PolicyDocument=json.dumps(RULES))
    iam.create_instance_profile(InstanceProfileName="node")
    iam.add_role_to_instance_profile(InstanceProfileName="node", RoleName="node")
    own = iam.create_policy(PolicyName="own", PolicyDocument=json.dumps(RULES))["Policy"]["Arn"]
    queue = sqs.create_queue(QueueName="p5")["QueueUrl"]
    events.put_rule(Name="p5", EventPattern='{"source": ["aws.ec2"]}')
    ssm.put_parameter(Name="/ironburst/lab/p5/image", Value="none", Type="String")
    clients("secretsmanager").create_secret(Name="munge", SecretString="x")
    clients("s3").create_bucket(Bucket="lab-state")
    clients("cloudwatch").put_metric_alarm(
        AlarmName="spend",
        MetricName="m",
        Namespace="n",
        Period=60,
        EvaluationPeriods=1,
        Threshold=1,
        Statistic="Sum",
        ComparisonOperator="GreaterThanThreshold",
    )
    key = clients("kms").create_key()["KeyMetadata"]["KeyId"]
    clients("kms").create_alias(AliasName="alias/state", TargetKeyId=key)
    clients("budgets").create_budget(
        AccountId=ACCOUNT,
        Budget={
            "BudgetName": "lab",
            "BudgetType": "COST",
            "TimeUnit": "MONTHLY",
            "BudgetLimit": {"Amount": "1", "Unit": "USD"},
        },
    )
    for call, ask in (
        ("delete_subnet", {"SubnetId": subnet}),
        ("delete_security_group", {"GroupId": group}),
        ("delete_vpc", {"VpcId": vpc}),
    ):
        assert refused(getattr(ec2, call), **ask) == ("DependencyViolation", 400)
    return [
        (ec2.terminate_instances, {"InstanceIds": [instance]}),
        (ec2.delete_volume, {"VolumeId": disk}),
        (ec2.cancel_capacity_reservation, {"CapacityReservationId": held}),
        (ec2.delete_key_pair, {"KeyName": "key"}),
        (ec2.delete_placement_group, {"GroupName": "gang"}),
        (ec2.delete_launch_template, {"LaunchTemplateName": "pool-p5"}),
        (ec2.delete_vpn_connection, {"VpnConnectionId": vpn}),
        (ec2.detach_vpn_gateway, {"VpnGatewayId": vgw, "VpcId": vpc}),
        (left, {"ec2": ec2, "gateway": vgw}),
        (ec2.delete_vpn_gateway, {"VpnGatewayId": vgw}),
        (ec2.delete_customer_gateway, {"CustomerGatewayId": customer}),
        (ec2.delete_vpc_endpoints, {"VpcEndpointIds": [endpoint, s3]}),
        (ec2.delete_route_table, {"RouteTableId": table}),
        (ec2.delete_nat_gateway, {"NatGatewayId": nat}),
        (ec2.release_address, {"AllocationId": eip}),
        (ec2.detach_internet_gateway, {"InternetGatewayId": igw, "VpcId": vpc}),
        (ec2.delete_internet_gateway, {"InternetGatewayId": igw}),
        (ec2.delete_security_group, {"GroupId": group}),
        (ec2.delete_subnet, {"SubnetId": subnet}),
        (ec2.delete_vpc, {"VpcId": vpc}),
        (iam.remove_role_from_instance_profile, {"InstanceProfileName": "node", "RoleName": "node"}),
        (iam.delete_instance_profile, {"InstanceProfileName": "node"}),
        (iam.delete_policy, {"PolicyArn": own}),
        (iam.delete_role_policy, {"RoleName": "node", "PolicyName": "p"}),
        (iam.delete_role, {"RoleName": "node"}),
        (sqs.delete_queue, {"QueueUrl": queue}),
        (events.delete_rule, {"Name": "p5"}),
        (ssm.delete_parameter, {"Name": "/ironburst/lab/p5/image"}),
        (clients("secretsmanager").delete_secret, {"SecretId": "munge", "ForceDeleteWithoutRecovery": True}),
        (clients("s3").delete_bucket, {"Bucket": "lab-state"}),
        (clients("cloudwatch").delete_alarms, {"AlarmNames": ["spend"]}),
        (clients("kms").delete_alias, {"AliasName": "alias/state"}),
        (clients("budgets").delete_budget, {"AccountId": ACCOUNT, "BudgetName": "lab"}),
    ]


def test_leftovers_by_kind_until_all_is_gone(cloud, clients):
    assert leftovers(cloud.url) == {}
    removals = everything(cloud, clients)
    by_kind = leftovers(cloud.url)
    assert sorted(by_kind) == sorted(
        [
            "instances",
            "volumes",
            "network interfaces",
            "VPCs",
            "subnets",
            "security groups",
            "route tables",
            "internet gateways",
            "NAT gateways",
            "elastic IPs",
            "VPC endpoints",
            "customer gateways",
            "VPN gateways",
            "VPN connections",
            "launch templates",
            "placement groups",
            "capacity reservations",
            "key pairs",
            "roles",
            "instance profiles",
            "policies",
            "queues",
            "event rules",
            "parameters",
            "secrets",
            "budgets",
            "buckets",
            "KMS aliases",
            "alarms",
        ]
    )
    assert by_kind["roles"] == ["node"] and by_kind["parameters"] == ["/ironburst/lab/p5/image"]
    assert len(by_kind["VPC endpoints"]) == 2
    for call, ask in removals:
        call(**ask)
    assert leftovers(cloud.url) == {}
