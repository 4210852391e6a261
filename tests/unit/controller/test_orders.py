"""Orders of people through the whole controller: what they put into the spool is done, told, and holds."""

import json
import os
import pwd
import time

import pytest

from ironburst.burst import decide
from ironburst.controller import loop, order_book, order_spool
from ironburst.controller.loop import SystemClock
from ironburst.controller.order_book import GRACE_S
from ironburst.controller.records import CoolDownRow
from ironburst.document import BudgetDocument
from ironburst.ports import SchedulerError
from tests.fakes import Crash
from tests.fakes.world import World

HOUR = 3600.0


@pytest.fixture
def world(tmp_path):
    world = World(tmp_path)
    order_spool.prepare(world.path)
    world.fill_home(limit_s=86400.0)
    return world


def order(world, verb, **asked):
    """As the verbs of the command line put it there; the order that came of it."""
    id = order_spool.put(world.path, json.dumps({"verb": verb, **asked}))
    world.tick()
    return next(each for each in order_book.read(world.ledger) if each.id == id)


def waits(world, job):
    return world.ledger.last_decisions()[job].text


def rented(world, count=1, **more):
    """Jobs that run on rented nodes, one each."""
    jobs = [world.slurm.submit(limit_s=8 * HOUR, runs_s=2 * HOUR, **more) for _ in range(count)]
    world.until(lambda: all(world.slurm.state(job) == "RUNNING" for job in jobs), 600)
    return jobs


def test_paused_nothing_is_launched_and_what_is_rented_goes_on(world):
    (running,) = rented(world)
    done = order(world, "pause", why="looking at the bill")
    assert done.answer.startswith("renting is paused by ") and done.answer.endswith(": looking at the bill")
    job = world.slurm.submit(limit_s=8 * HOUR)
    world.pass_by(600, 10)
    assert len(world.cloud.alive()) == 1 and world.slurm.state(running) == "RUNNING"
    assert "worth renting for, but renting is paused by " in waits(world, job)
    order(world, "resume")
    world.until(lambda: world.slurm.state(job) == "RUNNING", 600)


def test_a_pause_outlives_the_process_and_a_new_document(world):
    order(world, "pause", why="night")
    world.ledger.close()
    world.start()
    world.document = world.document.model_copy(update={"serial": 2})
    job = world.slurm.submit(limit_s=8 * HOUR)
    world.pass_by(600, 10)
    assert not world.cloud.alive() and "renting is paused by " in waits(world, job)


def test_a_pause_has_an_end(world):
    order(world, "pause", until_s=world.clock.now() + 300)
    job = world.slurm.submit(limit_s=8 * HOUR)
    world.pass_by(290, 10)
    assert not world.cloud.alive()
    world.until(lambda: world.slurm.state(job) == "RUNNING", 900)
    assert any("its time is over: renting is paused" in text for text in world.events("order"))


def test_what_is_not_launched_yet_is_not_launched_after_a_pause(world):
    world.slurm.power_save_s = 60.0  # the nodes are powered up in the scheduler, and the cloud isn't asked yet
    world.slurm.submit(limit_s=8 * HOUR)
    world.until(lambda: "powering" in world.states(), 120)
    order(world, "pause")
    world.pass_by(300, 10)
    assert world.cloud.instances("lab") == [] and world.states() == []


def test_stopped_what_runs_ends_with_its_jobs_and_no_job_follows(world):
    (running,) = rented(world)
    job = world.slurm.submit(limit_s=8 * HOUR)
    world.until(lambda: len(world.cloud.alive()) == 2, 300)  # the second one boots
    order(world, "stop")
    world.pass_by(60, 2)
    assert len(world.cloud.alive()) == 1 and world.slurm.state(running) == "RUNNING"
    assert world.slurm.jobs[job].job.partitions == ("home",) and "renting is stopped by " in waits(world, job)
    world.until(lambda: world.slurm.state(running) == "COMPLETED", 3 * HOUR)
    world.until(lambda: not world.ledger.leases(), 120)
    assert world.slurm.state(job) == "PENDING" and len(world.slurm.jobs[running].started) == 1


def test_stop_now_puts_jobs_back_and_ends_the_nodes_within_seconds(world):
    jobs = rented(world, 3)
    world.slurm.complete_s = 90.0  # jobs that take their time: KillWait is the limit
    began = world.clock.now()
    done = order(world, "stop", now=True)
    assert "p5-1, p5-2, p5-3 end" in done.answer and f"job {jobs[0]} of alice" in done.answer
    world.until(lambda: not world.cloud.alive(), 60)
    assert world.clock.now() - began <= GRACE_S + 3 * world.document.burst.tick_s
    world.pass_by(300, 10)
    assert [world.slurm.state(job) for job in jobs] == ["PENDING"] * 3  # none is lost
    assert not world.ledger.leases() and not world.cloud.alive()
    assert world.controller.hurried is False
    order(world, "resume")
    world.until(lambda: all(world.slurm.state(job) == "RUNNING" for job in jobs), 1200)


@pytest.mark.parametrize("kind", [{"requeue": False}, {"batch": False}])
def test_stop_now_loses_no_job_unless_that_is_ordered(world, kind):
    world.document = world.document.model_copy(
        update={"pools": [world.document.pools[0].model_copy(update={"markets": ["on-demand"]})]}
    )
    (mine,) = rented(world, **kind)
    (other,) = rented(world)
    done = order(world, "stop", now=True)
    assert f"stays until job {mine} of alice" in done.answer and "--end-jobs" in done.answer
    world.until(lambda: len(world.cloud.alive()) == 1, 60)
    world.pass_by(300, 10)
    assert world.slurm.state(mine) == "RUNNING" and world.slurm.state(other) == "PENDING"
    done = order(world, "stop", now=True, end_jobs=True)
    assert f"job {mine} of alice" in done.answer and "can't be put back, and ends" in done.answer
    world.until(lambda: not world.cloud.alive(), 60)


def test_stop_now_with_jobs_ends_nodes_without_the_scheduler(world):
    (job,) = rented(world)
    order_spool.put(world.path, json.dumps({"verb": "stop", "now": True, "end_jobs": True}))

    def silent():
        raise SchedulerError("slurmctld is away")

    world.slurm.observe, observe = silent, world.slurm.observe
    with pytest.raises(SchedulerError):
        world.tick()
    assert not world.cloud.alive()
    world.slurm.observe = observe
    world.until(lambda: not world.ledger.leases(), 900)
    assert world.slurm.state(job) == "PENDING"


@pytest.mark.parametrize("target", ["p5", "us-east-1a", "p5.48xlarge"])
def test_closed_places_take_no_launch(world, target):
    done = order(world, "close", target=target, why="bad rack")
    assert done.answer.startswith(f"{target} is closed by ")
    job = world.slurm.submit(limit_s=8 * HOUR)
    if target == "us-east-1a":
        world.until(lambda: world.slurm.state(job) == "RUNNING", 600)
        assert {instance.zone for instance in world.cloud.instances("lab")} == {"us-east-1b"}
        return
    world.pass_by(300, 10)
    assert not world.cloud.alive() and "bad rack" in waits(world, job)
    world.document = world.document.model_copy(update={"serial": 2})  # reopens what refusals closed, not this
    world.pass_by(300, 10)
    assert not world.cloud.alive()
    order(world, "open", target=target)
    world.until(lambda: world.slurm.state(job) == "RUNNING", 600)


def test_a_lower_budget_holds_and_a_higher_one_is_refused(world):
    refused = order(world, "budget", usd=30000.0)
    assert refused.refused and "declares $20,000.00 a month, and an order only lowers it" in refused.answer
    order(world, "budget", usd=5.0, until_s=world.clock.now() + 600)
    job = world.slurm.submit(limit_s=8 * HOUR)
    world.pass_by(300, 10)
    said = world.ledger.decisions(job)[-1].text
    assert not world.cloud.alive() and "$5.00" in said
    world.until(lambda: world.slurm.state(job) == "RUNNING", 1200)


def test_a_users_limit_holds_for_his_jobs_alone(world):
    order(world, "limit", target="bob", gpus=8, why="deadline of others")
    first = world.slurm.submit(limit_s=8 * HOUR, runs_s=HOUR, user="bob")
    second = world.slurm.submit(limit_s=8 * HOUR, runs_s=HOUR, user="bob")
    other = world.slurm.submit(limit_s=8 * HOUR, runs_s=2 * HOUR, user="ann")
    world.until(lambda: world.slurm.state(first) == world.slurm.state(other) == "RUNNING", 600)
    assert "it needs 8 GPUs, and bob's jobs have 8 of 8 rented ones (limited by " in waits(world, second)
    world.until(lambda: world.slurm.state(second) == "RUNNING", 2 * HOUR)  # when the first one has ended
    assert world.slurm.state(first) == "COMPLETED"


def test_a_users_money_is_limited(world):
    order(world, "limit", target="bob", usd=200.0)
    first = world.slurm.submit(limit_s=4 * HOUR, runs_s=HOUR, user="bob")
    second = world.slurm.submit(limit_s=8 * HOUR, runs_s=HOUR, user="bob")
    world.until(lambda: world.slurm.state(first) == "RUNNING", 600)
    world.pass_by(60)
    assert "bob has used $" in waits(world, second) and "of $200.00 this month" in waits(world, second)


def test_a_replay_says_the_same(world):
    order(world, "pause", why="night")
    order(world, "limit", target="alice", gpus=0)
    world.slurm.submit(limit_s=8 * HOUR)
    world.pass_by(120, 10)
    last = world.rounds()[-1]
    assert last.snapshot.halt and last.snapshot.budget.users[0].user == "alice"
    assert decide(last.snapshot, last.policy) == last.decision


def test_ticks_are_written_once_while_nothing_but_money_changes(world):
    rented(world)
    order(world, "limit", target="alice", usd=5000.0)
    world.pass_by(20)
    count = len(world.rounds())
    world.pass_by(200, 10)
    assert len(world.rounds()) <= count + 1


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ({"verb": "pauze"}, "'pauze' is no order"),
        ({"verb": "close", "target": "p4"}, "'p4' is no pool, zone or instance type of the document; it has p5, us-"),
        ({"verb": "pause", "until_s": 5.0}, "1970-01-01 00:00:05Z is over"),
        ({"verb": "limit", "gpus": 4}, "say which"),
        ({"verb": "limit", "target": "bob", "gpus": -4}, "0 or more"),
        ({"verb": "budget", "usd": float("inf")}, "0 or more"),
        ({"verb": "budget", "usd": 5.0, "per": "week"}, "not for 'week'"),
        ({"verb": "pause", "until_s": "soon"}, "Request.until_s"),
        (["pause"], "a mapping is needed"),
        ({}, "Request"),
    ],
)
def test_an_order_that_makes_no_sense_is_refused_with_a_sentence(world, asked, says):
    id = order_spool.put(world.path, json.dumps(asked))
    world.tick()
    (done,) = [each for each in order_book.read(world.ledger) if each.id == id]
    assert done.refused and says in done.answer and order_book.in_force(world.ledger, world.clock.now()) == []
    assert order_spool.waiting(world.path) == [] and says in world.events("order")[-1]


def test_a_pause_takes_no_stop_back(world):
    order(world, "stop")
    assert "a pause would be less" in order(world, "pause").answer
    assert "it is over that renting is stopped" in order(world, "resume").answer
    assert order(world, "resume").answer == "nothing was to be lifted"


def test_who_ordered_is_the_files_owner_and_root_alone_speaks_for_others(world):
    me = pwd.getpwuid(os.getuid()).pw_name
    said = order(world, "pause", sudo="alice").who
    assert said == (f"{me} (by sudo of alice)" if os.getuid() == 0 else me)
    if os.getuid() == 0:
        id = order_spool.put(world.path, json.dumps({"verb": "resume", "sudo": "alice"}))
        os.chown(order_spool.folder(world.path) / f"{id}.json", 65534, -1)
        world.tick()
        (done,) = [each for each in order_book.read(world.ledger) if each.id == id]
        assert done.who == pwd.getpwuid(65534).pw_name


def test_what_is_no_file_of_ones_own_is_no_order(world, tmp_path):
    folder = order_spool.folder(world.path)
    other = tmp_path / "others"
    other.write_text(json.dumps({"verb": "stop", "now": True}))
    (folder / "link.json").symlink_to(other)
    os.link(other, folder / "hard.json")
    os.mkfifo(folder / "pipe.json")
    (folder / "large.json").write_text(" " * 20_000)
    world.tick()
    assert order_book.in_force(world.ledger, world.clock.now()) == []
    assert order_spool.waiting(world.path) == [] and len(world.events("order")) == 4
    assert folder.stat().st_mode & 0o7777 == 0o1770


def test_an_order_is_taken_up_once_whenever_the_process_dies(world):
    id = order_spool.put(world.path, json.dumps({"verb": "pause"}))
    path = order_spool.folder(world.path) / f"{id}.json"
    text = path.read_text()
    world.tick()
    path.write_text(text)  # as if it had died before it took it off
    assert world.controller.hurried
    world.tick()
    assert [each.id for each in order_book.read(world.ledger)] == [id] and not world.controller.hurried


def test_without_a_budget_there_is_nothing_to_lower(world):
    world.document = world.document.model_copy(update={"budget": None})
    assert "no budget is declared" in order(world, "budget", usd=5.0).answer
    world.document = world.document.model_copy(update={"budget": BudgetDocument(usd_per_month=50.0, usd_per_day=20.0)})
    assert order(world, "budget", usd=25.0, per="day").refused
    assert not order(world, "budget", usd=15.0, per="day").refused


def test_open_forgets_what_refusals_had_closed(world):
    place = CoolDownRow("p5", "us-east-1a", "spot", 1, None, "three nodes in a row", 3, world.clock.now(), 1)
    world.ledger.put_cool_down(place)
    assert "what refusals had closed there is open again" in order(world, "open", target="p5").answer
    assert world.ledger.cool_downs(world.clock.now()) == []


def test_users_read_beside_their_job_that_a_person_has_paused(world):
    order(world, "pause", why="the bill")
    job = world.slurm.submit(limit_s=8 * HOUR)
    world.pass_by(120, 10)
    assert world.slurm.comments[job].startswith("ironburst: renting is paused by ")


def test_an_order_is_heard_between_two_ticks(world):
    """The next tick would be due in an hour."""
    clock, began = SystemClock(), time.monotonic()

    class Slow:
        ticks, hurried = 0, False

        def tick(self, document):
            self.ticks, self.hurried = self.ticks + 1, True
            if self.ticks == 2:
                clock.stop()

    document = world.document.model_copy(update={"burst": world.document.burst.model_copy(update={"tick_s": 3600})})
    loop.run(Slow(), clock, lambda: document, lambda report: None)
    assert time.monotonic() - began < 30


@pytest.mark.parametrize("after", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_a_death_at_any_step_of_stop_now_loses_no_job_and_leaves_nothing_rented(tmp_path, after):
    for at in range(1, 50):
        folder = tmp_path / f"{at}"
        folder.mkdir()
        world = World(folder)
        order_spool.prepare(world.path)
        world.fill_home(limit_s=86400.0)
        jobs = rented(world, 2)
        order_spool.put(world.path, json.dumps({"verb": "stop", "now": True}))
        world.ledger.close()
        calls = world.start(at=at, after=after)
        try:
            world.pass_by(40, 2)
        except Crash:
            world.ledger.close()
            world.start()
            world.pass_by(120, 2)
        assert not world.cloud.alive() and not world.ledger.leases(), at
        assert [world.slurm.state(job) for job in jobs] == ["PENDING", "PENDING"], at
        world.ledger.close()
        if next(calls) <= at:  # there are no more steps
            return
    pytest.fail("more steps than were tried")
