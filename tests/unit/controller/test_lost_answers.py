"""A launch without an answer: what the cloud shows with its token is ours."""

import pytest

from ironburst.controller import records, spending
from ironburst.document import BudgetDocument as Declared
from ironburst.ports import OutcomeUnknown
from tests.fakes.world import World

HOUR, MONTHLY = 3600.0, Declared(usd_per_month=20000.0)


@pytest.fixture
def world(tmp_path):
    return World(tmp_path)


def lost(world, nodes=1, answers=50):
    """A launch that happened; its answer, and those of its repeats, are lost."""
    world.fill_home()
    job = world.slurm.submit(nodes=nodes, limit_s=600, requeue=False)
    world.cloud.lost_answers = 1
    world.tick()
    world.cloud.errors = [OutcomeUnknown("no answer")] * answers
    return job


def spent(world):
    return spending.budget(world.ledger, MONTHLY, world.clock.now()).spent_usd


def test_an_instance_with_our_token_is_adopted_without_asking_again(world):
    job = lost(world, nodes=2)
    world.until(lambda: world.slurm.state(job) == "RUNNING", 60)
    assert len(world.cloud.requests) == 1 and len(world.cloud.all) == 2


def test_it_is_adopted_and_given_back_at_once_if_nobody_needs_it_any_more(world):
    job = lost(world)
    asked = world.ledger.intents(world.ledger.leases()[0].launch)[0].made_s
    world.slurm.cancel(job)
    world.cloud.hidden = set(world.cloud.all)
    world.tick(100)
    assert world.states() == [records.REQUESTED] and len(world.cloud.alive()) == 1
    world.cloud.hidden = set()
    world.tick(2)
    assert world.cloud.alive() == [] and len(world.cloud.requests) == 1
    world.until(lambda: not world.ledger.leases(), 60)
    (lease,) = world.ledger.leases(open_only=False)
    assert lease.from_s == asked and lease.to_s - asked >= 200


def test_an_open_intent_is_spending_from_when_it_was_made(world):
    lost(world)
    world.cloud.hidden = set(world.cloud.all)
    asked = world.ledger.intents(world.ledger.leases()[0].launch)[0].made_s
    world.tick(60)
    assert world.states() == [records.REQUESTED]
    assert spent(world) == pytest.approx((world.clock.now() - asked) / HOUR * 55.04)
    world.cloud.errors = []
    world.until(lambda: world.states() != [records.REQUESTED], 120)
    assert spent(world) == pytest.approx((world.clock.now() - asked) / HOUR * 55.04, abs=0.2)


def test_an_intent_that_was_refused_costs_nothing(world):
    world.cloud.capacity["us-east-1a", "on-demand"] = world.cloud.capacity["us-east-1b", "on-demand"] = 0
    world.fill_home()
    world.slurm.submit(limit_s=600, requeue=False)
    world.tick()
    assert len(world.cloud.requests) == 2 and spent(world) == 0


def test_a_part_of_a_gang_is_waited_for(world):
    lost(world, nodes=2)
    first, second = world.cloud.all
    world.cloud.hidden = {second}
    world.tick(50)
    assert world.states() == [records.REQUESTED] * 2 and len(world.cloud.alive()) == 2
    world.cloud.hidden = set()
    world.tick()
    assert {lease.instance_id for lease in world.ledger.leases()} == {first, second}


def test_what_shows_up_after_it_was_given_up_is_reaped_and_paid(world):
    job = lost(world)
    world.cloud.hidden = set(world.cloud.all)
    launched = world.cloud.alive()[0].launched_s
    world.slurm.cancel(job)
    world.until(lambda: not world.ledger.leases(), 900)
    assert world.cloud.alive()
    world.cloud.hidden = set()
    world.tick()
    assert not world.cloud.alive() and world.events("orphan")
    assert spent(world) >= (world.clock.now() - 2 - launched) / HOUR * 55.04
