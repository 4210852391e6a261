"""Every rule of a hall: a hall that breaks it, and a neighbour that doesn't."""

import math
from dataclasses import replace

import pytest

from ironburst import catalog
from ironburst.hall import power, rules
from ironburst.hall.model import Circuit, Pdu
from tests.unit.hall.halls import cable, circuit, device, end, rack, recabled, sound, without_cables

HALL = sound()


def cords(*places):
    return device(HALL, "n1", psus=len(places), psus_needed=len(places) // 2 or 1, psu_w=12000, cords=places)


def all_in(*places):
    hall = HALL
    for n in range(1, 5):
        hall = device(hall, f"n{n}", psus=len(places), cords=places, psu_w=12000)
    return hall


OUTSIDE = device(HALL, "n1", rack=None, power_w=None, heat_btu_h=None)
ON_L1, ON_TWO = all_in("pa/L1", "pa/L1", "pb/L1", "pb/L1"), all_in("pa", "pa", "pb", "pb")

# rule: (what is wrong, a hall that is so, words of the finding, one that is nearly so and right)
CASES = {
    "HAL-001": [
        ("heat outside of racks", OUTSIDE, "cooling_kw needs its power", replace(OUTSIDE, cooling_kw=None)),
        (
            "weight",
            device(HALL, "n1", weight_kg=None),
            "weight_kg",
            rack(device(HALL, "n1", weight_kg=None), "a03", max_weight_kg=None),
        ),
        ("supplies", device(HALL, "n1", psus=None), "psus", rack(device(HALL, "n1", psus=None), "a03", pdus=())),
        (
            "air of liquid",
            device(HALL, "n1", airflow_cfm=None),
            "airflow_cfm",
            rack(device(HALL, "n1", airflow_cfm=None, cooling="liquid"), "a03", cooling="liquid"),
        ),
    ],
    "HW-003": [
        ("redundancy", device(HALL, "n1", power_w=9001), "give 9000 W", device(HALL, "n1", power_w=9000)),
        (
            "one feed",
            device(HALL, "n1", psus_needed=4, power_w=9900),
            "with feed B lost 3 supplies give 9000 W",
            device(HALL, "n1", psus_needed=4, power_w=9000),
        ),
    ],
    "HW-004": [
        (
            "normal",
            circuit(HALL, "a03-A", breaker_a=20),
            "in normal operation",
            circuit(circuit(HALL, "a03-A", breaker_a=42), "a03-B", breaker_a=42),
        ),
        (
            "feed lost",
            circuit(HALL, "a03-A", breaker_a=40),
            "carries 24.0 kW with feed B lost and may carry 23.0 kW",
            circuit(HALL, "a03-A", breaker_a=42),
        ),
        ("a phase", ON_L1, "circuit a03-A L1 carries 24.0 kW with feed B lost and may carry 12.1 kW", ON_TWO),
        ("rack", rack(HALL, "a03", power_kw=23.9), "24.0 kW of power", rack(HALL, "a03", power_kw=24)),
    ],
    "HW-005": [
        (
            "rack, by the maker's heat",
            rack(HALL, "a03", cooling_kw=25.7),
            "25.8 kW of heat",
            rack(HALL, "a03", cooling_kw=25.8),
        ),
        ("room", replace(HALL, cooling_kw=31.7), "hall h1", replace(HALL, cooling_kw=31.8)),
        ("airflow", rack(HALL, "a03", airflow_cfm=3100), "3200.0 CFM", rack(HALL, "a03", airflow_cfm=3200)),
    ],
    "HW-006": [
        ("weight", rack(HALL, "a03", max_weight_kg=479), "480.0 kg", rack(HALL, "a03", max_weight_kg=480)),
        ("depth", rack(HALL, "a03", depth_mm=899), "900 mm deep", rack(HALL, "a03", depth_mm=900)),
        ("warm air", replace(HALL, inlet_c=30.5), "takes air from 5 up to 30", replace(HALL, inlet_c=30)),
        ("cold air", replace(HALL, inlet_c=4.5), "takes air from 5 up to 30", replace(HALL, inlet_c=5)),
    ],
    "HAL-002": [("phases", ON_L1, "differ by", ON_TWO)],
    "HAL-003": [
        ("all on one feed", cords("pa", "pa"), "has all 2 supplies on feed A", cords("pa", "pb")),
        ("one supply", cords("pa"), "has one supply", cords("pa", "pb")),
    ],
    "HAL-004": [
        ("a busbar", device(HALL, "n1", psus=0), "6000 W are on no circuit", device(HALL, "n1", psus=2, psu_w=9000)),
        ("no such PDU", cords("pa", "px"), "no PDU of rack a03", cords("pa", "pb")),
        ("too few cords", device(HALL, "n1", cords=("pa", "pb")), "6 supplies and 2 cords", cords("pa", "pb")),
        (
            "no such circuit",
            rack(HALL, "a03", pdus=(Pdu("pa", "a03-A"), Pdu("pb", "zz"))),
            "zz, which isn't declared",
            HALL,
        ),
        (
            "outlets",
            rack(HALL, "a03", pdus=(Pdu("pa", "a03-A", 11), Pdu("pb", "a03-B", 12))),
            "11 outlets for 12",
            HALL,
        ),
        (
            "a phase of one",
            circuit(cords("pa/L2", "pb"), "a03-A", phases=1, breaker_a=200),
            "one phase",
            cords("pa/L2", "pb"),
        ),
    ],
    "HAL-005": [
        (
            "liquid",
            device(HALL, "n1", cooling="liquid"),
            "cooled by liquid",
            rack(device(HALL, "n1", cooling="liquid"), "a03", cooling=None),
        )
    ],
    "HAL-006": [
        (
            "too long",
            recabled(HALL, "n1/ib1", type="dac", length_m=3.5),
            "works up to 3 m",
            recabled(HALL, "n1/ib1", type="dac", length_m=3),
        ),
        (
            "isn't made",
            recabled(HALL, "n1/ib1", type="dac", speed="XDR", length_m=3),
            "isn't made",
            recabled(HALL, "n1/ib1", type="dac", length_m=3),
        ),
        ("unknown", recabled(HALL, "n1/ib1", type="aoc"), "doesn't know", HALL),
    ],
    "HAL-007": [
        (
            "same rack",
            recabled(HALL, "leaf1/40", length_m=0.1),
            "0.1 m apart",
            recabled(HALL, "leaf1/40", length_m=0.14),
        ),
        ("other rack", recabled(HALL, "n4/ib1", length_m=1.6), "1.7 m apart", recabled(HALL, "n4/ib1", length_m=1.7)),
    ],
    "HAL-008": [
        (
            "twice",
            recabled(HALL, "n1/ib1", b=end("leaf1/2")),
            "leaf1/2 has the cable to n2/ib1 and the one to n1/ib1",
            HALL,
        ),
        (
            "beyond",
            recabled(HALL, "n1/ib1", b=end("leaf1/65")),
            "ports 1 to 64",
            recabled(HALL, "n1/ib1", b=end("leaf1/64")),
        ),
        ("unknown", recabled(HALL, "n1/ib1", b=end("leafx/1")), "leafx/1 is of no node or switch", HALL),
        ("no such HCA", recabled(HALL, "n1/ib1", a=end("n1/ib3")), "n1 has 2 HCAs", HALL),
    ],
    "HAL-009": [
        (
            "bare",
            without_cables(HALL, "n1/ib2"),
            "no cable at ib2",
            device(without_cables(HALL, "n1/ib2"), "n1", hcas=1),
        )
    ],
    "HAL-010": [
        ("crossed", recabled(HALL, "n1/ib1", b=end("leaf2/9")), "HCA 1 belongs to rail 1: cable it to leaf1", HALL)
    ],
    "HAL-011": [
        (
            "three up for four",
            without_cables(HALL, "leaf1/40"),
            "1600 Gb/s to its nodes and 1200 Gb/s to spines",
            replace(without_cables(HALL, "leaf1/40"), oversubscription=1.34),
        ),
        ("none", without_cables(HALL, *(f"leaf1/{n}" for n in range(40, 44))), "nothing upwards", HALL),
    ],
    "HAL-012": [("Ethernet at a leaf", recabled(HALL, "n1/eth1", b=end("leaf1/9")), "a switch of infiniband", HALL)],
    "NET-005": [
        ("two", replace(HALL, subnet_managers=("UFM", "switch leaf1")), "2 master subnet managers", HALL),
        ("none", replace(HALL, subnet_managers=()), "0 master subnet managers", HALL),
    ],
    "NET-007": [("one port", without_cables(device(HALL, "n1", hcas=0), "n1/ib1", "n1/ib2"), "n1 has one cable", HALL)],
    "NET-008": [
        (
            "slow",
            replace(
                HALL,
                cables=(
                    *without_cables(HALL, "n1/ib1").cables,
                    cable("n1/ib1", "eth1/9", speed="25GbE", type="dac", length_m=4),
                ),
            ),
            "less than 100 Gb/s",
            HALL,
        )
    ],
}
EACH = [pytest.param(rule, *case[1:], id=f"{rule} {case[0]}") for rule, cases in CASES.items() for case in cases]


def of(hall, rule):
    return [finding for finding in rules.check(hall) if finding.rule == rule]


def test_nothing_is_wrong_with_a_sound_hall():
    assert rules.check(HALL) == []


@pytest.mark.parametrize(("rule", "hall", "words", "neighbour"), EACH)
def test_a_rule_finds_what_breaks_it_and_not_its_neighbour(rule, hall, words, neighbour):
    found = of(hall, rule)
    assert any(words in str(finding) for finding in found), list(map(str, rules.check(hall)))
    assert of(neighbour, rule) == []


def test_every_rule_is_tried_and_the_catalogues_ids_are_its_own():
    ids = {each for rule in rules.RULES for each in rule.ids}
    assert ids == set(CASES)
    assert {each for each in ids if not each.startswith("HAL-")} <= {rule.id for rule in catalog.rules()}


def test_every_finding_has_a_way_out_and_where_it_was_declared():
    found = [finding for cases in CASES.values() for case in cases for finding in rules.check(case[1])]
    assert len(found) > 40 and all(finding.ways_out and finding.subject for finding in found)
    of_nodes = [finding.where for finding in found if finding.subject == "n1"]
    assert of_nodes and set(of_nodes) == {("nodes", 1)}


def test_equal_machines_are_one_finding():
    hall = sound()
    for n in (1, 2, 3):
        hall = device(hall, f"n{n}", depth_mm=1200, where=("nodes", 1))
    (found,) = of(hall, "HW-006")
    assert found.subject == "n1 (and 2 more like it)"


@pytest.mark.parametrize(
    ("phases", "volts", "amperes", "watts"),
    [(3, 415, 32, 18_401), (3, 208, 60, 17_293), (1, 230, 16, 2_944), (1, 208, 30, 4_992)],
)
def test_what_a_circuit_may_carry_all_the_time(phases, volts, amperes, watts):
    """sqrt(3) x 415 V x 32 A x 0.8: by hand."""
    assert math.isclose(Circuit("c", "A", phases, volts, amperes).capacity_w, watts, abs_tol=1)


def test_a_lost_feeds_watts_are_on_the_other_one():
    normal, a_lost, b_lost = power.states(HALL)
    a, b = HALL.circuit["a03-A"], HALL.circuit["a03-B"]
    assert [round(state.of(a)) for state in (normal, a_lost, b_lost)] == [12000, 0, 24000]
    assert [round(state.of(b)) for state in (normal, a_lost, b_lost)] == [12000, 24000, 0]
    off = power.states(device(HALL, "n1", psus=1))[1]
    assert off.lost == "A" and off.down == ("n1",)


def test_planned_cords_are_on_both_feeds_and_all_phases():
    its = [cord for cord in power.cords(HALL) if cord.device == "n1"]
    assert sorted((cord.feed, cord.phase) for cord in its) == [(f, p) for f in "AB" for p in ("L1", "L2", "L3")]
