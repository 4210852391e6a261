"""A cloud of Azure's in a stack file: its models, its checks, its networks, its estimates."""

import ipaddress
import re
from copy import deepcopy
from datetime import datetime, timedelta
from pathlib import Path

import pytest
import yaml

from ironburst import catalog
from ironburst.catalog.azure.sizes import sizes
from ironburst.catalog.tables import table
from ironburst.config import estimates, prices
from ironburst.config.azure import rights, subnets, up_role
from ironburst.config.checks import check
from ironburst.config.load import from_value
from ironburst.document import PoolZone, parse
from ironburst.document.azure import AzurePlace
from ironburst.document.build import CloudInstance, Observed, build
from ironburst.document.places import UNKNOWN
from ironburst.nodes import azure as names
from tests import azure_stack
from tests.unit.config.cloud_changes import NOW, SOON, change, malformed, network, pool, refused, said, wrong

GROUP = f"/subscriptions/{azure_stack.SUBSCRIPTION}/resourceGroups/capacity/providers"
RESERVATION = f"{GROUP}/Microsoft.Compute/capacityReservationGroups/h100"
SUBNET = f"{GROUP}/Microsoft.Network/virtualNetworks/gpu/subnets/nodes"
CIRCUIT = f"{GROUP}/Microsoft.Network/expressRouteCircuits/hall-a"
BLOCK = {"group": RESERVATION, "ends": SOON}


@pytest.fixture
def declared():
    return azure_stack.value()


def test_a_stack_in_azure_is_valid(declared):
    assert said(declared) == []


LINK = ["network", "hall_link"]
MALFORMED = {
    "a subscription's name": (change(["subscription"], "gpu-prod"), "cloud.subscription", "write for example 0b1f"),
    "a key of another cloud": (change(["labels"], {}), "cloud.labels", "there is no such key"),
    "a key of a pool": (change(["pools", 0, "placement_group"], True), "cloud.pools[0].placement_group", "no such key"),
    "an image of another cloud": (
        change(["groups", 0, "image"], "ami-0123456789abcdef0"),
        "cloud.groups[0].image",
        "write for example Canonical:ubuntu",
    ),
    "a key that Azure doesn't take": (
        change(["ssh_public_key"], "ecdsa-sha2-nistp256 AAAA x"),
        "cloud.ssh_public_key",
        "write for example ssh-ed25519",
    ),
    "a reservation without a group": (
        change(["pools", 1, "capacity_reservation_group"], "h100"),
        "cloud.pools[1].capacity_reservation_group",
        "write its id",
    ),
    "a tag with a slash": (change(["tags"], {"Cost/Center": "4711"}), "cloud.tags.Cost/Center", "form"),
    "a VPN without a secret": (
        change([*LINK, "shared_secret"], None),
        "cloud.network.hall_link",
        "needs shared_secret",
    ),
    "a VPN with a circuit": (change([*LINK, "circuit"], CIRCUIT), "cloud.network.hall_link", "has no circuit"),
    "an ExpressRoute without one": (
        change(LINK, {"kind": "expressroute", "hall": "hall-a"}),
        "cloud.network.hall_link",
        "needs circuit",
    ),
    "a controller without a way in": (change(["controller"], {}), "cloud.controller", "needs principal, or issuer"),
    "a controller with half a way in": (
        change(["controller"], {"issuer": "oidc.example.org"}),
        "cloud.controller",
        "write both, or principal",
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
    "a region": (change(["region"], "eastus9"), "region", "eastus"),
    "a region of another cloud": (change(["region"], "us-east-1"), "region", "Unknown region"),
    "a zone of another region": (
        network(zones=["eastus-1", "eastus-2", "eastus2-1"]),
        "network.zones[2]",
        "not a zone of eastus",
    ),
    "a pool's zone that isn't the network's": (pool(zones=["eastus-3"]), "pools[0].zones[0]", "not in cloud.network"),
    "a size of another cloud": (pool(1, instance_type="p5.48xlarge"), "pools[1].instance_type", "Unknown instance"),
    "a size that is retired": (pool(1, instance_type="Standard_NC6s_v3"), "pools[1].instance_type", "Unknown instance"),
    "a network that is too small": (network(cidr="10.90.0.0/27"), "network.cidr", "write a /26"),
    "a subnet that is too small": (pool(1, max_nodes=30), None, None),
    "a subnet that is much too small": (
        lambda cloud: (network(cidr="10.90.0.0/26")(cloud), pool(1, max_nodes=40)(cloud)),
        "network.cidr",
        "has 27 addresses for nodes",
    ),
    "InfiniBand's own network": (network(cidr="172.16.0.0/20"), "network.cidr", "InfiniBand's own"),
    "a reservation of what isn't reserved": (
        pool(capacity_reservation_group=RESERVATION, markets=["on-demand"]),
        "pools[0].capacity_reservation_group",
        "reserves no Standard_ND96isr_H100_v5 on demand",
    ),
    "spot in a reservation": (
        pool(1, capacity_reservation_group=RESERVATION, markets=["spot"]),
        "pools[1].markets",
        "no spot machine",
    ),
    "a reservation beside a block": (
        pool(1, capacity_reservation_group=RESERVATION, capacity_block=BLOCK, markets=["capacity-block"]),
        "pools[1].capacity_block",
        "runs in one",
    ),
    "a block without one": (pool(markets=["capacity-block"]), "pools[0].markets", "write capacity_block"),
    "spot beside a block": (pool(capacity_block=BLOCK), "pools[0].markets", "leave markets out"),
    "a block that is over": (
        lambda cloud: (
            cloud["pools"][0].pop("markets"),
            pool(capacity_block=BLOCK | {"ends": "2026-11-01T00:00:00Z"})(cloud),
        ),
        "pools[0].capacity_block.ends",
        "ended",
    ),
    "InfiniBand of what has none": (pool(1, infiniband=True), "pools[1].infiniband", "has no InfiniBand"),
    "a group that is larger than a fabric": (
        change(
            ["groups", 0], {**azure_stack.cloud()["groups"][0], "count": 101, "instance_type": "Standard_ND96asr_v4"}
        ),
        "groups[0].count",
        "above the 100",
    ),
    "a throughput of the root disk": (pool(root_disk_mb_s=500), "pools[0].root_disk_mb_s", "throughput of its size"),
    "Trusted Launch of what has none": (
        pool(instance_type="Standard_ND96asr_v4", security_type="TrustedLaunch"),
        "pools[0].security_type",
        "has no Trusted Launch",
    ),
    "a boot that is longer than a node lives alone": (pool(boot="3h"), "pools[0].boot", "raise that"),
    "a tag of ours": (change(["tags"], {"ironburst:lease": "x"}), "tags.ironburst:lease", "is ours"),
    "a hall that isn't there": (change([*LINK, "hall"], "hall-z"), "network.hall_link.hall", "not a declared hall"),
    "two lists of links": (
        lambda cloud: cloud["network"].update(hall_links=[cloud["network"]["hall_link"]]),
        "network.hall_links",
        "leave hall_link out",
    ),
    "a link of a network that is there": (
        network(existing={"subnet": SUBNET}),
        "network.hall_link",
        "used, never changed",
    ),
    "secrets without their vault": (change(["key_vault"], None), "", "write cloud.key_vault"),
    "secrets of another vault": (
        change(["key_vault"], azure_stack.VAULT.replace("lab-vault", "other")),
        "",
        "another vault than cloud.key_vault, other",
    ),
    "data that nobody copies": (change(["data"], {"a": {"path": "/data/a"}}), "data", "copied to no node"),
    "Karpenter's nodes": (
        change(["karpenter"], [{"name": "k", "instance_type": "x", "max_nodes": 1, "node_class": "c"}]),
        "karpenter",
        "launches in AWS here",
    ),
    "no price": (
        pool(instance_type="Standard_ND128isr_GB300_v6"),
        "price",
        "no price of Standard_ND128isr_GB300_v6 in eastus; write USD per hour",
    ),
    "a build of another architecture": (
        change(["images"], {"build_type": "Standard_D16ps_v5"}),
        "images.build_type",
        "boot on none",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_azure_would_refuse_is_said_first(declared, case):
    wrong(declared, *WRONG[case])


def test_a_hall_in_infinibands_own_network_is_refused_only_with_infiniband(declared):
    declared["halls"][0]["cidr"] = "172.16.0.0/16"
    found = [each for each in check(from_value(declared), NOW) if each.rule == "infiniband"]
    assert [each.path.partition("cluster.")[2] for each in found] == ["halls[0].cidr"]
    declared["cloud"]["pools"].pop(0)
    assert not [each for each in check(from_value(declared), NOW) if each.rule == "infiniband"]


def test_the_user_is_one_that_azure_makes(declared):
    for user, words in ((None, "isn't written"), ("admin", "is nobody"), ("root", "is nobody")):
        declared["ssh"]["cloud_user"] = user
        ((_, message),) = said(declared)
        assert words in message
    declared["ssh"]["cloud_user"] = None
    declared["software"] = declared.get("software", {}) | {"os": "ubuntu2404"}
    assert not [each for each in check(from_value(declared), NOW) if each.rule == "user"]


def test_more_nodes_than_a_fabric_has_are_a_doubt(declared):
    declared["cloud"]["pools"][0]["max_nodes"] = 101
    assert any(
        at == "pools[0].max_nodes" and "never has more together" in text for at, text in said(declared, "warning")
    )


# ---- networks


@pytest.mark.parametrize("cidr", ["10.90.0.0/16", "10.90.0.0/24", "10.90.0.0/26"])
def test_nodes_and_gateways_lie_apart_in_the_network(cidr):
    made = subnets.divide(cidr)
    nodes, gateways = ipaddress.ip_network(made.nodes), ipaddress.ip_network(made.gateways)
    whole = ipaddress.ip_network(cidr)
    assert nodes.subnet_of(whole) and gateways.subnet_of(whole) and not nodes.overlaps(gateways)
    assert gateways.prefixlen == 27 and subnets.usable(made.nodes) == nodes.num_addresses - 5


# ---- the catalogue and money


def test_rows_have_their_source_and_prices_their_day():
    for row in table("azure_sizes.csv").rows:
        assert row["source"] and bool(row["usd_on_demand"]) == bool(row["price_date"]) == bool(row["price_region"])
    assert len(sizes()) == 28


@pytest.mark.parametrize(
    ("name", "gpus", "model", "fabric", "usd", "region"),
    [
        ("Standard_ND96isr_H100_v5", 8, "H100 SXM5 80GB", ("infiniband", 8), 98.32, "eastus"),
        ("Standard_ND96isr_H200_v5", 8, "H200 SXM 141GB", ("infiniband", 8), 84.8, "eastus2"),
        ("Standard_ND40rs_v2", 8, "V100 SXM2 32GB", ("infiniband", 1), 22.032, "eastus"),
        ("Standard_ND128isr_GB300_v6", 4, "GB300", ("infiniband", 4), None, ""),
        ("Standard_NC24ads_A100_v4", 1, "A100 PCIe 80GB", ("none", 0), 3.673, "eastus"),
        ("Standard_NV6ads_A10_v5", 1, "A10", ("none", 0), 0.454, "eastus"),
    ],
)
def test_sizes(name, gpus, model, fabric, usd, region):
    kind = catalog.instance_type(name)
    assert (kind.gpu_count, kind.gpu_model, kind.fabric(), kind.list_region) == (gpus, model, fabric, region)
    listed = [catalog.price(name, market, region or "eastus") for market in ("on-demand", "spot")]
    assert [each and each.usd_per_hour for each in listed] == [usd, usd], "spot never costs more"
    assert catalog.price(name, "on-demand", "westeurope") is None


def test_a_part_of_a_gpu_is_one():
    assert catalog.instance_type("Standard_NV6ads_A10_v5").gpu_fraction == pytest.approx(1 / 6, abs=1e-4)


def test_memory_of_nd_is_the_less_of_what_the_pages_say():
    """They print 1,900 GB, and the autoscaler's table has 1,800 GiB."""
    assert catalog.instance_type("Standard_ND96amsr_A100_v4").memory_mib <= 1800 * 1024


def test_the_worst_case_is_arithmetic_by_the_catalogue(declared):
    declared["cloud"]["price"] = {}
    config = from_value(declared)
    h100, t4 = config.cloud.pools
    assert estimates.pool(config.cloud, h100).usd_per_hour == 2 * 98.32
    assert estimates.pool(config.cloud, t4).usd_per_hour == 2 * 4.352
    group, network = estimates.fixed(config)
    assert group.usd_per_hour == 4.352 and network.usd_per_hour == pytest.approx(0.045 + 0.21 + 2 * 0.005)
    declared["cloud"]["network"]["vpn_gateway"] = "VpnGw2AZ"
    _, network = estimates.fixed(from_value(declared))
    assert network.usd_per_hour is None and str(network).endswith("the catalogue has no price of VpnGw2AZ")
    declared["cloud"]["network"]["hall_link"] = None
    _, network = estimates.fixed(from_value(declared))
    assert network.usd_per_hour == pytest.approx(0.045 + 0.005) and "0.045 USD a GB through NAT" in str(network)


def test_a_ceiling_of_spot_is_the_worst_case(declared):
    config = from_value(declared)
    assert estimates.pool(config.cloud, config.cloud.pools[0]).usd_per_hour == 2 * 60.0
    assert prices.price(config.cloud, "Standard_ND96isr_H100_v5", "spot").usd_per_hour == 60.0


# ---- the document


def test_a_document_of_azure_names_its_subscription_and_comes_back(declared):
    config = from_value(declared)
    assert UNKNOWN["azure"] == AzurePlace.unknown()
    place = AzurePlace(vm_size="x", subnet_id=SUBNET, os_disk_type="Premium_LRS", os_disk_gb=1, ssh_public_key="k")
    zones = {each.name: [PoolZone(zone="eastus-1", place=place)] for each in config.cloud.pools}
    fixed = {"fixed-1": CloudInstance(id="ironburst-lab/fixed-1/6f2f1a52", address="10.90.0.4")}
    made = build(config, Observed(instances=fixed, pool_zones=zones))
    assert (made.cloud.provider, made.cloud.account, made.region) == ("azure", azure_stack.SUBSCRIPTION, "eastus")
    h100 = made.pool("h100")
    gallery = f"/subscriptions/{azure_stack.SUBSCRIPTION}/resourceGroups/ironburst-lab/providers/Microsoft.Compute"
    assert h100.image == f"{gallery}/galleries/ironburst_lab/images/h100"
    assert (h100.fabric, h100.fabric_links, h100.gpu.count) == ("infiniband", 8, 8)
    assert h100.usd_per_hour == {"spot": 60.0} and h100.spot_max_usd_per_hour == {"Standard_ND96isr_H100_v5": 60.0}
    again = parse(made.model_dump(mode="json"))
    assert again == made and isinstance(again.pool("h100").zones[0].place, AzurePlace)


def test_a_gallery_is_one_clusters():
    assert names.gallery("a-b") != names.gallery("ab") and re.fullmatch(r"\w+", names.gallery("a-b"))


def test_a_block_is_paid_before_and_ends_half_an_hour_sooner(declared):
    pool = declared["cloud"]["pools"][0]
    pool.pop("markets")
    pool |= {"capacity_block": BLOCK | {"account": "vision"}}
    assert said(declared) == []
    cloud = from_value(declared).cloud
    (bought, *_) = cloud.pools
    assert bought.markets == ["capacity-block"] and bought.bought and bought.of_account == "vision"
    assert bought.taken_back == datetime.fromisoformat(SOON) - timedelta(minutes=30)
    assert bought.reservation_group == RESERVATION and estimates.pool(cloud, bought).usd_per_hour == 0.0


# ---- the page, and roles


def test_the_example_of_the_page_is_valid(declared):
    page = (Path(__file__).parents[3] / "docs/how-to/azure.md").read_text()
    (example,) = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
    assert said(declared | yaml.safe_load(example)) == []


ACTION = r"Microsoft\.[A-Za-z]+(/[A-Za-z*]+)+"


def test_the_roles_name_actions_and_none_twice(declared):
    declared["cloud"]["ci"] = {"issuer": "gitlab.com", "preview": ["repo:org/name:pull_request"]}
    config = from_value(declared)
    made = up_role.roles(config, config.cloud)
    assert set(made) == {"up", "controller", "baker", "reaper", "preview"}
    for role in made.values():
        given = role["Actions"]
        assert given == sorted(set(given)) and all(re.fullmatch(ACTION, each) for each in given), given
        assert role["AssignableScopes"] == [f"/subscriptions/{azure_stack.SUBSCRIPTION}"]
    assert made["reaper"]["Actions"] == list(rights.REAPING)
    assert all(each.endswith("/read") for each in made["preview"]["Actions"])
    wide = {each for name in ("controller", "baker", "reaper") for each in made[name]["Actions"] if "*" in each}
    assert wide == set() and not any("roleAssignments/write" in each for each in made["controller"]["Actions"])


def test_up_may_do_what_the_declaration_needs_and_no_more(declared):
    def may(**changes):
        value = deepcopy(declared)
        value["cloud"].update(changes)
        return set(up_role.of_up(from_value(value).cloud))

    machines, gateways = "Microsoft.Compute/virtualMachines/write", "Microsoft.Network/virtualNetworkGateways/write"
    assert {machines, gateways} <= may() and machines not in may(groups=[])
    assert "Microsoft.Network/localNetworkGateways/write" in may()
    unlinked = declared["cloud"]["network"] | {"hall_link": None}
    assert gateways not in may(network=unlinked)
    there = may(network=unlinked | {"existing": {"subnet": SUBNET}})
    assert not any("virtualNetworks" in each and each.endswith(("write", "delete")) for each in there)
    assert "Microsoft.Logic/workflows/write" not in may(pools=[])


def test_secrets_that_nodes_read_are_named(declared):
    assert from_value(declared).node_secrets("azure-keyvault") == [("lab-vault", "munge-key")]
