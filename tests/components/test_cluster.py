"""The whole lab declaration: what is there, and what must not be."""

import copy
import re

import pytest
from pulumi import RunError

from ironburst import document
from lab.aws_plugin.resources import RESOURCES
from lab.aws_plugin.schema import args_class
from lab.provider.schema import problems


def test_the_document_is_complete(cluster, value):
    parsed = document.parse(cluster(value).result)
    assert [host.name for host in parsed.hosts] == ["head", "dgx01", "dgx02", "fixed-1"]
    fixed = parsed.host("fixed-1")
    assert (fixed.instance_id, fixed.address, fixed.fabric_links) == ("fixed-1-id", "10.90.1.4", 32)
    pool = parsed.pool("p5")
    assert [(zone.zone, zone.place.subnet_id, zone.place.launch_template_id) for zone in pool.zones] == [
        ("us-east-1a", "lab-private-us-east-1a-id", "burst-p5-us-east-1a-id"),
        ("us-east-1b", "lab-private-us-east-1b-id", "burst-p5-us-east-1b-id"),
    ]
    assert pool.notices == "http://sqs/lab-interruptions"


def test_every_resource_lies_under_the_cluster(cluster, value):
    recording = cluster(value)
    components = {each.name for each in recording.resources if not each.custom}
    assert all(each.parent in components for each in recording.resources if each.custom)
    parents = {each.token.split(":")[-1]: each.parent for each in recording.resources if not each.custom}
    assert parents.pop("Cluster") == "ironburst-test"
    assert set(parents.values()) == {"lab"}


def test_every_component_registers_its_outputs(cluster, value):
    recording = cluster(value)
    for each in recording.resources:
        if not each.custom:
            assert f"{each.token} {each.name}" in recording.outputs
    registered = recording.outputs["ironburst:components:Cluster lab"]["document"]
    assert [host["name"] for host in registered["hosts"]] == ["head", "dgx01", "dgx02", "fixed-1"]


def test_the_labs_plugin_knows_every_input(cluster, value):
    """A misspelt nested key passes the SDK unseen; the stand-in refuses it, and what it doesn't implement."""
    resources = [each for each in cluster(value).resources if each.token.startswith("aws:")]
    assert len(resources) > 35
    for resource in resources:
        spec = RESOURCES[resource.token]
        assert list(problems(args_class(resource.token), spec.tree, resource.inputs)) == [], resource.name


def test_names_do_not_depend_on_the_run_or_on_what_else_is_declared(cluster, value):
    first = {(each.token, each.name) for each in cluster(value).resources}
    assert first == {(each.token, each.name) for each in cluster(value, again=True).resources}
    more = copy.deepcopy(value)
    more["cloud"]["pools"].append({**more["cloud"]["pools"][0], "name": "again"})
    more["cloud"]["groups"][0]["count"] = 2
    del more["budget"]["total_usd_per_month"]
    assert first < {(each.token, each.name) for each in cluster(more).resources}


def test_nothing_elastic_and_nothing_that_buys_capacity(cluster, value):
    recording = cluster(value)
    tokens = {each.token for each in recording.resources}
    assert [each.name for each in recording.all("ec2/instance:Instance")] == ["fixed-1"]
    for forbidden in (
        "CapacityBlockReservation",
        "CapacityReservation",
        "Fleet",
        "AutoScalingGroup",
        "SpotInstanceRequest",
        "Group:Group",
    ):
        assert not [token for token in tokens if token.endswith(forbidden)]
    # image.yml writes the pool's image id
    assert not recording.all("ssm/parameter:Parameter")


def test_no_secret_is_an_input(cluster, value, monkeypatch):
    monkeypatch.setenv("LAB_BMC_PASSWORD", "hunter2")
    value["halls"][0]["nodes"][0]["bmc"]["password"] = "env:LAB_BMC_PASSWORD"
    recording = cluster(value)
    assert "hunter2" not in repr(recording)
    assert recording.one("baremetal:index:Node", "head").inputs["passwordRef"] == "env:LAB_BMC_PASSWORD"


def test_aws_resources_carry_the_clusters_tag(cluster, value):
    untaggable = ("RouteTableAssociation", "RolePolicy", "QueuePolicy", "EventTarget")
    for resource in cluster(value).resources:
        kind = resource.token.split(":")[-1]
        if resource.token.startswith("aws:") and kind not in untaggable:
            assert resource.inputs["tags"]["ironburst:cluster"] == "lab", resource


def test_worst_cases_are_said_in_the_preview(cluster, value):
    value["cloud"]["price"] = {"p5.48xlarge": {"on_demand": 50, "spot": 20}}
    basis = "(estimate, declared prices)"
    pool, alarm, fixed, network = cluster(value).logged
    assert alarm.startswith("the budget alarm counts by the tag ironburst:pool and reads 0 until that tag is active")
    assert re.sub(r", \d+ days old( and too old [^)]*)?\)", ")", network) == (
        "network, 2 NAT gateways, 1 VPN connection: at worst 0.15 USD an hour, 110 USD a month (estimate, list prices "
        "of 2026-05-31); beside that 0.045 USD a GB through NAT, 0.09 USD a GB to hall-a, 0.01 USD a GB between zones, "
        "each way"
    )
    assert [pool, fixed] == [
        f"burst pool p5, 3 x p5.48xlarge: at worst 150.00 USD an hour, 109,500 USD a month {basis}",
        f"fixed group fixed, 1 x p5.48xlarge: at worst 50.00 USD an hour, 36,500 USD a month {basis}",
    ]


def test_without_a_cloud_there_are_owned_nodes_only(cluster, value):
    del value["cloud"], value["budget"]
    recording = cluster(value)
    assert {each.name for each in recording.resources if each.custom} == {"head", "dgx01", "dgx02"}
    assert document.parse(recording.result).pools == []


def test_without_pools_nobody_may_rent(cluster, value):
    value["cloud"]["pools"] = []
    recording = cluster(value)
    for token in ("sqs/queue:Queue", "budgets/budget:Budget", "components:LaunchAccess", "components:BakingAccess"):
        assert not recording.all(token)
    rights = [each.inputs["policy"] for each in recording.all("RolePolicy")]
    assert not any("ec2:RunInstances" in policy for policy in rights)


def test_a_network_of_somebody_else_is_not_linked(cluster, value):
    network = value["cloud"]["network"]
    network["existing"] = {"vpc_id": "vpc-0a", "subnets": {"us-east-1a": "subnet-0a", "us-east-1b": "subnet-0b"}}
    with pytest.raises((RunError, ValueError), match="hall_link"):
        cluster(value)
