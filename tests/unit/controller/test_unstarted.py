"""A job that Slurm doesn't start: nothing is rented for it, or once, and a person is told."""

import pytest

from ironburst.burst.unstarted import PATIENCE_S
from tests.fakes import document
from tests.fakes.world import World

DAY, LONG, ROUND = 86400.0, 2 * 3600.0, 30.0


@pytest.fixture
def world(tmp_path):
    world = World(tmp_path)
    world.fill_home(limit_s=2 * DAY)
    world.job = world.slurm.submit(limit_s=3600)
    return world


def told(world):
    return world.events("needs_a_person")


def code(world):
    return world.ledger.decisions(world.job)[-1].code


@pytest.mark.parametrize(
    "reason",
    [
        "ReqNodeNotAvail, Reserved for maintenance",
        "BadConstraints",
        "AccountNotAllowed, uid 1000 not in group permitted to use this partition (home)",
        "PartitionDown",
        "PartitionInactive",
        "PartitionConfig, Job's account not permitted to use this partition (home)",
        "InvalidAccount",
        "InvalidQOS",
        "QOSNotAllowed",
        "MaxGRESPerAccount",
        "AssociationJobLimit",
        "QOSGrpGRES",
        "DeadLine",
    ],
)
def test_a_job_that_slurm_says_it_will_not_start_is_never_rented_for(world, reason):
    world.slurm.refuse(world.job, reason)
    world.pass_by(1200, ROUND)
    assert world.cloud.requests == [] and reason.split(",")[0] in world.ledger.decisions(world.job)[-1].text


@pytest.mark.parametrize("reason", ["ReqNodeNotAvail, UnavailableNodes:dgx01", "Resources", "Reservation"])
def test_a_job_that_only_home_has_no_room_for_is(world, reason):
    world.slurm.refuse(world.job, reason, "home")
    world.until(lambda: world.slurm.state(world.job) == "RUNNING", 600)
    assert world.slurm.jobs[world.job].job.on[0].startswith("p5-")


def test_a_job_that_does_not_start_on_its_open_node_loses_it_once_and_a_person_is_told(world):
    world.slurm.refuse(world.job, "PartitionTimeLimit", "burst-p5")
    world.pass_by(LONG, ROUND)
    (one,) = world.cloud.all.values()
    (lease,) = world.ledger.leases(open_only=False)
    assert one.instance.state == "terminated" and lease.to_s - lease.from_s < PATIENCE_S + 300
    assert len(told(world)) == 1 and f"job {world.job}" in told(world)[0] and "PartitionTimeLimit" in told(world)[0]
    assert code(world) == "unstarted" and world.slurm.jobs[world.job].job.partitions == ("home",)


def test_it_is_once_also_for_a_controller_that_was_started_anew(world):
    world.slurm.refuse(world.job, "PartitionTimeLimit", "burst-p5")
    world.until(lambda: world.slurm.jobs[world.job].job.partitions != ("home",), 600)
    world.pass_by(PATIENCE_S / 2, ROUND)
    world.ledger.close()
    world.start()
    world.pass_by(PATIENCE_S, ROUND)
    world.ledger.close()
    world.start()
    world.pass_by(LONG, ROUND)
    assert len(world.cloud.all) == 1 and len(told(world)) == 1


def test_what_slurm_says_at_the_rented_node_alone_takes_no_patience_and_is_no_circle(world):
    """At home the job waits for its turn; only the burst partition refuses its account."""
    world.slurm.refuse(world.job, "AccountNotAllowed", "burst-p5")
    world.pass_by(LONG, ROUND)
    (lease,) = world.ledger.leases(open_only=False)
    assert len(world.cloud.all) == 1 and lease.to_s - lease.from_s < PATIENCE_S
    assert len(told(world)) == 1 and "AccountNotAllowed" in told(world)[0] and code(world) == "unstarted"


def test_a_slow_scheduler_is_waited_for(world):
    world.slurm.refuse(world.job, "Priority", "burst-p5")
    world.until(lambda: world.slurm.jobs[world.job].job.partitions != ("home",), 600)
    world.pass_by(PATIENCE_S - 90, ROUND)
    world.slurm.refused.clear()
    world.until(lambda: world.slurm.state(world.job) == "RUNNING", 10)
    world.pass_by(300, ROUND)
    assert told(world) == []


def test_a_requeued_job_has_its_patience_anew(world):
    world.until(lambda: world.slurm.state(world.job) == "RUNNING", 600)
    world.pass_by(400, ROUND)
    world.slurm.requeue(world.job)
    world.until(lambda: len(world.slurm.jobs[world.job].started) == 2, 600)
    assert told(world) == [] and len(world.cloud.all) == 1


def test_a_job_that_was_changed_is_rented_for_again(world):
    world.slurm.refuse(world.job, "PartitionTimeLimit", "burst-p5")
    world.pass_by(2 * PATIENCE_S, ROUND)
    world.slurm.refused.clear()
    world.pass_by(PATIENCE_S, ROUND)
    assert len(world.cloud.all) == 1
    world.slurm.change(world.job, time_limit_s=1800.0)
    world.until(lambda: world.slurm.state(world.job) == "RUNNING", 600)


def test_a_job_that_was_held_and_released_is_rented_for_again(world):
    world.slurm.refuse(world.job, "PartitionTimeLimit", "burst-p5")
    world.pass_by(2 * PATIENCE_S, ROUND)
    world.slurm.refused.clear()
    world.slurm.change(world.job, held=True)
    world.tick()
    world.slurm.change(world.job, held=False)
    world.until(lambda: world.slurm.state(world.job) == "RUNNING", 600)
    assert world.slurm.jobs[world.job].job.on[0].startswith("p5-")


def test_another_job_takes_the_node_over(world):
    world.document = document(nodes=["p5-1"])
    world.slurm.refuse(world.job, "PartitionTimeLimit", "burst-p5")
    other = world.slurm.submit(limit_s=3600)
    world.until(lambda: told(world), 2 * PATIENCE_S, ROUND)
    world.until(lambda: world.slurm.state(other) == "RUNNING", 60)
    assert len(world.cloud.all) == 1


def test_nodes_under_maintenance_are_never_launched(world):
    world.slurm.maintained = {"p5-1", "p5-2", "p5-3"}
    world.pass_by(1200, ROUND)
    assert world.cloud.requests == [] and code(world) == "max_nodes"
    world.slurm.maintained = {"p5-1"}
    world.until(lambda: world.slurm.state(world.job) == "RUNNING", 600)
    assert world.slurm.jobs[world.job].job.on == ("p5-2",)


def test_a_maintenance_that_begins_under_a_rented_node_is_no_reason_to_keep_it(world):
    world.until(lambda: world.states() == ["launched"], 600)
    world.slurm.maintained = {"p5-1", "p5-2", "p5-3"}
    world.pass_by(LONG, ROUND)
    assert len(world.cloud.all) == 1 and world.cloud.alive() == []
