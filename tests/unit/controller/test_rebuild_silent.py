"""A ledger that is lost, or restored from a copy, while one of two clouds is silent: what its predecessor wrote of that
cloud's instances counts until it answers, and the other cloud's are brought up to date at once.
"""

import pytest

from ironburst import cli
from ironburst.cli import reap
from ironburst.controller import ownership, records
from ironburst.controller.ownership import STALE_S, heard_of
from ironburst.ports import CloudError, LaunchRequest, OutcomeUnknown
from tests.fakes.several import TwoClouds
from tests.unit.controller.test_rebuild import copy, lose, restore, spent
from tests.unit.controller.test_two_clouds import DEARER, has_none, running

HOUR = 3600.0
DEAD = OutcomeUnknown("compute.instances.aggregatedList: no answer (read timeout)")


def dead(cloud):
    """It answers nothing that matters here."""
    cloud.unlisted = DEAD
    terminate, cloud.terminate = cloud.terminate, raises
    launch, cloud.launch_all = cloud.launch_all, raises

    def answers():
        cloud.unlisted = None
        cloud.terminate, cloud.launch_all = terminate, launch

    return answers


def raises(*_):
    raise DEAD


@pytest.fixture
def world(tmp_path):
    """A job of an hour in the second cloud, one of three hours in the first."""
    world = TwoClouds(tmp_path, second=DEARER, usd_per_month=1e6, idle_s=300)
    world.fill_home(9e5)
    world.long = running(world, limit_s=4 * HOUR, runs_s=3 * HOUR, requeue=False)
    has_none(world.first)
    world.short = running(world, limit_s=2 * HOUR, runs_s=HOUR, requeue=False)
    world.first.capacity.clear()
    world.clock.at += 600
    world.tick()
    return world


def facts(world):
    """What a lease has to be afterwards."""
    return {
        (each.node, each.instance_id, each.state, each.pool, each.zone, each.market, each.usd_per_hour, each.from_s)
        for each in world.ledger.leases()
    }


def test_the_silent_clouds_leases_are_as_they_were_written(world):
    before, usd = facts(world), spent(world)
    jobs = {lease.node: world.ledger.jobs_of(lease.id) for lease in world.ledger.leases()}
    dead(world.second)
    lose(world)
    world.tick()
    assert facts(world) == before
    assert {lease.node: world.ledger.jobs_of(lease.id) for lease in world.ledger.leases()} == jobs
    assert spent(world) == pytest.approx(usd, abs=1), "counted once"


def test_jobs_go_on_in_both_and_what_gets_idle_is_given_back(world):
    answers = dead(world.second)
    lose(world)
    third = world.slurm.submit(limit_s=HOUR, runs_s=900)
    world.until(lambda: world.slurm.state(third) == "RUNNING", 600)
    assert {lease.pool for lease in world.ledger.leases() if third in world.ledger.jobs_of(lease.id)} == {"p5"}
    world.until(lambda: not world.slurm.unfinished.keys() - {1}, 4 * HOUR)
    world.until(lambda: not world.first.alive(), HOUR)
    assert len(world.second.requests) == 1
    answers()
    world.until(world_is_empty(world), 600)
    assert all(len(world.slurm.jobs[job].started) == 1 for job in (world.short, world.long, third))
    assert world.slurm.state(world.short) == world.slurm.state(world.long) == "COMPLETED"


def world_is_empty(world):
    return lambda: not world.cloud.alive() and not world.ledger.leases()


def test_what_has_ended_meanwhile_is_found_when_the_cloud_answers(world):
    answers = dead(world.second)
    lose(world)
    world.tick()
    (instance,) = world.second.alive()
    world.second.die(instance.id)
    world.tick(3)
    assert len(world.ledger.leases()) == 2, "nothing is concluded"
    answers()
    world.until(lambda: {lease.pool for lease in world.ledger.leases()} == {"p5"}, HOUR)


def test_what_was_being_ended_is_ended_still(world):
    answers = dead(world.second)
    world.until(lambda: world.slurm.state(world.short) == "COMPLETED", 2 * HOUR)
    world.pass_by(900, 30.0)
    assert {lease.state for lease in world.ledger.leases()} == {records.LEAVING, records.READY}
    lose(world)
    world.tick()
    assert {lease.state for lease in world.ledger.leases()} == {records.LEAVING, records.READY}
    answers()
    world.until(lambda: not world.second.alive(), 600)


def test_an_old_copys_lease_of_the_silent_cloud_gives_way_to_what_was_written_later(world, tmp_path):
    copy(world, tmp_path / "copy")
    world.until(lambda: world.slurm.state(world.short) == "COMPLETED", 2 * HOUR)
    world.until(lambda: not world.second.alive(), HOUR)
    has_none(world.first)
    world.pass_by(HOUR, 60.0)
    again = running(world, limit_s=2 * HOUR, runs_s=HOUR, requeue=False)
    (before,) = (each for each in facts(world) if each[3] == "g5")
    answers = dead(world.second)
    usd = spent(world)
    restore(world, tmp_path / "copy")
    world.tick()
    assert {each for each in facts(world) if each[3] == "g5"} == {before}
    assert spent(world) == pytest.approx(usd, abs=2)
    answers()
    world.until(lambda: world.slurm.state(again) == "COMPLETED", 2 * HOUR)
    assert len(world.slurm.jobs[again].started) == 1


def test_an_ended_lease_of_the_copy_is_over_though_its_cloud_is_silent(world, tmp_path):
    copy(world, tmp_path / "copy")
    world.until(lambda: not world.second.alive(), 3 * HOUR)
    world.tick()
    dead(world.second)
    usd = spent(world)
    restore(world, tmp_path / "copy")
    world.tick()
    assert {lease.pool for lease in world.ledger.leases()} == {"p5"}
    assert spent(world) == pytest.approx(usd, abs=2)


def test_a_call_without_an_answer_is_believed_for_as_long_as_money_was_set_aside(world):
    has_none(world.first)
    dead(world.second)
    world.second.unlisted = None
    world.slurm.submit(limit_s=HOUR, runs_s=600)
    world.until(lambda: records.REQUESTED in world.states(), 600)
    world.second.unlisted = DEAD
    world.tick()
    usd = spent(world)
    lose(world)
    world.slurm.cancel(max(world.slurm.jobs))
    world.tick()
    assert usd + 40 < spent(world) < usd + 60, "an hour of spot, and what follows it"


def test_what_an_older_ironburst_wrote_is_waited_with(world, monkeypatch):
    """It has neither nodes nor pools."""
    written = heard_of(world.slurm.claim("", "", STALE_S))
    dead(world.second)
    lose(world)
    monkeypatch.setattr(ownership, "heard_of", lambda claim: written.__class__(**vars(written) | {"whole": False}))
    with pytest.raises(CloudError, match="google"):
        world.controller.tick(world.document)
    assert world.ledger.leases() == []


def test_what_is_written_fits_the_kernels_argument(world, monkeypatch):
    (first, _) = world.ledger.leases()
    many = [first] * 3000
    monkeypatch.setattr(world.ledger, "leases", lambda **_: many)
    words = ownership._words(world.controller.site(world.document), ownership.owner_of(world.ledger))
    assert 90_000 < len(words) < 128 * 1024
    assert '"whole":false' in words


def test_reap_ends_what_nobody_leases_in_the_cloud_that_answers(world, tmp_path, monkeypatch, capsys):
    path = tmp_path / "cluster.json"
    path.write_text(world.document.model_dump_json())
    monkeypatch.setenv("IRONBURST_DOCUMENT", str(path))
    monkeypatch.setenv("IRONBURST_LEDGER", str(world.path))
    monkeypatch.setattr(reap, "SystemClock", lambda: world.clock)
    monkeypatch.setattr(reap.clouds, "connect", lambda document: world.cloud)
    monkeypatch.setattr(reap.schedulers, "connect", lambda arguments, document: world.slurm)
    launch = '{"nodes": ["p5-3"]}'
    world.first.launch(LaunchRequest("ib-x", "lost", "lab", "p5", "us-east-1a", "spot", 1, {}, "ami-1", launch))
    (lost,) = world.first.tokens["ib-x"][1]
    dead(world.second)
    world.ledger.close()
    assert cli.main(["reap", "--grace", "0"]) == 0
    said = capsys.readouterr()
    assert said.out == f"{lost} ended\n" and "google doesn't list its instances" in said.err
    assert len(world.first.alive()) == len(world.second.alive()) == 1
