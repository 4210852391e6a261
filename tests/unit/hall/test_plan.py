"""What is computed of a hall: room, caps, power-on, tables, pictures, Slurm's tree."""

import csv
import io
import json
import re
from dataclasses import replace
from xml.etree import ElementTree

import yaml

from ironburst.hall import capacity, fabric, pictures, plan, rules, tables, topology
from ironburst.hall.fabric import TreeSwitch
from ironburst.nodes.ranges import compact, expand
from tests.unit.hall.halls import SWITCH, cable, circuit, device, rack, sound, without_cables

HALL = sound()


def room(hall, name):
    return next(each for each in capacity.more(hall) if each.rack == name)


def fed(amperes):
    return circuit(circuit(HALL, "a03-A", breaker_a=amperes), "a03-B", breaker_a=amperes)


FREE = rack(replace(HALL, cooling_kw=None), "a03", pdus=(), power_kw=None, cooling_kw=None, airflow_cfm=None)


def test_what_else_fits_and_what_is_full_then():
    outlets = room(rack(HALL, "a03", cooling_kw=40, airflow_cfm=None), "a03")
    assert str(outlets) == "no more dgx in a03: PDU pa is full: it has 12 outlets for 15 cords"
    assert str(room(FREE, "a03")) == "2 more dgx in a03, then a03 has no 8 free units in a row"
    heavy = rack(FREE, "a03", max_weight_kg=600)
    assert (
        str(room(heavy, "a03"))
        == "1 more dgx in a03, then rack a03 is full: it has 720.0 kg of weight and may have 600 kg"
    )
    assert room(replace(FREE, cooling_kw=40), "a03").count == 1  # 31.7 kW are there, 6.4 kW each
    unknown = replace(HALL, devices=tuple(replace(each, weight_kg=None) for each in HALL.devices))
    assert "a figure of it is unknown" in room(unknown, "a03").then


def like(hall):
    return capacity.platforms(hall)["dgx"]


def test_more_machines_are_placed_at_once():
    """What is shared by two racks is taken once; `more` says it of each rack alone."""
    empty = replace(FREE.racks[0], name="a04", max_weight_kg=2000)
    unlimited = replace(FREE.racks[0], name="a05", max_weight_kg=None)
    hall = replace(FREE, racks=(*FREE.racks, empty, unlimited), cooling_kw=46)
    assert [each.count for each in capacity.more(hall) if each.rack in ("a03", "a04")] == [2, 2]
    found = capacity.place(hall, like(hall), 5)
    assert [(each.rack, each.count) for each in found.rooms] == [("a03", 2), ("n01", 0), ("a04", 0)]
    assert found.rooms[0].then == "a03 has no 8 free units in a row"
    assert found.rooms[2].then.startswith("hall h1 is full: of what its other racks leave, it has 6.4 kW of heat")
    assert (found.left, found.unlimited) == (3, ("a05",))
    one = capacity.place(hall, like(hall), 1)
    assert [(each.rack, each.count, each.then) for each in one.rooms] == [("a03", 1, "")] and one.left == 0
    assert capacity.place(replace(hall, cooling_kw=200), like(hall), 7).rooms[-1].count == 5
    assert capacity.place(hall, like(hall), 0).rooms == ()


def test_the_circuit_that_is_full_is_named():
    wide = [replace(pdu, outlets=None) for pdu in HALL.racks[0].pdus]
    hall = rack(fed(53), "a03", pdus=tuple(wide), power_kw=None, cooling_kw=None, airflow_cfm=None)
    assert str(room(hall, "a03")) == (
        "1 more dgx in a03, then circuit a03-A is full: "
        "it carries 36.0 kW with feed B lost and may carry 30.5 kW (80 % of 53 A)"
    )


def test_what_was_wrong_before_stops_nobody_twice():
    """The room says what one more machine would break, not what is broken."""
    broken = rack(FREE, "a03", depth_mm=100)
    assert [finding.rule for finding in rules.check(broken)] == ["HW-006"] * 4
    assert "900 mm deep" in room(broken, "a03").then


def test_nothing_is_capped_where_nothing_is_full():
    assert capacity.caps(HALL) == ()


def test_nodes_are_capped_to_what_a_circuit_carries_with_a_feed_lost():
    its = capacity.caps(fed(40))
    assert [cap.node for cap in its] == ["n1", "n2", "n3", "n4"]
    capped = fed(40)
    for cap in its:
        assert cap.because.startswith("circuit a03-") and 5700 < cap.cap_w < 5760
        assert cap.gpu_w == int((cap.cap_w - (6000 - 8 * 400)) / 8) == 368  # the rest draws as before
        capped = device(capped, cap.node, power_w=cap.cap_w)
    assert rules.check(fed(40)) and rules.check(capped) == []


def test_a_cap_by_a_rack_spares_what_is_no_gpu_node():
    head = device(rack(HALL, "a03", power_kw=23), "n4", kind="head")
    assert {(cap.node, cap.cap_w, cap.because) for cap in capacity.caps(head)} == {
        (name, 5666, "rack a03") for name in ("n1", "n2", "n3")
    }  # (23000 - 6000) / 3


def test_supplies_that_are_left_cap_a_node():
    small = device(HALL, "n1", psu_w=1900, psus_needed=4)
    assert [(cap.node, cap.cap_w, cap.because) for cap in capacity.caps(small)] == [
        ("n1", 5700, "3 supplies carry it with feed A lost")
    ]


def test_nodes_are_powered_on_one_a_rack_and_heads_first():
    hall = device(device(HALL, "n3", kind="head"), "n4", rack="n01", unit=20)
    steps = [(step.at_s, step.nodes) for step in capacity.power_on(replace(hall, power_on_gap_s=15))]
    assert steps == [(0, ("n3",)), (15, ("n1", "n4")), (30, ("n2",))]
    assert capacity.resume_rate(replace(hall, power_on_gap_s=15)) == {"a03": 4, "n01": 4}


def rows(name):
    columns, lines = tables.TABLES[name](HALL)
    return list(csv.DictReader(io.StringIO(tables.as_csv(columns, lines), newline="")))


def test_the_bill_the_port_map_and_the_power_table():
    assert [tuple(row.values()) for row in rows("cables")] == [
        ("100GbE", "dac", "4", "4"),
        ("NDR", "dac", "2", "8"),
        ("NDR", "multimode", "10", "8"),
    ]
    ports = rows("ports")
    assert (
        len(ports) == 20 and ports[0]["device"] == "n1" and ports[0]["to_rack"] == "n01" and ports[0]["to_port"] == "1"
    )
    power = rows("power")
    assert len(power) == 4 * 6 + 4 * 2 and sum(float(row["watts"]) for row in power) == 4 * 6000 + 4 * 1500
    circuits = {row["circuit"]: row for row in rows("circuits")}
    assert circuits["a03-A"]["normal_w"] == "12000" and circuits["a03-A"]["one_feed_lost_w"] == "24000"


def test_the_plan_is_json_and_has_all_parts():
    said = json.loads(json.dumps(plan.as_json(plan.of(fed(40)))))
    assert said["findings"][0]["rule"] == "HW-004" and said["findings"][0]["numbers"] == {
        "load_w": 24000,
        "limit_w": 23002,
    }
    assert said["findings"][0]["ways_out"] and said["caps"] and said["power_on"] and said["circuits"]
    (cap,) = [line for line in plan.lines(plan.of(fed(40))) if line.startswith("  cap ")]
    assert cap.startswith("  cap n1, n2, n3, n4: 57") and " of 6000 W, gpu_power_limit_w: 368 (circuit a03-" in cap


def test_the_page_is_whole_and_fetches_nothing():
    page = pictures.page([plan.of(device(HALL, "n1", name="<b>"))], "x & y")
    assert "<b>" not in page.replace("<body>", "") and "x &amp; y" in page
    assert not re.search(r"(src|href)=|url\(|@import|https?://(?!www\.w3\.org/2000/svg)", page)
    for picture in re.findall(r"<svg.*?</svg>", page, re.DOTALL):
        ElementTree.fromstring(picture)
    drawn = re.findall(r"<svg.*?</svg>", page, re.DOTALL)
    assert len(drawn) == 3 and all(name in drawn[1] for name in ("leaf1", "leaf2", "spine1", "eth1"))
    assert "leaf1 rail 1" in drawn[2] and "<title>4 cables</title>" in drawn[2]


def test_leaves_of_the_same_nodes_are_one_switch_of_slurms():
    assert fabric.tree(HALL) == (
        TreeSwitch("leaf1-leaf2", nodes=("n1", "n2", "n3", "n4")),
        TreeSwitch("spine1", switches=("leaf1-leaf2",)),
    )


def three_tiers():
    """Four leaves of one node each, two spines for two leaves each, a core above; a node without a cable."""
    names = [("leaf", n) for n in range(1, 5)] + [("spine", n) for n in (1, 2)] + [("core", 1)]
    switches = [replace(SWITCH, name=f"{kind}{n}", kind=kind) for kind, n in names]
    nodes = [each for each in HALL.devices if not each.is_switch]
    cables = [cable(f"n{n}/ib1", f"leaf{n}/1") for n in range(1, 4)]
    cables += [cable(f"leaf{n}/9", f"spine{(n + 1) // 2}/{n}") for n in range(1, 5)]
    cables += [cable(f"core1/{n}", f"spine{n}/9") for n in (1, 2)]
    return replace(HALL, devices=(*nodes, *switches), cables=tuple(cables))


def test_a_tree_of_three_tiers():
    assert fabric.tree(three_tiers()) == (
        TreeSwitch("leaf1", nodes=("n1",)),
        TreeSwitch("leaf2", nodes=("n2",)),
        TreeSwitch("leaf3", nodes=("n3",)),
        TreeSwitch("spine1", switches=("leaf1", "leaf2")),
        TreeSwitch("spine2", switches=("leaf3",)),
        TreeSwitch("core1", switches=("spine1", "spine2")),
    )


def test_nodes_with_other_cables_are_below_a_switch_of_another_name():
    """One HCA of n4 isn't cabled: slurmctld doesn't start where a name is there twice."""
    leaves = [replace(SWITCH, name=f"leaf{n}", kind="leaf") for n in (1, 2, 3)]
    nodes = [each for each in HALL.devices if not each.is_switch]
    cables = [
        cable(f"n{n}/ib{leaf}", f"leaf{leaf}/{n}") for n in range(1, 5) for leaf in (1, 2, 3) if (n, leaf) != (4, 2)
    ]
    found = fabric.tree(replace(HALL, devices=(*nodes, *leaves), cables=tuple(cables)))
    assert found == (TreeSwitch("leaf1-leaf3", nodes=("n1", "n2", "n3")), TreeSwitch("leaf1-leaf3-2", nodes=("n4",)))


def test_a_name_is_no_longer_than_slurm_takes():
    taken = {"a"}
    assert (fabric.name_once("a", taken), fabric.name_once("a", taken)) == ("a-2", "a-3")
    assert len(fabric.name_once("x" * 70, taken)) <= 64 and len(fabric.name_once("x" * 71, taken)) <= 64


def test_a_fabric_without_spines_is_a_tree_of_leaves():
    alone = without_cables(HALL, *(f"leaf{rail}/{n}" for rail in (1, 2) for n in range(40, 44)))
    assert [each.name for each in fabric.tree(alone)] == ["leaf1-leaf2"]


def test_slurms_files():
    trees = fabric.tree(three_tiers())
    lines = topology.conf(trees, compact).splitlines()[1:]
    assert lines[0] == "SwitchName=leaf1 Nodes=n1" and lines[3] == "SwitchName=spine1 Switches=leaf[1-2]"
    (said,) = yaml.safe_load(topology.yaml(trees, compact, "prod"))
    assert (said["topology"], said["cluster_default"]) == ("prod", True)
    switches = {each["switch"]: each for each in said["tree"]["switches"]}
    assert expand(switches["core1"]["children"]) == ["spine1", "spine2"] and switches["leaf3"]["nodes"] == "n3"
