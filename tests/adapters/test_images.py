"""`ironburst image` against the lab's cloud (moto in process, on loopback): the order of things, and the cleanup after
each failure.
"""

import base64
import json
import signal
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace

import boto3
import pytest

from ironburst.adapters.aws import Aws
from ironburst.adapters.aws_images import AwsImages
from ironburst.cli import image as cli
from ironburst.cli import main
from ironburst.convergence.ports import HostResult, PlaybookRun
from ironburst.document import Images
from ironburst.first_contact import Login
from ironburst.image_port import BakeError
from ironburst.images import bake
from ironburst.ports import CloudError, Refused
from lab.aws.capacity import stash
from lab.aws.cloud import Cloud
from lab.aws.power import booted
from lab.aws.testing import REGION, live, network, refused
from tests.fakes import document

BEFORE = signal.getsignal(signal.SIGINT)  # ignored where the tests are a shell's background job

P5, BASE = "p5.48xlarge", "ami-0123456789abcdef0"


@pytest.fixture(scope="module")
def server():
    baked, stopped = [], []
    hooks = SimpleNamespace(baked=baked, stopped=stopped, error=None, console=None)

    def on_bake(view, image):
        if hooks.error:
            raise hooks.error
        baked.append((view.instance_id, image))

    cloud = Cloud(
        seed=7,
        on_launch=lambda view: None,
        on_bake=on_bake,
        on_stop=lambda view: stopped.append(view.instance_id),
        on_console=lambda view: hooks.console if hooks.console is not None else booted(view),
    )
    cloud.test_hooks = hooks
    yield cloud
    cloud.close()


@pytest.fixture(scope="module")
def images(server):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ENDPOINT_URL", server.url)
        return AwsImages(REGION, boto3.Session("lab", "lab", region_name=REGION))


@pytest.fixture
def cloud(server):
    server.reset()
    server.register_image("", BASE)
    server.test_hooks.baked.clear()
    server.test_hooks.stopped.clear()
    server.test_hooks.error = server.test_hooks.console = None
    return server


@pytest.fixture
def world(cloud, clients, images, monkeypatch):
    """The pool with real launch templates in two zones, and `bake` with everything given."""
    monkeypatch.setattr("ironburst.images.REPEAT_S", 0.0)
    monkeypatch.setattr("ironburst.images.APPEAR_S", 0.0)
    ec2 = clients("ec2")
    vpc, first = network(ec2)
    answer = ec2.create_subnet(VpcId=vpc, CidrBlock="10.90.16.0/20", AvailabilityZone="us-east-1b")
    second = answer["Subnet"]["SubnetId"]
    group = ec2.create_security_group(VpcId=vpc, GroupName="nodes", Description="nodes")["GroupId"]
    zones = []
    for zone, subnet in (("us-east-1a", first), ("us-east-1b", second)):
        tags = [
            {
                "ResourceType": "instance",
                "Tags": [{"Key": "ironburst:pool", "Value": "p5"}, {"Key": "Name", "Value": "lab-p5"}],
            }
        ]
        data = {
            "InstanceType": P5,
            "NetworkInterfaces": [
                {"DeviceIndex": 0, "SubnetId": subnet, "Groups": [group]},
                {"DeviceIndex": 1, "NetworkCardIndex": 1, "InterfaceType": "efa-only", "SubnetId": subnet},
            ],
            "TagSpecifications": tags,
        }
        answer = ec2.create_launch_template(LaunchTemplateName=zone, LaunchTemplateData=data)
        made = answer["LaunchTemplate"]["LaunchTemplateId"]
        zones.append({"zone": zone, "subnet_id": subnet, "launch_template_id": made})
    values = document().model_dump(mode="json")
    values["pools"] = [values["pools"][0] | {"name": "p5", "instance_type": P5, "zones": zones}]
    made = type(document()).model_validate(values)
    said = []

    def run(playbook=lambda address: None, answers=lambda address: True, boot_s=30, login=None, images_of=None, **pool):
        its = made.pools[0].model_copy(update={"boot_s": boot_s} | pool)
        whole = made.model_copy(update={"images": Images(**(images_of or {}))})
        options = {"answers": answers, "login": login, "pause_s": 0.01}
        return bake(images, whole, its, BASE, playbook, said.append, **options)

    return SimpleNamespace(
        cloud=cloud,
        ec2=ec2,
        ssm=clients("ssm"),
        group=group,
        document=made,
        pool=made.pools[0],
        run=run,
        said=said,
        hooks=cloud.test_hooks,
    )


def parameter(world):
    parameters = world.ssm.get_parameters(Names=[world.pool.image_parameter])["Parameters"]
    return parameters[0]["Value"] if parameters else None


def made_images(world):
    return [i for i in world.ec2.describe_images(Owners=["self"])["Images"] if i["ImageId"] != BASE]


def changing(world):
    """The changing calls of the bake itself, in order."""
    names = ("RunInstances", "StopInstances", "CreateImage", "PutParameter", "TerminateInstances", "DeregisterImage")
    return [action for action, _ in world.cloud.calls if action in names]


def nothing_left(world):
    snapshots = world.ec2.describe_snapshots(OwnerIds=["self"])["Snapshots"]  # the base image has one
    return live(world.ec2) == [] and made_images(world) == [] and len(snapshots) == 1


def test_the_whole_bake(world):
    seen = []
    before = "ami-0aaaaaaaaaaaaaaaa"
    world.ssm.put_parameter(Name=world.pool.image_parameter, Value=before, Type="String")
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
    monkeypatch.setattr("ironburst.images.REPEAT_S", 5.0)
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
    done = world.run(images_of={"build_type": "m5.large"}, capacity_reservation_id="cr-0123456789abcdef0")
    (sent,) = launched(world)
    assert (sent["InstanceType"], sent["InstanceInitiatedShutdownBehavior"]) == ("m5.large", "terminate")
    assert sent["NetworkInterface.1.SecurityGroupId.1"] == world.group and "NetworkInterface.2.DeviceIndex" not in sent
    assert not [name for name in sent if name.startswith(("LaunchTemplate", "IamInstanceProfile", "CapacityReserv"))]
    assert sent["MetadataOptions.HttpTokens"] == "required" and done.usd_per_hour is None
    assert "price unknown" in world.said[0]


def test_a_build_of_the_pool_s_type_takes_the_pool_s_reservation(world):
    with pytest.raises(CloudError):  # the lab has no such reservation: EC2 says so, too
        world.run(capacity_reservation_id="cr-0123456789abcdef0")
    (sent,) = launched(world)
    target = "CapacityReservationSpecification.CapacityReservationTarget.CapacityReservationId"
    assert (sent["InstanceType"], sent[target]) == (P5, "cr-0123456789abcdef0")


def test_a_build_in_a_capacity_block_names_its_market_and_one_in_a_group_the_group(world):
    block = world.cloud.capacity.reserve(
        world.cloud.backend,
        {"InstanceType": P5, "AvailabilityZone": "us-east-1a", "InstanceCount": 1},
        ReservationType="capacity-block",
    )["CapacityReservation"]["CapacityReservationId"]
    world.run(capacity_reservation_id=block, markets=["capacity-block"])
    group = "arn:aws:resource-groups:us-east-1:123456789012:group/training"
    world.cloud.capacity.groups[group] = []
    with pytest.raises(BakeError, match="no zone of pool"):  # none beside the group's reservations
        world.run(capacity_reservation_group_arn=group)
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
    monkeypatch.setattr("ironburst.images.CONSOLE_S", 0.2)
    world.hooks.console = "[    1.0] Linux version 6.12\r\n"
    seen = []
    with pytest.raises(BakeError, match=r"in vain until the console of i-.* shows its host keys"):
        world.run(playbook=seen.append, login=Login("ssh-ed25519 AAAA", tmp_path / "known_hosts"), boot_s=0)
    assert seen == [] and nothing_left(world)


# ---- stopped before its disk is copied
def test_an_instance_that_will_not_stop_is_not_copied(world, monkeypatch):
    monkeypatch.setattr("ironburst.images.STOP_S", 0.1)
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


# ---- the command
@pytest.fixture
def verb(world, server, tmp_path, monkeypatch):
    """Runs `ironburst image p5 ...`; the playbook is a stand-in that returns `verb.play`."""
    for name, value in {
        "AWS_ENDPOINT_URL": server.url,
        "AWS_ACCESS_KEY_ID": "lab",
        "AWS_SECRET_ACCESS_KEY": "lab",
    }.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("ironburst.images.ssh_answers", lambda address: True)
    path = tmp_path / "document.json"
    path.write_text(world.document.model_dump_json())
    given = SimpleNamespace(variables=None, play=PlaybookRun("image.yml", 0, {"image-p5": HostResult(ok=3, changed=2)}))

    class Ansible:
        def __init__(self, inventory, document):
            assert document == path

        def play(self, playbook, *, variables, on_event):
            given.variables = variables
            (instance,) = live(world.ec2)
            wanted = {"InstanceId": instance["InstanceId"], "Attribute": "userData"}
            encoded = world.ec2.describe_instance_attribute(**wanted)["UserData"]["Value"]
            given.user_data = json.loads(base64.b64decode(encoded).decode().removeprefix("#cloud-config\n"))
            given.known_hosts = Path(variables["image_known_hosts"]).read_text()
            given.address = instance["PrivateIpAddress"]
            key = Path(variables["ansible_ssh_private_key_file"])
            given.key, given.key_mode = key, key.stat().st_mode & 0o777
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # ansible-runner leaves handlers of its own behind
            return given.play

    monkeypatch.setattr(cli, "Ansible", Ansible)
    defaults = {"--document": str(path), "--base-image": BASE, "--inventory": "inventory/lab"}

    def call(pool="p5", **changed):
        options = defaults | {f"--{key.replace('_', '-')}": value for key, value in changed.items()}
        return main(["image", pool, *(word for pair in options.items() for word in pair), "--json"])

    given.call = call
    return given


def test_the_command(verb, world, tmp_path, capsys):
    key = tmp_path / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True)
    assert verb.call(ssh_key=str(key), user="rocky") == 0
    out = json.loads(capsys.readouterr().out)
    assert out["image"] == parameter(world) and out["parameter"] == "/ironburst/lab/p5/image"
    assert set(out["seconds"]) == {"instance", "playbook", "image"}
    assert verb.variables.pop("image_address").startswith("10.90.")
    assert not Path(verb.variables.pop("image_known_hosts")).exists()  # gone with the build
    assert verb.variables == {"image_pool": "p5", "image_user": "rocky", "ansible_ssh_private_key_file": str(key)}
    assert verb.user_data["ssh_authorized_keys"] == [key.with_suffix(".pub").read_text().strip()]
    assert signal.getsignal(signal.SIGINT) is BEFORE


def test_a_build_has_a_key_of_its_own_that_nobody_keeps(verb, world):
    """And its host keys are those of its console, before Ansible goes there."""
    assert verb.call() == 0
    assert verb.user_data["ssh_authorized_keys"][0].startswith("ssh-ed25519 ") and verb.key_mode == 0o600
    assert not verb.key.exists()
    address, kind, encoded = verb.known_hosts.split()
    assert (address, kind) == (verb.address, "ssh-ed25519") and len(base64.b64decode(encoded)) == 51
    assert verb.variables["image_user"] == "root"  # of a document that names no system
    assert world.ec2.describe_key_pairs()["KeyPairs"] == []


def test_a_build_that_a_killed_bake_left_is_ended_by_the_next_one(world, images, monkeypatch):
    """Killed between its stop and its image: nothing on the instance ends it."""
    launched = []

    def killed(address):
        left = live(world.ec2)[0]["InstanceId"]
        images.stop(left)
        launched.append(left)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("ironburst.images._Bake.clean_up", lambda self: True)
        with pytest.raises(KeyboardInterrupt):
            world.run(killed)
    tags = [{"Key": "ironburst:cluster", "Value": "lab"}, {"Key": "ironburst:lease", "Value": "l1"}]
    rented = {"TagSpecifications": [{"ResourceType": "instance", "Tags": tags}]}
    (other,) = world.ec2.run_instances(ImageId=BASE, InstanceType=P5, MinCount=1, MaxCount=1, **rented)["Instances"]
    world.run()
    (left,) = launched
    assert left in existing(world)  # perhaps somebody's who bakes at this moment
    monkeypatch.setattr("ironburst.image_choice.ABANDONED_S", 0.0)
    world.run()
    assert existing(world) == {other["InstanceId"]}
    assert f"{left} ended: a build of pool p5, stopped, that somebody left 0 hours ago" in world.said


def existing(world):
    """Ids of the instances that cost something."""
    found = [each for r in world.ec2.describe_instances()["Reservations"] for each in r["Instances"]]
    return {each["InstanceId"] for each in found if each["State"]["Name"] not in ("shutting-down", "terminated")}


def test_builds_that_can_not_be_looked_for_stop_no_bake(world, images, monkeypatch):
    def refuse(cluster):
        raise CloudError("DescribeInstances: no", "UnauthorizedOperation")

    monkeypatch.setattr(images, "builds", refuse)
    assert world.run().image == made_images(world)[0]["ImageId"]
    assert any("could not be looked for" in text for text in world.said)


def test_a_build_whose_owner_is_gone_ends_itself(verb):
    assert verb.call() == 0
    (command,) = verb.user_data["runcmd"]
    assert command[-2:] == ["systemctl", "poweroff"] and "--on-active=10800" in command


def test_the_command_fails_with_the_playbook_s_error(verb, world, capsys):
    verb.play = PlaybookRun(
        "image.yml", 2, {"image-p5": HostResult(failed=1, error="Install the packages: no such package")}
    )
    assert verb.call() == 3
    assert (
        capsys.readouterr().err.splitlines()[-1]
        == "image: playbooks/image.yml ended with 2: Install the packages: no such package"
    )
    assert nothing_left(world)


@pytest.mark.parametrize(
    ("pool", "changed", "said"),
    [
        ("p6", {}, "image: cluster lab has no pool 'p6'; its pools are: p5"),
        (
            "p5",
            {"base_image": "debian"},
            "image: --base-image 'debian': must be an image id, ami- and 8 or 17 hexadecimal digits",
        ),
        (
            "p5",
            {"base_image": "ami-0bbbbbbbbbbbbbbbb"},
            "image: --base-image ami-0bbbbbbbbbbbbbbbb is not in us-east-1, or not shared",
        ),
        ("p5", {"inventory": "inventory/moon"}, "image: inventory/moon is no inventory of this repository"),
        ("p5", {"ssh_key": "/nonexistent"}, "image: --ssh-key /nonexistent: there is no such file"),
        ("p5", {"document": "/nonexistent"}, "image: there is no ClusterDocument at /nonexistent"),
    ],
)
def test_bad_input_starts_nothing(verb, world, capsys, pool, changed, said):
    assert verb.call(pool, **changed) == 2
    err = capsys.readouterr().err
    assert err.startswith(said) and err.count("\n") == 1
    assert changing(world) == []
