"""Who is measured with whom: every pair once, and no node twice in a round."""

from itertools import combinations

import pytest

from ironburst.fabric.rounds import all_pairs, ring


@pytest.mark.parametrize("count", [0, 1, 2, 3, 4, 5, 8, 31, 60])
def test_every_pair_is_there_once_and_no_node_twice_in_a_round(count):
    nodes = [f"n{number:02}" for number in range(count)]
    rounds = all_pairs(nodes)
    met = [tuple(sorted(edge)) for each in rounds for edge in each]
    assert sorted(met) == sorted(combinations(nodes, 2))
    assert len(rounds) == (0 if count < 2 else count - 1 if count % 2 == 0 else count)
    for each in rounds:
        busy = [node for edge in each for node in edge]
        assert len(busy) == len(set(busy))


def test_each_node_sends_about_as_often_as_it_receives():
    nodes = [f"n{number:02}" for number in range(60)]
    edges = [edge for each in all_pairs(nodes) for edge in each]
    sent = {node: sum(a == node for a, _ in edges) for node in nodes}
    assert set(sent.values()) <= {29, 30}


def test_a_ring_goes_around_once():
    assert ring(["a", "b", "c"]) == [("a", "b"), ("b", "c"), ("c", "a")]
    assert ring(["a", "b"]) == [] == ring([])
