"""Owned nodes: where a job fits, and which are kept free."""

import pytest

from ironburst.replay.home import Home, HomeNodes, step_back


def test_whole_nodes_first_and_the_rest_on_one_more():
    nodes = HomeNodes(Home(3))
    assert nodes.fit(20, 0.0, 10.0) == [(0, 8), (1, 8), (2, 4)] and nodes.fit(25, 0.0, 10.0) is None
    nodes.begin([(0, 4)], 10.0)
    assert nodes.fit(16, 0.0, 10.0) == [(1, 8), (2, 8)]
    assert nodes.fit(20, 0.0, 10.0) is None  # the rest of a large one wants a node that is empty, too


def test_a_part_goes_where_the_last_job_ends_soonest_after_it():
    nodes = HomeNodes(Home(2, room_s=0.0))
    nodes.begin([(0, 2)], 50.0)
    nodes.begin([(1, 2)], 100.0)
    assert nodes.fit(2, 0.0, 90.0) == [(1, 2)]  # no longer than the job that is there
    nodes.end([(1, 2)], 100.0)
    assert nodes.fit(2, 0.0, 90.0) == [(0, 2)]


def test_a_node_that_is_kept_takes_what_ends_before():
    nodes = HomeNodes(Home(2))
    nodes.begin([(0, 8)], 40.0)
    nodes.reserve(2, 0.0)  # both are empty at 40
    assert nodes.fit(8, 0.0, 40.0) == [(1, 8)] and nodes.fit(8, 0.0, 41.0) is None
    nodes.reserve_none()
    assert nodes.fit(8, 0.0, 41.0) == [(1, 8)]


def test_large_jobs_step_back_for_a_day_at_most():
    assert step_back(100.0) == pytest.approx(3600 * 2.6) and step_back(1e6) == 25 * 3600
