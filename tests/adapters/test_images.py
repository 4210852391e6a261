"""`ironburst image` against the lab's cloud (moto in process, on loopback): the order of things, and the cleanup after
each failure.
"""

import signal
from datetime import UTC, datetime

import boto3
import pytest

from ironburst.adapters.aws.cloud import Aws
from ironburst.baking.first_contact import Login
from ironburst.ports import CloudError, Refused
from ironburst.ports.images import BakeError
from lab.aws.capacity import stash
from lab.aws.testing import REGION, live, refused
from tests.adapters.bakes import BASE, P5, changing, cloud, images, made_images, nothing_left, parameter, server, world

__all__ = ["cloud", "images", "server", "world"]
BEFORE = signal.getsignal(signal.SIGINT)  # ignored where the tests are a shell's background job


def test_the_whole_bake(world):
    seen = []
    before = "ami-0aaaaaaaaaaaaaaaa"
    world.ssm.put_parameter(Name=world.pool.image, Value=before, Type="String")
    world.cloud.calls.clear()
    done = world.run(playbook=lambda address: seen.append((address, live(world.ec2)[0])))
    ((address, instance),) = seen
    tags = {tag["Key"]: tag["Value"] for tag in instance["Tags"]}
    assert address == instance["PrivateIpAddress"] and instance["ImageId"] == BASE
    assert done.instance == instance["InstanceId"]
    assert tags["ironburst:role"] == "image-build" and tags["ironburst:pool"] == "p5" and "ironburst:lease" not in tags
    assert changing(world) == ["RunInstances", "StopInstances", "CreateImage", "PutParameter", "TerminateInstances"]
    assert world.hooks.stopped == [done.instance] and done.retired == []
    assert world.hooks.baked == [(done.instance, done.image)]
    assert (parameter(world), done.previous) == (done.image, before)
    assert live(world.ec2) == []
    (image,) = made_images(world)
    assert image["State"] == "available" and {"Key": "ironburst:base-image", "Value": BASE} in image["Tags"]
    assert "USD an hour" in world.said[0]
    started = world.ec2.run_instances(MinCount=1, MaxCount=1, ImageId=done.image, InstanceType=P5)["Instances"][0]
    world.cloud.settle()
    assert world.cloud.hosts[started["InstanceId"]].image_folder == done.image


def test_the_controller_never_sees_the_build_instance(world, server, monkeypatch):
    monkeypatch.setenv("AWS_ENDPOINT_URL", server.url)
    aws = Aws(REGION, boto3.Session("lab", "lab", region_name=REGION))
    seen = []
    world.run(playbook=lambda address: seen.append((len(live(world.ec2)), aws.instances(world.document.cluster))))
    assert seen == [(1, [])]


def test_the_next_zone_when_the_first_has_none(world):
    world.cloud.capacity[P5, "us-east-1a", "on-demand"] = 0
    assert world.run().zone == "us-east-1b"
    assert live(world.ec2) == []


def test_no_zone_has_one(world):
    for zone in ("us-east-1a", "us-east-1b"):
        world.cloud.capacity[P5, zone, "on-demand"] = 0
    with pytest.raises(BakeError, match="no zone of pool p5"):
        world.run()
    assert changing(world) == ["RunInstances", "RunInstances"]


def test_a_lost_answer_of_the_launch_is_repeated_with_its_token(world, monkeypatch):
    monkeypatch.setattr("ironburst.baking.images.REPEAT_S", 5.0)
    world.cloud.fault("RunInstances", "InternalError", status=500, after=True)
    world.run()
    states = [i["State"]["Name"] for r in world.ec2.describe_instances()["Reservations"] for i in r["Instances"]]
    assert states == ["terminated"]


def test_what_a_lost_launch_started_is_ended(world):
    world.cloud.fault("RunInstances", "InternalError", status=500, after=True, times=-1)
    with pytest.raises(CloudError, match="InternalError"):
        world.run()
    states = [i["State"]["Name"] for r in world.ec2.describe_instances()["Reservations"] for i in r["Instances"]]
    assert states == ["terminated"] and nothing_left(world)


def fail(error):
    def raises(address):
        raise error

    return raises


@pytest.mark.parametrize(
    "error", [BakeError("task x failed"), KeyboardInterrupt(), RuntimeError("a bug")], ids=["failed", "Ctrl-C", "bug"]
)
def test_the_playbook_fails(world, error):
    with pytest.raises(type(error)):
        world.run(playbook=fail(error))
    assert changing(world) == ["RunInstances", "TerminateInstances"]
    assert nothing_left(world) and parameter(world) is None


def test_sshd_never_answers(world):
    with pytest.raises(BakeError, match="waited 1 s in vain until sshd answers"):
        world.run(answers=lambda address: False, boot_s=1)
    assert nothing_left(world)


def test_the_instance_dies_at_boot(world, monkeypatch):
    monkeypatch.setattr(world.cloud, "on_launch", fail(RuntimeError("no disk")))
    with pytest.raises(BakeError, match=r"is terminated \(Server.InternalError\)"):
        world.run()
    assert nothing_left(world)


def test_create_image_is_refused(world):
    world.cloud.fault("CreateImage", "InvalidParameterValue")
    with pytest.raises(Refused, match="CreateImage: InvalidParameterValue"):
        world.run()
    assert nothing_left(world) and parameter(world) is None


def test_a_lost_answer_of_create_image_finds_the_image(world):
    world.cloud.fault("CreateImage", "InternalError", status=500, after=True)
    done = world.run()
    assert [i["ImageId"] for i in made_images(world)] == [done.image] and parameter(world) == done.image


def test_the_image_fails(world):
    world.hooks.error = RuntimeError("the disk is full")
    with pytest.raises(BakeError, match=r"is failed .*the disk is full"):
        world.run()
    assert changing(world) == [
        "RunInstances",
        "StopInstances",
        "CreateImage",
        "DeregisterImage",
        "TerminateInstances",
    ]
    assert nothing_left(world) and parameter(world) is None


def test_the_parameter_cannot_be_written(world):
    world.cloud.fault("PutParameter", "AccessDeniedException")
    with pytest.raises(BakeError, match=r"ami-\w+ is made and kept, but /ironburst/lab/p5/image doesn't name it"):
        world.run()
    assert live(world.ec2) == [] and len(made_images(world)) == 1


def test_a_parameter_that_another_bake_wrote_meanwhile_stays(world):
    faster = "ami-0bbbbbbbbbbbbbbbb"

    def playbook(address):
        world.ssm.put_parameter(Name=world.pool.image, Value=faster, Type="String")

    with pytest.raises(BakeError, match=f"is made and kept, but /ironburst/lab/p5/image was set to {faster}"):
        world.run(playbook=playbook)
    assert parameter(world) == faster and live(world.ec2) == [] and len(made_images(world)) == 1


def test_it_says_so_when_the_end_cannot_be_made_sure(world):
    world.cloud.fault("TerminateInstances", "UnauthorizedOperation", status=403)
    with pytest.raises(BakeError, match="may still run"):
        world.run()
    states = [i["State"]["Name"] for r in world.ec2.describe_instances()["Reservations"] for i in r["Instances"]]
    assert states == ["stopped"] and any("it has the client token image-" in line for line in world.said)


def test_ctrl_c_during_the_cleanup_is_left_alone(world, images, monkeypatch):
    ends = images.end

    def interrupted(ids):
        signal.raise_signal(signal.SIGINT)
        ends(ids)

    monkeypatch.setattr(images, "end", interrupted)
    world.run()
    assert live(world.ec2) == [] and signal.getsignal(signal.SIGINT) is BEFORE


# ---- what a build is launched from
def launched(world):
    """The parameters of the RunInstances calls, flat as they were sent."""
    return [params for action, params in world.cloud.calls if action == "RunInstances"]


def test_a_build_is_of_the_declared_small_type_with_one_card_and_no_role(world):
    done = world.run(images_of={"build_type": "m5.large"}, place={"capacity_reservation_id": "cr-0123456789abcdef0"})
    (sent,) = launched(world)
    assert (sent["InstanceType"], sent["InstanceInitiatedShutdownBehavior"]) == ("m5.large", "terminate")
    assert sent["NetworkInterface.1.SecurityGroupId.1"] == world.group and "NetworkInterface.2.DeviceIndex" not in sent
    assert not [name for name in sent if name.startswith(("LaunchTemplate", "IamInstanceProfile", "CapacityReserv"))]
    assert sent["MetadataOptions.HttpTokens"] == "required" and done.usd_per_hour is None
    assert "price unknown" in world.said[0]


def test_a_build_of_the_pool_s_type_takes_the_pool_s_reservation(world):
    with pytest.raises(CloudError):  # the lab has no such reservation: EC2 says so, too
        world.run(place={"capacity_reservation_id": "cr-0123456789abcdef0"})
    (sent,) = launched(world)
    target = "CapacityReservationSpecification.CapacityReservationTarget.CapacityReservationId"
    assert (sent["InstanceType"], sent[target]) == (P5, "cr-0123456789abcdef0")


def test_a_build_in_a_capacity_block_names_its_market_and_one_in_a_group_the_group(world):
    block = world.cloud.capacity.reserve(
        world.cloud.backend,
        {"InstanceType": P5, "AvailabilityZone": "us-east-1a", "InstanceCount": 1},
        ReservationType="capacity-block",
    )["CapacityReservation"]["CapacityReservationId"]
    world.run(place={"capacity_reservation_id": block}, markets=["capacity-block"])
    group = "arn:aws:resource-groups:us-east-1:123456789012:group/training"
    world.cloud.capacity.groups[group] = []
    with pytest.raises(BakeError, match="no zone of pool"):  # none beside the group's reservations
        world.run(place={"capacity_reservation_group_arn": group})
    in_block, *in_group = launched(world)
    assert in_block["InstanceMarketOptions.MarketType"] == "capacity-block"
    target = "CapacityReservationSpecification.CapacityReservationTarget.CapacityReservationResourceGroupArn"
    assert in_group and all(sent[target] == group for sent in in_group)


@pytest.mark.parametrize(("device", "declared", "size"), [("/dev/sda1", 200, 200), ("/dev/xvda", None, 10)])
def test_the_root_disk_is_the_base_image_s_own(world, device, declared, size):
    """Under another name EC2 makes a second disk, and the root stays small."""
    world.cloud.register_image("", BASE, root_device=device, root_gb=10)
    done = world.run(root_disk_gb=declared, root_disk_mb_s=400)
    (sent,) = launched(world)
    disk = "BlockDeviceMapping.1"
    assert (sent[f"{disk}.DeviceName"], sent[f"{disk}.Ebs.VolumeSize"]) == (device, str(size))
    assert (sent[f"{disk}.Ebs.VolumeType"], sent[f"{disk}.Ebs.Encrypted"]) == ("gp3", "true")
    assert sent[f"{disk}.Ebs.Throughput"] == "400"
    (made,) = made_images(world)
    ebs = made["BlockDeviceMappings"][0]["Ebs"]
    assert (made["ImageId"], made["RootDeviceName"]) == (done.image, device)
    assert (ebs["VolumeSize"], ebs["Encrypted"], ebs["Throughput"]) == (size, True, 400)


def test_a_root_disk_smaller_than_the_base_image_starts_nothing(world):
    world.cloud.register_image("", BASE, root_device="/dev/sda1", root_gb=50)
    with pytest.raises(BakeError, match=r"root_disk_gb 20, and the base image ami-0123456789abcdef0 needs 50"):
        world.run(root_disk_gb=20)
    assert changing(world) == []


# ---- the first contact
def test_nothing_is_done_over_ssh_before_the_console_shows_the_host_keys(world, monkeypatch, tmp_path):
    monkeypatch.setattr("ironburst.baking.images.CONSOLE_S", 0.2)
    world.hooks.console = "[    1.0] Linux version 6.12\r\n"
    seen = []
    with pytest.raises(BakeError, match=r"in vain until the console of i-.* shows its host keys"):
        world.run(playbook=seen.append, login=Login("ssh-ed25519 AAAA", tmp_path / "known_hosts"), boot_s=0)
    assert seen == [] and nothing_left(world)


# ---- stopped before its disk is copied
def test_an_instance_that_will_not_stop_is_not_copied(world, monkeypatch):
    monkeypatch.setattr("ironburst.baking.images.STOP_S", 0.1)
    monkeypatch.setattr(world.cloud, "on_stop", fail(RuntimeError("it hangs")))
    with pytest.raises(BakeError, match=r"in vain until the build instance i-\w+ is stopped"):
        world.run()
    assert changing(world) == ["RunInstances", "StopInstances", "TerminateInstances"] and nothing_left(world)


# ---- older images
def bakes(world, number, **options):
    """Images in the order of their dates: EC2 dates them to the second, in which a test bakes several."""
    made = []
    for _ in range(number):
        made.append(world.run(**options).image)
        images = world.cloud.backend.amis
        images[made[-1]].creation_date = datetime(2026, 1, 1, 0, 0, len(images), tzinfo=UTC)
    return made


def test_only_the_declared_number_of_images_stays(world):
    first, *rest = bakes(world, 4, images_of={"keep": 3})
    assert {image["ImageId"] for image in made_images(world)} == set(rest)
    assert any(line == f"image {first} retired" for line in world.said)
    # one for each image, and the base image's
    assert len(world.ec2.describe_snapshots(OwnerIds=["self"])["Snapshots"]) == 4


def test_an_image_stays_while_an_instance_runs_from_it(world):
    (first,) = bakes(world, 1)
    world.ec2.run_instances(MinCount=1, MaxCount=1, ImageId=first, InstanceType=P5)
    rest = bakes(world, 3, images_of={"keep": 2})
    assert {image["ImageId"] for image in made_images(world)} == {first, *rest[1:]}


def test_images_of_others_stay(world):
    foreign = world.run(name="other").image
    rest = bakes(world, 3, images_of={"keep": 2})
    assert {image["ImageId"] for image in made_images(world)} == {foreign, *rest[1:]}


def test_a_snapshot_that_the_cloud_keeps_is_named(world):
    (first,) = bakes(world, 1)
    snapshot = made_images(world)[0]["BlockDeviceMappings"][0]["Ebs"]["SnapshotId"]
    stash(world.cloud.backend, "locked snapshots")[snapshot] = True
    bakes(world, 2, images_of={"keep": 2})
    assert f"image {first} retired, but its snapshots {snapshot} stay: delete them" in world.said


def test_a_bake_succeeds_though_nothing_can_be_retired(world):
    bakes(world, 1)
    world.cloud.fault("DeregisterImage", "UnauthorizedOperation", status=403)
    done = world.run(images_of={"keep": 2})
    assert done.retired == []
    world.cloud.fault("DeregisterImage", "UnauthorizedOperation", status=403)
    done = world.run(images_of={"keep": 2})
    assert done.retired == [] and parameter(world) == done.image
    assert any("older images could not be retired" in line for line in world.said)


# ---- the lab's CreateImage
def test_an_image_is_pending_until_it_is_baked(cloud, clients):
    ec2 = clients("ec2")
    instance = ec2.run_instances(MinCount=1, MaxCount=1, ImageId=BASE, InstanceType=P5)["Instances"][0]["InstanceId"]
    cloud.settle()
    states = []
    cloud.on_bake, before = (
        (lambda view, image: states.append(ec2.describe_images(ImageIds=[image])["Images"][0]["State"])),
        cloud.on_bake,
    )
    made = ec2.create_image(InstanceId=instance, Name="one")["ImageId"]
    cloud.settle()
    cloud.on_bake = before
    assert states == ["pending"] and ec2.describe_images(ImageIds=[made])["Images"][0]["State"] == "available"
    assert refused(ec2.create_image, InstanceId=instance, Name="one") == ("InvalidAMIName.Duplicate", 400)
    assert refused(ec2.create_image, InstanceId=instance, Name="two", NoReboot=True) == ("UnsupportedOperation", 400)
    ec2.deregister_image(ImageId=made)
    expected = ("InvalidAMIID.NotFound", 400)
    assert refused(ec2.run_instances, MinCount=1, MaxCount=1, ImageId=made, InstanceType=P5) == expected
    # the base image's, and this one's: it stays
    assert len(ec2.describe_snapshots(OwnerIds=["self"])["Snapshots"]) == 2


def test_an_image_that_is_not_available_does_not_start(cloud, clients):
    cloud.backend.amis[BASE].state = "pending"
    expected = ("InvalidAMIID.Unavailable", 400)
    assert refused(clients("ec2").run_instances, MinCount=1, MaxCount=1, ImageId=BASE, InstanceType=P5) == expected
