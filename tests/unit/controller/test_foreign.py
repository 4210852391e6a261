"""Jobs in a burst partition that nothing was rented for: seen, told, and no reason to keep somebody else's node."""

import pytest

from ironburst.controller import spending
from ironburst.ports import SchedulerError
from tests.fakes.world import World

HOUR = 3600.0


@pytest.fixture
def world(tmp_path):
    world = World(tmp_path)
    pays = world.document.budget.model_copy(update={"accounts": {"vision": 5000.0, "speech": 5000.0}})
    world.document = world.document.model_copy(update={"budget": pays})
    world.fill_home(limit_s=48 * HOUR)
    world.job = world.slurm.submit(limit_s=HOUR, runs_s=120, account="vision", requeue=False)
    return world


def told(world):
    return world.events("needs_a_person")


def spent(world, account):
    money = spending.budget(world.ledger, world.document.budget, world.clock.now())
    return sum(ceiling.spent_usd for ceiling in money.ceilings if ceiling.account == account)


def sneak_in(world, **more):
    """A user submits to the burst partition; the paid job has just ended, so its node takes it."""
    world.until(lambda: world.slurm.state(world.job) == "RUNNING", HOUR, 10.0)
    return world.slurm.submit(
        limit_s=6 * HOUR, runs_s=6 * HOUR, partitions=("burst-p5",), user="mallory", account="speech", **more
    )


def test_a_foreign_job_is_told_once_waiting_and_running(world):
    foreign = sneak_in(world)
    world.tick(3)
    assert len(told(world)) == 1 and f"job {foreign}" in told(world)[0] and "mallory" in told(world)[0]
    assert "burst-p5" in told(world)[0] and world.ledger.events_of(foreign, [])[0].kind == "needs_a_person"
    world.until(lambda: world.slurm.state(foreign) == "RUNNING", HOUR, 10.0)
    world.ledger.close()
    world.start()
    world.tick(5)
    assert len(told(world)) == 1


def test_the_account_whose_job_it_is_pays_for_the_node_from_then_on(world):
    foreign = sneak_in(world)
    world.until(lambda: world.slurm.state(foreign) == "RUNNING", HOUR, 10.0)
    world.tick(2)
    vision = spent(world, "vision")
    world.until(lambda: world.slurm.state(foreign) == "COMPLETED", 8 * HOUR, 60.0)
    world.until(lambda: not world.ledger.leases(), HOUR, 10.0)
    assert spent(world, "vision") == pytest.approx(vision) and vision < 10
    assert spent(world, "speech") == pytest.approx(6 * 55.04, rel=0.05)


def test_the_node_takes_no_other_job_and_goes_when_the_foreign_one_ends(world):
    foreign = sneak_in(world)
    world.until(lambda: world.slurm.state(foreign) == "RUNNING", HOUR, 10.0)
    world.tick(2)
    assert world.states() == ["releasing"] and "DRAIN" in world.slurm.nodes["p5-1"].states
    ended = world.clock.now() + 6 * HOUR
    world.until(lambda: not world.cloud.alive(), 8 * HOUR, 60.0)
    assert world.clock.now() < ended + 180 and world.slurm.forced == []


def test_a_foreign_job_beside_a_paid_one_changes_nothing_but_is_told(world):
    half = {"each": type(world.slurm.jobs[1].job.each)(4, 1, 500)}
    world.slurm.cancel(world.job)
    paid = world.slurm.submit(limit_s=HOUR, runs_s=600, account="vision", requeue=False, **half)
    world.until(lambda: world.slurm.state(paid) == "RUNNING", HOUR, 10.0)
    world.slurm.submit(limit_s=HOUR, runs_s=60, partitions=("burst-p5",), account="speech", **half)
    world.tick(5)
    assert world.states() == ["ready"] and len(told(world)) == 1
    assert {rate.account for rates in world.ledger.rates_paid_after(0.0).values() for rate in rates} == {"vision"}


def test_what_the_controller_placed_is_never_foreign(world):
    world.until(lambda: world.slurm.state(world.job) == "COMPLETED", HOUR, 10.0)
    again = world.slurm.submit(limit_s=HOUR, runs_s=60, account="vision", requeue=False)
    world.until(lambda: world.slurm.state(again) == "RUNNING", HOUR, 10.0)
    world.tick(3)
    assert told(world) == []


def test_a_ceiling_that_cannot_pay_for_the_foreign_job_ends_it(world):
    pays = world.document.budget.model_copy(update={"accounts": {"vision": 5000.0, "speech": 100.0}})
    world.document = world.document.model_copy(update={"budget": pays})
    foreign = sneak_in(world)
    world.until(lambda: not world.cloud.alive(), 8 * HOUR, 60.0)
    assert spent(world, "speech") <= 100.0 and world.slurm.state(foreign) != "COMPLETED"


def widened(world):
    """The job of ours, just placed at its node: the ledger is lost before it starts."""
    world.until(lambda: "burst-p5" in world.slurm.jobs[world.job].job.partitions, HOUR)
    assert world.slurm.jobs[world.job].job.pending
    world.ledger.close()
    for path in world.path.parent.glob("ledger.sqlite*"):
        path.unlink()
    world.start()


def test_a_job_that_a_lost_ledger_had_placed_is_not_foreign(world):
    widened(world)
    world.slurm.refuse(world.job, "Priority", "burst-p5")
    world.tick(3)
    assert world.slurm.jobs[world.job].job.pending
    assert not [text for text in told(world) if f"job {world.job}" in text]


def test_nor_when_it_has_started_in_the_meantime(world, monkeypatch):
    widened(world)
    world.slurm.refuse(world.job, "Priority", "burst-p5")
    place = world.slurm.place

    def late(*_, **__):
        raise SchedulerError("the job has just started")

    monkeypatch.setattr(world.slurm, "place", late)
    world.tick()
    monkeypatch.setattr(world.slurm, "place", place)
    world.slurm.refused.clear()
    world.tick()
    assert world.slurm.state(world.job) == "RUNNING"
    world.tick(3)
    assert not [text for text in told(world) if f"job {world.job}" in text]
    assert "releasing" not in world.states()
    world.until(lambda: world.slurm.state(world.job) == "COMPLETED", HOUR, 10.0)
    assert len(world.slurm.jobs[world.job].started) == 1
