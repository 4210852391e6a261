"""The heartbeat, and what rented nodes make of it: the program of the node itself decides, in the fakes too."""

import json
import random
from dataclasses import replace

import pytest

from ironburst.controller import heartbeat, records
from ironburst.document import parse
from ironburst.ports import Refused, SchedulerError
from tests.fakes import document
from tests.fakes.dead_man import LOOK_S, program
from tests.fakes.world import World

SETTINGS = {"node": "p5-1", "dead_man_s": 1800, "hard_limit_s": 90_000}
IDLE = "NodeName=p5-1 State=IDLE+CLOUD"


def beat_of(at_s, left_s):
    return f"{IDLE} Comment=ironburst,at={at_s},left={left_s} Partitions=burst-p5"


def heard(*looks):
    """What the program knows after these looks: (seconds, what Slurm shows)."""
    known = None
    for now_s, shown in looks:
        known = program.listen(known, now_s, shown)
    return known


def left_alone(world, seconds, step_s=10.0):
    """The controller is dead: Slurm and the nodes live on, and time passes."""
    end = world.clock.now() + seconds
    while world.clock.now() < end:
        world.clock.at += step_s
        world.slurm.live()


# ---- the node


def test_only_a_text_that_changed_is_a_heartbeat():
    old = beat_of(1, 9000)
    known = heard((10.0, old), (70.0, old), (130.0, old))
    assert (known["heard_s"], known["ends_s"]) == (10.0, None)
    known = heard((10.0, old), (70.0, beat_of(2, 600)), (130.0, beat_of(2, 600)))
    assert (known["heard_s"], known["ends_s"]) == (70.0, 670.0)


def test_the_text_of_the_last_lease_of_this_name_is_none_though_slurm_answers_late():
    known = heard((10.0, None), (70.0, None), (130.0, beat_of(1, 300)))
    assert (known["heard_s"], known["ends_s"]) == (10.0, None)


def test_no_answer_of_slurm_and_a_text_of_somebody_else_are_no_heartbeat():
    known = heard((0.0, IDLE), (60.0, beat_of(1, 600)), (120.0, None), (180.0, f"{IDLE} Comment=looked at by carol"))
    assert known["heard_s"] == 60.0


@pytest.mark.parametrize(
    ("silent_s", "ends_s", "busy", "ends"),
    [
        (1799, None, False, False),
        (1800, None, False, True),
        (1800, 9000, False, True),  # its money is there, and nobody
        (301, 300, False, True),  # the lease is over
        (299, 300, False, False),
        (1800, 300, True, False),  # a job's hours are never cut
        (89_999, 300, True, False),
        (90_000, 300, True, True),
        (90_000, 200_000, True, False),  # a limit that was raised since its launch
        (90_000, None, True, True),
    ],
)
def test_when_a_node_ends(silent_s, ends_s, busy, ends):
    known = {"heard_s": 0.0, "said": "", "ends_s": ends_s}
    assert bool(program.verdict(known, silent_s, busy, SETTINGS)) == ends


@pytest.mark.parametrize(
    ("state", "busy"),
    [
        ("IDLE+CLOUD", False),
        ("ALLOCATED+CLOUD", True),
        ("MIXED+CLOUD+DRAIN", True),
        ("IDLE+CLOUD+COMPLETING", True),
        ("DOWN+CLOUD+NOT_RESPONDING", False),
    ],
)
def test_slurm_tells_of_allocations_without_a_step(state, busy):
    assert program.says_busy(f"NodeName=p5-1 Arch=x86_64 State={state} ThreadsPerCore=1") == busy


# ---- the controller


def test_a_launch_tells_its_nodes_when_to_end(tmp_path):
    world = World(tmp_path, boot_s=100, max_run_s=7200, idle_s=60)
    world.fill_home()
    world.slurm.submit(nodes=2)
    world.until(lambda: world.cloud.requests)
    said = json.loads(world.cloud.requests[0].user_data)
    assert (said["dead_man_s"], said["hard_limit_s"]) == (1800, 100 + 7200 + 60 + records.ENDING_S)


def test_registered_nodes_hear_the_controller_once_a_minute(tmp_path):
    world = World(tmp_path)
    world.fill_home()
    world.slurm.submit(limit_s=3000.0, runs_s=3000.0)
    world.until(lambda: records.READY in world.states())
    world.tick()
    world.slurm.beats = 0
    texts = set()
    for _ in range(300):  # ten minutes
        world.tick()
        texts.add(world.slurm.nodes["p5-1"].comment)
    assert 9 <= world.slurm.beats <= 11 and len(texts) == world.slurm.beats + 1
    assert world.slurm.nodes["p5-2"].comment == ""  # not rented


def test_a_node_is_never_told_less_than_its_jobs_may_take(tmp_path):
    world = World(tmp_path)
    world.fill_home()
    job = world.slurm.submit(limit_s=3000.0, runs_s=3000.0)
    world.until(lambda: world.slurm.state(job) == "RUNNING")
    lease = world.ledger.leases()[0]
    now = world.clock.now()
    fake = world.slurm.jobs[job]
    longer = replace(fake.job, end_s=now + 5 * 86_400)  # an admin gave it more time, or it was requeued here
    assert heartbeat.left_s(lease, [longer], 86_400.0, now) >= 5 * 86_400
    endless = replace(fake.job, end_s=None)
    assert heartbeat.left_s(lease, [endless], 86_400.0, now) >= 86_400
    paid_s = lease.aside(now)[1] - now
    told_s = heartbeat.left_s(lease, [], 86_400.0, now)
    assert paid_s - heartbeat.STEP_S - heartbeat.HEARD_S < told_s <= paid_s - heartbeat.HEARD_S


def test_a_heartbeat_that_slurm_refuses_stops_nothing(tmp_path):
    world = World(tmp_path)
    world.fill_home()
    job = world.slurm.submit()

    def refuse(nodes, at_s):
        raise SchedulerError("slurmctld is busy")

    world.slurm.beat = refuse
    world.until(lambda: world.slurm.state(job) == "RUNNING")
    world.tick()
    assert "slurmctld is busy" in world.events("trouble")


def test_what_is_wanted_is_prolonged_with_each_heartbeat_and_a_cloud_that_refuses_stops_none(tmp_path):
    """For as long as it may live without one: by then a job that began at this moment has ended."""
    world = World(tmp_path)
    world.fill_home()
    world.slurm.submit(limit_s=3000.0, runs_s=3000.0)
    world.until(lambda: records.READY in world.states())
    world.tick()
    (lease,) = world.ledger.leases()
    limit_s = world.document.pools[0].max_run_s + world.document.pools[0].idle_s + records.ENDING_S
    first = world.cloud.until[lease.instance_id]
    assert world.clock.now() + limit_s - 70 <= first <= world.clock.now() + limit_s + 3600
    for _ in range(4):
        world.tick(30)
    assert world.cloud.until[lease.instance_id] >= first + 60

    def refuse(until):
        raise Refused("no", "AuthorizationFailed")

    world.cloud.prolong, before = refuse, world.slurm.beats
    for _ in range(4):
        world.tick(30)
    assert "the end of what is rented isn't put off: no" in world.events("trouble") and world.slurm.beats > before


# ---- both


def test_a_dead_controllers_idle_node_ends_within_the_declared_time(tmp_path):
    """Nobody ended it: it was paid for until somebody looked."""
    world = World(tmp_path, idle_s=3600)
    world.fill_home()
    job = world.slurm.submit(runs_s=300.0, limit_s=7200.0)
    world.until(lambda: world.slurm.state(job) == "COMPLETED")
    world.tick(3)
    assert len(world.cloud.alive()) == 1
    left_alone(world, 1800 - 2 * LOOK_S)
    assert len(world.cloud.alive()) == 1
    left_alone(world, 4 * LOOK_S)
    assert world.cloud.alive() == []
    reason = next(iter(world.cloud.all.values())).instance.reason
    assert reason == "Client.InstanceInitiatedShutdown"


def test_a_job_outlives_its_controller(tmp_path):
    world = World(tmp_path)
    world.fill_home()
    job = world.slurm.submit(runs_s=80_000.0, limit_s=86_400.0)
    world.until(lambda: world.slurm.state(job) == "RUNNING")
    left_alone(world, 79_900, step_s=60.0)
    assert world.slurm.state(job) == "RUNNING" and len(world.cloud.alive()) == 1
    left_alone(world, 300)
    assert world.slurm.state(job) == "COMPLETED" and world.cloud.alive() == []


def test_a_controller_that_was_away_for_less_finds_its_nodes(tmp_path):
    world = World(tmp_path, idle_s=3600)
    world.fill_home()
    job = world.slurm.submit(runs_s=300.0, limit_s=7200.0)
    world.until(lambda: world.slurm.state(job) == "COMPLETED")
    world.tick(3)
    left_alone(world, 1500)
    world.start()
    world.tick()
    left_alone(world, 1500)
    assert len(world.cloud.alive()) == 1


@pytest.mark.parametrize("seed", range(12))
def test_killed_for_ever_at_a_random_moment(tmp_path, seed):
    """The last rented instance ends within the declared time after its last job, and no money goes beyond what was set
    aside for it.
    """
    rng = random.Random(seed)
    world = World(tmp_path, boot_s=60, idle_s=rng.choice([60, 1800]))
    world.fill_home()
    jobs = []
    for _ in range(rng.randint(1, 4)):
        limit_s = rng.choice([600.0, 3600.0, 10_000.0])
        jobs.append(world.slurm.submit(nodes=rng.randint(1, 3), limit_s=limit_s, runs_s=limit_s * rng.random()))
    world.pass_by(rng.uniform(1, 1000), 6)
    asides = {
        lease.instance_id: lease.aside(world.clock.now())
        for lease in world.ledger.leases()
        if lease.instance_id and lease.state in (records.JOINED, records.READY)
    }
    free_s = {}  # when each instance has no job any more
    end = world.clock.now() + 3 * 86_400
    died_s = world.clock.now()
    while world.cloud.alive() and world.clock.now() < end:
        left_alone(world, 20.0, step_s=20.0)
        for instance in world.cloud.alive():
            node = world.cloud.all[instance.id].node
            if any(node in job.job.on for job in world.slurm.jobs.values()):
                free_s[instance.id] = world.clock.now()
        for id, (_, until_s) in asides.items():
            assert world.clock.now() <= until_s or not world.cloud.all[id].instance.alive, (
                f"{id} is alive {world.clock.now() - until_s:.0f} s after what was set aside for it"
            )
    assert world.cloud.alive() == []
    last_s = max([died_s, *free_s.values()])
    assert world.clock.now() <= last_s + world.document.burst.dead_man_s + 2 * LOOK_S + 20
    lost = [job for job in jobs if world.slurm.jobs[job].done == "NODE_FAIL"]
    assert lost == []


def test_a_document_from_before_declares_the_default():
    raw = document().model_dump(mode="json")
    del raw["burst"]["dead_man_s"]
    assert parse(raw).burst.dead_man_s == 1800


def test_a_hall_without_power_costs_no_more_than_the_dead_mans_time(tmp_path):
    """Slurm and the controller are gone: a node that works goes on, one that doesn't ends."""
    world = World(tmp_path, idle_s=3600)
    world.fill_home()
    short = world.slurm.submit(runs_s=300.0, limit_s=7200.0)
    world.until(lambda: world.slurm.state(short) == "RUNNING")
    world.slurm.down = True
    left_alone(world, 250)
    assert len(world.cloud.alive()) == 1
    left_alone(world, 1800 + 2 * LOOK_S)
    assert world.cloud.alive() == []
