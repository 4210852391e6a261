"""Two controllers and one site: one of them acts."""

import json
from dataclasses import replace

import pytest

from ironburst.controller import ownership, records
from ironburst.controller.lock import LockedError
from ironburst.controller.ownership import STALE_S, OwnedElsewhere
from ironburst.ports import LaunchRequest, SchedulerError
from tests.fakes.world import World

HOUR = 3600.0


@pytest.fixture
def world(tmp_path):
    return World(tmp_path / "one")


@pytest.fixture
def second(tmp_path, world):
    """Another controller of the same site, with a ledger of its own."""
    other = World(tmp_path / "two")
    other.clock, other.slurm, other.cloud = world.clock, world.slurm, world.cloud
    other.start()
    return other


def rented(world, runs_s=HOUR):
    world.fill_home(limit_s=9 * HOUR)
    job = world.slurm.submit(limit_s=2 * HOUR, runs_s=runs_s)
    world.until(lambda: world.slurm.state(job) == "RUNNING", 60)
    return job


def seen(world):
    """Everything that a controller can change."""
    return (
        list(world.cloud.requests),
        [instance.id for instance in world.cloud.alive()],
        list(world.cloud.queue),
        {name: sorted(node.states) for name, node in world.slurm.nodes.items()},
        {id: job.job for id, job in world.slurm.jobs.items()},
        set(world.slurm.permits),
        world.slurm.claimed,
    )


def test_the_second_controller_of_a_site_changes_nothing_and_says_who_holds_it(world, second):
    rented(world)
    world.slurm.submit(limit_s=HOUR)
    world.cloud.interrupt(world.cloud.alive()[0].id)
    world.clock.at += 400
    world.slurm.observe()
    before = seen(world)
    with pytest.raises(OwnedElsewhere) as error:
        second.controller.tick(second.document)
    assert seen(world) == before and second.ledger.leases() == []
    assert isinstance(error.value, LockedError)
    text = str(error.value)
    assert str(world.path) in text and "Stop one of the two" in text and ownership.owner_of(world.ledger).id in text


def test_two_controllers_side_by_side_rent_no_more_than_one(world, second):
    job, refused = rented(world), 0
    for _ in range(200):
        world.tick()
        with pytest.raises(OwnedElsewhere):
            second.tick()
        refused += 1
    assert refused == 200 and len(world.cloud.all) == 1 and world.slurm.state(job) == "RUNNING"
    assert world.events("orphan") == [] == second.events("orphan")


def test_a_controller_that_is_gone_is_replaced_with_its_nodes_and_stays_away_when_it_is_back(world, second):
    job = rented(world)
    (lease,) = world.ledger.leases()
    world.clock.at += STALE_S - 60
    with pytest.raises(OwnedElsewhere):
        second.tick()
    world.clock.at += 120
    second.tick()
    assert f"took the site over from controller {ownership.owner_of(world.ledger).id}" in second.events("owner")[0]
    (again,) = second.ledger.leases()
    assert (again.node, again.instance_id, again.state) == (lease.node, lease.instance_id, records.READY)
    with pytest.raises(OwnedElsewhere):
        world.tick()
    second.until(lambda: second.slurm.state(job) == "COMPLETED", 2 * HOUR)
    assert len(second.slurm.jobs[job].started) == 1
    second.until(lambda: not second.cloud.alive(), 600)
    second.clock.at += STALE_S + 60
    world.tick()  # and back
    with pytest.raises(OwnedElsewhere):
        second.tick()
    world.until(lambda: not world.ledger.leases(), 600)


def test_what_is_launched_says_whose_it_is_and_what_it_costs_in_every_repeat(world):
    world.cloud.errors = [None]
    world.cloud.lost_answers = 1
    rented(world)
    (request,) = set(world.cloud.requests)
    assert request.owner == ownership.owner_of(world.ledger).id and request.usd_per_hour == 24.0
    assert LaunchRequest.recorded(json.loads(world.ledger.intents(request.launch)[0].request)) == request


def test_a_namesakes_instances_are_left_alone_and_told_once(world):
    world.tick()
    world.clock.at += HOUR
    other = LaunchRequest("x", "l", "lab", "p5", "us-east-1a", "spot", 1, {}, "ami", '{"nodes": ["p5-1"]}', "zz")
    world.cloud.launch(other)
    world.clock.at += HOUR
    world.tick(5)
    assert len(world.cloud.alive()) == 1 and world.events("orphan") == []
    (text,) = world.events("needs_a_person")
    assert "controller zz" in text
    before = replace(world.cloud.alive()[0], id="i-0", launched_s=world.clock.now() - 9 * HOUR, owner="yy")
    world.cloud.all["i-0"] = replace(next(iter(world.cloud.all.values())), instance=before)
    world.tick()  # this one was launched before the site was ours
    assert [instance.id for instance in world.cloud.alive()] == ["i-1"]


def test_a_head_out_of_reach_can_not_be_claimed_and_nothing_is_done(world, monkeypatch):
    job = rented(world)

    def gone(*_):
        raise SchedulerError("no route to host")

    monkeypatch.setattr(world.slurm, "claim", gone)
    before = seen(world)
    with pytest.raises(SchedulerError):
        world.controller.tick(world.document)
    assert seen(world) == before
    monkeypatch.undo()
    world.until(lambda: world.slurm.state(job) == "COMPLETED", 2 * HOUR)
