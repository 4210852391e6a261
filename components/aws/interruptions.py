"""The queue of spot interruption warnings: one for the cluster. EventBridge can't see tags in these events, so it gets
the warnings of all instances in the region, and the controller picks its own.
"""

import json

import pulumi
import pulumi_aws as aws

from ironburst.config.aws import policies
from ironburst.nodes.naming import logical, tags

# All that the controller acts on: rebalance recommendations and state changes would be read only to be deleted.
WARNINGS = {"source": ["aws.ec2"], "detail-type": ["EC2 Spot Instance Interruption Warning"]}
RETENTION_S = 3600  # a notice is of use for two minutes; an hour shows what was missed


class Interruptions(pulumi.ComponentResource):
    """Outputs: `queue_url`, `queue_arn`."""

    queue_url: pulumi.Output[str]
    queue_arn: pulumi.Output[str]

    def __init__(self, name: str, *, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("ironburst:components:Interruptions", name, None, opts)
        label, child = logical(name, "interruptions"), pulumi.ResourceOptions(parent=self)
        its_tags = tags(name, "interruptions")
        queue = aws.sqs.Queue(
            label, message_retention_seconds=RETENTION_S, sqs_managed_sse_enabled=True, tags=its_tags, opts=child
        )
        rule = aws.cloudwatch.EventRule(
            label,
            description="spot interruption warnings, for the burst controller",
            event_pattern=json.dumps(WARNINGS),
            tags=its_tags,
            opts=child,
        )
        rights = pulumi.Output.all(queue.arn, rule.arn).apply(
            lambda arns: json.dumps(policies.queue(arns[0], arns[1:]))
        )
        aws.sqs.QueuePolicy(label, queue_url=queue.url, policy=rights, opts=child)
        aws.cloudwatch.EventTarget(label, rule=rule.name, arn=queue.arn, opts=child)
        self.queue_url, self.queue_arn = queue.url, queue.arn
        self.register_outputs({"queue_url": self.queue_url, "queue_arn": self.queue_arn})
