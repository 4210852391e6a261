import json

import pytest

from components.burst_pool import BurstPool
from ironburst.config.models import Cloud

ZONES = ["us-east-1a", "us-east-1b"]


@pytest.fixture
def pool(run):
    def build(**changes):
        declared = {"name": "p5", "instance_type": "p5.48xlarge", "max_nodes": 3, "zones": ZONES} | changes
        cloud = Cloud.model_validate(
            {"region": "us-east-1", "network": {"cidr": "10.90.0.0/16", "zones": ZONES}, "pools": [declared]}
        )
        return run(
            lambda: (
                BurstPool(
                    "burst-p5",
                    cluster="lab",
                    cloud=cloud,
                    pool=cloud.pools[0],
                    subnet_ids={"us-east-1a": "subnet-0a", "us-east-1b": "subnet-0b", "us-east-1c": "subnet-0c"},
                    security_group_id="sg-0a",
                    instance_profile="lab-node",
                ).zones
            )
        )

    return build


def test_a_template_a_zone_with_that_zones_subnet(pool):
    recording = pool()
    templates = {each.name: each.inputs for each in recording.all("LaunchTemplate")}
    assert set(templates) == {"burst-p5-us-east-1a", "burst-p5-us-east-1b"}
    for name, subnet in (("burst-p5-us-east-1a", "subnet-0a"), ("burst-p5-us-east-1b", "subnet-0b")):
        assert {each["subnetId"] for each in templates[name]["networkInterfaces"]} == {subnet}
    expected = ["burst-p5-us-east-1a-id", "burst-p5-us-east-1b-id"]
    assert [zone.launch_template_id for zone in recording.result] == expected


def test_templates_leave_image_disk_market_and_data_to_the_controller(pool):
    for template in pool().all("LaunchTemplate"):
        absent = {
            "imageId",
            "blockDeviceMappings",
            "instanceMarketOptions",
            "userData",
            "capacityReservationSpecification",
            "placement",
            "vpcSecurityGroupIds",
        }
        assert not absent & set(template.inputs)


def test_a_template(pool):
    template = pool().one("LaunchTemplate", "burst-p5-us-east-1a").inputs
    assert template["instanceType"] == "p5.48xlarge"
    assert len(template["networkInterfaces"]) == 33
    assert not any("associatePublicIpAddress" in each for each in template["networkInterfaces"])
    assert template["metadataOptions"]["httpTokens"] == "required"
    assert template["metadataOptions"]["instanceMetadataTags"] == "enabled"
    assert template["instanceInitiatedShutdownBehavior"] == "terminate"
    wanted = {"Name": "lab-p5", "ironburst:cluster": "lab", "ironburst:pool": "p5"}
    assert {each["resourceType"]: each["tags"] for each in template["tagSpecifications"]} == dict.fromkeys(
        ("instance", "volume", "network-interface"), wanted
    )


def test_it_holds_no_instance(pool):
    assert not pool().all("Instance")


def test_interruptions_come_by_the_pools_queue(pool):
    recording = pool()
    queue = "arn:aws:mock:us-east-1:123456789012:burst-p5-interruptions"
    patterns = {each.name: json.loads(each.inputs["eventPattern"]) for each in recording.all("EventRule")}
    expected = ["EC2 Spot Instance Interruption Warning", "EC2 Instance Rebalance Recommendation"]
    assert patterns["burst-p5-interruption"]["detail-type"] == expected
    assert patterns["burst-p5-end"]["detail"]["state"] == ["stopping", "stopped", "shutting-down", "terminated"]
    assert all(pattern["source"] == ["aws.ec2"] for pattern in patterns.values())
    assert {each.inputs["rule"]: each.inputs["arn"] for each in recording.all("EventTarget")} == dict.fromkeys(
        patterns, queue
    )
    assert recording.one("sqs/queue:Queue").inputs["sqsManagedSseEnabled"] is True


def test_only_the_rules_may_send_to_the_queue(pool):
    recording = pool()
    (statement,) = json.loads(recording.one("QueuePolicy").inputs["policy"])["Statement"]
    assert statement["Principal"] == {"Service": "events.amazonaws.com"} and statement["Action"] == "sqs:SendMessage"
    arns = statement["Condition"]["ArnEquals"]["aws:SourceArn"]
    assert sorted(arns) == [f"arn:aws:mock:us-east-1:123456789012:burst-p5-{rule}" for rule in ("end", "interruption")]


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({}, "at worst 165.12 USD an hour, 120,538 USD a month (estimate, list prices of 2026-07-20)"),
        ({"markets": ["spot", "on-demand"]}, "at worst 165.12 USD an hour"),  # the dearer market counts
        ({"instance_type": "p5e.48xlarge"}, "price unknown, so no estimate; give one under cloud.price"),
    ],
)
def test_the_worst_case_is_said(pool, changes, sentence):
    (said,) = pool(**changes).logged
    assert sentence in said
