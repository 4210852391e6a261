"""How long a place that refused a launch is left alone, while a trace is played."""

from ironburst.replay.cool_downs import CoolDowns

HERE, THERE = ("p5", "", "a", "spot"), ("p5", "", "b", "spot")


def until(cool_downs, now_s):
    return {(cool_down.zone, cool_down.nodes): cool_down.until_s for cool_down in cool_downs.at(now_s)}


def test_each_refusal_in_a_row_doubles_it_for_that_place_and_number_of_nodes():
    cool_downs = CoolDowns(first_s=600.0)
    cool_downs.refuse(HERE, 1, 0.0)
    cool_downs.refuse(HERE, 1, 700.0)
    cool_downs.refuse(HERE, 4, 700.0)
    cool_downs.refuse(THERE, 1, 700.0)
    assert until(cool_downs, 800.0) == {("a", 1): 1900.0, ("a", 4): 1300.0, ("b", 1): 1300.0}
    assert until(cool_downs, 1300.0) == {("a", 1): 1900.0}


def test_a_launch_that_succeeds_forgets_the_place_in_all_sizes():
    cool_downs = CoolDowns(first_s=600.0)
    for place, nodes in ((HERE, 1), (HERE, 4), (THERE, 1)):
        cool_downs.refuse(place, nodes, 0.0)
    cool_downs.forget(HERE)
    assert until(cool_downs, 1.0) == {("b", 1): 600.0}


def test_long_after_its_end_it_begins_anew():
    cool_downs = CoolDowns(first_s=600.0)
    cool_downs.refuse(HERE, 1, 0.0)
    cool_downs.at(1800.0)  # twice its length after its end: still remembered
    cool_downs.refuse(HERE, 1, 1800.0)
    assert until(cool_downs, 1800.0) == {("a", 1): 3000.0}
    cool_downs.at(5401.0)  # its end at 3000, and twice 1200 more
    cool_downs.refuse(HERE, 1, 5401.0)
    assert until(cool_downs, 5401.0) == {("a", 1): 6001.0}
