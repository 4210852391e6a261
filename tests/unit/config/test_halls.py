"""The hall in a stack file: what it becomes, where its findings point, what is left alone."""

from pathlib import Path

import pytest

from ironburst import catalog
from ironburst.config import halls, load
from ironburst.config.checks import CHECKS
from ironburst.hall import capacity
from ironburst.nodes import ranges
from tests.unit.config.test_checks import findings, put

EXAMPLE = Path(__file__).parents[3] / "docs/how-to/sysadmin/hall.yaml"
STAGING = EXAMPLE.parents[3] / "stacks/Pulumi.staging.yaml"
HALL = "config.ironburst:cluster.halls[0]"


@pytest.fixture
def example():
    return load.read_value(EXAMPLE)


def said(value):
    config = load.from_value(value)
    return [each for check in CHECKS for each in check(config)]


def of(value, rule):
    return [(each.path.removeprefix(HALL), each.severity) for each in said(value) if each.rule == rule]


def test_the_example_is_a_whole_hall(example):
    assert {each.rule for each in said(example)} == {"HW-003"}  # a DGX H100 on three supplies
    (hall,) = halls.declared(load.from_value(example))
    assert len(hall.devices) == 20 and len(hall.cables) == 8 * 8 + 64 + 8 + 2 and len(hall.circuits) == 10
    dgx = hall.device["dgx01"]
    assert (dgx.power_w, dgx.heat_btu_h, dgx.weight_kg, dgx.psus, dgx.psus_needed) == (10200, 38557, 130.45, 6, 4)
    assert (dgx.height, dgx.depth_mm, dgx.cooling, dgx.gpus, dgx.gpu_w) == (8, 897, "air", 8, 700)


def test_a_hall_without_any_of_it_is_as_before(declared):
    assert findings(declared) == []
    assert "circuits" not in declared["halls"][0]


def test_what_the_catalogue_does_not_say_stays_unknown(example):
    put(example, "halls[0].nodes[1].platform", "generic-hgx-h100-8-gpu")
    put(example, "halls[0].nodes[1].height", 8)
    (found,) = [each for each in said(example) if each.rule == "HAL-001"]
    assert found.path == f"{HALL}.nodes[1]" and "max_weight_kg" not in found.message
    assert "power_w and psus and weight_kg" in found.message and "generic-hgx-h100-8-gpu" in found.message
    figures = {"power_w": 10000, "weight_kg": 120, "psus": 6, "psu_w": 4000, "psus_needed": 3}
    put(example, "halls[0].nodes[1].chassis", figures)
    assert of(example, "HAL-001") == []


def test_an_inlet_limit_that_nobody_knows_is_told_once_for_all_of_a_kind(example):
    put(example, "halls[0].nodes[1].platform", "generic-hgx-h100-8-gpu")
    assert of(example, "HW-006") == [(".nodes[1]", "warning")]
    put(example, "halls[0].nodes[1].chassis", {"inlet_max_c": 35})
    assert of(example, "HW-006") == []
    put(example, "halls[0].nodes[1].chassis", {"inlet_max_c": 23})
    assert (".nodes[1]", "error") in of(example, "HW-006")


@pytest.mark.parametrize("port", ["eth1/swp31s1", "eth1/31/1", "eth1/31:1", "eth1/Ethernet1/31/1"])
def test_a_part_of_a_split_port_is_named_as_one_likes(example, port):
    switch = next(each for each in example["halls"][0]["switches"] if each["kind"] == "ethernet")
    names = switch["names"]
    name = port.replace("eth1", ranges.expand(names)[0] if isinstance(names, str) else names[0])
    more = {"ends": ["dgx01/eth77", name], "type": "dac", "speed": "400GbE", "length_m": 3}
    example["halls"][0]["cables"].append(more)
    (hall,) = halls.declared(load.from_value(example))
    assert hall.cables[-1].b.port == "31/1"
    assert not of(example, "HAL-008")


def test_a_capped_node_is_taken_at_its_cap(example):
    for n in (1, 2):
        put(example, f"halls[0].nodes[{n}].chassis", {"power_w": 9900})
    assert said(example) == []
    heats = {device.heat for device in halls.declared(load.from_value(example))[0].devices if device.kind == "gpu"}
    assert [round(heat) for heat in heats] == [33780]  # 9900 W, not what the maker says of 10200


def test_the_plans_cap_is_taken_over_as_the_gpus_power_limit(example):
    (cap,) = {(each.gpu_w, each.cap_w) for each in capacity.caps(halls.declared(load.from_value(example))[0])}
    assert cap == (662, 9900)
    for n in (1, 2):
        put(example, f"halls[0].nodes[{n}].gpu_power_limit_w", cap[0])
    assert said(example) == []
    (hall,) = halls.declared(load.from_value(example))
    dgx = hall.device["dgx01"]
    assert (dgx.gpu_w, dgx.power_w, capacity.caps(hall)) == (662, 10200 - 8 * (700 - 662), ())
    assert round(dgx.heat) == round(dgx.power_w * 3.412142)  # not what the maker says of 10200 W
    put(example, "halls[0].nodes[1].gpu_power_limit_w", 700)
    assert halls.declared(load.from_value(example))[0].device["dgx01"].heat_btu_h == 38557, "no cap"
    put(example, "halls[0].nodes[1].chassis", {"power_w": 9000})
    assert halls.declared(load.from_value(example))[0].device["dgx01"].power_w == 9000, "what a chassis says counts"


@pytest.mark.parametrize(
    ("node", "more", "words"),
    [
        (1, {"gpu_power_limit_w": 701}, "is 701 W, and a GPU of dgx-h100 (H100 SXM5 80GB) draws 700 W at most"),
        (0, {"gpu_power_limit_w": 500}, "these are of role head: leave it out"),
        (1, {"gpu_power_limit_w": 500, "managed": False, "bmc": None}, "these aren't managed"),
    ],
)
def test_a_power_limit_that_nobody_can_set(example, node, more, words):
    for key, given in more.items():
        put(example, f"halls[0].nodes[{node}].{key}", given)
    (found,) = [each for each in said(example) if each.rule == "power-limit"]
    assert found.path == f"{HALL}.nodes[{node}].gpu_power_limit_w" and words in found.message


@pytest.mark.parametrize(
    ("path", "given", "rule", "where"),
    [
        ("halls[0].circuits[0].breaker_a", 32, "HW-004", ".circuits[0]"),
        ("halls[0].racks[0].cooling_kw", 40, "HW-005", ".racks[0].cooling_kw"),
        ("halls[0].racks[1].max_weight_kg", 500, "HW-006", ".racks[1].max_weight_kg"),
        ("halls[0].cables[8].length_m", 4, "HAL-006", ".cables[8]"),
        ("halls[0].cables[0].ends", ["dgx[01-08]/ib1", "leaf2/[11-18]"], "HAL-010", ".cables[0]"),
        ("halls[0].ufm", True, "NET-005", ".subnet_managers"),
        ("halls[0].racks[0].pdus[1].circuit", "zz", "HAL-004", ".racks[0].pdus[1]"),
        ("halls[0].switches[0].units", [21, 22, 23, 24, 25, 26, 27, 31], "duplicate", ".switches[1].units"),
        ("halls[0].switches[0].units", [21, 22], "one-a-switch", ".switches[0].units"),
        ("halls[0].switches[0].rails", [1], "one-a-switch", ".switches[0].rails"),
        ("halls[0].switches[2].rails", [1], "rails", ".switches[2].rails"),
        ("halls[0].switches[2].rack", "r09", "unknown-rack", ".switches[2].rack"),
        ("halls[0].switches[2].names", "dgx01", "duplicate", ".switches[2].names[0]"),
        ("halls[0].circuits[1].name", "a1", "duplicate", ".circuits[1].name"),
        ("halls[0].racks[1].pdus[0].name", "r01-a1", "duplicate", ".racks[1].pdus[0].name"),
        ("halls[0].cables[0].ends", ["dgx[01-08]/ib1", "leaf1/[1-7]"], "one-a-cable", ".cables[0].ends"),
    ],
)
def test_a_finding_says_where_it_was_declared(example, path, given, rule, where):
    put(example, path, given)
    assert (where, "error") in of(example, rule), [f"{each.rule} {each}" for each in said(example)]


@pytest.mark.parametrize(
    ("path", "given", "words"),
    [
        ("halls[0].circuits[0].feed", "C", "allowed: A, B"),
        ("halls[0].circuits[0].phases", 2, "1, 3"),
        ("halls[0].racks[0].at_m", [1], "too few items"),
        ("halls[0].cables[0].type", "DAC", "did you mean 'dac'"),
        ("halls[0].cables[0].speed", "ndr", "did you mean 'NDR'"),
        ("halls[0].nodes[1].cords", ["r01-a1/L4"], "isn't of the form"),
        ("halls[0].nodes[1].chassis", {"power": 3}, "did you mean"),
        ("halls[0].oversubscription", 0.5, "at least 1"),
    ],
)
def test_bad_input_is_one_sentence(example, path, given, words):
    put(example, path, given)
    with pytest.raises(load.ConfigError) as error:
        load.from_value(example)
    (found,) = error.value.findings
    assert found.path.startswith(HALL) and words in found.message


def test_slurms_tree_has_every_node_that_slurm_has_once(example):
    config = load.from_value(example)
    trees = halls.slurm_trees(config)
    nodes = [node for each in trees for node in each.nodes]
    assert len(nodes) == len(set(nodes)) == 8
    assert [each.name for each in trees] == ["leaf1-leaf8", "spine1-spine2"]
    put(example, "halls[0].cables", [])
    example |= {"cloud": load.read_value(STAGING)["cloud"]}
    trees = halls.slurm_trees(load.from_value(example))
    pools = [each["name"] for key in ("groups", "pools") for each in example["cloud"].get(key, [])]
    assert pools and [each.name for each in trees] == ["hall-a-rest", *pools]


def test_slurms_topology_is_of_a_declared_fabric_alone(example):
    said = halls.slurm_topology(load.from_value(example))
    assert said.splitlines()[1:] == [
        "SwitchName=leaf1-leaf8 Nodes=dgx[01-08]",
        "SwitchName=spine1-spine2 Switches=leaf1-leaf8",
    ]
    put(example, "halls[0].cables", [])
    assert halls.slurm_topology(load.from_value(example)) == ""


def test_a_switch_without_nodes_of_slurm_is_not_in_its_tree(example):
    """The other nodes are of Kubernetes: slurmctld refuses a switch whose child isn't there."""
    for leaf in range(8):
        put(example, f"halls[0].cables[{leaf}].ends", [f"dgx[01-04]/ib{leaf + 1}", f"leaf{leaf + 1}/[1-4]"])
    example["halls"][0]["switches"].append({"names": "other1", "kind": "leaf", "ports": 64})
    more = [{"ends": ["dgx[05-08]/ib1", "other1/[1-4]"]}, {"ends": ["other1/33", "spine1/33"]}]
    example["halls"][0]["cables"] += [{"type": "dac", "speed": "NDR", "length_m": 2} | each for each in more]
    assert [each.name for each in halls.slurm_trees(load.from_value(example))][:2] == ["leaf1-leaf8", "other1"]
    example["other_schedulers"] = load.read_value(STAGING.with_name("Pulumi.mixed.yaml"))["other_schedulers"]
    put(example, "software.kubernetes", "1.36")
    put(example, "halls[0].nodes[2].scheduler", "kubernetes")
    for node in (0, 1):
        put(example, f"halls[0].nodes[{node}].scheduler", "slurm")
    leaf, spine = halls.slurm_trees(load.from_value(example))
    assert (leaf.name, len(leaf.nodes)) == ("leaf1-leaf8", 4) and spine.switches == ("leaf1-leaf8",)


def test_pools_and_switches_of_one_name_are_two_switches(example):
    example |= {"cloud": load.read_value(STAGING)["cloud"]}
    example["cloud"]["pools"][0]["name"] = "leaf1-leaf8"
    names = [each.name for each in halls.slurm_trees(load.from_value(example))]
    assert len(names) == len(set(names)) and "leaf1-leaf8-2" in names


def test_every_figure_of_cables_has_a_source():
    assert len(catalog.cable_reaches()) > 30
    assert len({(each.speed, each.type) for each in catalog.cable_reaches()}) == len(catalog.cable_reaches())
    assert all(each.max_m is None for each in catalog.cable_reaches() if not each.exists)
