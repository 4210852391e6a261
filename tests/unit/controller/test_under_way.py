"""A launch at which the cloud works for minutes, as Google's: no failure, no instance yet, and no second launch."""

import pytest

from ironburst.controller import records
from ironburst.ports import LAUNCHING, InsufficientCapacity, LaunchFailed, Malformed
from tests.fakes.world import World

SLOW_S = 60.0
ENDS = [InsufficientCapacity("none", "POOL"), LaunchFailed("no right", "FORBIDDEN")]


@pytest.fixture
def world(tmp_path):
    world = World(tmp_path)
    world.cloud.under_way_s = SLOW_S
    return world


def asked(world, nodes=2):
    """A job that is rented for; its launch is under way."""
    world.fill_home()
    job = world.slurm.submit(nodes=nodes, limit_s=600, requeue=False)
    world.tick()
    assert world.states() == [records.REQUESTED] * nodes
    return job


def kinds(world):
    return [event.kind for event in world.ledger.events()]


def test_it_is_asked_for_again_at_each_tick_and_adopted_when_it_is_over(world):
    job = asked(world)
    world.tick(10)
    assert {each.state for each in world.cloud.alive()} == {LAUNCHING}, "they are shown, and may be taken back"
    assert world.states() == [records.REQUESTED] * 2 and len(world.ledger.intents(world.ledger.leases()[0].launch)) == 1
    world.until(lambda: world.slurm.state(job) == "RUNNING", 400)
    assert len(world.cloud.all) == 2 and len({request.token for request in world.cloud.requests}) == 1
    assert kinds(world).count("under_way") == 1 and "unknown" not in kinds(world)


def test_it_costs_from_when_it_was_asked_for(world):
    asked(world)
    made = world.ledger.intents(world.ledger.leases()[0].launch)[0].made_s
    world.until(lambda: records.LAUNCHED in world.states(), 400)
    assert {lease.from_s for lease in world.ledger.leases()} == {made}


@pytest.mark.parametrize("error", ENDS)
def test_one_that_is_taken_back_is_asked_for_in_the_next_zone(world, error):
    """Also where it is a refusal that would say nothing of a call without an answer: it is the launch's own."""
    job = asked(world)
    world.cloud.taken_back = [error]
    world.until(lambda: world.slurm.state(job) == "RUNNING", 900)
    first, second = (intent for intent in world.ledger.intents(world.ledger.leases()[0].launch))
    assert (first.state, first.code) == ("refused", error.code) and second.zone != first.zone
    assert len(world.cloud.alive()) == 2 == len(world.cloud.all)


def test_one_that_nobody_needs_any_more_is_ended_when_it_is_there(world):
    job = asked(world)
    world.slurm.cancel(job)
    world.tick(5)
    assert world.states() == [records.REQUESTED] * 2
    world.until(lambda: not world.ledger.leases(), 900)
    assert world.cloud.alive() == [] and len(world.cloud.requests) >= 1


@pytest.mark.parametrize("error", [*ENDS, Malformed("no such field", "INVALID")])
def test_one_that_nobody_needs_and_that_fails_leaves_nothing_and_its_place_is_known_to_be_full(world, error):
    job = asked(world)
    launch = world.ledger.leases()[0].launch
    world.cloud.taken_back = [error]
    world.slurm.cancel(job)
    world.until(lambda: not world.ledger.leases(), SLOW_S + 60)  # and not after ten minutes
    assert world.cloud.all == {}
    assert [intent.code for intent in world.ledger.intents(launch)] == [error.code]
    assert "refused" in kinds(world)


def test_a_controller_that_died_over_it_asks_for_the_same(world):
    """The answer was lost with it; the list shows all instances, and none of them is taken for launched."""
    world.cloud.lost_answers = 1
    job = asked(world)
    world.tick(5)
    assert world.states() == [records.REQUESTED] * 2
    world.until(lambda: world.slurm.state(job) == "RUNNING", 900)
    assert len(world.cloud.all) == 2
