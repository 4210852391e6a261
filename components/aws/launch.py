"""What fixed and rented nodes have in common at launch: network interfaces, metadata service,
tags. Pure but for outputs inside.
"""

from collections.abc import Sequence
from typing import Any

import pulumi
import pulumi_aws as aws

from ironburst.catalog import NetworkInterface


def interfaces(
    layout: Sequence[NetworkInterface], subnet_id: pulumi.Input[str], security_group_id: pulumi.Input[str]
) -> list[aws.ec2.LaunchTemplateNetworkInterfaceArgs]:
    """The interfaces of a launch template, none with a public address. EC2 refuses the very mention of a public address
    beside a second interface, so it is set only where there is one; the subnets give none.
    """
    alone: dict[str, Any] = {"associate_public_ip_address": "false"} if len(layout) == 1 else {}
    return [
        aws.ec2.LaunchTemplateNetworkInterfaceArgs(
            network_card_index=interface.card_index,
            device_index=interface.device_index,
            interface_type=interface.interface_type,
            subnet_id=subnet_id,
            security_groups=[security_group_id],
            delete_on_termination="true",
            **alone,
        )
        for interface in layout
    ]


def of_eks(cluster: str) -> dict[str, str]:
    """The tag by which EKS knows a node's instance; empty: it is no node there."""
    return {f"kubernetes.io/cluster/{cluster}": "owned"} if cluster else {}


def metadata(*, tags: bool = True) -> aws.ec2.LaunchTemplateMetadataOptionsArgs:
    """The instance metadata service of every node: IMDSv2 only (it asks for a token, which a request forged through a
    service on the node can't get); one hop, so containers don't reach it. `tags`: it shows the instance's, and then EC2
    refuses one with a / in its key, as EKS has it.
    """
    return aws.ec2.LaunchTemplateMetadataOptionsArgs(
        http_endpoint="enabled",
        http_tokens="required",
        http_put_response_hop_limit=1,
        instance_metadata_tags="enabled" if tags else "disabled",
    )


def tagged(tags: dict[str, str]) -> list[aws.ec2.LaunchTemplateTagSpecificationArgs]:
    """`tags` for what a launch makes: the instance, its disks, its interfaces."""
    return [
        aws.ec2.LaunchTemplateTagSpecificationArgs(resource_type=kind, tags=tags)
        for kind in ("instance", "volume", "network-interface")
    ]
