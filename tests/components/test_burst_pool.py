import pytest

from components.aws.burst_pool import BurstPool
from ironburst.config.aws.models import AwsCloud, AwsPool

ZONES = ["us-east-1a", "us-east-1b"]


@pytest.fixture
def pool(run):
    def build(price=None, spans=True, **changes):
        declared = {"name": "p5", "instance_type": "p5.48xlarge", "max_nodes": 3, "zones": ZONES} | changes
        cloud = AwsCloud.model_validate(
            {
                "region": "us-east-1",
                "network": {"cidr": "10.90.0.0/16", "zones": ZONES},
                "pools": [declared],
                "price": {"p5.48xlarge": price} if price else {},
            }
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
                    spans=spans,
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
    assert [zone.place.launch_template_id for zone in recording.result] == expected


def test_templates_leave_image_disk_market_and_data_to_the_controller(pool):
    for template in pool().all("LaunchTemplate"):
        absent = {
            "imageId",
            "blockDeviceMappings",
            "instanceMarketOptions",
            "userData",
            "capacityReservationSpecification",
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


def placed(recording):
    """Placement group of each template; None: it names none."""
    templates = {each.name: each.inputs.get("placement") for each in recording.all("LaunchTemplate")}
    return {name: given and given["groupName"] for name, given in templates.items()}


def test_a_cluster_placement_group_a_zone_where_the_type_has_efa(pool):
    recording = pool()
    groups = {each.name: each.inputs for each in recording.all("PlacementGroup")}
    assert {each["strategy"] for each in groups.values()} == {"cluster"}
    assert not any("name" in each for each in groups.values())  # Pulumi's own: it must be the account's only one
    assert all(each["tags"]["ironburst:pool"] == "p5" for each in groups.values())
    assert placed(recording) == {f"burst-p5-{zone}": f"burst-p5-{zone}-placement" for zone in ZONES}
    assert set(groups) == set(placed(recording).values())


BLOCK = {"id": "cr-0a1b", "ends": "2026-12-24T11:30:00Z"}
GROUP = "arn:aws:resource-groups:us-east-1:123456789012:group/training"


@pytest.mark.parametrize(
    "changes",
    [
        {"instance_type": "g6e.xlarge"},  # no EFA
        {"placement_group": False},
        {"capacity_reservation": "cr-0a1b"},
        {"capacity_reservation_group": GROUP},
        {"capacity_block": BLOCK, "zones": ZONES[:1]},
    ],
)
def test_no_placement_group_without_efa_nor_in_capacity_that_somebody_bought(pool, changes):
    recording = pool(**changes)
    assert not recording.all("PlacementGroup") and not any(placed(recording).values())


def test_one_may_be_asked_for(pool):
    assert len(pool(instance_type="g6e.xlarge", placement_group=True).all("PlacementGroup")) == 2


def test_a_capacity_block_costs_nothing_more_and_is_never_bought(pool):
    recording = pool(capacity_block=BLOCK, zones=ZONES[:1])
    (said,) = recording.logged
    assert "in capacity block cr-0a1b, paid for when it was bought: at worst 0.00 USD an hour" in said
    assert not recording.all("CapacityBlockReservation")
    (template,) = recording.all("LaunchTemplate")
    assert not {"instanceMarketOptions", "capacityReservationSpecification"} & set(template.inputs)  # the controller's


def test_a_template_for_each_type_with_its_cards(pool):
    types = ["p5en.48xlarge", "p5e.48xlarge"]
    recording = pool(instance_type=None, instance_types=types)
    templates = {each.name: each.inputs for each in recording.all("LaunchTemplate")}
    cards = {name: (each["instanceType"], len(each["networkInterfaces"])) for name, each in templates.items()}
    assert cards == {
        "burst-p5-us-east-1a": ("p5en.48xlarge", 17),
        "burst-p5-us-east-1b": ("p5en.48xlarge", 17),
        "burst-p5-us-east-1a-p5e.48xlarge": ("p5e.48xlarge", 33),
        "burst-p5-us-east-1b-p5e.48xlarge": ("p5e.48xlarge", 33),
    }
    places = [(zone.instance_type, zone.zone, zone.place.launch_template_id) for zone in recording.result]
    assert places == [
        ("p5en.48xlarge", "us-east-1a", "burst-p5-us-east-1a-id"),
        ("p5en.48xlarge", "us-east-1b", "burst-p5-us-east-1b-id"),
        ("p5e.48xlarge", "us-east-1a", "burst-p5-us-east-1a-p5e.48xlarge-id"),
        ("p5e.48xlarge", "us-east-1b", "burst-p5-us-east-1b-p5e.48xlarge-id"),
    ]


@pytest.mark.parametrize(
    ("changes", "groups"),
    [
        ({}, 2),
        ({"max_nodes": 1}, 0),
        ({"markets": ["spot"]}, 0),  # a job has one spot node at most, unless burst.spot_max_nodes says otherwise
        ({"markets": ["spot", "on-demand"]}, 2),
        ({"markets": ["spot"], "placement_group": True}, 2),
    ],
)
def test_nodes_lie_together_only_where_a_job_may_have_several(pool, changes, groups):
    declared = AwsPool.model_validate(
        {"name": "p5", "instance_type": "p5.48xlarge", "max_nodes": 3, "zones": ZONES} | changes
    )
    assert len(pool(spans=declared.spans(1), **changes).all("PlacementGroup")) == groups
    assert AwsPool.model_validate(declared.model_dump() | {"max_nodes": 2, "markets": ["spot"]}).spans(2)


def test_a_rate_of_filling_is_the_places(pool):
    assert [zone.place.volume_init_mb_s for zone in pool(root_disk_init_mb_s=300).result] == [300, 300]
    (said,) = pool(root_disk_init_mb_s=300).logged
    assert "each launch pays for each GB of its image" in said


def test_it_holds_no_instance(pool):
    assert not pool().all("Instance")


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({}, "at worst 165.12 USD an hour, 120,538 USD a month (estimate, list prices of 2026-07-20, "),
        ({"markets": ["spot", "on-demand"]}, "at worst 165.12 USD an hour"),  # the dearer market counts
        (
            {"instance_type": None, "instance_types": ["g6e.12xlarge", "g6e.24xlarge"]},
            "3 x g6e.12xlarge or g6e.24xlarge: at worst 45.20 USD an hour",  # of the dearer type
        ),
        ({"markets": ["spot"]}, "at worst 165.12 USD an hour"),  # spot rises up to the on-demand price
        ({"markets": ["spot"], "price": {"spot_max": 20}}, "at worst 60.00 USD an hour"),
        ({"instance_type": "p5e.48xlarge"}, "price unknown, so no estimate; give one under price of its cloud"),
    ],
)
def test_the_worst_case_is_said(pool, changes, sentence):
    (said,) = pool(**changes).logged
    assert sentence in said
