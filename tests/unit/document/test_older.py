"""Documents of before version 6 (the files are what ironburst 0.2 made) are read, and mean what they meant."""

import json
from pathlib import Path

import pytest

from ironburst import document
from ironburst.controller.launch_request import launch_request
from ironburst.controller.policy_view import declared_pool
from ironburst.controller.records import LaunchRow
from ironburst.document import DocumentError, variables

PUBLISHED = Path(__file__).parent / "published_by_0_2"
BLOCK, GROUP = "cr-0a", "arn:aws:resource-groups:us-east-1:123456789012:group/training"


def said(name):
    return json.loads((PUBLISHED / f"{name}.json").read_text())


def place(pool):
    (at, *_) = pool.zones
    return at.place.model_dump()


def test_a_cloud_is_the_one_of_its_region_and_a_place_is_aws_own():
    read = document.read(PUBLISHED / "cloud.json")
    assert (read.version, read.serial, read.cloud.provider, read.region) == (6, 12, "aws", "us-east-1")
    p5, block, group = read.pools
    assert [at.zone for at in p5.zones] == ["us-east-1a", "us-east-1b"]
    wanted = {
        "provider": "aws",
        "subnet_id": "subnet-us-east-1a",
        "launch_template_id": "lt-us-east-1a",
        "launch_template_version": "7",
        "capacity_reservation_id": None,
        "capacity_reservation_group_arn": None,
        "tags": {},
        "volume_init_mb_s": None,
    }
    assert place(p5) == wanted
    assert place(block) == wanted | {"capacity_reservation_id": BLOCK}
    assert place(group) == wanted | {"capacity_reservation_group_arn": GROUP}
    assert [pool.bought for pool in read.pools] == [False, True, True]
    assert [declared_pool(pool, read).prepaid_markets for pool in read.pools] == [
        ("capacity-block",),
        ("capacity-block",),
        ("on-demand", "capacity-block"),
    ]
    queue = "https://sqs.us-east-1.amazonaws.com/123456789012/lab-interruptions"
    assert (p5.image, p5.notices, block.notices) == ("/ironburst/lab/p5/image", queue, "")
    assert variables.of_all(read.model_dump(mode="json"))["cluster_region"] == "us-east-1"


def test_what_a_rented_node_is_told_is_what_it_was_told():
    """The user data goes into the launch and its token: a repeat must be the same call."""
    read = document.read(PUBLISHED / "cloud.json")
    row = LaunchRow("l", "p5", "p5.48xlarge", "spot", ("us-east-1a",), ("p5-1",), 24.0, "ami", 120.0, "late", 1.0, 12)
    told = json.loads(launch_request(read, row, "us-east-1a", 1).user_data)
    assert (told["region"], told["cluster"], told["nodes"]) == ("us-east-1", "lab", ["p5-1"])


def test_a_hall_of_ones_own_has_no_cloud():
    read = document.read(PUBLISHED / "hall.json")
    assert read.cloud is None and read.region is None and read.pools == []
    assert variables.of_all(read.model_dump(mode="json"))["cluster_region"] is None


@pytest.mark.parametrize("name", ["cloud", "hall"])
def test_what_is_read_is_written_as_of_now_and_read_again(name, tmp_path):
    read = document.read(PUBLISHED / f"{name}.json")
    again = document.parse(json.loads(read.model_dump_json()))
    assert again == read
    path = tmp_path / "published.json"
    path.write_text((PUBLISHED / f"{name}.json").read_text())
    assert document.publish(read, path).serial == read.serial  # another version is no other declaration


@pytest.mark.parametrize("version", [1, 2, 3, 4, 5])
def test_every_version_of_before_is_read(version):
    assert document.parse(said("cloud") | {"version": version}).version == 6


@pytest.mark.parametrize(
    ("broken", "where"),
    [
        ({"pools": "none"}, "pools"),
        ({"pools": [5]}, "pools.0"),
        ({"pools": [{"name": "p5", "zones": "all"}]}, "pools.0"),
        ({"pools": [{"name": "p5", "zones": [5]}]}, "pools.0"),
        ({"region": 7}, "cloud.region"),
    ],
)
def test_what_is_damaged_is_told_in_a_sentence(broken, where):
    with pytest.raises(DocumentError, match=f"is damaged at {where}"):
        document.parse(said("cloud") | broken)


def test_a_cloud_that_this_ironburst_does_not_know_is_told_as_such():
    new = document.read(PUBLISHED / "cloud.json").model_dump(mode="json")
    new["cloud"]["provider"] = "elsewhere"
    with pytest.raises(DocumentError, match="the cloud 'elsewhere'; this ironburst knows aws, google, azure: upgrade"):
        document.parse(new)
    with pytest.raises(DocumentError, match="has version 7"):
        document.parse(new | {"version": 7})
