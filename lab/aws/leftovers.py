"""What an account still holds, by kind: seen through the API, as a person would."""

from __future__ import annotations

import dataclasses

import boto3
import jmespath
from botocore.config import Config


@dataclasses.dataclass(frozen=True)
class Kind:
    """One paginated (or plain) list call, and the JMESPath expression that gives the names of what counts."""

    name: str
    call: str
    path: str
    service: str = "ec2"


RESERVATIONS = "CapacityReservations[?State=='active' || State=='scheduled'].CapacityReservationId"
KINDS = (
    Kind("instances", "describe_instances", "Reservations[].Instances[?State.Name!='terminated'][].InstanceId"),
    Kind("volumes", "describe_volumes", "Volumes[].VolumeId"),
    Kind("network interfaces", "describe_network_interfaces", "NetworkInterfaces[].NetworkInterfaceId"),
    Kind("VPCs", "describe_vpcs", "Vpcs[?!IsDefault].VpcId"),
    Kind("subnets", "describe_subnets", "Subnets[?!DefaultForAz].SubnetId"),
    Kind("security groups", "describe_security_groups", "SecurityGroups[?GroupName!='default'].GroupId"),
    Kind("route tables", "describe_route_tables", "RouteTables[?!(Associations[?Main])].RouteTableId"),
    Kind("internet gateways", "describe_internet_gateways", "InternetGateways[].InternetGatewayId"),
    Kind("NAT gateways", "describe_nat_gateways", "NatGateways[?State!='deleted'].NatGatewayId"),
    Kind("elastic IPs", "describe_addresses", "Addresses[].AllocationId"),
    Kind("VPC endpoints", "describe_vpc_endpoints", "VpcEndpoints[?State!='deleted'].VpcEndpointId"),
    Kind("customer gateways", "describe_customer_gateways", "CustomerGateways[?State!='deleted'].CustomerGatewayId"),
    Kind("VPN gateways", "describe_vpn_gateways", "VpnGateways[?State!='deleted'].VpnGatewayId"),
    Kind("VPN connections", "describe_vpn_connections", "VpnConnections[?State!='deleted'].VpnConnectionId"),
    Kind(
        "transit gateway attachments",
        "describe_transit_gateway_vpc_attachments",
        "TransitGatewayVpcAttachments[?State!='deleted'].TransitGatewayAttachmentId",
    ),
    Kind(
        "Direct Connect associations",
        "describe_direct_connect_gateway_associations",
        "directConnectGatewayAssociations[].associationId",
        "directconnect",
    ),
    Kind("launch templates", "describe_launch_templates", "LaunchTemplates[].LaunchTemplateName"),
    Kind("placement groups", "describe_placement_groups", "PlacementGroups[].GroupName"),
    Kind("capacity reservations", "describe_capacity_reservations", RESERVATIONS),
    Kind("key pairs", "describe_key_pairs", "KeyPairs[].KeyName"),
    Kind("roles", "list_roles", "Roles[?!starts_with(Path, '/aws-service-role/')].RoleName", "iam"),
    Kind("users", "list_users", "Users[].UserName", "iam"),
    Kind("instance profiles", "list_instance_profiles", "InstanceProfiles[].InstanceProfileName", "iam"),
    Kind("policies", "list_policies", "Policies[?!starts_with(Arn, 'arn:aws:iam::aws:')].PolicyName", "iam"),
    Kind("trust anchors", "list_trust_anchors", "trustAnchors[].name", "rolesanywhere"),
    Kind("Roles Anywhere profiles", "list_profiles", "profiles[].name", "rolesanywhere"),
    Kind("EKS clusters", "list_clusters", "clusters[]", "eks"),
    Kind("queues", "list_queues", "QueueUrls[]", "sqs"),
    Kind("event rules", "list_rules", "Rules[].Name", "events"),
    Kind("parameters", "describe_parameters", "Parameters[].Name", "ssm"),
    Kind("secrets", "list_secrets", "SecretList[?!DeletedDate].Name", "secretsmanager"),
    Kind("budgets", "describe_budgets", "Budgets[].BudgetName", "budgets"),
    Kind("buckets", "list_buckets", "Buckets[].Name", "s3"),
    Kind("KMS aliases", "list_aliases", "Aliases[?!starts_with(AliasName, 'alias/aws/')].AliasName", "kms"),
    Kind("alarms", "describe_alarms", "MetricAlarms[].AlarmName", "cloudwatch"),
)


def leftovers(url: str, region: str = "us-east-1", account: str = "123456789012") -> dict[str, list[str]]:
    """Kind -> names of everything in the account that AWS itself didn't put there; kinds without any are left out.

    Images and their snapshots aren't counted: in the lab they are given. Secrets within their recovery time count as
    deleted.
    """
    session = boto3.Session("lab", "lab", region_name=region)  # the lab's credentials, which open nothing else
    config, clients = Config(retries={"total_max_attempts": 1}), {}
    left = {}
    for kind in KINDS:
        if kind.service not in clients:
            clients[kind.service] = session.client(kind.service, endpoint_url=url, config=config)
        client = clients[kind.service]
        given = {"AccountId": account} if kind.service == "budgets" else {}
        if client.can_paginate(kind.call):
            pages = client.get_paginator(kind.call).paginate(**given)
        else:
            pages = [getattr(client, kind.call)(**given)]
        names = [name for page in pages for name in jmespath.search(kind.path, page) or []]
        if names:
            left[kind.name] = sorted(names)
    return left
