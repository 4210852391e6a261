"""One queue for the cluster, and nothing in it but what the controller acts on."""

import copy
import json

from ironburst import document

QUEUE = "arn:aws:mock:us-east-1:123456789012:lab-interruptions"


def test_only_spot_warnings_come_into_the_queue(cluster, value):
    recording = cluster(value)
    rule = recording.one("EventRule").inputs
    assert json.loads(rule["eventPattern"]) == {
        "source": ["aws.ec2"],
        "detail-type": ["EC2 Spot Instance Interruption Warning"],
    }
    target = recording.one("EventTarget").inputs
    assert (target["rule"], target["arn"]) == ("lab-interruptions", QUEUE)
    assert recording.one("sqs/queue:Queue").inputs["sqsManagedSseEnabled"] is True


def test_only_the_rule_may_send_to_the_queue(cluster, value):
    (statement,) = json.loads(cluster(value).one("QueuePolicy").inputs["policy"])["Statement"]
    assert statement["Principal"] == {"Service": "events.amazonaws.com"} and statement["Action"] == "sqs:SendMessage"
    assert statement["Condition"]["ArnEquals"]["aws:SourceArn"] == [QUEUE]


def test_pools_with_spot_share_the_queue(cluster, value):
    pool = value["cloud"]["pools"][0]
    more = [copy.deepcopy(pool) | {"name": "more"}, copy.deepcopy(pool) | {"name": "dear", "markets": ["on-demand"]}]
    value["cloud"]["pools"] += more
    recording = cluster(value)
    assert len(recording.all("sqs/queue:Queue")) == 1
    urls = {pool.name: pool.notices for pool in document.parse(recording.result).pools}
    assert urls == {"p5": "http://sqs/lab-interruptions", "more": "http://sqs/lab-interruptions", "dear": ""}


def test_without_spot_there_is_no_queue_and_no_right_to_one(cluster, value):
    value["cloud"]["pools"][0]["markets"] = ["on-demand"]
    recording = cluster(value)
    assert not recording.all("sqs/queue:Queue") and not recording.all("EventRule")
    policy = json.loads(recording.one("RolePolicy", "lab-controller").inputs["policy"])
    assert not any("sqs" in action for statement in policy["Statement"] for action in statement["Action"])
