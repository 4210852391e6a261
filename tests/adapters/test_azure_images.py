"""`ironburst.baking.images.bake` with Azure's adapter before the lab's stand-in of ARM."""

import json
from datetime import datetime
from types import SimpleNamespace

import pytest

from ironburst import ports
from ironburst.adapters.azure import image_ids, launching
from ironburst.adapters.azure.api import Api
from ironburst.adapters.azure.cloud import Azure
from ironburst.adapters.azure.images import AzureImages
from ironburst.baking.images import bake
from ironburst.document import CloudDocument, ImagesDocument
from ironburst.nodes import azure as names
from ironburst.ports.images import BakeError
from lab.azure import server
from lab.azure.world import Reservation, Size
from tests.adapters.test_azure_reaper import reap
from tests.contract.cloud_benches import AnyToken
from tests.fakes import document, with_places

KIND, ZONES = "Standard_ND96isr_H100_v5", ("eastus-1", "eastus-2")
BASE = "Canonical:ubuntu-24_04-lts:server:latest"


@pytest.fixture
def world():
    cloud = server.Cloud(seed=7)
    cloud.sizes |= {KIND: Size(), "Standard_D16s_v5": Size("standardDSv5Family", 16)}
    cloud.market["Canonical:ubuntu-24_04-lts:server"] = ["24.04.202610010", "24.04.202611010", "24.04.20269999"]
    cloud.reservations["ours"] = Reservation(KIND, "1", 4, "Block")
    within = f"/subscriptions/{cloud.subscription}/resourceGroups/held/providers"
    place = {
        "provider": "azure",
        "vm_size": KIND,
        "subnet_id": f"{within}/Microsoft.Network/virtualNetworks/gpu/subnets/nodes",
        "os_disk_type": "Premium_LRS",
        "os_disk_gb": 200,
        "ssh_public_key": "ssh-ed25519 AAAAC3Nz ironburst",
        "infiniband": True,
        "identity_id": f"{within}/Microsoft.ManagedIdentity/userAssignedIdentities/nodes",
        "security_group_id": f"{within}/Microsoft.Network/networkSecurityGroups/nodes",
        "tags": {"CostCenter": "4711"},
        "capacity_reservation_group": f"{within}/Microsoft.Compute/capacityReservationGroups/ours",
    }
    api = Api(cloud.subscription, credential=AnyToken(), endpoint=cloud.url, now=cloud.now)
    azure = Azure(api, "eastus", wait=cloud.passes, now=cloud.now)
    images = AzureImages(api, "eastus", azure, wait=cloud.passes, now=cloud.now)
    definition = names.image(cloud.subscription, "lab", "h100")
    cloud.definitions[definition.lower()] = {}
    values = document().model_dump(mode="json")
    there = CloudDocument(provider="azure", region="eastus", account=cloud.subscription)
    zones = [{"zone": zone, "instance_type": KIND, "place": place} for zone in ZONES]
    values |= {"cloud": there.model_dump(), "images": ImagesDocument(keep=2).model_dump()}
    pool = values["pools"][0] | {"name": "h100", "instance_type": KIND, "zones": zones, "image": definition}
    values["pools"] = [pool | {"markets": ["capacity-block"], "usd_per_hour": {"capacity-block": 0.0}}]
    said, made = [], type(document()).model_validate(values)

    def run(playbook=lambda address: None, build_type=None, **changed):
        its = made.model_copy(update={"images": ImagesDocument(keep=2, build_type=build_type)})
        options = {"answers": lambda address: bool(cloud.passes(1)) or True, "pause_s": 0.01}
        return bake(images, its, with_places(its.pools[0], **changed), BASE, playbook, said.append, **options)

    yield SimpleNamespace(
        cloud=cloud, images=images, azure=azure, run=run, said=said, place=place, definition=definition
    )
    cloud.close()
    assert cloud.wrong == []


def nothing_left(world):
    world.cloud.passes(60)
    return world.cloud.left_over() == {}


def baked(world):
    return sorted(raw["id"] for raw in world.cloud.images.values())


def test_a_bake_makes_a_version_that_the_pools_image_names_and_leaves_nothing(world):
    done = world.run()
    (id,) = baked(world)
    assert done.image == world.images.published(world.definition) == world.azure.image_id(world.definition) == id
    tags = world.cloud.images[id.lower()]["tags"]
    assert (tags["ironburst:cluster"], tags["ironburst:pool"], tags["CostCenter"]) == ("lab", "h100", "4711")
    assert nothing_left(world)
    (call,) = world.cloud.asked("gallery_image_versions.create_or_update")
    assert call.body["properties"]["publishingProfile"]["excludeFromLatest"], "it counts from its publication"
    image = world.images.image(id)
    assert (image.state, image.root_gb) == ("available", 30) and datetime.fromisoformat(image.made)


def test_a_build_of_the_pools_own_type_is_as_a_node_but_has_no_identity_no_lease_and_no_fabric(world):
    world.run()
    (call,) = world.cloud.asked("virtual_machines.create_or_update")
    (group,) = world.cloud.asked("resource_groups.create_or_update")
    for tagged in (
        call.body,
        group.body,
        call.body["properties"]["networkProfile"]["networkInterfaceConfigurations"][0],
    ):
        assert tagged["tags"]["ironburst:role"] == "image-build" and "ironburst:lease" not in tagged["tags"]
    assert "identity" not in call.body and "virtualMachineScaleSet" not in call.body["properties"]
    assert call.body["properties"]["capacityReservation"]["capacityReservationGroup"]["id"].endswith("/ours")
    reference = call.body["properties"]["storageProfile"]["imageReference"]
    assert reference["version"] == "24.04.202611010", "the largest number, not the last text"
    hours = (datetime.fromisoformat(group.body["tags"][launching.UNTIL]).timestamp() - world.cloud.now()) / 3600
    assert 3.5 < hours <= 4, "one that nobody ends is the reaper's after some hours"


def test_a_build_of_another_size_has_not_the_pools_capacity(world):
    world.run(build_type="Standard_D16s_v5")
    (call,) = world.cloud.asked("virtual_machines.create_or_update")
    made = call.body["properties"]
    assert made["hardwareProfile"] == {"vmSize": "Standard_D16s_v5"}
    assert made["capacityReservation"] == {"disableCapacityReservationAssignment": True}


def test_builds_are_known_by_their_role(world):
    seen = []
    world.run(playbook=lambda address: seen.append(world.images.builds("lab")))
    assert [each.state for each in seen[0]] == ["running"]
    assert world.images.builds("another") == []


def test_a_build_that_is_off_before_its_disk_is_taken_stays(world):
    """The reaper deletes leases' machines that are off; a build has no lease."""

    def off(address):
        (vm,) = world.cloud.vms.values()
        world.cloud.stops(vm)
        assert reap(world.cloud) == {} and world.cloud.asked("virtual_machines.get")

    assert world.run(playbook=off).image in baked(world) and nothing_left(world)


def test_a_playbook_that_fails_leaves_the_image_as_it_was_and_nothing_behind(world):
    before = world.run().image

    def fails(address):
        raise BakeError("the driver doesn't build")

    with pytest.raises(BakeError, match="doesn't build"):
        world.run(playbook=fails)
    assert world.images.published(world.definition) == before and len(baked(world)) == 1 and nothing_left(world)


def test_a_zone_without_capacity_is_followed_by_the_next(world):
    world.cloud.capacity["Standard_D16s_v5", "1", "Regular"] = 0
    done = world.run(build_type="Standard_D16s_v5")
    assert done.zone == ZONES[1] and nothing_left(world)


def test_an_image_that_takes_long_is_waited_for(world):
    world.cloud.delays.image_s = 300.0
    states, real = [], world.images.image

    def image(id):
        found = real(id)
        states.append(found.state)
        world.cloud.passes(200)
        return found

    world.images.image = image
    world.run()
    assert "pending" in states and states[-1] == "available"


def test_old_images_go_but_for_those_that_machines_were_made_of(world):
    made = []
    for _ in range(3):
        world.cloud.passes(60)
        made.append(world.run().image)
        assert nothing_left(world)
    assert baked(world) == sorted(made[1:])
    place = world.place | {"capacity_reservation_group": "", "infiniband": False}
    request = ports.LaunchRequest("ib-1", "l1", "lab", "h100", ZONES[0], "on-demand", 1, place, made[1], "")
    world.azure.launch_all([request])
    world.cloud.passes(10)
    assert world.images.in_use(made[1:]) == {made[1]} and world.images.in_use([]) == set()


def test_an_older_image_that_is_published_again_is_what_counts(world):
    first = world.run().image
    second = world.run().image
    assert world.images.published(world.definition) == second != first
    world.images.publish(world.definition, first)
    world.cloud.passes(1)
    assert world.images.published(world.definition) == first
    world.images.publish(world.definition, second)
    assert world.images.published(world.definition) == second


def test_an_answer_to_the_making_of_an_image_that_is_lost_is_found_by_its_name(world):
    world.cloud.fault("gallery_image_versions.create_or_update", drop=True, after=True)
    done = world.run()
    assert baked(world) == [done.image] and nothing_left(world)


def test_an_image_that_is_there_is_told_from_one_that_is_not(world):
    assert world.images.image(BASE).id == "Canonical:ubuntu-24_04-lts:server:24.04.202611010"
    assert world.images.image("Canonical:ubuntu-24_04-lts:server:1.0.0") is None
    assert world.images.image("Canonical:nothing:server:latest") is None
    assert world.images.image(world.definition) is None and world.images.published(world.definition) is None
    assert world.images.image(f"{world.definition}/versions/1.0.0") is None
    assert world.images.named("another") is None


@pytest.mark.parametrize("name", ["projects/other/zones/x", "ami-0123456789abcdef0", "Canonical:ubuntu"])
def test_what_names_no_image_is_refused(world, name):
    with pytest.raises(ports.Refused, match="no id of an image"):
        world.images.image(name)


def test_a_later_image_has_a_larger_version():
    bakes = ["ironburst-lab-h100-20261128T090000-0a1b", "ironburst-lab-h100-20261128T100000-0001"]
    first, second = ([int(part) for part in image_ids.version(name).split(".")] for name in bakes)
    assert first == [20261128, 90000, 0x0A1B] and first < second
    assert image_ids.version("mine") == image_ids.version("mine") != image_ids.version("yours")


def test_azs_list_of_images_is_read():
    def image(version, excluded=False):
        profile = {"excludeFromLatest": excluded}
        return {
            "id": f"/x/{version}",
            "name": version,
            "tags": {"ironburst:pool": "h100"},
            "publishingProfile": profile,
        }

    listed = [image("20261128.9.1"), image("20261127.10.1"), image("20261129.1.1", excluded=True)]
    assert image_ids.of_pools(json.dumps(listed)) == {"h100": "/x/20261128.9.1"}
    with pytest.raises(ValueError, match="name"):
        image_ids.of_pools("[{}]")
