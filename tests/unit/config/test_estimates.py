"""What the network costs: counted where it is declared, unknown where no price is known, never zero."""

from datetime import date, timedelta
from pathlib import Path

import pytest

from ironburst import catalog
from ironburst.config import estimates, load, prices
from ironburst.config.aws.estimates import network as network_of_aws
from ironburst.config.aws.models import AwsCloud
from ironburst.document import of_stack

STACKS = sorted((Path(__file__).parents[3] / "stacks").glob("Pulumi.*.yaml"))
ZONES = ["us-east-1a", "us-east-1b"]
VPN = {"kind": "vpn", "hall": "hall-a", "peer_address": "203.0.113.10", "peer_asn": 65010}
DIRECT = {"kind": "direct-connect", "hall": "hall-a", "gateway_id": "0a1b2c3d-4e5f-6789-abcd-ef0123456789"}

TRANSIT = {"kind": "transit-gateway", "hall": "hall-a", "gateway_id": "tgw-0123456789abcdef0"}


def network(region="us-east-1", zones=ZONES, **changes):
    pool = {"name": "p5", "instance_type": "p5.48xlarge", "max_nodes": 3, "zones": zones}
    declared = {"cidr": "10.90.0.0/16", "zones": ZONES, **changes}
    return network_of_aws(AwsCloud.model_validate({"region": region, "network": declared, "pools": [pool]}))


@pytest.mark.parametrize(
    ("changes", "usd", "what", "beside"),
    [
        ({}, 2 * 0.05, "2 NAT gateways", "0.045 USD a GB through NAT, 0.01 USD a GB between zones, each way"),
        ({"zones": ZONES[:1]}, 0.05, "1 NAT gateway", "0.045 USD a GB through NAT"),
        (
            {"egress": "endpoints", "zones": ZONES[:1]},
            0.01,
            "1 interface endpoint",
            "0.01 USD a GB through an endpoint",
        ),
        (
            {"zones": ZONES[:1], "hall_link": VPN},
            0.05 + 0.05,
            "1 NAT gateway, 1 VPN connection",
            "0.045 USD a GB through NAT, 0.09 USD a GB to hall-a",
        ),
        (
            {"zones": ZONES[:1], "hall_link": VPN | {"gb_per_month": 7300}},
            0.05 + 0.05 + 10 * 0.09,
            "1 NAT gateway, 1 VPN connection, 7,300 GB a month to hall-a",
            "0.045 USD a GB through NAT",
        ),
        (
            {"zones": ZONES[:1], "hall_links": [VPN, VPN | {"hall": "hall-b"}]},
            0.05 + 2 * 0.05,
            "1 NAT gateway, 2 VPN connections",
            "0.045 USD a GB through NAT, 0.09 USD a GB to hall-a, 0.09 USD a GB to hall-b",
        ),
        (
            {"zones": ZONES[:1], "hall_links": [TRANSIT, TRANSIT | {"hall": "hall-b", "gb_per_month": 7300}]},
            0.05 + 0.05 + 10 * 0.02,
            "1 NAT gateway, 1 transit gateway attachment, 7,300 GB a month to hall-b",
            "0.045 USD a GB through NAT, 0.02 USD a GB to hall-a",
        ),
        (
            {"zones": ZONES[:1], "hall_link": DIRECT | {"gb_per_month": 7300}},
            0.05 + 10 * 0.02,
            "1 NAT gateway, 7,300 GB a month to hall-a",
            "0.045 USD a GB through NAT",
        ),
    ],
)
def test_what_is_counted_and_what_a_gb_costs_beside(changes, usd, what, beside):
    estimate = network(**changes)
    assert estimate.usd_per_hour == pytest.approx(usd)
    assert (estimate.what, estimate.beside) == (f"network, {what}", f"beside that {beside}")


def test_an_unknown_regions_network_has_no_estimate():
    estimate = network(region="eu-west-1", hall_link=VPN)
    assert estimate.usd_per_hour is None
    assert str(estimate).endswith("price unknown, so no estimate; the catalogue has no network prices of eu-west-1")


def test_no_data_to_the_hall_is_a_declaration_too():
    estimate = network(zones=ZONES[:1], hall_link=VPN | {"gb_per_month": 0})
    assert "hall-a" not in str(estimate)


@pytest.mark.parametrize("path", STACKS, ids=lambda path: path.name)
def test_a_pool_s_prices_have_one_date_wherever_it_is_said(path):
    """The preview prints the estimate's, `simulate`, `size`, `status` and the page the document's."""
    config, published = load.load(path), of_stack.document(path)
    said = {
        each.name: str(day) if (day := estimates.pool(config.cloud_of(each), each).as_of) else None
        for each in config.pools
    }
    assert said == {pool.name: pool.price_as_of for pool in published.pools}


SPOT = {"markets": ["spot"]}


@pytest.mark.parametrize(
    ("price", "pool", "group", "names"),
    [
        ({}, {}, None, "p5.48xlarge"),
        ({}, {}, "g6e.48xlarge", "g6e.48xlarge, p5.48xlarge"),
        ({"p5.48xlarge": {"on_demand": 50}}, {}, "g6e.48xlarge", "g6e.48xlarge"),
        ({"p5.48xlarge": {"on_demand": 50}}, {}, None, None),
        ({}, SPOT, None, "p5.48xlarge"),  # it bounds spot
        ({"p5.48xlarge": {"spot_max": 30}}, SPOT, None, None),
        ({"p5.48xlarge": {"spot": 20}}, SPOT, None, "p5.48xlarge"),
    ],
)
def test_prices_that_are_too_old_are_one_sentence(price, pool, group, names):
    pools = [{"name": "p5", "instance_type": "p5.48xlarge", "max_nodes": 3, "zones": ZONES, **pool}]
    fixed = {"name": "g", "count": 1, "zone": ZONES[0], "image": "ami-0123456789abcdef0"}
    groups = [{**fixed, "instance_type": group}] if group else []
    network = {"cidr": "10.90.0.0/16", "zones": ZONES}
    value = {"region": "us-east-1", "network": network, "pools": pools, "groups": groups, "price": price}
    cloud = AwsCloud.model_validate(value)
    said = prices.aged(cloud, date(2027, 1, 1))
    assert (f"days old ({names})" in said) if names else not said
    of = catalog.instance_type("p5.48xlarge").prices_as_of
    assert prices.aged(cloud, of + timedelta(days=30)) == ""
