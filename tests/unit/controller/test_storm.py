"""Many at once: notices, jobs, launches, by commands and calls that take their time. Time passes only in the fakes."""

import pytest

from ironburst.controller import records
from ironburst.controller.launching import AT_ONCE
from ironburst.document import BudgetDocument
from ironburst.ports import Refused, SchedulerError
from tests.fakes.world import World

RENTED, OTHERS = 200, 300
SSH_S, LAUNCH_S = 0.4, 3.0


def rich(tmp_path, nodes):
    """A site with many nodes to rent and the money for them."""
    world = World(tmp_path, home=1, nodes=[f"p5-{n}" for n in range(1, nodes + 1)], tick_s=10, wait_limit_s=20)
    for name in world.document.pools[0].nodes:
        if name not in world.slurm.nodes:
            template = world.slurm.nodes["p5-1"]
            world.slurm.nodes[name] = type(template)(name, template.partitions, set(template.states), template.reason)
    world.cloud.capacity = {(zone, market): 10_000 for zone in ("us-east-1a", "us-east-1b") for market in MARKETS}
    burst = world.document.burst.model_copy(update={"spot_max_nodes": nodes})
    money = BudgetDocument(usd_per_month=1e9)
    world.document = world.document.model_copy(update={"budget": money, "burst": burst})
    return world


MARKETS = ("spot", "on-demand")


def slow(world):
    """From now on everything takes as long as it does by ssh and over the internet."""
    world.slurm.call_s, world.cloud.call_s, world.cloud.launch_s = SSH_S, 0.1, LAUNCH_S


def on_rented(world):
    return [id for id, fake in world.slurm.jobs.items() if any(node.startswith("p5") for node in fake.job.on)]


@pytest.fixture
def storm(tmp_path):
    """200 rented nodes with a job each; 300 more jobs wait, and calls begin to take their time."""
    world = rich(tmp_path, RENTED + OTHERS)
    world.fill_home(limit_s=86400.0)
    for _ in range(RENTED):
        world.slurm.submit(limit_s=7200, runs_s=7200)
    world.until(lambda: len(on_rented(world)) == RENTED, 3000)
    slow(world)
    for _ in range(OTHERS):
        world.slurm.submit(limit_s=7200, runs_s=7200)
    return world


@pytest.mark.slow
def test_every_job_is_put_back_within_a_minute_of_500_notices_while_300_nodes_are_launched(storm):
    world, mine = storm, [lease.instance_id for lease in storm.ledger.leases()]
    assert len(mine) == RENTED
    world.tick()  # the launches begin
    launching = len(world.cloud.requests)
    jobs = on_rented(world)
    for id in mine + [f"i-foreign-{n}" for n in range(500 - RENTED)]:
        world.cloud.interrupt(id)
    noticed_s = world.clock.now()
    assert len(world.cloud.queue) == 500

    def put_back():
        return all(world.slurm.jobs[job].job.restarts or world.slurm.jobs[job].completes for job in jobs)

    while not put_back():
        assert world.clock.now() - noticed_s < 60, f"{sum(not world.slurm.jobs[job].job.restarts for job in jobs)} left"
        world.tick()
    assert world.clock.now() - noticed_s < 60 and world.cloud.queue == []
    assert AT_ONCE >= world.cloud.most_at_once > 1
    world.tick(4)
    assert len(world.cloud.requests) > launching  # the launches went on


def test_launches_go_side_by_side_and_a_tick_ends_in_time(tmp_path):
    world = rich(tmp_path, 40)
    world.fill_home(limit_s=86400.0)
    for _ in range(40):
        world.slurm.submit(limit_s=7200, runs_s=7200)
    slow(world)
    tick_s, longest_s = world.document.burst.tick_s, 0.0
    for _ in range(12):
        began = world.clock.now()
        world.controller.tick(world.document)
        longest_s = max(longest_s, world.clock.now() - began)
    # one after the other they take 120 s; a tick may end one batch and some commands after its interval
    assert world.cloud.most_at_once == AT_ONCE and longest_s < tick_s + LAUNCH_S + 20 * SSH_S
    assert len(world.cloud.requests) == 40 and set(world.states()) <= {records.LAUNCHED, records.JOINED, records.READY}


def test_a_launch_that_is_refused_stops_none_beside_it_and_takes_its_next_zone(tmp_path):
    world = rich(tmp_path, 8)
    world.cloud.capacity["us-east-1a", "spot"] = 2
    world.fill_home()
    for _ in range(4):
        world.slurm.submit(limit_s=600)
    world.until(lambda: len(world.cloud.alive()) == 4, 60)
    assert len(world.cloud.requests) == 6
    zones = sorted(instance.zone for instance in world.cloud.alive())
    assert zones.count("us-east-1a") == 2 and zones.count("us-east-1b") == 2


def test_one_node_that_slurm_refuses_keeps_no_other(tmp_path):
    """`scontrol update nodename=a,b` ends at the first name that it doesn't know."""
    world = rich(tmp_path, 4)
    world.fill_home()
    jobs = [world.slurm.submit(limit_s=600, runs_s=600) for _ in range(3)]
    world.until(lambda: len(on_rented(world)) == 3, 300)
    abandon = world.slurm.abandon

    def picky(nodes, reason):
        if "p5-2" in nodes:
            raise SchedulerError("Invalid node name specified")
        abandon(nodes, reason)

    world.slurm.abandon = picky
    before = {lease.instance_id: lease.node for lease in world.ledger.leases()}
    for id in before:
        world.cloud.interrupt(id)

    def still():
        return [before[instance.id] for instance in world.cloud.alive() if instance.id in before]

    world.until(lambda: still() == ["p5-2"], 300)
    world.slurm.abandon = abandon
    world.until(lambda: not still(), 60)
    assert [world.slurm.jobs[job].job.restarts for job in jobs] == [1, 1, 1]
    assert any("Invalid node name specified" in text for text in world.events("trouble"))


def test_a_job_that_may_not_be_requeued_keeps_no_other(tmp_path):
    world = rich(tmp_path, 4)
    world.fill_home()
    keeps = world.slurm.submit(limit_s=600, runs_s=600, requeue=False)
    goes = world.slurm.submit(limit_s=600, runs_s=600)
    world.until(lambda: len(on_rented(world)) == 2, 300)
    for lease in world.ledger.leases():
        world.cloud.interrupt(lease.instance_id)
    world.tick(3)
    assert world.slurm.jobs[goes].job.restarts == 1 and world.slurm.state(keeps) == "RUNNING"
    assert [event.kind for event in world.ledger.events_of(keeps, ())][-1] == "trouble"


def test_one_broken_queue_hides_no_other(tmp_path):
    world = World(tmp_path)
    pool = world.document.pools[0]
    broken = pool.model_copy(update={"name": "other", "nodes": [], "notices": "https://sqs/1/broken"})
    world.document = world.document.model_copy(update={"pools": [broken, pool]})
    world.cloud.images[broken.image] = "ami-1"
    world.cloud.broken_queues = {"https://sqs/1/broken"}
    world.fill_home()
    job = world.slurm.submit(limit_s=600, runs_s=600)
    world.until(lambda: world.slurm.state(job) == "RUNNING", 120)
    world.cloud.interrupt(world.ledger.leases()[0].instance_id)
    world.tick(3)
    assert world.slurm.jobs[job].job.restarts == 1
    told = [text for text in world.events("trouble") if "broken" in text]
    assert len(told) == 1, "told once, not at every tick"


def test_a_notice_that_can_not_be_deleted_is_acted_on_once(tmp_path):
    world = World(tmp_path)
    world.fill_home()
    job = world.slurm.submit(limit_s=600, runs_s=600)
    world.until(lambda: world.slurm.state(job) == "RUNNING", 120)

    def acknowledge(*_):
        raise Refused("not allowed", "AccessDenied")

    world.cloud.acknowledge = acknowledge
    world.cloud.interrupt(world.ledger.leases()[0].instance_id)
    world.tick(6)
    assert len(world.events("interrupted")) == 1 and world.slurm.jobs[job].job.restarts == 1
