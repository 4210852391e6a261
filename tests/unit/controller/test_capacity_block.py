"""A pool of a capacity block: nothing before it begins, nothing that outlives it, and no dollar of the budget."""

import pytest

from ironburst.controller import policy_view, spending
from tests.fakes import with_places
from tests.fakes.world import World

BLOCK = "cr-0123456789abcdef0"


@pytest.fixture
def world(tmp_path):
    """The block begins in half an hour, and is taken back five hours after that."""
    world = World(tmp_path, zones=["us-east-1a"], markets=["capacity-block"])
    begins_s = world.clock.now() + 1800
    pool = world.document.pools[0].model_copy(
        update={
            "usd_per_hour": {"capacity-block": 0.0},
            "bought": True,
            "capacity_starts_s": begins_s,
            "capacity_ends_s": begins_s + 5 * 3600,
        }
    )
    pool = with_places(pool, capacity_reservation_id=BLOCK)
    world.document = world.document.model_copy(update={"pools": [pool]})
    world.fill_home()
    return world


def test_a_job_waits_for_the_block_to_begin_then_it_is_rented_in_for_nothing(world):
    job = world.slurm.submit(limit_s=3600.0, runs_s=600.0)
    world.pass_by(1700, every_s=100)
    assert world.cloud.requests == []
    assert "its capacity block opens at" in world.ledger.decisions(job)[-1].text
    world.pass_by(300, every_s=20)
    (request,) = world.cloud.requests
    asked = request.market, request.place["capacity_reservation_id"], request.usd_per_hour
    assert asked == ("capacity-block", BLOCK, 0.0)
    budget = spending.budget(world.ledger, world.document.budget, world.clock.now())
    assert (budget.spent_usd, budget.committed_usd) == (0.0, 0.0)
    world.until(world.quiet, 7200, every_s=30)
    assert spending.budget(world.ledger, world.document.budget, world.clock.now()).spent_usd == 0.0


def test_nothing_is_rented_that_would_outlive_the_block(world):
    job = world.slurm.submit(limit_s=5 * 3600.0)
    world.pass_by(2000, every_s=100)
    assert world.cloud.requests == [] and world.ledger.decisions(job)[-1].code == "outlives"


def test_the_last_node_is_given_back_before_aws_takes_it(world):
    ends_s = world.clock.now() + 4000
    short = {"idle_s": 86400, "capacity_starts_s": None, "capacity_ends_s": ends_s}
    pool = world.document.pools[0].model_copy(update=short)
    world.document = world.document.model_copy(update={"pools": [pool]})
    world.slurm.submit(limit_s=3000.0, runs_s=100.0)
    world.until(lambda: "ready" in world.states(), 1000, every_s=10)
    world.pass_by(ends_s - world.clock.now() - 200, every_s=50)
    assert world.states() == ["ready"]  # idle, and it costs nothing more
    world.until(lambda: not world.states(), 300, every_s=5)
    assert world.clock.now() < ends_s
    assert any("capacity is taken back at" in text for text in world.events())


def test_an_accounts_block_is_for_its_jobs(world):
    pool = world.document.pools[0].model_copy(update={"account": "vision", "capacity_starts_s": None})
    world.document = world.document.model_copy(update={"pools": [pool]})
    assert policy_view.declared_pool(pool, world.document).account == "vision"
    others, theirs = (
        world.slurm.submit(limit_s=600.0, account="speech"),
        world.slurm.submit(limit_s=600.0, account="vision"),
    )
    world.pass_by(300, every_s=20)
    assert [world.ledger.launch(request.launch).nodes for request in world.cloud.requests] == [("p5-1",)]
    assert world.ledger.decisions(others)[-1].code == "account"
    assert world.ledger.decisions(theirs)[-1].code != "account"
