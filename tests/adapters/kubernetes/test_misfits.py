"""Pods that rented nodes don't take, for a reason that nobody knows: learnt once, by what they are alike in."""

import pytest

from ironburst.controller import karpenter
from tests.fakes.kube_world import fill_home

HOUR, USD = 3600.0, 55.04


def node_hours(world):
    return karpenter.budget_of(world.controller.site(world.document)).spent_usd / USD


@pytest.mark.parametrize("count", [8, pytest.param(500, marks=pytest.mark.slow)])
def test_identical_misfits_cost_one_try(world, count):
    world.cloud.boot_s = 240.0
    fill_home(world, runs_s=9e6)
    world.stays_home = lambda name: name.startswith("odd")
    for n in range(count):
        world.submit(f"odd-{n}")
    world.until(lambda: world.ledger.leases(), HOUR, 30.0)
    world.until(lambda: not world.ledger.leases(), HOUR, 30.0)
    world.pass_by(2 * HOUR, every_s=300)
    assert len(world.cloud.requests) == 1 and not world.cloud.alive()
    print(f"{count} misfits: {node_hours(world):.3f} node-hours")
    assert node_hours(world) <= 0.2
    last = {each.job: each.code for each in world.ledger.decisions()}
    assert len([job for job, code in last.items() if code == "unstarted"]) == count
    told = [text for text in world.events("needs_a_person") if "didn't start" in text]
    assert len(told) == 1


def test_after_the_first_has_started_the_others_are_rented_for(world):
    fill_home(world, runs_s=9e6)
    for n in range(3):
        world.submit(f"train-{n}", runs_s=3 * HOUR, limit_s=4 * HOUR)
    world.until(lambda: len(world.ledger.leases()) == 1, HOUR, 30.0)
    assert {each.code for each in world.ledger.decisions()} >= {"tried"}
    world.until(lambda: len({name for name in world.started if name.startswith("train")}) == 3, HOUR, 30.0)
    assert len(world.cloud.requests) <= 3


def test_others_than_the_misfits_are_rented_for_beside_them(world):
    fill_home(world, runs_s=9e6)
    world.stays_home = lambda name: name.startswith("odd")
    world.submit("odd-1")
    world.submit("odd-2")
    world.submit("pair", 2)
    world.until(lambda: "pair" in world.started, HOUR, 30.0)
    assert not {"odd-1", "odd-2"} & set(world.started)


def test_what_is_known_to_start_is_not_lost_for_one_that_does_not(world):
    fill_home(world, runs_s=9e6)
    world.submit("good", runs_s=HOUR)
    world.until(lambda: "good" in world.started, HOUR, 30.0)
    world.stays_home = lambda name: name == "odd"
    world.submit("odd")
    world.submit("again", runs_s=HOUR)
    world.until(lambda: "again" in world.started, HOUR, 30.0)
    assert "odd" not in world.started
