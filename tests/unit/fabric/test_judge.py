"""What is too slow, and which port is behind it."""

import pytest

from ironburst.fabric import judge
from ironburst.fabric.judge import Bandwidth, Port
from tests.unit.health.samples.links import ib_write_bw


def port(node, gbps=400.0, rail=1):
    return Port(node, f"mlx5_{rail - 1}", rail, gbps)


def run(figures, test="pairs"):
    """{("a", "b"): Gb/s}"""
    return [Bandwidth(test, port(a), port(b), gbps, "" if gbps else "broken") for (a, b), gbps in figures.items()]


EVEN = {
    ("a", "b"): 390.0,
    ("c", "d"): 392.0,
    ("a", "c"): 388.0,
    ("b", "d"): 391.0,
    ("a", "d"): 390.0,
    ("b", "c"): 389.0,
}


def test_an_even_fabric_is_good():
    assert judge.slow(run(EVEN), {}) == []


def test_below_the_median_of_its_rail_is_slow_and_the_worst_comes_first():
    measured = run(EVEN | {("a", "b"): 340.0, ("a", "c"): None})
    below = judge.slow(measured, {})
    assert [(each.measured.sender.node, each.measured.receiver.node) for each in below] == [("a", "c"), ("a", "b")]
    assert below[1].than == "the median of its rail, 390" and below[1].wanted == 351.0


def test_what_was_accepted_counts_more_than_the_median():
    """A pair whose route is shared by design was accepted at 200: it is good at 195, and bad at 180."""
    accepted = {"pairs a b rail 1": 330.0}
    assert judge.slow(run(EVEN | {("a", "b"): 320.0}), accepted) == []
    [below] = judge.slow(run(EVEN | {("b", "a"): 310.0, ("a", "b"): 330.0}), accepted)
    assert below.than == "what was accepted, 330"


def test_a_whole_fabric_that_is_slow_is_not_good_because_it_is_even():
    below = judge.slow(run(dict.fromkeys(EVEN, 190.0)), {})
    assert len(below) == len(EVEN) and below[0].than == "78% of the line's 400"


def test_ports_of_different_speed_are_held_against_their_own():
    slower = [Bandwidth("pairs", port("a"), port(name, gbps=200.0), 190.0) for name in "xyz"]
    assert judge.slow([*run(EVEN), *slower], {}) == []


def test_the_port_behind_several_slow_pairs_is_named():
    measured = run({edge: 180.0 if "c" in edge else gbps for edge, gbps in EVEN.items()})
    below = judge.slow(measured, {})
    [suspect] = judge.suspects(measured, below)
    assert (suspect.port.node, suspect.slow, suspect.of) == ("c", 3, 3)


def test_one_slow_pair_accuses_neither_of_its_two():
    measured = run(EVEN | {("a", "b"): 180.0})
    assert judge.suspects(measured, judge.slow(measured, {})) == []


def test_only_a_good_run_becomes_what_others_are_held_against():
    accepted = {"pairs a b rail 1": 380.0}
    better = run({("a", "b"): 395.0, ("c", "d"): 391.0})
    assert judge.baseline(better, accepted, anew=False, good=False) == accepted
    assert judge.baseline(better, accepted, anew=False, good=True) == accepted | {"pairs c d rail 1": 391.0}
    assert judge.baseline(better, accepted, anew=True, good=False)["pairs a b rail 1"] == 395.0


@pytest.mark.parametrize(
    ("text", "error", "served", "words"),
    [
        ("Couldn't connect to 10.0.0.2:18601", "exit status 1", "", "Couldn't connect to 10.0.0.2:18601"),
        ("", "did not end in time", "", "did not end in time"),
        (ib_write_bw(390, "Gb/sec", sweep=False), "", "exit status 1", "the receiver's ib_write_bw: exit status 1"),
        (ib_write_bw(390, "Gb/sec", sweep=False)[:-100], "", "", "cut"),
        ("", "", "", "the output is empty"),
    ],
)
def test_what_is_no_whole_run_has_no_figure(text, error, served, words):
    gbps, said = judge.read(text, error, served)
    assert gbps is None and words in said


def test_a_run_has_its_figure():
    assert judge.read(ib_write_bw(340, "Gb/sec", sweep=False), "", "") == (320.0, "")
