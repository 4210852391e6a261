"""Volumes of images and launches, zones of a type, and the spot role: what EC2 refuses, and what it quietly adds."""

import pytest

from lab.aws.iam_gaps import SPOT_ROLE
from lab.aws.testing import network, refused

P5, IMAGE = "p5.48xlarge", "ami-0123456789abcdef0"
SPOT = {"InstanceMarketOptions": {"MarketType": "spot"}}


@pytest.fixture
def run(cloud, ec2):
    """`run(...)` -> the instance that RunInstances gives."""
    cloud.register_image("", IMAGE, root_device="/dev/xvda", root_gb=30)
    subnet = network(ec2)[1]

    def call(**more):
        asked = {"ImageId": IMAGE, "InstanceType": P5, "SubnetId": subnet, "MinCount": 1, "MaxCount": 1, **more}
        return ec2.run_instances(**asked)["Instances"][0]

    return call


def mapped(device, **ebs):
    return {"BlockDeviceMappings": [{"DeviceName": device, "Ebs": ebs}]}


def volumes(ec2, instance):
    """device -> its volume."""
    attached = [{"Name": "attachment.instance-id", "Values": [instance["InstanceId"]]}]
    found = ec2.describe_volumes(Filters=attached)["Volumes"]
    return {volume["Attachments"][0]["Device"]: volume for volume in found}


def test_a_launch_has_the_images_root_volume(run, ec2):
    instance = run()
    (device, root), *more = volumes(ec2, instance).items()
    assert (device, root["Size"], root["VolumeType"], more) == ("/dev/xvda", 30, "gp3", [])
    described = ec2.describe_images(ImageIds=[IMAGE])["Images"][0]
    assert described["RootDeviceName"] == instance["RootDeviceName"] == "/dev/xvda"
    (shown,) = described["BlockDeviceMappings"]
    assert (shown["DeviceName"], shown["Ebs"]["VolumeSize"]) == ("/dev/xvda", 30)


def test_a_mapping_of_the_root_device_changes_it_and_another_name_adds_a_volume(run, ec2):
    root = volumes(ec2, run(**mapped("/dev/xvda", VolumeSize=200, Encrypted=True)))
    assert [(device, each["Size"], each["Encrypted"]) for device, each in root.items()] == [("/dev/xvda", 200, True)]
    second = volumes(ec2, run(**mapped("/dev/sda1", VolumeSize=200, Encrypted=True)))
    assert {device: (each["Size"], each["Encrypted"]) for device, each in second.items()} == {
        "/dev/xvda": (30, False),
        "/dev/sda1": (200, True),
    }


def test_a_root_volume_below_its_snapshot_is_refused(run):
    assert refused(run, **mapped("/dev/xvda", VolumeSize=29)) == ("InvalidBlockDeviceMapping", 400)
    assert refused(run, **mapped("/dev/sdf", VolumeType="gp3")) == ("InvalidBlockDeviceMapping", 400)


def test_gp3_alone_takes_a_throughput_and_no_more_than_its_iops_carry(run, ec2):
    (root,) = volumes(ec2, run(**mapped("/dev/xvda", Throughput=250))).values()
    assert root["Throughput"] == 250
    for asked in ({"Throughput": 124}, {"Throughput": 751}, {"Throughput": 2001, "Iops": 16000}):
        assert refused(run, **mapped("/dev/xvda", **asked))[0] == "InvalidParameterValue", asked
    assert refused(run, **mapped("/dev/xvda", VolumeType="gp2", Throughput=250))[0] == "InvalidParameterCombination"


def test_an_image_has_the_throughput_that_it_was_told_not_the_instances(run, ec2):
    instance = run(**mapped("/dev/xvda", Throughput=500))

    def made(name, **ebs):
        return ec2.create_image(InstanceId=instance["InstanceId"], Name=name, **mapped("/dev/xvda", **ebs))["ImageId"]

    for ebs, mib_s in (({"VolumeType": "gp3"}, 125), ({"VolumeType": "gp3", "Throughput": 250}, 250)):
        (root,) = volumes(ec2, run(ImageId=made(f"of-{mib_s}", **ebs))).values()
        assert root["Throughput"] == mib_s
    for fixed in ({"VolumeSize": 300}, {"Encrypted": True}):
        assert refused(made, "another", **fixed)[0] == "InvalidBlockDeviceMapping"


def test_an_image_of_an_instance_has_its_volumes(run, ec2):
    instance = run(**mapped("/dev/xvda", VolumeSize=200, Encrypted=True))
    made = ec2.create_image(InstanceId=instance["InstanceId"], Name="baked")["ImageId"]
    described = ec2.describe_images(ImageIds=[made])["Images"][0]
    assert described["RootDeviceName"] == "/dev/xvda"
    (root,) = volumes(ec2, run(ImageId=made)).values()
    assert (root["Size"], root["Encrypted"]) == (200, True)
    assert refused(run, ImageId=made, **mapped("/dev/xvda", VolumeSize=100)) == ("InvalidBlockDeviceMapping", 400)


def test_a_zone_without_the_type_is_refused(run):
    assert refused(run, InstanceType="p4de.24xlarge") == ("Unsupported", 400)


def test_spot_needs_the_accounts_spot_role(run, clients):
    iam = clients("iam")
    assert refused(iam.create_service_linked_role, AWSServiceName="spot.amazonaws.com") == ("InvalidInput", 400)
    iam.delete_service_linked_role(RoleName=SPOT_ROLE)
    assert refused(run, **SPOT) == ("AuthFailure.ServiceLinkedRoleCreationNotPermitted", 403)
    assert run()["State"]["Name"] == "pending"
    iam.create_service_linked_role(AWSServiceName="spot.amazonaws.com")
    assert run(**SPOT)["InstanceLifecycle"] == "spot"
