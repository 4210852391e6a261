"""The envelope of one burst pool: a launch template a zone and the interruption queue.
It holds no node: the controller rents those.
"""

import json

import pulumi
import pulumi_aws as aws

from components import estimates, launch, policies
from ironburst import catalog
from ironburst.config.models import Cloud, Pool
from ironburst.document import PoolZone
from ironburst.naming import logical, tags

# EventBridge can't see tags in these events: the queue gets those of all instances in
# the region, the controller picks its own.
EVENTS = {
    "interruption": {
        "source": ["aws.ec2"],
        "detail-type": ["EC2 Spot Instance Interruption Warning", "EC2 Instance Rebalance Recommendation"],
    },
    "end": {
        "source": ["aws.ec2"],
        "detail-type": ["EC2 Instance State-change Notification"],
        "detail": {"state": ["stopping", "stopped", "shutting-down", "terminated"]},
    },
}
RETENTION_S = 3600  # a notice is of use for two minutes; an hour shows what was missed


class BurstPool(pulumi.ComponentResource):
    """Outputs: `zones` (PoolZone each), `queue_url`, `queue_arn`, `template_arns`,
    `subnet_ids`; `worst_case` is an Estimate.
    """

    zones: list[pulumi.Output[PoolZone]]
    queue_url: pulumi.Output[str]
    queue_arn: pulumi.Output[str]
    template_arns: list[pulumi.Output[str]]
    subnet_ids: list[pulumi.Output[str]]
    worst_case: estimates.Estimate

    def __init__(
        self,
        name: str,
        *,
        cluster: str,
        cloud: Cloud,
        pool: Pool,
        subnet_ids: dict[str, pulumi.Output[str]],
        security_group_id: pulumi.Output[str],
        instance_profile: pulumi.Output[str],
        key_name: str | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """`subnet_ids`: zone -> private subnet, at least for the pool's zones."""
        super().__init__("ironburst:components:BurstPool", name, None, opts)
        self._name, self._child = name, pulumi.ResourceOptions(parent=self)
        self._tags = tags(cluster, pool.name, pool=pool.name)
        self.subnet_ids = [subnet_ids[zone] for zone in pool.zones]
        templates = {
            zone: self._template(pool, zone, subnet_ids[zone], security_group_id, instance_profile, key_name)
            for zone in pool.zones
        }
        self.template_arns = [template.arn for template in templates.values()]
        self.zones = [_zone(zone, subnet_ids[zone], template) for zone, template in templates.items()]
        queue = self._queue()
        self.queue_url, self.queue_arn = queue.url, queue.arn
        self.worst_case = estimates.pool(cloud, pool)
        pulumi.log.info(str(self.worst_case), self)
        self.register_outputs(
            {
                "queue_url": self.queue_url,
                "template_ids": {zone: template.id for zone, template in templates.items()},
                "worst_case": str(self.worst_case),
            }
        )

    def _template(
        self,
        pool: Pool,
        zone: str,
        subnet_id: pulumi.Output[str],
        security_group_id: pulumi.Output[str],
        instance_profile: pulumi.Output[str],
        key_name: str | None,
    ) -> aws.ec2.LaunchTemplate:
        """Everything of a launch but the image, the market and the number: those are the controller's. One a zone,
        because EC2 refuses a subnet beside a template's network interfaces.
        """
        return aws.ec2.LaunchTemplate(
            logical(self._name, zone),
            instance_type=pool.instance_type,
            network_interfaces=launch.interfaces(
                catalog.network_interfaces(pool.instance_type), subnet_id, security_group_id
            ),
            block_device_mappings=launch.root_disk(pool.root_disk_gb),
            metadata_options=launch.metadata(),
            iam_instance_profile={"name": instance_profile},
            key_name=key_name,
            instance_initiated_shutdown_behavior="terminate",  # a node that powers itself off is paid for no longer
            tag_specifications=launch.tagged(self._tags),
            update_default_version=True,
            tags=self._tags,
            opts=self._child,
        )

    def _queue(self) -> aws.sqs.Queue:
        queue = aws.sqs.Queue(
            logical(self._name, "interruptions"),
            message_retention_seconds=RETENTION_S,
            sqs_managed_sse_enabled=True,
            tags=self._tags,
            opts=self._child,
        )
        rules = {
            label: aws.cloudwatch.EventRule(
                logical(self._name, label),
                description=f"{label} of instances, for the burst controller",
                event_pattern=json.dumps(pattern),
                tags=self._tags,
                opts=self._child,
            )
            for label, pattern in EVENTS.items()
        }
        aws.sqs.QueuePolicy(
            logical(self._name, "interruptions"),
            queue_url=queue.url,
            policy=pulumi.Output.all(queue.arn, *(rule.arn for rule in rules.values())).apply(
                lambda arns: json.dumps(policies.queue(arns[0], arns[1:]))
            ),
            opts=self._child,
        )
        for label, rule in rules.items():
            aws.cloudwatch.EventTarget(logical(self._name, label), rule=rule.name, arn=queue.arn, opts=self._child)
        return queue


def _zone(zone: str, subnet_id: pulumi.Output[str], template: aws.ec2.LaunchTemplate) -> pulumi.Output[PoolZone]:
    """What a launch in this zone needs. The template's version is fixed: what is launched is what was published."""
    return pulumi.Output.all(subnet_id, template.id, template.latest_version).apply(
        lambda known: PoolZone(
            zone=zone, subnet_id=known[0], launch_template_id=known[1], launch_template_version=str(int(known[2]))
        )
    )
