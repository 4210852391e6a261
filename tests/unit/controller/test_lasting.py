"""A state that should be short and lasts: told, and ended in the time that the table gives it, to the cent."""

from dataclasses import replace

import pytest

from ironburst.burst import Resources
from ironburst.controller import karpenter, records
from ironburst.nodes.state_times import JOB, NODE, Then
from tests.fakes.world import World

HOUR = 3600.0
USD = 55.04  # an hour of the fakes' node
LASTING = sorted(name for name, row in JOB.items() if row.steps and not row.works)
ENDS = (Then.REQUEUE, Then.FORCE)


@pytest.fixture
def world(tmp_path):
    it = World(tmp_path, home=1, usd_per_month=1e6, idle_s=300, tick_s=30, markets=["on-demand"])
    it.fill_home(limit_s=9e6)
    return it


def running(world, limit_s=900, **more):
    job = world.slurm.submit(limit_s=limit_s, runs_s=9e9, **more)
    world.until(lambda: world.slurm.state(job) == "RUNNING", 600)
    return job


def sticks(world, job, state, **more):
    """It stays in that state, whatever is asked of it; Slurm's end of it is when it began."""
    fake = world.slurm.jobs[job]
    end_s = world.clock.at if state == "COMPLETING" else fake.job.end_s
    fake.job, fake.ends = replace(fake.job, state=state, end_s=end_s, **more), None
    return world.clock.at


def spent(world):
    return karpenter.budget_of(world.controller.site(world.document)).spent_usd


def told(world):
    return [text for text in world.events("needs_a_person") if "has been" in text]


def allowed_s(row, world):
    """Until its last step, a way out (KillWait, the time to leave, Slurm's own), and a tick for each."""
    return (
        row.steps[-1][0] + world.document.scheduler.kill_wait_s + records.STOP_S + 30 + 6 * world.document.burst.tick_s
    )


@pytest.mark.parametrize("requeue", [True, False])
@pytest.mark.parametrize("state", LASTING)
def test_a_job_that_stays_in_a_state_costs_what_the_table_allows(world, state, requeue):
    job, row = running(world, requeue=requeue), JOB[state]
    before, began = spent(world), sticks(world, job, state)
    while world.ledger.leases() and world.clock.at < began + 48 * HOUR:
        world.pass_by(120)
        if world.slurm.state(job) == "COMPLETING":  # it doesn't leave for SIGTERM
            world.slurm.jobs[job].completes = None
    assert not world.cloud.alive()
    assert spent(world) - before <= allowed_s(row, world) / HOUR * USD
    texts = [text for text in told(world) if f"job {job} of alice has been {state} on p5-1" in text]
    assert [text.rpartition(": ")[2].partition(";")[0] for text in texts] == [
        "look at it" if then == Then.TELL else str(then) for _, then in row.steps
    ]
    world.until(lambda: world.slurm.nodes["p5-1"].record().launchable, 600)


@pytest.mark.parametrize("state", LASTING)
def test_what_ends_in_time_is_left_alone_and_nobody_is_told(world, state):
    job = running(world)
    sticks(world, job, state)
    world.pass_by(JOB[state].steps[0][0] - 90, every_s=60)
    assert world.states() == [records.READY] and not told(world)
    world.slurm._end(world.slurm.jobs[job], "COMPLETED")
    world.until(lambda: not world.ledger.leases(), 2 * HOUR)
    assert not told(world)


def test_killwait_comes_on_top_of_completing(world):
    slurm = world.document.scheduler.model_copy(update={"kill_wait_s": 5400})
    world.document = world.document.model_copy(update={"scheduler": slurm})
    job = running(world)
    sticks(world, job, "COMPLETING")
    world.pass_by(5400 + JOB["COMPLETING"].steps[0][0] - 120, every_s=120)
    assert world.states() == [records.READY] and not told(world)


def test_a_job_beside_it_runs_to_its_end(world):
    half = {"each": Resources(4, 1, 100)}
    stuck, good = running(world, **half), running(world, limit_s=4 * HOUR, **half)
    assert world.slurm.jobs[stuck].job.on == world.slurm.jobs[good].job.on
    world.slurm.jobs[good].ends = world.clock.at + 3 * HOUR
    sticks(world, stuck, "COMPLETING")
    world.pass_by(2 * HOUR, every_s=60)
    assert world.states() == [records.RELEASING], "no new job starts there"
    assert world.slurm.state(good) == "RUNNING"
    world.until(lambda: not world.ledger.leases(), 2 * HOUR)
    assert world.slurm.state(good) == "COMPLETED" and not world.cloud.alive()


@pytest.mark.parametrize("state", ["RUNNING", "SIGNALING", "RESIZING"])
def test_a_job_that_works_is_left_to_its_limit(world, state):
    job = running(world, limit_s=6 * HOUR)
    sticks(world, job, state)
    world.pass_by(5.9 * HOUR, every_s=300)
    assert world.states() == [records.READY] and not told(world)
    world.pass_by(1.5 * HOUR, every_s=300)
    assert len(told(world)) == 1


def test_a_controller_that_starts_anew_waits_on(world):
    job = running(world)
    sticks(world, job, "COMPLETING")
    for _ in range(8):
        world.pass_by(300)
        world.start()
    assert len(told(world)) == 2 and world.states() != [records.READY]


def test_a_state_that_was_left_begins_anew(world):
    job = running(world, limit_s=12 * HOUR)
    for _ in range(20):  # a gang scheduler's slices
        sticks(world, job, "SUSPENDED")
        world.pass_by(1500, every_s=300)
        sticks(world, job, "RUNNING")
        world.pass_by(60)
    assert world.states() == [records.READY] and not told(world)


def test_a_job_that_never_began_is_not_rented_for_again_until_it_is_changed(world):
    job = running(world)
    sticks(world, job, "CONFIGURING")
    world.until(lambda: not world.ledger.leases(), 6 * HOUR)
    assert world.slurm.state(job) == "PENDING"
    world.pass_by(6 * HOUR, every_s=300)
    assert len(world.cloud.requests) == 1
    world.slurm.change(job, time_limit_s=600.0)
    world.until(lambda: len(world.cloud.requests) == 2, 2 * HOUR)


@pytest.mark.parametrize(
    "state", sorted(name for name, row in NODE.items() if row.steps[-1:] and row.steps[-1][1] == Then.DRAIN)
)
def test_a_node_that_slurm_has_no_use_for_goes_when_its_job_has_ended(world, state):
    job = running(world, limit_s=6 * HOUR)
    world.slurm.jobs[job].ends = world.clock.at + 5 * HOUR
    world.slurm.nodes["p5-1"].states |= {state}
    world.pass_by(2 * HOUR, every_s=60)
    assert world.states() == [records.RELEASING] and world.slurm.state(job) == "RUNNING"
    assert len([text for text in told(world) if f"node p5-1 has been {state} for" in text]) == 2
    world.until(lambda: not world.ledger.leases(), 4 * HOUR)
    assert world.slurm.state(job) == "COMPLETED" and not world.cloud.alive()


@pytest.mark.parametrize("state", sorted(name for name, row in NODE.items() if row.takes_turns == "POWER_DOWN"))
def test_a_node_that_slurm_never_powers_down_is_powered_down(world, state):
    """Its last job is still in slurmctld's count of that node, and in the queue no more."""
    job = running(world)
    world.slurm._end(world.slurm.jobs[job], "COMPLETED")
    node = world.slurm.nodes["p5-1"]
    node.states |= {"COMPLETING"}
    world.until(lambda: world.states() == [records.RELEASING], HOUR)
    node.states |= {state}
    began, before = world.clock.at, spent(world)
    world.until(lambda: not world.ledger.leases(), HOUR)
    assert spent(world) - before <= allowed_s(NODE[state], world) / HOUR * USD
    assert world.clock.at - began > NODE[state].steps[0][0]
    assert [text for text in told(world) if "node p5-1 has been POWER_D" in text]
    world.until(lambda: node.record().launchable, 600)


def test_a_node_that_completes_a_job_that_is_gone_ends(world, monkeypatch):
    """While it is needed: it would serve the next job, which Slurm doesn't start there."""
    job = running(world, limit_s=6 * HOUR)
    world.slurm._end(world.slurm.jobs[job], "COMPLETED")
    world.slurm.nodes["p5-1"].states |= {"COMPLETING"}
    world.until(lambda: not world.ledger.leases(), 2 * HOUR)
    assert told(world) and not world.cloud.alive()


def test_the_stand_in_starts_nothing_where_a_node_completes(tmp_path):
    """As slurmctld, which gives a node's resources away only when the epilog has ended."""
    slurm = World(tmp_path, home=1).slurm
    (home,) = (node for node in slurm.nodes.values() if "home" in node.partitions)
    home.states |= {"COMPLETING"}
    job = slurm.submit()
    assert slurm.state(job) == "PENDING"
    home.states -= {"COMPLETING"}
    slurm.schedule()
    assert slurm.state(job) == "RUNNING"
