"""A pool with real launch templates in the lab's cloud, and `ironburst.baking.images.bake` with everything given."""

from types import SimpleNamespace

import boto3
import pytest

from ironburst.adapters.aws.images import AwsImages
from ironburst.baking.images import bake
from ironburst.document import ImagesDocument
from lab.aws.cloud import Cloud
from lab.aws.power import booted
from lab.aws.testing import REGION, live, network
from tests.fakes import document, with_places

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
    monkeypatch.setattr("ironburst.baking.images.REPEAT_S", 0.0)
    monkeypatch.setattr("ironburst.baking.images.APPEAR_S", 0.0)
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
        zones.append({"zone": zone, "place": {"subnet_id": subnet, "launch_template_id": made}})
    values = document().model_dump(mode="json")
    values["pools"] = [values["pools"][0] | {"name": "p5", "instance_type": P5, "zones": zones}]
    made = type(document()).model_validate(values)
    said = []

    def run(
        playbook=lambda address: None,
        answers=lambda address: True,
        boot_s=30,
        login=None,
        images_of=None,
        place=None,
        **pool,
    ):
        its = with_places(made.pools[0].model_copy(update={"boot_s": boot_s} | pool), **(place or {}))
        whole = made.model_copy(update={"images": ImagesDocument(**(images_of or {}))})
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
    parameters = world.ssm.get_parameters(Names=[world.pool.image])["Parameters"]
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
