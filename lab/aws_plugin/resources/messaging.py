"""Queues, event rules, topics."""

from __future__ import annotations

from typing import Any

from lab.aws_plugin.spec import (
    Aws,
    Resource,
    by_arn,
    changed,
    given,
    pick,
    tag_list,
    tag_map,
    tagger,
)
from lab.provider.wire import Props

QUEUE = {
    "messageRetentionSeconds": "MessageRetentionPeriod",
    "visibilityTimeoutSeconds": "VisibilityTimeout",
    "receiveWaitTimeSeconds": "ReceiveMessageWaitTimeSeconds",
    "delaySeconds": "DelaySeconds",
    "maxMessageSize": "MaximumMessageSize",
    "sqsManagedSseEnabled": "SqsManagedSseEnabled",
    "kmsMasterKeyId": "KmsMasterKeyId",
    "redrivePolicy": "RedrivePolicy",
    "policy": "Policy",
}
NUMBERS = {
    "messageRetentionSeconds",
    "visibilityTimeoutSeconds",
    "receiveWaitTimeSeconds",
    "delaySeconds",
    "maxMessageSize",
}


def as_text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


# ---- Queue: its id is its URL
def create_queue(aws: Aws, new: Props) -> str:
    attributes = {boto: as_text(new[wire]) for wire, boto in QUEUE.items() if new.get(wire) is not None}
    made = aws.client("sqs").create_queue(QueueName=new["name"], Attributes=attributes, tags=new.get("tagsAll") or {})
    return made["QueueUrl"]


def apply_queue(aws: Aws, rid: str, old: Props, new: Props) -> None:
    moved = changed(old, new, " ".join(QUEUE))
    aws.client("sqs").set_queue_attributes(QueueUrl=rid, Attributes={QUEUE[k]: as_text(new.get(k, "")) for k in moved})


def read_queue(aws: Aws, rid: str, state: Props) -> Props | None:
    described = aws.client("sqs").get_queue_attributes(QueueUrl=rid, AttributeNames=["All"])["Attributes"]
    seen = {
        wire: int(described[boto]) if wire in NUMBERS else described[boto]
        for wire, boto in QUEUE.items()
        if described.get(boto) not in (None, "")
    }
    if "sqsManagedSseEnabled" in seen:
        seen["sqsManagedSseEnabled"] = seen["sqsManagedSseEnabled"] == "true"
    if "policy" not in state:
        seen.pop("policy", None)  # a QueuePolicy's business
    return {
        **seen,
        "name": described["QueueArn"].rsplit(":", 1)[-1],
        "arn": described["QueueArn"],
        "url": rid,
        "tags": aws.client("sqs").list_queue_tags(QueueUrl=rid).get("Tags", {}),
    }


# ---- QueuePolicy
def put_queue_policy(aws: Aws, new: Props) -> str:
    aws.client("sqs").set_queue_attributes(QueueUrl=new["queueUrl"], Attributes={"Policy": new["policy"]})
    return new["queueUrl"]


def read_queue_policy(aws: Aws, rid: str, _state: Props) -> Props | None:
    answer = aws.client("sqs").get_queue_attributes(QueueUrl=rid, AttributeNames=["Policy"])
    described = answer.get("Attributes", {}).get("Policy")
    return {"queueUrl": rid, "policy": described} if described else None


# ---- EventRule, EventTarget
def bus(props: Props) -> Props:
    return {"EventBusName": props["eventBusName"]} if props.get("eventBusName") else {}


def put_rule(aws: Aws, new: Props, tags: bool = True) -> str:
    tagged = {"Tags": tag_list(new["tagsAll"])} if tags and new.get("tagsAll") else {}
    asked = given(new, "description eventPattern scheduleExpression state roleArn")
    aws.client("events").put_rule(Name=new["name"], **asked, **bus(new), **tagged)
    return new["name"]


def read_rule(aws: Aws, rid: str, state: Props) -> Props | None:
    described = aws.client("events").describe_rule(Name=rid, **bus(state))
    tags = aws.client("events").list_tags_for_resource(ResourceARN=described["Arn"])["Tags"]
    return {
        **pick(described, "name arn description eventPattern scheduleExpression state roleArn eventBusName"),
        "tags": tag_map(tags),
    }


def put_target(aws: Aws, new: Props) -> str:
    target = {"Id": new["targetId"], "Arn": new["arn"], **given(new, "input inputPath roleArn")}
    aws.client("events").put_targets(Rule=new["rule"], Targets=[target], **bus(new))
    return f"{new['rule']}-{new['targetId']}"


def read_target(aws: Aws, _rid: str, state: Props) -> Props | None:
    described = aws.client("events").list_targets_by_rule(Rule=state["rule"], **bus(state))["Targets"]
    target = next((t for t in described if t["Id"] == state["targetId"]), None)
    return target and {"rule": state["rule"], "targetId": target["Id"], **pick(target, "arn input inputPath roleArn")}


def delete_target(aws: Aws, _rid: str, state: Props) -> None:
    aws.client("events").remove_targets(Rule=state["rule"], Ids=[state["targetId"]], **bus(state))


# ---- Topic, TopicSubscription: their ids are their ARNs
TOPIC = {"displayName": "DisplayName", "policy": "Policy", "kmsMasterKeyId": "KmsMasterKeyId"}
SUBSCRIPTION = {"rawMessageDelivery": "RawMessageDelivery", "filterPolicy": "FilterPolicy"}


def create_topic(aws: Aws, new: Props) -> str:
    attributes = {boto: new[wire] for wire, boto in TOPIC.items() if new.get(wire)}
    made = aws.client("sns").create_topic(Name=new["name"], Attributes=attributes, Tags=tag_list(new.get("tagsAll")))
    return made["TopicArn"]


def apply_topic(aws: Aws, rid: str, old: Props, new: Props) -> None:
    for key in changed(old, new, " ".join(TOPIC)):
        aws.client("sns").set_topic_attributes(
            TopicArn=rid, AttributeName=TOPIC[key], AttributeValue=new.get(key) or ""
        )


def read_topic(aws: Aws, rid: str, _state: Props) -> Props | None:
    described = aws.client("sns").get_topic_attributes(TopicArn=rid)["Attributes"]
    return {
        **{wire: described[boto] for wire, boto in TOPIC.items() if described.get(boto)},
        "name": rid.rsplit(":", 1)[-1],
        "arn": rid,
        "owner": described.get("Owner"),
        "tags": tag_map(aws.client("sns").list_tags_for_resource(ResourceArn=rid)["Tags"]),
    }


def subscribe(aws: Aws, new: Props) -> str:
    attributes = {boto: as_text(new[wire]) for wire, boto in SUBSCRIPTION.items() if new.get(wire) is not None}
    return aws.client("sns").subscribe(
        TopicArn=new["topic"],
        Protocol=new["protocol"],
        Endpoint=new["endpoint"],
        Attributes=attributes,
        ReturnSubscriptionArn=True,
    )["SubscriptionArn"]


def apply_subscription(aws: Aws, rid: str, old: Props, new: Props) -> None:
    for key in changed(old, new, " ".join(SUBSCRIPTION)):
        aws.client("sns").set_subscription_attributes(
            SubscriptionArn=rid, AttributeName=SUBSCRIPTION[key], AttributeValue=as_text(new.get(key, ""))
        )


def read_subscription(aws: Aws, rid: str, _state: Props) -> Props | None:
    described = aws.client("sns").get_subscription_attributes(SubscriptionArn=rid)["Attributes"]
    return {
        "topic": described["TopicArn"],
        "protocol": described.get("Protocol"),
        "endpoint": described["Endpoint"],
        "arn": rid,
        "ownerId": described.get("Owner"),
        **{wire: described[boto] for wire, boto in SUBSCRIPTION.items() if described.get(boto)},
        "pendingConfirmation": described.get("PendingConfirmation") == "true",
    }


SPECS = [
    Resource(
        "aws:sqs/queue:Queue",
        "name " + " ".join(QUEUE),
        create=create_queue,
        read=read_queue,
        delete=lambda aws, rid, _state: aws.client("sqs").delete_queue(QueueUrl=rid),
        apply=apply_queue,
        tag=tagger("sqs", lambda rid, _state: {"QueueUrl": rid}, "tag_queue", "untag_queue", shape=dict),
        name="name",
    ),
    Resource(
        "aws:sqs/queuePolicy:QueuePolicy",
        "queueUrl policy",
        create=put_queue_policy,
        read=read_queue_policy,
        delete=lambda aws, rid, _state: aws.client("sqs").set_queue_attributes(QueueUrl=rid, Attributes={"Policy": ""}),
        apply=lambda aws, _rid, _old, new: put_queue_policy(aws, new),
        replace="queueUrl",
    ),
    Resource(
        "aws:cloudwatch/eventRule:EventRule",
        "name description eventPattern scheduleExpression state roleArn eventBusName",
        create=put_rule,
        read=read_rule,
        delete=lambda aws, rid, state: aws.client("events").delete_rule(Name=rid, **bus(state)),
        apply=lambda aws, _rid, _old, new: put_rule(aws, new, tags=False),
        tag=tagger("events", by_arn),
        name="name",
        replace="eventBusName",
    ),
    Resource(
        "aws:cloudwatch/eventTarget:EventTarget",
        "rule arn targetId input inputPath roleArn eventBusName",
        create=put_target,
        read=read_target,
        delete=delete_target,
        apply=lambda aws, _rid, _old, new: put_target(aws, new),
        name="targetId",
        replace="rule eventBusName",
    ),
    Resource(
        "aws:sns/topic:Topic",
        "name " + " ".join(TOPIC),
        create=create_topic,
        read=read_topic,
        delete=lambda aws, rid, _state: aws.client("sns").delete_topic(TopicArn=rid),
        apply=apply_topic,
        tag=tagger("sns", lambda rid, _state: {"ResourceArn": rid}),
        name="name",
    ),
    Resource(
        "aws:sns/topicSubscription:TopicSubscription",
        "topic protocol endpoint " + " ".join(SUBSCRIPTION),
        create=subscribe,
        read=read_subscription,
        delete=lambda aws, rid, _state: aws.client("sns").unsubscribe(SubscriptionArn=rid),
        apply=apply_subscription,
        replace="topic protocol endpoint",
    ),
]
