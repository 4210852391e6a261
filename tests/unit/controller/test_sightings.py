"""What the cloud doesn't show: one list is no proof that an instance is gone."""

import pytest

from ironburst.controller import records, spending
from ironburst.controller.ledger import Ledger
from ironburst.document import BudgetDocument as Declared
from ironburst.ports import OutcomeUnknown
from tests.fakes.world import World

HOUR = 3600.0
MONTHLY = Declared(usd_per_month=20000.0)


@pytest.fixture
def world(tmp_path):
    return World(tmp_path)


@pytest.fixture
def working(world):
    """A rented node that a job runs on, old enough to be expected in every list."""
    world.fill_home(limit_s=9 * HOUR)
    world.job = world.slurm.submit(limit_s=2 * HOUR, runs_s=HOUR, requeue=False)
    world.until(lambda: world.slurm.state(world.job) == "RUNNING", 60)
    world.clock.at += 400
    world.tick()
    return world


def silent(world):
    """The rented node answers Slurm no more."""
    world.slurm.nodes[world.ledger.leases()[0].node].states |= {"NOT_RESPONDING"}


def test_one_incomplete_list_ends_no_job(working):
    working.cloud.partial = [0]
    working.tick(5)
    assert working.slurm.state(working.job) == "RUNNING" and working.states() == [records.READY]
    assert working.events("interrupted") == []


def test_a_node_that_answers_is_never_revoked_however_long_the_lists_are_incomplete(working):
    working.cloud.hidden = set(working.cloud.all)
    working.cloud.lost = set(working.cloud.all)
    working.until(lambda: working.slurm.state(working.job) == "COMPLETED", 2 * HOUR)
    assert len(working.slurm.jobs[working.job].started) == 1 and working.events("interrupted") == []


def test_a_silent_node_whose_instance_is_shown_by_its_id_is_kept(working):
    working.cloud.hidden = set(working.cloud.all)
    silent(working)
    working.tick(400)
    assert working.states() == [records.READY] and working.slurm.state(working.job) == "RUNNING"


def test_gone_is_unseen_for_five_minutes_and_silent_and_unknown_by_its_id(working):
    working.cloud.hidden = working.cloud.lost = set(working.cloud.all)
    silent(working)
    unseen = working.clock.now()
    working.until(lambda: working.events("interrupted"), 400)
    assert 290 <= working.clock.now() - unseen <= 310
    assert "not shown for 5 min" in working.events("interrupted")[0]


def test_a_cloud_that_cannot_be_asked_by_id_proves_nothing(working, monkeypatch):
    def fails(ids):
        raise OutcomeUnknown("no answer")

    monkeypatch.setattr(working.cloud, "described", fails)
    working.cloud.hidden = set(working.cloud.all)
    silent(working)
    working.tick(400)
    assert working.states() == [records.READY] and any("no answer" in text for text in working.events("trouble"))


def test_the_last_sighting_outlives_the_controller(working):
    seen_s = working.ledger.leases()[0].seen_s
    assert seen_s == pytest.approx(working.clock.now(), abs=5)
    working.ledger.close()
    working.start()
    working.cloud.hidden = set(working.cloud.all)
    working.tick()
    assert working.ledger.leases()[0].seen_s == seen_s


def test_the_ledger_has_the_address_of_a_leases_instance(working):
    """By it the gate knows what a rented node pushes; EC2 may not tell it with the launch."""
    instance = working.cloud.alive()[0]
    assert instance.address and working.ledger.leases()[0].address == instance.address
    working.ledger.update(working.ledger.leases(), address="")
    working.cloud.hidden = set(working.cloud.all)
    working.tick()
    assert working.ledger.leases()[0].address == ""
    working.cloud.hidden = set()
    working.tick()
    assert working.ledger.leases()[0].address == instance.address


def test_a_ledger_of_before_the_addresses_is_read(working):
    working.ledger._db.execute("ALTER TABLE leases DROP COLUMN address")
    working.ledger.close()
    assert Ledger(working.path, read_only=True).leases()[0].address == ""
    working.start()
    working.tick()
    assert working.ledger.leases()[0].address == working.cloud.alive()[0].address


def test_a_ledger_of_before_the_sightings_takes_its_leases_for_seen(working):
    working.ledger._db.execute("ALTER TABLE leases DROP COLUMN seen_s")
    working.ledger.close()
    assert Ledger(working.path, read_only=True).leases()[0].seen_s is None
    working.start()
    working.cloud.hidden = working.cloud.lost = set(working.cloud.all)
    silent(working)
    working.tick(100)
    assert working.states() == [records.READY]
    working.until(lambda: working.events("interrupted"), 400)


def ending(world, monkeypatch):
    """A lease whose instance was told to end, and lives on."""
    monkeypatch.setattr(world.cloud, "terminate", lambda ids: set())
    world.slurm.cancel(world.job)
    world.until(lambda: world.states() == [records.TERMINATED], 300)
    (instance,) = world.cloud.alive()
    return instance.id


def test_a_list_without_it_is_no_proof_that_an_instance_ended(working, monkeypatch):
    id = ending(working, monkeypatch)
    working.cloud.hidden = {id}
    working.tick(10)
    assert working.states() == [records.TERMINATED]
    before = spending.budget(working.ledger, MONTHLY, working.clock.now()).spent_usd
    working.clock.at += 600
    working.tick(10)  # unseen for long, but known by its id
    after = spending.budget(working.ledger, MONTHLY, working.clock.now()).spent_usd
    assert working.states() == [records.TERMINATED] and after - before > 600 / HOUR * 55
    monkeypatch.undo()
    working.until(lambda: not working.ledger.leases(), 120)
    assert working.cloud.alive() == []


def test_one_that_is_told_to_end_and_is_known_no_more_has_ended(working, monkeypatch):
    id = ending(working, monkeypatch)
    working.cloud.hidden = working.cloud.lost = {id}
    working.until(lambda: not working.ledger.leases(), 400)
    assert working.ledger.lease_of_instance(id, open_only=False).to_s is not None


def test_an_ended_instance_that_is_shown_alive_again_is_ended_and_paid_once(working, monkeypatch):
    working.slurm.cancel(working.job)
    working.until(lambda: not working.ledger.leases(), 300)
    (lease,) = working.ledger.leases(open_only=False)
    fake = working.cloud.all[lease.instance_id]
    monkeypatch.setattr(fake, "ended_at", None)
    fake.instance = fake.instance.__class__(**{**fake.instance.__dict__, "state": "running"})
    working.clock.at += 1000
    working.until(lambda: not working.cloud.alive() and not working.ledger.leases(), 200)
    (again,) = working.ledger.leases(open_only=False)
    assert again.id == lease.id and again.to_s >= lease.to_s + 1000
    assert any(lease.instance_id in text for text in working.events("trouble"))


@pytest.mark.parametrize("silent", [True, False])
def test_what_ended_unseen_is_paid_until_the_scheduler_held_it_for_dead(working, silent):
    """Nobody says when it ended; up to now is hours too much when the controller was away, and uses up a ceiling."""
    working.ledger._db.execute("UPDATE leases SET committed_until_s = committed_until_s + 36000")
    (instance,) = working.cloud.alive()
    ended_s, node = working.clock.now() + 600, working.slurm.nodes[working.ledger.leases()[0].node]
    working.clock.at = ended_s
    working.cloud.die(instance.id)
    working.clock.at += working.slurm.down_s
    working.slurm.live()
    assert node.record().silent_s == working.clock.now()
    if not silent:  # somebody drained it before: slurmctld keeps that reason
        node.reason = "the fan is loud"
    working.clock.at += 4 * HOUR
    now = working.clock.now()
    working.until(lambda: not working.ledger.leases(), HOUR)
    (lease,) = working.ledger.leases(open_only=False)
    alone_s = lease.seen_s + working.document.burst.dead_man_s  # its link may have been what failed
    assert lease.to_s == pytest.approx(max(ended_s + 300, alone_s) if silent else now, abs=10)


def test_an_instance_that_is_shown_ended_is_no_sighting(working):
    seen_s = working.ledger.leases()[0].seen_s
    working.cloud.die(working.cloud.alive()[0].id)
    working.clock.at += 200
    working.tick()
    (lease,) = working.ledger.leases(open_only=False)
    assert lease.seen_s == seen_s and lease.state in records.GOING


def test_what_a_lost_link_made_silent_is_paid_until_its_dead_mans_switch(working):
    """The link is down, then the controller is away for hours; the instance lives on until it ends itself."""
    (lease,) = working.ledger.leases()
    id, dead_man_s = lease.instance_id, working.document.burst.dead_man_s
    node = working.slurm.nodes[lease.node]
    node.states = (node.states - {"IDLE"}) | {"NOT_RESPONDING", "DOWN"}
    node.adds("Not responding", working.clock.now())
    working.clock.at += dead_man_s
    working.cloud.die(id)
    ended_s = working.clock.now()
    working.clock.at += 3 * HOUR
    working.cloud.hidden = working.cloud.lost = {id}  # forgotten by then
    working.tick(60)
    lease = working.ledger.lease_of_instance(id, open_only=False)
    assert ended_s - 10 <= lease.to_s <= ended_s + 300
