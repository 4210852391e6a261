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
    service: str
    call: str
    path: str


KINDS = (
    Kind("instances", "ec2", "describe_instances", "Reservations[].Instances[?State.Name!='terminated'][].InstanceId"),
    Kind("volumes", "ec2", "describe_volumes", "Volumes[].VolumeId"),
    Kind("network interfaces", "ec2", "describe_network_interfaces", "NetworkInterfaces[].NetworkInterfaceId"),
    Kind("VPCs", "ec2", "describe_vpcs", "Vpcs[?!IsDefault].VpcId"),
    Kind("subnets", "ec2", "describe_subnets", "Subnets[?!DefaultForAz].SubnetId"),
    Kind("security groups", "ec2", "describe_security_groups", "SecurityGroups[?GroupName!='default'].GroupId"),
    Kind("route tables", "ec2", "describe_route_tables", "RouteTables[?!(Associations[?Main])].RouteTableId"),
    Kind("internet gateways", "ec2", "describe_internet_gateways", "InternetGateways[].InternetGatewayId"),
    Kind("NAT gateways", "ec2", "describe_nat_gateways", "NatGateways[?State!='deleted'].NatGatewayId"),
    Kind("elastic IPs", "ec2", "describe_addresses", "Addresses[].AllocationId"),
    Kind("VPC endpoints", "ec2", "describe_vpc_endpoints", "VpcEndpoints[?State!='deleted'].VpcEndpointId"),
    Kind(
        "customer gateways",
        "ec2",
        "describe_customer_gateways",
        "CustomerGateways[?State!='deleted'].CustomerGatewayId",
    ),
    Kind("VPN gateways", "ec2", "describe_vpn_gateways", "VpnGateways[?State!='deleted'].VpnGatewayId"),
    Kind("VPN connections", "ec2", "describe_vpn_connections", "VpnConnections[?State!='deleted'].VpnConnectionId"),
    Kind("launch templates", "ec2", "describe_launch_templates", "LaunchTemplates[].LaunchTemplateName"),
    Kind("placement groups", "ec2", "describe_placement_groups", "PlacementGroups[].GroupName"),
    Kind(
        "capacity reservations",
        "ec2",
        "describe_capacity_reservations",
        "CapacityReservations[?State=='active' || State=='scheduled'].CapacityReservationId",
    ),
    Kind("key pairs", "ec2", "describe_key_pairs", "KeyPairs[].KeyName"),
    Kind("roles", "iam", "list_roles", "Roles[?!starts_with(Path, '/aws-service-role/')].RoleName"),
    Kind("instance profiles", "iam", "list_instance_profiles", "InstanceProfiles[].InstanceProfileName"),
    Kind("policies", "iam", "list_policies", "Policies[?!starts_with(Arn, 'arn:aws:iam::aws:')].PolicyName"),
    Kind("queues", "sqs", "list_queues", "QueueUrls[]"),
    Kind("event rules", "events", "list_rules", "Rules[].Name"),
    Kind("parameters", "ssm", "describe_parameters", "Parameters[].Name"),
    Kind("secrets", "secretsmanager", "list_secrets", "SecretList[?!DeletedDate].Name"),
    Kind("budgets", "budgets", "describe_budgets", "Budgets[].BudgetName"),
    Kind("buckets", "s3", "list_buckets", "Buckets[].Name"),
    Kind("KMS aliases", "kms", "list_aliases", "Aliases[?!starts_with(AliasName, 'alias/aws/')].AliasName"),
    Kind("alarms", "cloudwatch", "describe_alarms", "MetricAlarms[].AlarmName"),
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
        pages = (
            client.get_paginator(kind.call).paginate(**given)
            if client.can_paginate(kind.call)
            else [getattr(client, kind.call)(**given)]
        )
        names = [name for page in pages for name in jmespath.search(kind.path, page) or []]
        if names:
            left[kind.name] = sorted(names)
    return left
