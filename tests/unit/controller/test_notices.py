"""Failed status checks, scheduled events, and nodes that Slurm has lost: no new job there, and none lost."""

import pytest

from ironburst.controller import notices, records
from ironburst.ports import CloudError, InstanceTrouble
from tests.fakes.world import World


@pytest.fixture
def world(tmp_path):
    """A rented node with a job of an hour on it."""
    world = World(tmp_path)
    world.fill_home(limit_s=86400.0)
    world.job = world.slurm.submit(limit_s=3600, runs_s=3000)
    world.until(lambda: world.slurm.state(world.job) == "RUNNING", 120)
    (world.lease,) = world.ledger.leases()
    return world


def ill(world, text="EC2's system status check fails", from_s=None):
    world.cloud.ill = [InstanceTrouble(world.lease.instance_id, text, from_s)]


def test_a_node_that_fails_a_check_and_answers_takes_no_new_job_and_ends_after_its_last(world):
    ill(world)
    world.tick(2)
    assert not world.slurm.nodes[world.lease.node].record().open
    assert world.slurm.state(world.job) == "RUNNING" and world.slurm.jobs[world.job].job.restarts == 0
    assert [text for text in world.events("release") if "system status check" in text]
    world.until(lambda: not world.cloud.alive(), 3600, 30)
    assert world.slurm.state(world.job) == "COMPLETED"


def test_a_node_that_fails_a_check_and_does_not_answer_gives_its_jobs_back(world):
    world.slurm.nodes[world.lease.node].states |= {"NOT_RESPONDING"}
    ill(world)
    world.tick(3)
    assert world.slurm.jobs[world.job].job.restarts == 1
    assert [text for text in world.events("interrupted") if "system status check" in text]


def test_a_scheduled_event_far_off_lets_the_job_end(world):
    ill(world, "EC2 has scheduled instance-retirement", world.clock.now() + 5 * 3600)
    world.tick(2)
    assert not world.slurm.nodes[world.lease.node].record().open
    world.until(lambda: not world.cloud.alive(), 3600, 30)
    assert world.slurm.state(world.job) == "COMPLETED" and world.slurm.jobs[world.job].job.restarts == 0


def test_a_job_that_does_not_end_before_a_scheduled_event_is_put_back_in_time(world):
    begins_s = world.clock.now() + 1800
    ill(world, "EC2 has scheduled system-maintenance", begins_s)
    world.until(lambda: world.slurm.jobs[world.job].job.restarts, 1800, 10)
    assert begins_s - notices.BEFORE_S <= world.clock.now() <= begins_s - records.STOP_S
    world.until(lambda: not world.slurm.jobs[world.job].job.on, 60)
    world.until(lambda: world.lease.instance_id not in {instance.id for instance in world.cloud.alive()}, 600)


def test_a_node_that_slurm_set_down_gives_its_jobs_back_and_is_told(world):
    node = world.slurm.nodes[world.lease.node]
    node.states, node.reason = (node.states - {"IDLE"}) | {"DOWN"}, "Not responding"
    world.tick(3)
    assert world.slurm.jobs[world.job].job.restarts == 1
    assert [text for text in world.events("interrupted") if "Not responding" in text]


@pytest.mark.parametrize("behind", ["", " : Not responding"])
def test_a_node_that_closed_itself_because_it_is_taken_back_gives_its_jobs_back(world, behind):
    """In a cloud that tells only the instance; slurmctld may add its own words."""
    world.slurm.drain([world.lease.node], f"{notices.TAKEN_BACK} (preempted): {world.lease.instance_id}{behind}")
    world.tick(3)
    assert world.slurm.jobs[world.job].job.restarts == 1
    assert [text for text in world.events("interrupted") if "the cloud takes it back (preempted)" in text]
    world.until(lambda: world.slurm.state(world.job) == "COMPLETED", 7200)  # elsewhere
    assert len(world.slurm.jobs[world.job].started) == 2


def test_the_notice_of_an_instance_that_had_the_name_before_is_none(world):
    world.slurm.drain([world.lease.node], f"{notices.TAKEN_BACK} (preempted): i-of-before")
    world.tick(2)
    assert world.slurm.jobs[world.job].job.restarts == 0 and not world.events("interrupted")


def test_status_checks_that_are_not_allowed_are_told_once_and_stop_nothing(world):
    def troubles(ids):
        raise CloudError("DescribeInstanceStatus: UnauthorizedOperation", "UnauthorizedOperation")

    world.cloud.troubles = troubles
    world.until(lambda: world.slurm.state(world.job) == "COMPLETED", 4000, 30)
    assert len([text for text in world.events("trouble") if "DescribeInstanceStatus" in text]) == 1


def test_an_event_for_a_node_that_is_not_handed_over_yet_gives_it_up(tmp_path):
    world = World(tmp_path)
    world.fill_home()
    job = world.slurm.submit(limit_s=600, runs_s=60)
    world.until(lambda: world.states() == [records.LAUNCHED], 60)
    (world.lease,) = world.ledger.leases()
    ill(world, "EC2 has scheduled instance-stop", world.clock.now() + 60)
    world.tick(3)
    assert world.lease.instance_id not in {instance.id for instance in world.cloud.alive()}
    world.cloud.ill = []
    world.until(lambda: world.slurm.state(job) == "COMPLETED", 600)
