"""The envelope of one burst pool: a launch template for each zone and instance type. It holds no node: the controller
rents those.
"""

from typing import Any

import pulumi
import pulumi_aws as aws

from components.aws import launch
from ironburst import catalog
from ironburst.config import estimates
from ironburst.config.aws.models import AwsCloud, AwsPool
from ironburst.config.estimate import Estimate
from ironburst.document import PoolZone
from ironburst.document.aws import AwsPlace
from ironburst.nodes.naming import logical, tags


class BurstPool(pulumi.ComponentResource):
    """Outputs: `zones` (PoolZone each); `worst_case` is an Estimate."""

    zones: list[pulumi.Output[PoolZone]]
    worst_case: Estimate

    def __init__(
        self,
        name: str,
        *,
        cluster: str,
        cloud: AwsCloud,
        pool: AwsPool,
        subnet_ids: dict[str, pulumi.Output[str]],
        security_group_id: pulumi.Output[str],
        instance_profile: pulumi.Output[str],
        key_name: str | None = None,
        eks: str = "",
        spans: bool = True,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """`subnet_ids`: zone -> private subnet, at least for the pool's zones. `eks`: the cluster there that its nodes
        join. `spans`: a job may have several of its nodes.
        """
        super().__init__("ironburst:components:BurstPool", name, None, opts)
        self._name, self._child = name, pulumi.ResourceOptions(parent=self)
        self._tags, self._eks, self._asked = tags(cluster, pool.name, pool=pool.name), eks, cloud.tags
        placements = self._placements(pool) if _placed(pool, spans) else {}
        templates = {
            (name, zone): self._template(
                name,
                label,
                network_interfaces=launch.interfaces(
                    catalog.network_interfaces(name), subnet_ids[zone], security_group_id
                ),
                iam_instance_profile={"name": instance_profile},
                key_name=key_name,
                placement={"group_name": placements[zone].name} if placements else None,
            )
            for (name, zone), label in _labels(pool).items()
        }
        self.zones = [
            _zone(pool, cloud.tags, name, zone, subnet_ids[zone], template)
            for (name, zone), template in templates.items()
        ]
        self.worst_case = estimates.pool(cloud, pool)
        pulumi.log.info(self.worst_case.told(), self)
        self.register_outputs(
            {
                "template_ids": {label: templates[place].id for place, label in _labels(pool).items()},
                "worst_case": str(self.worst_case),
            }
        )

    def _placements(self, pool: AwsPool) -> dict[str, aws.ec2.PlacementGroup]:
        """A cluster placement group lies in one zone. Pulumi gives it its name: it must be the account's only one."""
        return {
            zone: aws.ec2.PlacementGroup(
                logical(self._name, zone, "placement"), strategy="cluster", tags=self._tags, opts=self._child
            )
            for zone in pool.zones
        }

    def _template(self, instance_type: str, label: str, **given: Any) -> aws.ec2.LaunchTemplate:
        """Everything of a launch but the image, the market and the number: those are the controller's. One for each
        zone, because EC2 refuses a subnet beside a template's network interfaces, and for each type, because those
        differ in their cards. No disk: the root disk is the baked image's, which knows its device's name; a mapping
        under another name would add a second one.
        """
        return aws.ec2.LaunchTemplate(
            logical(self._name, label),
            instance_type=instance_type,
            metadata_options=launch.metadata(tags=not self._eks),
            instance_initiated_shutdown_behavior="terminate",  # a node that powers itself off is paid for no longer
            tag_specifications=launch.tagged(self._asked | self._tags | launch.of_eks(self._eks)),
            update_default_version=True,
            tags=self._tags,
            opts=self._child,
            **given,
        )


def _placed(pool: AwsPool, spans: bool) -> bool:
    """Nodes that no job has together need not lie together, and are had more surely apart. Capacity that somebody
    bought has its place: EC2 puts a block's instances together itself, and a reservation takes no launch into a group
    that isn't its own.
    """
    if pool.placement_group is not None:
        return pool.placement_group
    return spans and not pool.bought and catalog.fabric(*pool.types)[1] > 0


def _labels(pool: AwsPool) -> dict[tuple[str, str], str]:
    """Instance type and zone: what tells a template from the pool's others. The first type's templates are the pool's,
    whatever types it gets later.
    """
    first = pool.types[0]
    return {(name, zone): zone if name == first else logical(zone, name) for name in pool.types for zone in pool.zones}


def _zone(
    pool: AwsPool,
    asked: dict[str, str],
    instance_type: str,
    zone: str,
    subnet_id: pulumi.Output[str],
    template: aws.ec2.LaunchTemplate,
) -> pulumi.Output[PoolZone]:
    """What a launch of this type in this zone needs. The template's version is fixed: what is launched is what was
    published.
    """
    return pulumi.Output.all(subnet_id, template.id, template.latest_version).apply(
        lambda known: PoolZone(
            zone=zone,
            instance_type=instance_type,
            place=AwsPlace(
                subnet_id=known[0],
                launch_template_id=known[1],
                launch_template_version=str(int(known[2])),
                capacity_reservation_id=pool.capacity_block.id if pool.capacity_block else pool.capacity_reservation,
                capacity_reservation_group_arn=pool.capacity_reservation_group,
                tags=asked,
                volume_init_mb_s=pool.root_disk_init_mb_s,
            ),
        )
    )
