"""Bad input: each one clear sentence, with the path in the file."""

import json
import re
from datetime import UTC, datetime
from pathlib import Path

import pytest

from ironburst.config import load, stack
from ironburst.config.checks import networks
from ironburst.config.checks.aws import network

ROOT = Path(__file__).parents[3]
LAB = ROOT / "stacks/Pulumi.lab.yaml"
NOW = datetime(2026, 11, 21, tzinfo=UTC)


def findings(value):
    try:
        return stack.valid(load.from_value(value), LAB, now=NOW).warnings
    except load.ConfigError as error:
        return error.findings


def put(value, path, given):
    """Set `path` (as in `halls[0].nodes[1].rack`) of a nested value."""
    *way, last = [int(part) if part.isdigit() else part for part in re.findall(r"[^.\[\]]+", path)]
    for part in way:
        value = value[part]
    value[last] = given


def test_the_lab_stack_is_valid(declared):
    assert findings(declared) == []
    assert {finding.rule for finding in findings(load.read_value(LAB))} == {"plain-http"}  # its BMCs are its own


def test_fixed_nodes_beside_a_small_budget_are_told(declared):
    """$20 a month for rented nodes, and a p5.48xlarge that always runs: legal, and hardly meant."""
    del declared["budget"]["total_usd_per_month"]
    declared["budget"]["usd_per_month"] = 20
    said = {finding.rule: finding for finding in findings(declared)}
    assert "20 is for rented nodes alone" in said["beside-the-month"].message
    assert "1 x p5.48xlarge, 40,179" in said["beside-the-month"].message
    declared["budget"]["total_usd_per_month"] = 50_000
    assert {finding.rule for finding in findings(declared)} == {"too-little"}  # for an hour of the pool's


# case: (path of the bad value, the bad value, words of the finding at this path)
BAD_HERE = {
    "misspelt key": ("cloud.pools[0].max_node", 3, "did you mean 'max_nodes'"),
    "unknown key": ("halls[0].flavour", "x", "there is no such key"),
    "unknown instance type": ("cloud.pools[0].instance_type", "p5.48xlarg", "p5.48xlarge"),
    "no GPU in the type": ("cloud.groups[0].instance_type", "inf1.xlarge", "no NVIDIA GPU"),
    "unknown platform": ("halls[0].nodes[1].platform", "dgx-h10", "dgx-h100"),
    "GPU node without platform": ("halls[0].nodes[1].platform", None, "is needed for GPU nodes"),
    "duplicate rack unit": ("halls[0].nodes[1].units", [1, 8], "both take unit 8"),
    "above the rack": ("halls[0].nodes[1].units", [1, 36], "reach unit 43"),
    "unknown rack": ("halls[0].nodes[1].rack", "r02", "not a rack of hall-a"),
    "overlapping CIDR": ("halls[0].bmc_cidr", "10.78.4.0/24", "overlaps 10.78.0.0/21"),
    "too small CIDR": ("cloud.network.cidr", "10.90.0.0/28", "too small"),
    "not a CIDR": ("cloud.network.cidr", "10.90.0.1/16", "is not an IPv4 network"),
    "range that doesn't expand": ("halls[0].nodes[1].names", "dgx[02-01]", "runs backwards"),
    "range without an end": ("halls[0].nodes[1].names", "dgx[01-", "unmatched bracket"),
    "too few units": ("halls[0].nodes[1].units", [1], "1 values for 2 nodes"),
    "budget of zero": ("budget.usd_per_month", 0, "greater than 0"),
    "budget below zero": ("budget.usd_per_month", -5, "greater than 0"),
    "no budget": ("budget", None, "where there are burst pools"),
    "fitted limits without a wait target": ("burst", {"hours_per_gpu_hour": 0.08}, "without the wait_target"),
    "a wait limit beside a wait target": ("burst", {"wait_limit": "2h", "wait_target": "20m"}, "leave one out"),
    "an empty type": ("cloud.pools[0].instance_type", "", "'' is empty; write a value"),
    "a maker's name for a board": ("halls[0].nodes[1].platform", "hgx-h100", "or 'generic-hgx-h100-8-gpu'?"),
    "less than the fixed nodes cost": ("budget.total_usd_per_month", 20, "costs at worst, 40,289 a month (fixed group"),
    "a day with more than its month": ("budget.usd_per_day", 3000, "more than usd_per_month, 2000"),
    "not a secret reference": ("halls[0].nodes[0].bmc.password", "hunter2", "not a secret reference"),
    "duration without unit": ("cloud.pools[0].idle", "15", "not a duration"),
    "unknown head": ("scheduler.head", "dgx01", "not a node with role head"),
    "zone of another region": ("cloud.network.zones[0]", "eu-west-1a", "not a zone of us-east-1"),
    "zone not declared": ("cloud.groups[0].zone", "us-east-1c", "not in cloud.network.zones"),
    "capacity without a time zone": ("cloud.pools[0].capacity_ends", "2026-12-01T00:00:00", "no time zone"),
    "capacity that is over": ("cloud.pools[0].capacity_ends", "2026-11-01T00:00:00Z", "capacity ended at"),
    "the block's market without a block": (
        "cloud.pools[0].markets",
        ["capacity-block"],
        "names capacity-block without a block",
    ),
    "reservations that are no resource group": (
        "cloud.pools[0].capacity_reservation_group",
        "arn:aws:ec2:us-east-1:123456789012:capacity-reservation/cr-01",
        "isn't of the form",
    ),
    "a resource group of another region": (
        "cloud.pools[0].capacity_reservation_group",
        "arn:aws:resource-groups:us-west-2:123456789012:group/training",
        "is a group of us-west-2, and the nodes run in us-east-1",
    ),
    "unknown hall in the link": ("cloud.network.hall_link.hall", "hall-b", "not a declared hall"),
    "link without peer": ("cloud.network.hall_link.peer_asn", None, "needed for a vpn link"),
    "munge key that rented nodes can't read": ("scheduler.munge_key", "env:MUNGE_KEY", "aws-secretsmanager:"),
    "unknown operating system": ("software.os", "debian11", "isn't known here"),
    "GPU with two MIG layouts": (
        "halls[0].nodes[1].mig",
        [{"gpus": [0, 1], "profiles": {"1g.10gb": 7}}, {"gpus": [1], "profiles": {"7g.80gb": 1}}],
        "two layouts",
    ),
    "MIG of all GPUs and of some": (
        "halls[0].nodes[1].mig",
        [{"profiles": {"1g.10gb": 7}}, {"gpus": [1], "profiles": {"7g.80gb": 1}}],
        "two layouts",
    ),
    "subnet manager that isn't there": ("halls[0].subnet_managers", ["hed"], "not a node of hall-a"),
    "three subnet managers": ("halls[0].subnet_managers", ["head", "dgx01", "dgx02"], "3 hosts"),
    "a subnet manager twice": ("halls[0].subnet_managers", ["head", "head"], "twice"),
    "BMC certificates, one a node": ("halls[0].nodes[0].bmc.sha256", ["a" * 64] * 2, "gives 2 values for 1 nodes"),
}
# case: (path of the bad value, the bad value, path of the finding, its words)
BAD_ELSEWHERE = {
    "BMC certificate over http": (
        "halls[0].nodes[0].bmc",
        {"addresses": "http://10.78.8.10", "username": "a", "password": "env:A", "sha256": ["a" * 64]},
        "halls[0].nodes[0].bmc.sha256",
        "needs addresses with https://",
    ),
    "duplicate node name": ("halls[0].nodes[0].names", "dgx01", "halls[0].nodes[1].names[0]", "used already"),
    "pool that takes a node's name": ("halls[0].nodes[0].names", "p5-2", "cloud.pools[0].name", "used already"),
    "duplicate MAC": (
        "halls[0].nodes[1].macs",
        ["52:54:00:4E:00:0A", "52:54:00:4e:00:0c"],
        "halls[0].nodes[1].macs[0]",
        "used already",
    ),
    "BMC certificate that isn't one": (
        "halls[0].nodes[0].bmc.sha256",
        ["ab:cd"],
        "halls[0].nodes[0].bmc.sha256[0]",
        "is not the SHA-256 of a certificate",
    ),
    "duplicate BMC": (
        "halls[0].nodes[1].bmc.addresses",
        "https://10.78.8.[10-11]",
        "halls[0].nodes[1].bmc.addresses[0]",
        "used already",
    ),
    "duplicate address": (
        "halls[0].nodes[1].addresses",
        "10.78.0.[10-11]",
        "halls[0].nodes[1].addresses[0]",
        "used already",
    ),
    "address outside": (
        "halls[0].nodes[0].addresses",
        "10.99.0.1",
        "halls[0].nodes[0].addresses[0]",
        "not in 10.78.0.0/21",
    ),
    "a wait target without a unit": (
        "burst",
        {"wait_target": 0.3},
        "burst.wait_target.mean",
        "0.3 is not a duration",
    ),
    "fitted limits of nothing": (
        "burst",
        {"wait_target": "20m", "hours_per_gpu_hour": 0},
        "burst.hours_per_gpu_hour",
        "0.001",
    ),
    "a wait target of nothing": ("burst", {"wait_target": "0m"}, "burst.wait_target.mean", "above zero"),
    "a wait target without a mean": (
        "burst",
        {"wait_target": {"p99": "8h"}},
        "burst.wait_target.mean",
        "is needed here",
    ),
    "a wait target with a key too many": (
        "burst",
        {"wait_target": {"mean": "1h", "p95": "8h"}},
        "burst.wait_target.p95",
        "did you mean 'p99'",
    ),
    "waits in the wrong order": (
        "burst",
        {"wait_target": {"mean": "20m", "p99": "9h", "p999": "90m"}},
        "burst.wait_target",
        "has p99 9h, longer than p999, 90m: lower p99 or raise p999",
    ),
    "spot for no node": ("burst", {"spot_max_nodes": 0}, "burst.spot_max_nodes", "greater than 0"),
    "an account with more than the month": (
        "budget.accounts",
        {"vision": 3000},
        "budget.accounts.vision",
        "lower it or leave it out",
    ),
    "an account without money": ("budget.accounts", {"vision": 0}, "budget.accounts.vision", "greater than 0"),
    "an account that Slurm can't have": (
        "budget.accounts",
        {"Vision": 9},
        "budget.accounts.Vision",
        "'Vision' is not a Slurm account",
    ),
    "reservation and placement group": (
        "cloud.groups[0].capacity_reservation",
        "cr-0123",
        "cloud.groups[0].placement_group",
        "leave one out",
    ),
    "block and placement group": (
        "cloud.groups[0].capacity_block",
        {"id": "cr-01", "ends": "2026-12-01T00:00:00Z"},
        "cloud.groups[0].placement_group",
        "AWS places",
    ),
    "block that is over": (
        "cloud.groups[0].capacity_block",
        {"id": "cr-01", "ends": "2026-11-01T00:00:00Z"},
        "cloud.groups[0].capacity_block.ends",
        "taken it back",
    ),
    "fixed nodes in a block to come": (
        "cloud.groups[0].capacity_block",
        {"id": "cr-01", "starts": "2026-11-30T00:00:00Z", "ends": "2026-12-01T00:00:00Z"},
        "cloud.groups[0].capacity_block.starts",
        "EC2 starts no fixed node before",
    ),
    "a pool's block and other markets": (
        "cloud.pools[0].capacity_block",
        {"id": "cr-01", "ends": "2026-12-01T00:00:00Z"},
        "cloud.pools[0].markets",
        "the market capacity-block alone",
    ),
    "a pool's block in two zones": (
        "cloud.pools[0].capacity_block",
        {"id": "cr-01", "ends": "2026-12-01T00:00:00Z"},
        "cloud.pools[0].zones",
        "lies in one",
    ),
    "a pool's reservation in two zones": (
        "cloud.pools[0].capacity_reservation",
        "cr-01",
        "cloud.pools[0].zones",
        "a reservation lies in one",
    ),
    "a pool's block that is over": (
        "cloud.pools[0].capacity_block",
        {"id": "cr-01", "ends": "2026-11-01T00:00:00Z"},
        "cloud.pools[0].capacity_block.ends",
        "taken it back",
    ),
    "a block that begins after its end": (
        "cloud.pools[0].capacity_block",
        {"id": "cr-01", "starts": "2026-12-02T00:00:00Z", "ends": "2026-12-01T00:00:00Z"},
        "cloud.pools[0].capacity_block.starts",
        "not before the block's end",
    ),
    "a block's start without a time zone": (
        "cloud.pools[0].capacity_block",
        {"id": "cr-01", "starts": "2026-11-30T00:00:00", "ends": "2026-12-01T00:00:00Z"},
        "cloud.pools[0].capacity_block.starts",
        "no time zone",
    ),
    "a block of an account that Slurm can't have": (
        "cloud.pools[0].capacity_block",
        {"id": "cr-01", "ends": "2026-12-01T00:00:00Z", "account": "Vision"},
        "cloud.pools[0].capacity_block.account",
        "'Vision' is not a Slurm account",
    ),
    "spot in a group of reservations": (
        "cloud.pools[0].capacity_reservation_group",
        "arn:aws:resource-groups:us-east-1:123456789012:group/training",
        "cloud.pools[0].markets",
        "no spot instance",
    ),
    "spot in a reservation": (
        "cloud.pools[0].capacity_reservation",
        "cr-0123",
        "cloud.pools[0].markets",
        "no spot instance",
    ),
    "link of an existing network": (
        "cloud.network.existing",
        {"vpc_id": "vpc-1", "subnets": {"us-east-1a": "subnet-a", "us-east-1b": "subnet-b"}},
        "cloud.network.hall_link",
        "never changed",
    ),
    "unknown profile": ("software", {"profile": "training-2025"}, "software.profile", "did you mean 'training-2026'"),
    "unknown container runtime": (
        "software.container_runtime",
        ["podman"],
        "software.container_runtime[0]",
        "isn't known here",
    ),
    "neither driver nor profile": ("software.driver", None, "software", "(LCK-004)"),
    "open module on a Volta": (
        "halls[0].nodes[1].platform",
        "generic-pcie-server-4-gpu-v100-pcie-32gb",
        "software",
        "(DRV-003)",
    ),
    "MIG profile of another model": ("halls[0].nodes[1].mig", [{"profiles": {"1g.5gb": 7}}], "software", "(MIG-003)"),
    "MIG of a GPU that isn't there": (
        "halls[0].nodes[1].mig",
        [{"gpus": [8], "profiles": {"1g.10gb": 7}}],
        "software",
        "GPU 8 on a node",
    ),
    "scratch at a relative path": (
        "halls[0].nodes[1].scratch",
        {"path": "scratch"},
        "halls[0].nodes[1].scratch.path",
        "isn't of the form",
    ),
    "unknown file system": ("filesystem", {"kind": "gpfs", "source": "x"}, "filesystem.kind", "isn't known here"),
    "CUDA too new for the driver": ("software.driver", "535.104.05", "software", "CUDA"),
}
BAD = {name: (path, given, path, words) for name, (path, given, words) in BAD_HERE.items()} | BAD_ELSEWHERE


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_one_sentence_with_its_path(declared, name):
    where, given, path, words = BAD[name]
    put(declared, where, given)
    hits = [f for f in findings(declared) if f.path == f"config.ironburst:cluster.{path}" and words in f.message]
    assert hits, [str(f) for f in findings(declared)]
    assert "\n" not in hits[0].message and len(hits[0].message) < 250


BLOCK = {"id": "cr-01", "ends": "2026-12-01T00:00:00Z"}
GROUP = "arn:aws:resource-groups:us-east-1:123456789012:group/training"


@pytest.fixture
def pool(declared):
    """The lab's pool, in one zone and without its markets."""
    pool = declared["cloud"]["pools"][0]
    del pool["markets"], pool["zones"][1:]
    return pool


def test_a_block_is_its_pools_market_written_or_not(declared, pool):
    pool["capacity_block"] = BLOCK
    assert findings(declared) == [] and load.from_value(declared).cloud.pools[0].markets == ["capacity-block"]
    pool["markets"] = ["capacity-block"]
    assert findings(declared) == []


@pytest.mark.parametrize(
    ("more", "key", "words"),
    [
        ({"capacity_reservation": "cr-02"}, "capacity_reservation", "stands beside capacity_block"),
        ({"capacity_reservation_group": GROUP}, "capacity_reservation_group", "stands beside capacity_block"),
        ({"placement_group": True}, "placement_group", "AWS places a block's instances itself"),
        ({"capacity_ends": "2026-12-01T00:00:00Z"}, "capacity_ends", "whose own end counts"),
    ],
)
def test_what_a_block_takes_beside_it(declared, pool, more, key, words):
    pool |= {"capacity_block": BLOCK} | more
    found = [f for f in findings(declared) if f.path.endswith(f"pools[0].{key}")]
    assert [words in f.message for f in found] == [True]


def test_what_is_bought_is_one_pools_or_one_groups(declared, pool):
    fixed = declared["cloud"]["groups"][0]
    fixed["placement_group"] = False
    for key, of_group, of_pool in (
        ("capacity_reservation", "cr-01", "cr-01"),
        ("capacity_reservation_group", GROUP, GROUP),
        ("capacity_block", BLOCK, BLOCK),
    ):
        fixed[key], pool[key] = of_group, of_pool
        (found,) = findings(declared)
        assert found.rule == "duplicate" and "is used already at" in found.message, found
        del fixed[key], pool[key]
    fixed["capacity_block"], pool["capacity_reservation"] = BLOCK, "cr-01"
    assert [f.rule for f in findings(declared)] == ["duplicate"]


def test_a_pool_is_not_called_as_the_partition_of_jobs_that_are_larger_than_home(declared, pool):
    pool["name"] = "any"
    (found,) = [each for each in findings(declared) if each.rule == "duplicate"]
    assert "partition 'burst-any' is used already at the jobs that are larger than home" in found.message


def of_types(declared, *types, **more):
    pool = declared["cloud"]["pools"][0]
    del pool["instance_type"]
    pool |= {"instance_types": list(types)} | more
    declared["burst"]["untyped_jobs_may_use"] = []  # that they are less than home's isn't what this is about
    here = "config.ironburst:cluster.cloud.pools[0]"  # the lab's lock doesn't fit other types
    said = [(f.path, f.message) for f in findings(declared) if f.path.startswith(here)]
    return [(path.removeprefix(here), message) for path, message in said if "price" not in message]


def test_interchangeable_types_are_valid(declared):
    assert of_types(declared, "g6e.12xlarge", "g6e.24xlarge", prefer="order") == []


@pytest.mark.parametrize(
    ("types", "path", "words"),
    [
        (
            ["g6e.12xlarge", "g6e.48xlarge"],
            ".instance_types[1]",
            "g6e.48xlarge has 8 x L40S with EFA, and g6e.12xlarge",
        ),
        (["g6e.12xlarge", "g6.12xlarge"], ".instance_types[1]", "g6.12xlarge has 4 x L4 with EFA"),
        (["g6.xlarge", "g6.8xlarge"], ".instance_types[1]", "g6.8xlarge has 1 x L4 with EFA, and g6.xlarge"),
        (
            ["g6.4xlarge", "g6f.4xlarge"],
            ".instance_types[1]",
            "has 1 x 0.5 of L4 with no fabric between nodes",
        ),
        (["g6e.12xlarge", "g6e.12xlarg"], ".instance_types[1]", "g6e.12xlarge"),
        (["g6e.12xlarge", "inf1.xlarge"], ".instance_types[1]", "no NVIDIA GPU"),
        (["g6e.12xlarge", "g6e.12xlarge"], ".instance_types[1]", "names g6e.12xlarge twice"),
        ([], "", "has neither instance_type nor instance_types: write one of them"),
    ],
)
def test_types_that_are_not_interchangeable_are_one_sentence(declared, types, path, words):
    ((where, message),) = of_types(declared, *types)
    assert where == path and words in message and len(message) < 250


def test_one_type_and_several_are_not_written_both(declared):
    ((where, message),) = of_types(declared, "p5.48xlarge", instance_type="p5.48xlarge")
    assert where == "" and message.startswith("has both instance_type and instance_types: write one of them")


@pytest.mark.parametrize(
    ("bought", "markets", "what"),
    [
        ({"capacity_reservation": "cr-0123"}, ["on-demand"], "reservation"),
        ({"capacity_block": BLOCK}, ["capacity-block"], "block"),
    ],
)
def test_what_is_bought_is_of_one_type(declared, bought, markets, what):
    more = bought | {"markets": markets, "zones": ["us-east-1a"]}
    ((where, message),) = of_types(declared, "g6e.12xlarge", "g6e.24xlarge", **more)
    assert where == f".{next(iter(bought))}" and f"a {what} is of one" in message


def test_each_type_needs_a_price(declared):
    of_types(declared, "p5en.48xlarge", "p5e.48xlarge", markets=["on-demand"])
    (said,) = [f for f in findings(declared) if f.rule == "no-price"]
    assert said.path.endswith("cloud.price") and "no price of p5e.48xlarge" in said.message


def test_a_zone_that_the_catalogue_lacks_is_a_warning_for_letters_are_the_accounts(declared):
    put(declared, "cloud.pools[0].instance_type", "p4de.24xlarge")  # b and c alone
    found = [(f.path.split(".")[-1], f.severity) for f in network.zones(load.from_value(declared))]
    assert found == [("zones[0]", "warning")]


def test_a_group_whose_nodes_do_not_know_each_other_by_slurms_names_is_a_warning(declared):
    group = declared["cloud"]["groups"][0]
    declared.pop("names", None)
    group["count"] = 2
    (finding,) = [found for found in findings(declared) if found.rule == "names"]
    assert finding.severity == "warning" and "write names: hosts" in finding.message
    for names, count in (("hosts", 2), ("dns", 2), (None, 1)):
        declared["names"], group["count"] = names, count
        assert not [found for found in findings(declared) if found.rule == "names"]


def test_opensm_beside_jobs_is_a_warning(declared):
    declared["halls"][0]["subnet_managers"] = ["head", "dgx01"]
    assert [(f.rule, f.severity) for f in findings(declared)] == [("NET-005", "warning")]


BMC = "config.ironburst:cluster.halls[0].nodes[0].bmc"


def test_a_bmc_whose_certificate_nobody_checks_is_a_warning(declared):
    put(declared, "halls[0].nodes[0].bmc.verify_tls", False)
    (found,) = findings(declared)
    assert (found.path, found.severity) == (f"{BMC}.verify_tls", "warning") and "give sha256" in found.message


def test_a_certificate_is_checked_in_one_way(declared):
    declared["halls"][0]["nodes"][0]["bmc"] |= {"verify_tls": False, "ca_file": "/etc/bmc.pem"}
    (found,) = findings(declared)
    assert (found.path, found.severity) == (BMC, "error") and "ca_file and verify_tls: no" in found.message


def test_a_network_without_room_for_the_pools_is_refused(declared):
    declared["cloud"]["network"]["cidr"] = "10.90.0.0/24"
    declared["cloud"]["pools"][0]["max_nodes"] = 100
    assert any(f.rule == "too-small" and "need 101" in f.message for f in findings(declared))


def test_every_finding_is_told_not_only_the_first(declared):
    put(declared, "scheduler.head", "nobody")
    put(declared, "halls[0].nodes[1].units", [1, 8])
    assert {"unknown-node", "duplicate"} <= {f.rule for f in findings(declared)}


def test_a_secret_written_in_clear_is_never_repeated(declared):
    put(declared, "halls[0].nodes[0].bmc.password", "hunter2")
    assert not any("hunter2" in json.dumps(f.as_json()) for f in findings(declared))


@pytest.mark.parametrize(
    "value", [None, 3, "text", [], {}, {"name": None}, {"halls": {"a": 1}}, {"halls": [None]}, {"cloud": 7}]
)
def test_any_value_gives_findings_and_never_a_crash(value):
    assert all(f.path.startswith("config.ironburst:cluster") for f in findings(value))
    assert findings(value)


SECOND_HALL = {"name": "hall-b", "cidr": "10.79.0.0/21", "bmc_cidr": "10.79.8.0/24"}
VPN = {"kind": "vpn", "hall": "hall-a", "peer_address": "203.0.113.10", "peer_asn": 65010}
DIRECT = {"kind": "direct-connect", "hall": "hall-a", "gateway_id": "0a1b2c3d-4e5f-6789-abcd-ef0123456789"}
TRANSIT = {"kind": "transit-gateway", "hall": "hall-a", "gateway_id": "tgw-0123456789abcdef0"}
IN_B = {"hall": "hall-b"}


def of_links(declared, *links):
    """What is said of these links of two halls."""
    bay = {"names": "bay01", "platform": "generic-hgx-h100-8-gpu", "rack": "r01", "units": [1], "infiniband_links": 8}
    bay |= {"height": 8, "addresses": "10.79.0.11"}
    bay |= {"bmc": {"addresses": "https://10.79.8.11", "username": "a", "password": "env:TEST"}}
    declared["halls"].append(SECOND_HALL | {"racks": [{"name": "r01"}], "nodes": [bay]})
    declared["cloud"]["network"] |= {"hall_link": None, "hall_links": list(links)}
    return [
        (each.path.partition("cloud.network.")[2], each.message)
        for check in (network.hall_links, networks.head_linked)
        for each in check(load.from_value(declared))
    ]


@pytest.mark.parametrize(
    "links",
    [
        [VPN, VPN | IN_B | {"peer_address": "203.0.113.20"}],
        [DIRECT, DIRECT | IN_B],
        [TRANSIT, TRANSIT | IN_B],
        [DIRECT, VPN],
        [VPN, TRANSIT | IN_B],
    ],
)
def test_links_that_fit_together(declared, links):
    assert of_links(declared, *links) == []


@pytest.mark.parametrize(
    ("links", "path", "words"),
    [
        ([VPN | IN_B], "hall_links", "hall-a with head has no link, so no cloud node joins"),
        ([VPN, VPN], "hall_links[1].hall", "linked already (vpn)"),
        ([TRANSIT, VPN], "hall_links[1].hall", "linked already (transit-gateway)"),
        ([DIRECT, VPN, TRANSIT], "hall_links[2].hall", "linked already (direct-connect, vpn)"),
        ([VPN, VPN | IN_B], "hall_links[1].peer_address", "is the device of hall-a"),
        (
            [DIRECT, DIRECT | IN_B | {"gateway_id": "00000000-4e5f-6789-abcd-ef0123456789"}],
            "hall_links[1].gateway_id",
            "one Direct Connect gateway",
        ),
        ([TRANSIT | {"gateway_id": None}], "hall_links[0].gateway_id", "is needed for a transit-gateway link"),
        ([TRANSIT | {"gateway_id": DIRECT["gateway_id"]}], "hall_links[0].gateway_id", "write tgw- and its digits"),
        ([DIRECT | {"gateway_id": TRANSIT["gateway_id"]}], "hall_links[0].gateway_id", "gateway's UUID"),
        ([VPN | {"gateway_id": TRANSIT["gateway_id"]}], "hall_links[0].gateway_id", "belongs to a direct-connect or"),
        ([VPN | {"hall": "hall-c"}, VPN], "hall_links[0].hall", "'hall-c' is not a declared hall"),
    ],
)
def test_links_that_do_not(declared, links, path, words):
    assert [(at, words in message) for at, message in of_links(declared, *links)][:1] == [(path, True)]


def test_one_link_and_a_list_of_links_are_one_too_many(declared):
    declared["cloud"]["network"]["hall_links"] = [VPN]
    (finding,) = network.hall_links(load.from_value(declared))
    assert finding.path.endswith("network.hall_links") and "leave hall_link out" in finding.message


def test_cloud_nodes_without_any_link_are_told(declared):
    declared["cloud"]["network"]["hall_link"] = None
    (finding,) = networks.head_linked(load.from_value(declared))
    assert finding.severity == "warning" and "none joins" in finding.message


def test_a_direct_connect_gateway_has_no_prefix(declared):
    declared["cloud"]["network"]["hall_link"] = DIRECT | {"gateway_id": "dxgw-" + DIRECT["gateway_id"]}
    with pytest.raises(load.ConfigError, match="gateway_id"):
        load.from_value(declared)
