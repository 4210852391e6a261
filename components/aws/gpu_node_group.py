"""Fixed cloud GPU nodes: always there, one resource a node, never replaced or stopped behind the scheduler's back."""

from collections.abc import Mapping

import pulumi
import pulumi_aws as aws

from components.aws import launch
from ironburst import catalog
from ironburst.config.aws.models import AwsGroup
from ironburst.document.build import CloudInstance
from ironburst.nodes.naming import logical, numbered, tags

# These would stop or replace the machine under its jobs: `ironburst converge` rolls them, with a drain.
ROLLED_WITH_DRAIN = ["ami", "userData", "launchTemplate"]


class GpuNodeGroup(pulumi.ComponentResource):
    """Outputs: `instances`, declared node name -> CloudInstance; `joining`: those that join a cluster of EKS."""

    instances: dict[str, pulumi.Output[CloudInstance]]
    joining: list[pulumi.Output[CloudInstance]]

    def __init__(
        self,
        name: str,
        *,
        cluster: str,
        group: AwsGroup,
        subnet_id: pulumi.Input[str],
        security_group_id: pulumi.Input[str],
        instance_profile: pulumi.Input[str],
        key_name: str | None = None,
        eks: str = "",
        asked: Mapping[str, str] | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """`eks`: the cluster there that its nodes join; `asked`: the organization's tags."""
        super().__init__("ironburst:components:GpuNodeGroup", name, None, opts)
        child = pulumi.ResourceOptions(parent=self)
        label = tags(cluster, group.name, group=group.name)
        placement = None
        if group.placement_group:
            placement = aws.ec2.PlacementGroup(logical(name, "placement"), strategy="cluster", tags=label, opts=child)
        # An Instance can't lay out network cards itself: the template holds them,
        # and what else the Instance needn't show.
        template = aws.ec2.LaunchTemplate(
            logical(name, "template"),
            network_interfaces=launch.interfaces(
                catalog.network_interfaces(group.instance_type), subnet_id, security_group_id
            ),
            metadata_options=launch.metadata(tags=not eks),
            tag_specifications=launch.tagged({**(asked or {}), **label}),
            # Not on the Instance: the provider reads back no market but spot, so its next `up` would replace the node;
            # and another reservation could only be written to a stopped one.
            capacity_reservation_specification=_reservation(group),
            instance_market_options=_market(group),
            update_default_version=True,
            tags=label,
            opts=child,
        )
        self.instances = {}
        for node in numbered(group.name, group.count):
            instance = aws.ec2.Instance(
                node,
                ami=group.image,
                instance_type=group.instance_type,
                iam_instance_profile=instance_profile,
                key_name=key_name,
                launch_template={"id": template.id, "version": template.latest_version.apply(str)},
                placement_group=placement.name if placement else None,
                root_block_device=_root_disk(group),
                tags=tags(cluster, node, group=group.name) | launch.of_eks(eks),
                opts=pulumi.ResourceOptions(parent=self, ignore_changes=ROLLED_WITH_DRAIN),
            )
            self.instances[node] = pulumi.Output.all(instance.id, instance.private_ip).apply(
                lambda known: CloudInstance(id=known[0], address=known[1])
            )
        self.joining = list(self.instances.values()) if eks else []
        self.register_outputs(
            {"instances": {node: instance.apply(_plain) for node, instance in self.instances.items()}}
        )


def _plain(instance: CloudInstance) -> dict[str, str]:
    return instance.model_dump()


def _root_disk(group: AwsGroup) -> aws.ec2.InstanceRootBlockDeviceArgs:
    """Without a device's name: the provider looks that up in the image."""
    return aws.ec2.InstanceRootBlockDeviceArgs(
        volume_size=group.root_disk_gb,
        volume_type="gp3",
        throughput=group.root_disk_mb_s,
        encrypted=True,
        delete_on_termination=True,
    )


def _reservation(group: AwsGroup) -> aws.ec2.LaunchTemplateCapacityReservationSpecificationArgs | None:
    """What somebody bought: the reservation or capacity block by id, or a group of reservations; None: on demand.
    A template takes a target or a preference, not both: in a group without room the node runs on demand.
    """
    reserved = group.capacity_block.id if group.capacity_block else group.capacity_reservation
    if reserved is None and group.capacity_reservation_group is None:
        return None
    target = aws.ec2.LaunchTemplateCapacityReservationSpecificationCapacityReservationTargetArgs(
        capacity_reservation_id=reserved, capacity_reservation_resource_group_arn=group.capacity_reservation_group
    )
    return aws.ec2.LaunchTemplateCapacityReservationSpecificationArgs(capacity_reservation_target=target)


def _market(group: AwsGroup) -> aws.ec2.LaunchTemplateInstanceMarketOptionsArgs | None:
    """EC2 asks that a capacity block be named as a market, too."""
    if group.capacity_block is None:
        return None
    return aws.ec2.LaunchTemplateInstanceMarketOptionsArgs(market_type="capacity-block")
