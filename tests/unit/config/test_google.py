"""A cloud of Google's in a stack file: its models, its checks, its networks, its estimates."""

import re
from copy import deepcopy
from datetime import datetime, timedelta
from pathlib import Path

import pytest
import yaml

from ironburst import catalog
from ironburst.catalog.google.machine_types import machine_type, machine_types
from ironburst.catalog.tables import table
from ironburst.config import clouds, estimates, prices
from ironburst.config.checks import check
from ironburst.config.google import rights, subnets, up_role
from ironburst.config.load import from_value, read_value
from ironburst.document import PoolZone, parse
from ironburst.document.build import CloudInstance, Observed, build
from ironburst.document.google import GooglePlace
from ironburst.document.places import UNKNOWN
from ironburst.nodes import naming
from tests import google_stack
from tests.unit.config.cloud_changes import NOW, SOON, change, malformed, network, pool, refused, said, wrong

CALENDAR = {"name": "h100-week", "ends": SOON}


@pytest.fixture
def declared():
    return google_stack.value()


def test_a_stack_in_google_is_valid(declared):
    assert said(declared) == []


def test_no_clusters_names_begin_as_anothers(declared):
    """By its names a node may end its cluster's, and a pool finds its image: lab-x is no part of lab."""
    prefix, condition = naming.rented_prefix("lab"), rights.of_names("lab")
    assert f'startsWith("{prefix}")' in condition
    assert not naming.rented_prefix("lab-x").startswith(prefix)
    assert naming.image_family("lab-x", "p5") != naming.image_family("lab", "x-p5")
    declared["name"] = "lab--x"
    found = [each for each in check(from_value(declared), NOW) if each.severity == "error"]
    assert [each.path.rpartition(".")[2] for each in found] == ["name"] and "write one hyphen" in found[0].message


def test_without_a_provider_it_is_the_first_cloud():
    assert clouds.DEFAULT == "aws" and set(clouds.CLASSES) == {"aws", "google", "azure"}
    assert type(from_value(read_value(google_stack.STACK)).cloud) is clouds.CLASSES["aws"]


def test_a_secret_that_its_nodes_can_not_read_is_refused(declared):
    declared["scheduler"]["munge_key"] = "aws-secretsmanager:lab/munge-key"
    found = check(from_value(declared), NOW)
    (message,) = [each.message for each in found if each.rule == "munge-key"]
    assert message.startswith("must be a reference to google-secretmanager: where there are burst pools")
    value = read_value(google_stack.STACK)
    value["scheduler"]["munge_key"] = "google-secretmanager:lab-project/munge-key"
    assert [each.rule for each in check(from_value(value), NOW) if each.severity == "error"] == ["munge-key"]


MALFORMED = {
    "a provider that isn't known": (change(["provider"], "gogle"), "cloud", "allowed are aws, google, azure"),
    "a number of the project": (change(["project"], "4711"), "cloud.project", "write for example gpu-prod-4711"),
    "a key of another cloud": (change(["tags"], {}), "cloud.tags", "there is no such key"),
    "a key of a pool": (
        change(["pools", 0, "placement_group"], True),
        "cloud.pools[0].placement_group",
        "there is no such key",
    ),
    "an image of another cloud": (
        change(["groups", 0, "image"], "ami-0123456789abcdef0"),
        "cloud.groups[0].image",
        "projects/ubuntu-os-cloud",
    ),
    "a label in capitals": (change(["labels"], {"CostCenter": "4711"}), "cloud.labels.CostCenter", "form"),
    "a VPN without a secret": (
        change(["network", "hall_link", "shared_secret"], None),
        "cloud.network.hall_link",
        "needs shared_secret",
    ),
    "an Interconnect without one": (
        change(["network", "hall_link"], {"kind": "interconnect", "hall": "hall-a", "peer_asn": 1}),
        "cloud.network.hall_link",
        "needs interconnects",
    ),
}


@pytest.mark.parametrize("case", MALFORMED)
def test_what_is_malformed_is_said_at_its_place_without_the_unions_tag(declared, case):
    malformed(declared, *MALFORMED[case])


def test_a_secret_in_the_place_of_its_reference_is_not_shown(declared):
    declared["cloud"]["network"]["hall_link"]["shared_secret"] = "hunter2"
    ((path, message),) = refused(declared)
    assert path.endswith("shared_secret") and "hunter2" not in message


WRONG = {
    "a region": (change(["region"], "us-central9"), "region", "us-central1"),
    "a region of AWS": (change(["region"], "us-east-1"), "region", "us-east1"),
    "a zone of another region": (
        network(zones=["us-central1-a", "us-central1-b", "us-east1-b"]),
        "network.zones[2]",
        "not a zone of us-central1",
    ),
    "a pool's zone that isn't the network's": (
        pool(zones=["us-central1-f"]),
        "pools[0].zones[0]",
        "not in cloud.network.zones",
    ),
    "a type of AWS": (pool(1, instance_type="p5.48xlarge"), "pools[1].instance_type", "Unknown instance type"),
    "a type whose cards aren't known": (
        pool(instance_type="a3-edgegpu-8g", markets=["on-demand"]),
        "pools[0].instance_type",
        "network card layout",
    ),
    "several NICs without a network": (network(fabric_cidr=None), "network.fabric_cidr", "is needed"),
    "networks of NICs that are too small": (
        network(fabric_cidr="10.96.0.0/26"),
        "network.fabric_cidr",
        "too few or too small",
    ),
    "a subnet that is too small": (network(cidr="10.90.0.0/29"), "network.cidr", "need 5"),
    "a fabric over the nodes": (network(fabric_cidr="10.90.128.0/17"), "network.fabric_cidr", "overlaps 10.90.0.0/16"),
    "on demand of what isn't sold so": (
        pool(markets=["on-demand"], instance_type="a3-ultragpu-8g"),
        "pools[0].markets",
        "isn't sold on demand; name a reservation, or write spot",
    ),
    "spot in a reservation": (pool(reservation="ours", zones=["us-central1-a"]), "pools[0].markets", "no spot machine"),
    "a reservation in two zones": (pool(reservation="ours", markets=["on-demand"]), "pools[0].zones", "in one"),
    "a bound reservation that isn't named": (
        pool(reservation_bound=True),
        "pools[0].reservation_bound",
        "none is named",
    ),
    "a placement of ours in a reservation": (
        pool(1, reservation="ours", compact_placement=True),
        "pools[1].compact_placement",
        "own placement",
    ),
    "a block without one": (pool(markets=["capacity-block"]), "pools[0].markets", "write calendar_reservation"),
    "spot beside a calendar reservation": (
        pool(calendar_reservation=CALENDAR, zones=["us-central1-a"]),
        "pools[0].markets",
        "leave markets out",
    ),
    "a calendar reservation that is over": (
        lambda cloud: (
            cloud["pools"][0].pop("markets"),
            pool(calendar_reservation={"name": "x", "ends": "2026-11-01T00:00:00Z"}, zones=["us-central1-a"])(cloud),
        ),
        "pools[0].calendar_reservation.ends",
        "ended",
    ),
    "a disk that a type doesn't boot from": (
        pool(instance_type="a3-ultragpu-8g", root_disk_type="pd-ssd"),
        "pools[0].root_disk_type",
        "hyperdisk-balanced alone",
    ),
    "a throughput of another disk": (pool(root_disk_mb_s=500), "pools[0].root_disk_mb_s", "is hyperdisk-balanced's"),
    "SSDs that the type brings": (pool(local_ssds=2), "pools[0].local_ssds", "brings its 16"),
    "SSDs that the type doesn't take": (pool(1, local_ssds=3), "pools[1].local_ssds", "takes 4"),
    "a label of ours": (change(["labels"], {"ironburst-lease": "x"}), "labels.ironburst-lease", "is ours"),
    "a hall that isn't there": (
        change(["network", "hall_link", "hall"], "hall-z"),
        "network.hall_link.hall",
        "not a declared hall",
    ),
    "two lists of links": (
        lambda cloud: cloud["network"].update(hall_links=[cloud["network"]["hall_link"]]),
        "network.hall_links",
        "leave hall_link out",
    ),
    "a link of a network that is there": (
        network(
            existing={
                "network": "n",
                "subnetwork": "s",
                "fabric": {"us-central1-a": ["a", "b", "c", "d"], "us-central1-b": ["a", "b", "c", "d"]},
            }
        ),
        "network.hall_link",
        "used, never changed",
    ),
    "Karpenter's nodes": (
        change(["karpenter"], [{"name": "k", "instance_type": "g2-standard-48", "max_nodes": 1, "node_class": "c"}]),
        "karpenter",
        "launches in AWS here",
    ),
    "a long name": (pool(name="h" * 32), None, None),
    "no price": (
        pool(instance_type="a3-ultragpu-8g"),
        "price",
        "no price of a3-ultragpu-8g in us-central1; write USD per hour",
    ),
    "a build of another architecture": (
        change(["images"], {"build_type": "t2a-standard-8"}),
        "images.build_type",
        "boot on none",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_google_would_refuse_is_said_first(declared, case):
    wrong(declared, *WRONG[case])


def test_subnetworks_of_a_network_that_is_there_are_as_many_as_the_nics(declared):
    there = {"network": "n", "subnetwork": "s", "fabric": {"us-central1-a": ["a", "b", "c", "d"]}}
    declared["cloud"]["network"] |= {"existing": there, "hall_link": None, "fabric_cidr": None}
    ((path, message),) = said(declared)
    assert path == "network.existing.fabric" and "names 0 subnetworks for us-central1-b" in message


# ---- networks


def of(declared, **changes):
    declared["cloud"]["pools"][0].update(changes)
    return from_value(declared).cloud


def test_a_further_gvnic_is_in_a_network_of_its_own_and_rdma_in_one_of_its_zone(declared):
    made = subnets.fabric(of(declared))
    assert [(each.label, each.zone, each.mtu, len(each.subnets)) for each in made] == [
        (f"fabric-8244-{n}", "", 8244, 1) for n in (1, 2, 3, 4)
    ]
    made = subnets.fabric(of(declared, instance_type="a3-ultragpu-8g"))
    assert [(each.label, each.profile, len(each.subnets)) for each in made] == [
        ("fabric-8896-1", "", 1),
        ("rdma-us-central1-a", "us-central1-a-vpc-roce", 8),
        ("rdma-us-central1-b", "us-central1-b-vpc-roce", 8),
    ]
    every = [cidr for each in made for cidr in each.subnets]
    assert len(set(every)) == 17 and all(cidr.startswith("10.96.") for cidr in every)


@pytest.mark.parametrize("name", [name for name, kind in machine_types().items() if kind.gvnics is not None])
def test_a_node_has_a_card_in_each_of_its_networks(name):
    kind = machine_type(name)
    cards = subnets.nics(kind, "us-central1-a")
    assert len(cards) == kind.nics and (cards[0].network, cards[0].nic_type) == ("", "GVNIC")
    assert len({(each.network, each.subnet) for each in cards}) == len(cards)
    assert sum(each.nic_type == "MRDMA" for each in cards) == kind.rdma_nics


def test_what_is_added_behind_moves_no_subnet(declared):
    before = subnets.fabric(of(declared))
    more = declared["cloud"]["pools"][0] | {"name": "h200", "instance_type": "a3-ultragpu-8g", "max_nodes": 9}
    declared["cloud"]["pools"].append(more)
    assert subnets.fabric(of(declared, max_nodes=200))[: len(before)] == before


# ---- the catalogue and money


def test_rows_have_their_source_and_prices_their_day():
    for row in table("google_machine_types.csv").rows:
        assert row["source"] and bool(row["usd_on_demand"]) == bool(row["price_date"]) == bool(row["price_region"])
    assert len(machine_types()) == 34


@pytest.mark.parametrize(
    ("name", "gpus", "model", "fabric", "usd", "spot", "region"),
    [
        ("a3-highgpu-8g", 8, "H100 SXM5 80GB", ("gpudirect-tcpx", 4), 88.49, 50.6095, "us-central1"),
        ("a3-megagpu-8g", 8, "H100 SXM5 80GB", ("gpudirect-tcpxo", 8), 92.9376, 23.2752, "us-east4"),
        ("a3-ultragpu-8g", 8, "H200 SXM 141GB", ("roce", 8), None, None, ""),
        ("a4x-highgpu-4g", 4, "GB200 186GB", ("roce", 4), None, None, ""),
        ("a3-highgpu-1g", 1, "H100 SXM5 80GB", ("none", 0), None, 6.3262, "us-central1"),  # a price that nobody can pay
        ("g4-standard-6", 1, "RTX PRO 6000 Blackwell Server Edition", ("none", 0), 0.5596, 0.2238, "us-central1"),
    ],
)
def test_machine_types(name, gpus, model, fabric, usd, spot, region):
    kind = catalog.instance_type(name)
    assert (kind.gpu_count, kind.gpu_model, kind.fabric(), kind.list_region) == (gpus, model, fabric, region)
    listed = [catalog.price(name, market, region or "us-central1") for market in ("on-demand", "spot")]
    assert [each and each.usd_per_hour for each in listed] == [usd, spot]
    assert catalog.price(name, "on-demand", "europe-west4") is None


def test_no_two_clouds_share_a_name():
    every = catalog.instance_types()
    assert len(every) == sum(len(catalog.instance_types(each)) for each in clouds.CLASSES)
    assert len(catalog.regions()) == sum(len(catalog.regions(each)) for each in clouds.CLASSES)


def test_the_worst_case_is_arithmetic_by_the_catalogue(declared):
    declared["cloud"]["price"] = {}
    config = from_value(declared)
    h100, l4 = config.cloud.pools
    assert estimates.pool(config.cloud, h100).usd_per_hour == 2 * 88.49  # spot rises to on demand
    assert estimates.pool(config.cloud, l4).usd_per_hour == 2 * 4.0017
    group, network = estimates.fixed(config)
    assert group.usd_per_hour == 4.0017 and network.usd_per_hour == pytest.approx(0.044 + 0.005 + 2 * 0.05)
    assert "0.12 USD a GB to hall-a" in str(network)
    declared["cloud"]["network"]["hall_link"] = {
        "kind": "interconnect", "hall": "hall-a", "peer_asn": 65010, "interconnects": ["a", "b"], "gb_per_month": 7300
    }  # fmt: skip
    _, network = estimates.fixed(from_value(declared))
    assert network.usd_per_hour == pytest.approx(0.044 + 0.005 + 2 * 0.1 + 10 * 0.02)


def test_a_ceiling_of_spot_is_the_worst_case(declared):
    config = from_value(declared)
    assert estimates.pool(config.cloud, config.cloud.pools[0]).usd_per_hour == 2 * 60.0
    assert prices.price(config.cloud, "a3-highgpu-8g", "spot").usd_per_hour == 50.6095


# ---- the document


def test_a_document_of_google_names_its_project_and_comes_back(declared):
    config = from_value(declared)
    assert UNKNOWN["google"] == GooglePlace.unknown()
    place = GooglePlace(machine_type="x", network_interfaces=[], boot_disk_type="pd-ssd", boot_disk_gb=1)
    zones = {each.name: [PoolZone(zone="us-central1-a", place=place)] for each in config.cloud.pools}
    fixed = {"fixed-1": CloudInstance(id="us-central1-a/fixed-1/4711", address="10.90.0.2")}
    made = build(config, Observed(instances=fixed, pool_zones=zones))
    assert (made.cloud.provider, made.cloud.account, made.region) == ("google", "lab-project", "us-central1")
    h100 = made.pool("h100")
    assert h100.image == "projects/lab-project/global/images/family/ironburst-lab--h100"
    assert (h100.fabric, h100.fabric_links, h100.gpu.count) == ("gpudirect-tcpx", 4, 8)
    assert h100.usd_per_hour == {"spot": 50.6095} and h100.spot_max_usd_per_hour == {"a3-highgpu-8g": 60.0}
    again = parse(made.model_dump(mode="json"))
    assert again == made and isinstance(again.pool("h100").zones[0].place, GooglePlace)


def test_a_calendar_reservation_is_paid_before_and_ends_half_an_hour_sooner(declared):
    pool = declared["cloud"]["pools"][0]
    pool.pop("markets")
    pool |= {"calendar_reservation": CALENDAR | {"account": "vision"}, "zones": ["us-central1-a"]}
    assert said(declared) == []
    cloud = from_value(declared).cloud
    (bought, *_) = cloud.pools
    assert bought.markets == ["capacity-block"] and bought.bought and bought.of_account == "vision"
    assert bought.taken_back == datetime.fromisoformat(SOON) - timedelta(minutes=30)
    assert estimates.pool(cloud, bought).usd_per_hour == 0.0


# ---- the page, and the roles that it names


def test_the_example_of_the_page_is_valid(declared):
    page = (Path(__file__).parents[3] / "docs/how-to/google.md").read_text()
    (example,) = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
    declared["cloud"] = yaml.safe_load(example)["cloud"]
    assert said(declared) == []


def test_the_roles_name_permissions_and_none_twice(declared):
    config = from_value(declared)
    made = up_role.roles(config, config.cloud)
    assert set(made) == {"up", "controller", "ending"}
    for role in made.values():
        given = role["includedPermissions"]
        assert given == sorted(set(given)) and all(re.fullmatch(r"[a-z]+(\.[A-Za-z]+){2}", each) for each in given)
        assert len(role["title"]) <= 100 and role["stage"] == "GA"
    assert made["ending"]["includedPermissions"] == ["compute.instances.delete"]
    assert "compute.instances.delete" not in made["controller"]["includedPermissions"], "it is bound to names"


def test_up_may_do_what_the_declaration_needs_and_no_more(declared):
    def may(**changes):
        value = deepcopy(declared)
        value["cloud"].update(changes)
        return set(up_role.of_up(from_value(value).cloud))

    assert "compute.vpnTunnels.create" in may() and "compute.instances.create" in may()
    assert "compute.instances.create" not in may(groups=[])
    assert not any(each.startswith("storage.") for each in may())
    assert set(rights.BINDING_DATA) <= may(data={"a": {"gs": "training"}})
    unlinked = declared["cloud"]["network"] | {"hall_link": None}
    assert not any(".vpn" in each for each in may(network=unlinked))
    there = {"network": "n", "subnetwork": "s", "fabric": {}}
    assert not any(".networks." in each for each in may(network=unlinked | {"existing": there}))
