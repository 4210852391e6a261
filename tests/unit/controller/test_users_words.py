"""What users write of their jobs stays as they wrote it, and counts come from their own records."""

import pytest

from ironburst.burst import Decision, Resources, Widen
from ironburst.controller.apply import recheck
from tests.fakes.slurm import FakeNode
from tests.fakes.world import World

LONG = 9e5
ONE = Resources(1, 0, 100)


@pytest.fixture
def world(tmp_path):
    world = World(tmp_path, usd_per_month=1e6, cool_down_s=86400)
    world.fill_home(limit_s=LONG)
    return world


def words(world, job):
    job = world.slurm.jobs[job].job
    return job.partitions, job.excluded


def lose_the_node(world, job):
    """Its node dies, and no other can be had."""
    world.cloud.capacity = {
        (zone, market): 0 for zone in ("us-east-1a", "us-east-1b") for market in ("spot", "on-demand")
    }
    world.cloud.die(world.cloud.alive()[0].id)
    world.until(lambda: world.slurm.state(job) == "PENDING" and not world.ledger.leases(), 3000)
    world.tick(20)


@pytest.mark.parametrize(
    ("partitions", "excluded"),
    [
        (("home",), ()),
        (("home", "h200"), ()),
        (("h200", "home", "a100"), ("dgx01",)),
        (("home",), ("p5-1",)),
        (("home", "h200"), ("dgx02", "p5-1", "p5-2")),
    ],
)
def test_partitions_and_exclusions_come_back_exactly_as_they_were_written(world, partitions, excluded):
    world.slurm.nodes["h200-1"] = FakeNode("h200-1", ("h200",), {"IDLE"})
    world.slurm.submit(limit_s=LONG, runs_s=LONG, partitions=("h200",))
    job = world.slurm.submit(limit_s=7200, runs_s=3600, partitions=partitions, excluded=excluded)
    world.until(lambda: world.slurm.state(job) == "RUNNING", 600)
    wide, off = words(world, job)
    assert set(wide) == {*partitions, "burst-p5"} and set(off) >= set(excluded)
    assert not set(world.slurm.jobs[job].job.on) & set(excluded)
    lose_the_node(world, job)
    assert words(world, job) == (partitions, excluded)
    world.start()  # a controller that was started anew knows it, too
    world.tick(3)
    assert words(world, job) == (partitions, excluded)


def test_a_rented_node_that_its_user_excludes_while_it_is_widened_stays_excluded(world):
    """Beside a Slurm of one's own no job_submit.lua refuses that."""
    world.slurm._may = lambda name, job: False
    job = world.slurm.submit(limit_s=7200, runs_s=3600, excluded=("dgx01", "p5-3"))
    world.until(lambda: "burst-p5" in words(world, job)[0], 600)
    assert words(world, job)[1] == ("dgx01", "p5-2", "p5-3")
    world.slurm.change(job, excluded=("dgx01", "p5-1", "p5-2"))  # and may have p5-3 again
    world.tick(3)
    world.slurm.change(job, eligible_s=world.clock.now() + 9e4)  # put off: it is narrowed
    world.until(lambda: words(world, job)[0] == ("home",), 600)
    assert words(world, job)[1] == ("dgx01", "p5-1")


def test_what_was_changed_between_deciding_and_doing_is_not_written_over(world):
    job = world.slurm.submit(limit_s=7200, runs_s=3600)
    before = world.slurm.observe()
    for changes in ({"partitions": ("home", "h200")}, {"excluded": ("dgx01",)}, {"eligible_s": 2e9}):
        held = world.slurm.jobs[job].job
        world.slurm.change(job, **changes)
        widen, dropped = _widened(world, before, job)
        assert widen == () and "changed meanwhile" in dropped[0]
        world.slurm.jobs[job].job = held
    assert _widened(world, before, job)[0]


def _widened(world, before, job):
    decision = Decision(widen=(Widen(job, ("home", "burst-p5"), (), (), "its nodes are there"),))
    checked, dropped = recheck(decision, world.slurm.observe(), None, (), world.clock.now(), (), before.jobs)
    return checked.widen, dropped


def test_a_moment_that_its_user_set_stays_and_a_requeues_delay_is_lifted(tmp_path):
    world = World(tmp_path, markets=["spot"], usd_per_month=1e6, tick_s=5)
    world.fill_home(limit_s=LONG)
    job = world.slurm.submit(limit_s=7200, runs_s=3000)
    world.until(lambda: world.slurm.state(job) == "RUNNING", 400)
    world.cloud.interrupt(world.cloud.alive()[0].id)
    world.until(lambda: world.slurm.state(job) == "PENDING", 400)
    world.until(lambda: world.slurm.jobs[job].job.eligible_s <= world.clock.now(), 60)  # no two minutes
    later = world.clock.now() + 86400
    world.slurm.change(job, eligible_s=later)
    world.pass_by(3600, 30)
    assert world.slurm.state(job) == "PENDING" and world.slurm.jobs[job].job.eligible_s == later


def test_losses_of_spot_are_counted_where_they_happen_and_nothing_else_is(tmp_path):
    world = World(tmp_path, markets=["spot"], usd_per_month=1e6, cool_down_s=60)
    world.fill_home(limit_s=LONG)
    job = world.slurm.submit(limit_s=7200, runs_s=LONG, restarts=5)  # preempted at home before
    losses = lambda: world.ledger.job(job).spot_losses  # noqa: E731
    world.until(lambda: world.slurm.state(job) == "RUNNING", 600)
    world.tick()
    world.slurm.requeue(job)  # an administrator's
    world.until(lambda: world.slurm.jobs[job].job.restarts == 6, 600)
    assert losses() == 0
    for count, takes in enumerate((world.cloud.interrupt, world.cloud.die), 1):
        world.until(lambda: world.slurm.state(job) == "RUNNING", 7200)
        world.tick(2)
        takes(
            *(
                (world.cloud.alive()[-1].id,)
                if takes == world.cloud.interrupt
                else (world.cloud.alive()[-1].id, "Server.SpotInstanceTermination")
            )
        )
        world.until(lambda count=count: losses() == count, 3600)
        world.until(lambda: world.slurm.state(job) == "PENDING", 3600)
    world.tick(5)
    assert losses() == 2


def test_jobs_that_share_with_nobody_get_nodes_of_their_own_though_the_scheduler_says_nothing_of_it(world):
    alone = set()
    world.slurm._may = lambda name, job: (
        not world.slurm._on(name) if job.id in alone else not any(on.job.id in alone for on in world.slurm._on(name))
    )
    ids = [world.slurm.submit(limit_s=7200, runs_s=6000, each=ONE, id=n) for n in (101, 102, 103) if not alone.add(n)]
    world.pass_by(900, 10)
    assert [world.slurm.state(job) for job in ids] == ["RUNNING"] * 3
    assert any("nodes of its own" in text for text in world.events("unstarted"))


def test_exclusive_jobs_that_say_so_take_no_patience(world):
    ids = [world.slurm.submit(limit_s=7200, runs_s=6000, each=ONE, exclusive="node") for _ in range(3)]
    world.until(lambda: all(world.slurm.state(job) == "RUNNING" for job in ids), 120)
    assert len({world.slurm.jobs[job].job.on for job in ids}) == 3 and world.events("unstarted") == []


@pytest.mark.parametrize("types", [{}, {"a100": 8}])
def test_a_job_beside_an_idle_node_that_it_may_not_have_is_rented_for(tmp_path, types):
    world = World(tmp_path, home=2, usd_per_month=1e6, wait_limit_s=3600)
    world.slurm.nodes["dgx02"].gpu_types = types
    world.slurm._may = lambda name, job: name != "dgx02" or not job.gpu_type
    world.slurm.submit(limit_s=LONG, runs_s=LONG)
    job = world.slurm.submit(limit_s=7200, runs_s=600, gpu_type="h100")
    world.until(lambda: world.slurm.state(job) == "RUNNING", 60 if types else 300)
    assert bool(world.events("unstarted")) != bool(types)


def test_a_job_that_was_put_back_before_its_node_was_taken_lost_nothing(tmp_path):
    world = World(tmp_path, markets=["spot"], usd_per_month=1e6)
    world.fill_home(limit_s=LONG)
    job = world.slurm.submit(limit_s=7200, runs_s=LONG)
    world.until(lambda: world.slurm.state(job) == "RUNNING", 600)
    world.tick(2)
    world.slurm._may = lambda name, job: False
    world.slurm.requeue(job)  # an administrator's
    world.until(lambda: world.slurm.state(job) == "PENDING", 60)
    world.tick(2)
    world.cloud.interrupt(world.cloud.alive()[0].id)
    world.tick(3)
    assert world.events("interrupted") and world.ledger.job(job).spot_losses == 0


def test_a_gang_that_loses_all_its_spot_nodes_at_once_has_lost_spot_once(tmp_path):
    world = World(tmp_path, markets=["spot"], usd_per_month=1e6)
    burst = world.document.burst.model_copy(update={"spot_max_nodes": 2})
    world.document = world.document.model_copy(update={"burst": burst})
    world.fill_home(limit_s=LONG)
    job = world.slurm.submit(nodes=2, limit_s=7200, runs_s=LONG)
    world.until(lambda: world.slurm.state(job) == "RUNNING", 600)
    world.tick(2)
    for instance in world.cloud.alive():
        world.cloud.interrupt(instance.id)
    world.tick(3)
    assert world.ledger.job(job).spot_losses == 1


def test_what_we_excluded_goes_also_where_its_user_narrowed_the_job(world):
    """`scontrol update partition=home` leaves the exclusions, and the user wrote one of them himself."""
    world.slurm._may = lambda name, job: False
    job = world.slurm.submit(limit_s=7200, runs_s=3600, excluded=("p5-3",))
    world.until(lambda: "burst-p5" in words(world, job)[0], 600)
    assert words(world, job)[1] == ("p5-2", "p5-3")
    world.slurm.change(job, partitions=("home",), eligible_s=world.clock.now() + 9e4)
    world.tick(3)
    assert words(world, job) == (("home",), ("p5-3",))
    world.slurm.change(job, excluded=("p5-2", "p5-3"))  # and this is the user's
    world.tick(3)
    assert words(world, job) == (("home",), ("p5-2", "p5-3"))
