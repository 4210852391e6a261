"""The controller moves to another head with a copy of its ledger, or without: nothing is launched twice, nothing ends;
and as long as the old one lives, or may live, the new one does nothing.
"""

import socket
import sqlite3
from contextlib import closing

import pytest

from ironburst.controller import ownership, records
from ironburst.controller.ownership import STALE_S, OwnedElsewhere
from tests.fakes.world import World

HOUR = 3600.0


@pytest.fixture
def old(tmp_path):
    """With a node that works, one that idles, and one that boots."""
    world = World(tmp_path / "old", idle_s=1800)
    world.fill_home(limit_s=9 * HOUR)
    world.works = world.slurm.submit(limit_s=2 * HOUR, runs_s=HOUR)
    idles = world.slurm.submit(limit_s=600, runs_s=30)
    world.until(lambda: world.slurm.state(idles) == "COMPLETED", 120)
    world.boots = world.slurm.submit(nodes=2, limit_s=600, runs_s=60)
    world.cloud.boot_s = 100.0
    world.slurm.submit(limit_s=600, runs_s=30, account="x")
    world.tick(2)
    assert sorted(world.states()) != [] and records.READY in world.states()
    return world


def copied(old, tmp_path, *, ledger=True):
    """A controller elsewhere; `ledger`: with a copy of the old one's."""
    new = World(tmp_path / "new", idle_s=1800)
    new.ledger.close()
    for file in new.path.parent.glob("ledger.sqlite*"):
        file.unlink()
    if ledger:
        with closing(sqlite3.connect(old.path)) as here, closing(sqlite3.connect(new.path)) as there:
            here.backup(there)
    new.clock, new.slurm, new.cloud = old.clock, old.slurm, old.cloud
    new.start()
    return new


def world_of(old):
    """All that a controller could change but its claim."""
    return (
        list(old.cloud.requests),
        {id: each.instance.state for id, each in old.cloud.all.items()},
        {name: sorted(node.states) for name, node in old.slurm.nodes.items()},
        {id: (job.job.partitions, job.job.on) for id, job in old.slurm.jobs.items()},
        set(old.slurm.permits),
    )


def goes_on(new, requests):
    """What ran runs on, what was asked for isn't asked for again, and all ends in time."""
    new.until(lambda: new.slurm.state(new.works) == "COMPLETED", 2 * HOUR)
    assert len(new.slurm.jobs[new.works].started) == 1 and not new.slurm.forced
    assert new.cloud.requests[: len(requests)] == requests
    assert len({request.token for request in new.cloud.requests}) == len(new.cloud.requests)
    new.until(lambda: not new.ledger.leases() and not new.cloud.alive(), 4 * HOUR)
    assert new.events("orphan") == []


@pytest.mark.parametrize("ledger", [True, False], ids=["copied", "rebuilt from tags"])
def test_after_a_stop_the_next_one_goes_on_at_once(old, tmp_path, ledger):
    old.controller.stopped(old.document)
    old.ledger.close()
    spent, alive = list(old.cloud.requests), {instance.id for instance in old.cloud.alive()}
    new = copied(old, tmp_path, ledger=ledger)
    new.works = old.works
    new.tick()
    assert {instance.id for instance in new.cloud.alive()} >= alive and new.cloud.requests[: len(spent)] == spent
    if ledger:
        assert {lease.instance_id for lease in new.ledger.leases()} >= alive
        goes_on(new, spent)


def test_beside_a_living_one_it_changes_nothing_and_says_who_holds_the_site(old, tmp_path):
    new = copied(old, tmp_path)
    old.tick()
    for _ in range(5):
        old.slurm.live()
        before = world_of(old)
        with pytest.raises(OwnedElsewhere) as error:
            new.controller.tick(new.document)
        assert world_of(old) == before
        old.tick()  # it isn't disturbed
    assert str(old.path) in str(error.value) and ownership.owner_of(old.ledger).id in str(error.value)


def test_after_a_crash_it_waits_and_the_old_one_stays_away_when_it_is_back(old, tmp_path):
    new = copied(old, tmp_path)
    new.works = old.works
    with pytest.raises(OwnedElsewhere):
        new.tick()
    old.clock.at += STALE_S + 10
    spent = list(new.cloud.requests)
    new.tick()
    assert any("took the site over" in text for text in new.events("owner"))
    with pytest.raises(OwnedElsewhere):
        old.tick()
    goes_on(new, spent)


def test_a_call_without_an_answer_is_repeated_by_the_next_one_with_its_token(tmp_path):
    old = World(tmp_path / "old")
    old.fill_home(limit_s=9 * HOUR)
    old.cloud.lost_answers = 1
    job = old.slurm.submit(limit_s=600, runs_s=60)
    old.tick()
    assert old.states() == [records.REQUESTED]
    old.controller.stopped(old.document)
    old.ledger.close()
    new = copied(old, tmp_path)
    new.until(lambda: new.slurm.state(job) == "COMPLETED", 300)
    assert len(new.cloud.all) == 1


def test_a_container_with_the_same_file_is_the_same_owner(tmp_path, monkeypatch):
    world = World(tmp_path)
    world.tick()
    id = ownership.owner_of(world.ledger).id
    monkeypatch.setattr(socket, "gethostname", lambda: "pod-2")
    world.ledger.close()
    world.start()
    world.tick()
    assert ownership.owner_of(world.ledger).id == id


def test_the_same_path_on_another_host_is_another_owner(tmp_path, monkeypatch):
    """As a head's ledger is copied to the same path of the next head."""
    world = World(tmp_path)
    world.tick()
    id = ownership.owner_of(world.ledger).id
    world.ledger.close()
    (tmp_path / "copy").write_bytes(world.path.read_bytes())
    (tmp_path / "copy").replace(world.path)
    monkeypatch.setattr(socket, "gethostname", lambda: "head-2")
    world.start()
    with pytest.raises(OwnedElsewhere):
        world.tick()
    now = ownership.owner_of(world.ledger)
    assert now.id != id and now.before == (id,)


def test_what_it_says_while_it_runs_is_what_an_older_ironburst_reads(tmp_path):
    world = World(tmp_path)
    world.tick()
    assert "stopped" not in world.slurm.claimed[2]
    world.controller.stopped(world.document)
    assert '"stopped":true' in world.slurm.claimed[2]
