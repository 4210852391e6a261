"""`ironburst.baking.images.bake` with Google's adapter before the lab's stand-in of Compute Engine."""

import json
from types import SimpleNamespace

import pytest
from google.auth.credentials import AnonymousCredentials

from ironburst import ports
from ironburst.adapters.google import image_ids
from ironburst.adapters.google.api import Api
from ironburst.adapters.google.images import CALLS, GoogleImages, _name
from ironburst.baking.images import bake
from ironburst.document import CloudDocument, ImagesDocument
from ironburst.ports.images import BakeError
from lab.google import server
from tests.fakes import document, with_places

KIND, ZONES = "a3-highgpu-8g", ("us-central1-a", "us-central1-b")
BASE = "projects/lab-project/global/images/family/ubuntu"
FAMILY = "projects/lab-project/global/images/family/ironburst-lab-h100"
NIC = {"subnetwork": "projects/lab-project/regions/us-central1/subnetworks/nodes", "nic_type": "GVNIC"}
PLACE = {
    "provider": "google",
    "machine_type": KIND,
    "network_interfaces": [NIC, NIC | {"subnetwork": "regions/us-central1/subnetworks/fabric-1"}],
    "boot_disk_type": "pd-balanced",
    "boot_disk_gb": 200,
    "network_tags": ["ironburst-lab"],
    "service_account": "nodes@lab-project.iam.gserviceaccount.com",
    "labels": {"cost-center": "4711"},
    "reservation": "ours",
}


@pytest.fixture
def world():
    cloud = server.Cloud(seed=7)
    cloud.images["ubuntu-1"] = "ubuntu"
    cloud.reservations["ours"] = (ZONES[0], KIND, 4)
    cloud.delays.insert_s = cloud.delays.delete_s = 0.5
    api = Api("lab-project", more=CALLS, credentials=AnonymousCredentials(), endpoint=cloud.url_of_api)
    images = GoogleImages(api, "us-central1", wait=cloud.passes)
    values = document().model_dump(mode="json")
    there = CloudDocument(provider="google", region="us-central1", account="lab-project")
    zones = [{"zone": zone, "instance_type": KIND, "place": PLACE} for zone in ZONES]
    values |= {"cloud": there.model_dump(), "images": ImagesDocument(keep=2).model_dump()}
    values["pools"] = [values["pools"][0] | {"name": "h100", "instance_type": KIND, "zones": zones, "image": FAMILY}]
    said, made = [], type(document()).model_validate(values)

    def run(playbook=lambda address: None, build_type=None, **place):
        its = made.model_copy(update={"images": ImagesDocument(keep=2, build_type=build_type)})
        options = {"answers": lambda address: bool(cloud.passes(1)) or True, "pause_s": 0.01}
        return bake(images, its, with_places(its.pools[0], **place), BASE, playbook, said.append, **options)

    yield SimpleNamespace(cloud=cloud, images=images, run=run, said=said, document=made)
    cloud.close()
    assert cloud.wrong == []


def nothing_left(world):
    world.cloud.passes(60)
    return world.cloud.vms == {} and world.cloud.disks == {}


def baked(world):
    return [name for name in world.cloud.images if name != "ubuntu-1"]


def test_a_bake_makes_an_image_that_the_family_names_and_leaves_nothing(world):
    done = world.run()
    (name,) = baked(world)
    assert done.image == world.images.published(FAMILY) == f"projects/lab-project/global/images/{name}"
    assert world.cloud.images[name] == "ironburst-lab-h100" and nothing_left(world)
    labels = world.cloud.image_facts[name]["labels"]
    assert (labels["ironburst-cluster"], labels["ironburst-pool"], labels["cost-center"]) == ("lab", "h100", "4711")
    (call,) = world.cloud.asked("images.insert")
    assert "family" not in call.body, "an image counts from its publication, not from its beginning"


def test_a_build_of_the_pools_own_type_is_as_a_node_but_has_no_rights_and_no_lease(world):
    world.run()
    (call,) = world.cloud.asked("instances.bulkInsert")
    made = call.body["instanceProperties"]
    assert "serviceAccounts" not in made and "ironburst-lease" not in made["labels"]
    assert made["labels"]["ironburst-role"] == "image-build" and made["tags"] == {"items": ["ironburst-lab"]}
    assert made["reservationAffinity"]["values"] == ["ours"] and len(made["networkInterfaces"]) == 2
    assert made["scheduling"]["instanceTerminationAction"] == "DELETE", "one that nobody ends is gone after some hours"


def test_a_build_of_another_type_has_neither_its_cards_nor_its_capacity(world):
    world.run(build_type="n2-standard-16")
    (call,) = world.cloud.asked("instances.bulkInsert")
    made = call.body["instanceProperties"]
    assert made["machineType"] == "n2-standard-16" and len(made["networkInterfaces"]) == 1
    assert made["reservationAffinity"] == {"consumeReservationType": "NO_RESERVATION"}


def test_a_controller_takes_a_build_for_none_of_its_own(world):
    seen = []
    world.run(playbook=lambda address: seen.append((world.images._google.instances("lab"), world.images.builds("lab"))))
    ((leased, builds),) = seen
    assert leased == [] and [each.state for each in builds] == ["running"]


def test_a_playbook_that_fails_leaves_the_family_as_it_was_and_nothing_behind(world):
    before = world.run().image

    def fails(address):
        raise BakeError("the driver doesn't build")

    with pytest.raises(BakeError, match="doesn't build"):
        world.run(playbook=fails)
    assert world.images.published(FAMILY) == before and len(baked(world)) == 1 and nothing_left(world)


def test_a_zone_without_capacity_is_followed_by_the_next(world):
    world.cloud.capacity[KIND, ZONES[0], "STANDARD"] = 0
    assert world.run(reservation="").zone == ZONES[1] and nothing_left(world)


def test_an_image_that_takes_long_is_waited_for(world):
    world.cloud.delays.image_s = 300.0
    states = []
    real = world.images.image

    def image(id):
        found = real(id)
        states.append(found.state)
        world.cloud.passes(200)
        return found

    world.images.image = image
    world.run()
    assert "pending" in states and states[-1] == "available"


def test_old_images_go_but_for_those_that_disks_were_made_of(world):
    names = []
    for _ in range(3):
        world.cloud.passes(60)
        names.append(world.run(reservation="").image)
    second, third = names[1:]
    assert [f"projects/lab-project/global/images/{each}" for each in baked(world)] == [second, third]
    place = PLACE | {"reservation": ""}
    request = ports.LaunchRequest("ib-1", "l1", "lab", "h100", ZONES[0], "on-demand", 1, place, second, "")
    world.images._google.launch_all([request])
    world.cloud.passes(10)
    assert world.images.in_use([second, third]) == {second}


def test_an_older_image_that_is_published_again_is_what_the_family_names(world):
    first = world.run().image
    world.cloud.passes(60)
    assert world.run().image == world.images.published(FAMILY) != first
    world.images.publish(FAMILY, first)
    assert world.images.published(FAMILY) == first


def test_an_answer_to_images_insert_that_is_lost_is_found_by_its_name(world):
    world.cloud.fault("images.insert", drop=True, after=True, times=2)
    done = world.run()
    assert len(baked(world)) == 1 and world.images.published(FAMILY) == done.image and nothing_left(world)


@pytest.mark.parametrize("name", ["projects/other/zones/x", "ami-0123456789abcdef0/1", "Ubuntu"])
def test_what_names_no_image_is_refused(world, name):
    with pytest.raises(ports.Refused, match="names no image"):
        world.images.image(name)


def test_names_are_small_and_short_enough(world):
    long = "ironburst-" + "c" * 32 + "-" + "p" * 32 + "-20261128T090000-0a1b"
    assert _name("ironburst-lab-h100-20261128T090000-0a1b") == "ironburst-lab-h100-20261128t090000-0a1b"
    assert len(_name(long)) == 63 and _name(long) != _name(long + "2")


def test_gclouds_list_of_images_is_read():
    def image(name, day, **more):
        link = f"https://www.googleapis.com/compute/v1/projects/p/global/images/{name}"
        return {"selfLink": link, "creationTimestamp": day, "labels": {"ironburst-pool": "h100"}, **more}

    listed = [image("b", "2026-11-02", family="f"), image("a", "2026-11-01", family="f"), image("c", "2026-11-03")]
    assert image_ids.of_pools(json.dumps(listed)) == {"h100": "projects/p/global/images/b"}
    with pytest.raises(ValueError, match="creationTimestamp"):
        image_ids.of_pools("[{}]")
