import pytest

from components.aws.gpu_node_group import GpuNodeGroup
from ironburst.config.aws.models import AwsGroup

BASE = {
    "name": "fixed",
    "instance_type": "p5.48xlarge",
    "count": 2,
    "zone": "us-east-1a",
    "image": "ami-0a1b2c3d4e5f60789",
}


@pytest.fixture
def group(run):
    def build(**changes):
        declared = AwsGroup.model_validate(BASE | changes)
        return run(
            lambda: (
                GpuNodeGroup(
                    declared.name,
                    cluster="lab",
                    group=declared,
                    subnet_id="subnet-0a",
                    security_group_id="sg-0a",
                    instance_profile="lab-node",
                    key_name="ops",
                ).instances
            )
        )

    return build


def test_one_instance_a_node_with_a_stable_name(group):
    recording = group()
    assert [each.name for each in recording.all("ec2/instance:Instance")] == ["fixed-1", "fixed-2"]
    assert recording.result["fixed-2"].model_dump() == {"id": "fixed-2-id", "address": "10.90.1.4"}


def test_image_user_data_and_template_are_not_changed_under_the_jobs(group):
    for each in group().all("ec2/instance:Instance"):
        assert set(each.ignore_changes) == {"ami", "userData", "launchTemplate"}


def test_an_instance(group):
    inputs = group().one("ec2/instance:Instance", "fixed-1").inputs
    assert inputs["ami"] == BASE["image"] and inputs["instanceType"] == "p5.48xlarge" and inputs["keyName"] == "ops"
    assert inputs["iamInstanceProfile"] == "lab-node"
    assert inputs["launchTemplate"] == {"id": "fixed-template-id", "version": "1"}
    assert inputs["rootBlockDevice"]["encrypted"] is True and inputs["rootBlockDevice"]["volumeSize"] == 200
    assert (inputs["rootBlockDevice"]["volumeType"], inputs["rootBlockDevice"]["throughput"]) == ("gp3", 250)
    assert inputs["tags"] == {"Name": "lab-fixed-1", "ironburst:cluster": "lab", "ironburst:group": "fixed"}
    assert "ironburst:pool" not in inputs["tags"]  # the controller may end what has a pool's tag


def test_what_ec2_refuses_beside_a_templates_interfaces_is_not_there(group):
    recording = group()
    for instance in recording.all("ec2/instance:Instance"):
        refused = {
            "subnetId",
            "vpcSecurityGroupIds",
            "securityGroups",
            "associatePublicIpAddress",
            "networkInterfaces",
            "privateIp",
        }
        assert not refused & set(instance.inputs)
    assert "vpcSecurityGroupIds" not in recording.one("LaunchTemplate").inputs


def test_efa_interfaces_without_a_public_address(group):
    template = group().one("LaunchTemplate").inputs
    interfaces = template["networkInterfaces"]
    kinds = [(each["networkCardIndex"], each["deviceIndex"], each["interfaceType"]) for each in interfaces]
    assert kinds == [(0, 0, "interface"), (0, 1, "efa-only"), *((card, 0, "efa-only") for card in range(1, 32))]
    assert all(each["subnetId"] == "subnet-0a" and each["securityGroups"] == ["sg-0a"] for each in interfaces)
    assert not any("associatePublicIpAddress" in each for each in interfaces)


def test_a_single_interface_says_that_it_wants_no_public_address(group):
    (interface,) = group(instance_type="g6e.xlarge").one("LaunchTemplate").inputs["networkInterfaces"]
    assert interface["associatePublicIpAddress"] == "false"


def test_metadata_needs_a_token(group):
    assert group().one("LaunchTemplate").inputs["metadataOptions"] == {
        "httpEndpoint": "enabled",
        "httpTokens": "required",
        "httpPutResponseHopLimit": 1,
        "instanceMetadataTags": "enabled",
    }


OPTIONS = {"capacityReservationSpecification", "instanceMarketOptions"}


def test_on_demand_by_default(group):
    recording = group()
    assert not recording.all("PlacementGroup")
    assert not OPTIONS & set(recording.one("LaunchTemplate").inputs)
    for each in recording.all("ec2/instance:Instance"):
        assert not {"placementGroup", *OPTIONS} & set(each.inputs)


def test_a_placement_group(group):
    recording = group(placement_group=True)
    assert recording.one("PlacementGroup").inputs["strategy"] == "cluster"
    assert recording.one("ec2/instance:Instance", "fixed-1").inputs["placementGroup"] == "fixed-placement"


TARGET = {"capacityReservationTarget": {"capacityReservationId": "cr-0a1b"}}


def test_a_capacity_reservation_is_used_by_id(group):
    recording = group(capacity_reservation="cr-0a1b")
    template = recording.one("LaunchTemplate").inputs
    assert template["capacityReservationSpecification"] == TARGET
    assert "instanceMarketOptions" not in template
    assert not OPTIONS & set(recording.one("ec2/instance:Instance", "fixed-1").inputs)
    assert not recording.all("CapacityReservation")


def test_a_group_of_reservations_is_named_by_its_arn(group):
    arn = "arn:aws:resource-groups:us-east-1:123456789012:group/training"
    template = group(capacity_reservation_group=arn).one("LaunchTemplate").inputs
    target = {"capacityReservationTarget": {"capacityReservationResourceGroupArn": arn}}
    assert template["capacityReservationSpecification"] == target and "instanceMarketOptions" not in template


def test_a_capacity_block_is_used_by_id_and_never_bought(group):
    recording = group(capacity_block={"id": "cr-0a1b", "ends": "2026-12-24T11:30:00Z"})
    template = recording.one("LaunchTemplate").inputs
    assert template["capacityReservationSpecification"] == TARGET
    assert template["instanceMarketOptions"] == {"marketType": "capacity-block"}
    assert not OPTIONS & set(recording.one("ec2/instance:Instance", "fixed-1").inputs)
    assert not recording.all("CapacityBlockReservation") and not recording.all("PlacementGroup")
