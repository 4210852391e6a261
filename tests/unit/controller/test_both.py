"""The controller over two schedulers: one ledger and one budget, and a silent one that says nothing about its nodes."""

import json

import pytest

from ironburst.adapters.both import Both
from ironburst.burst import decide
from ironburst.controller import ownership, rebuild, records
from ironburst.ports import SchedulerError
from tests.fakes.both import BothWorld


@pytest.fixture
def world(tmp_path):
    return BothWorld(tmp_path)


def busy_on_both(world, runs_s=3000.0):
    """A job and a pod that run on rented nodes."""
    world.fill()
    job, pod = world.slurm.submit(runs_s=runs_s), world.submit_pod(runs_s=runs_s)
    world.until(lambda: world.shown(job) == world.shown(pod) == "RUNNING", 1200.0)
    return job, pod


def test_each_queue_is_served_by_its_own_pool_and_all_is_given_back(world):
    job, pod = busy_on_both(world, runs_s=300.0)
    assert (world.of("slurm"), world.of("kubernetes")) == (["p5-1"], ["g5-1"])
    asked = {json.loads(request.user_data).get("scheduler", "slurm"): request for request in world.cloud.requests}
    assert {kind: request.pool for kind, request in asked.items()} == {"slurm": "p5", "kubernetes": "g5"}
    assert "munge_key" not in json.loads(asked["kubernetes"].user_data)
    assert "join_token" not in json.loads(asked["slurm"].user_data)
    world.until(lambda: not world.ledger.leases(), 3600.0)
    assert (world.shown(job), world.shown(pod)) == ("COMPLETED", "COMPLETED") and not world.cloud.alive()
    assert not world.slurm.permits and not world.kube.permits


def test_free_nodes_of_slurm_keep_no_pod_waiting(world):
    world.submit_pod(nodes=2, runs_s=7200.0, limit_s=7200.0)
    pod = world.submit_pod()
    world.until(lambda: world.shown(pod) == "RUNNING", 1200.0)
    assert world.of("kubernetes") == ["g5-1"] and world.of("slurm") == []


def test_one_budget_bounds_both(tmp_path):
    """Enough money is left for one of the two."""
    world = BothWorld(tmp_path, usd_per_month=110.0, markets=["on-demand"])
    world.fill()
    jobs = [world.slurm.submit(runs_s=900.0), world.submit_pod(runs_s=900.0)]
    world.pass_by(400.0, 10.0)
    assert sorted(map(world.shown, jobs)) == ["PENDING", "RUNNING"] and len(world.cloud.alive()) == 1
    waits = {lease.state for lease in world.ledger.leases()}
    assert waits == {records.READY}


# ---- one that gives no answer


@pytest.mark.parametrize("silent", ["slurm", "kubernetes"])
def test_the_others_nodes_are_released_and_nothing_of_the_silent_one_is_touched(world, silent):
    job, pod = busy_on_both(world, runs_s=400.0)
    mine, theirs = (job, pod) if silent == "slurm" else (pod, job)
    world.ways[silent].off = True
    other = "kubernetes" if silent == "slurm" else "slurm"
    before = world.of(silent)
    world.until(lambda: not world.of(other), 1800.0)  # its job has ended, and it went
    assert world.shown(theirs) == "COMPLETED"
    assert world.of(silent) == before and len(world.cloud.alive()) == 1
    (lease,) = world.ledger.leases()
    assert lease.state == records.READY and lease.idle_since_s is None
    assert [text for text in world.events("trouble") if "gives no answer" in text and "away" in text]
    assert world.ledger.job(mine).state == "RUNNING"  # it hasn't left the queue
    world.ways[silent].off = False
    world.until(lambda: not world.ledger.leases(), 1800.0)
    assert world.shown(mine) == "COMPLETED" and not world.cloud.alive()
    assert not [text for text in world.events("trouble") if "lost its node" in text]


def test_nothing_new_is_rented_for_a_silent_one_and_the_other_goes_on(world):
    world.fill()
    world.tick()
    world.ways["kubernetes"].off = True
    pod, job = world.submit_pod(), world.slurm.submit(runs_s=300.0)
    world.until(lambda: world.shown(job) == "RUNNING", 1200.0)
    assert not world.of("kubernetes")
    world.ways["kubernetes"].off = False
    world.until(lambda: world.shown(pod) == "RUNNING", 1200.0)


def test_a_node_that_boots_meanwhile_is_neither_lost_nor_blamed(world):
    world.fill()
    world.submit_pod()
    world.until(lambda: records.LAUNCHED in world.states(), 600.0)
    world.ways["kubernetes"].off = True
    world.pass_by(900.0, 10.0)  # longer than its boot may take
    assert world.of("kubernetes") == ["g5-1"] and not world.ledger.cool_downs(world.clock.now())
    assert len(world.cloud.alive()) == 1
    world.ways["kubernetes"].off = False
    world.until(lambda: records.READY in world.states(), 600.0)
    assert world.of("kubernetes") == ["g5-1"]


def test_a_controller_that_starts_anew_beside_a_silent_one_goes_on(world):
    _, pod = busy_on_both(world, runs_s=400.0)
    world.ways["kubernetes"].off = True
    world.start()  # nothing is remembered but the ledger
    world.until(lambda: not world.of("slurm"), 1800.0)
    assert world.of("kubernetes") == ["g5-1"] and len(world.cloud.alive()) == 1
    assert world.shown(pod) == "RUNNING"


def test_instances_for_a_silent_one_are_no_orphans(world):
    """A ledger that knows nothing of them: they are looked at when it answers."""
    busy_on_both(world, runs_s=4000.0)
    lease = next(lease for lease in world.ledger.leases() if lease.node == "g5-1")
    world.ledger.move([lease], records.ENDED, world.clock.now(), to_s=world.clock.now(), instance_id=None)
    world.ways["kubernetes"].off = True
    world.pass_by(900.0, 30.0)
    assert len(world.cloud.alive()) == 2
    world.ways["kubernetes"].off = False
    world.until(lambda: world.of("kubernetes") == ["g5-1"], 600.0)
    assert any("had no lease: it has one again" in text for text in world.events("needs_a_person"))


def test_a_ceiling_that_cant_pay_ends_a_silent_ones_nodes_all_the_same(world):
    busy_on_both(world, runs_s=7000.0)
    world.ways["kubernetes"].off = True
    spent = sum(lease.usd(world.clock.now()) for lease in world.ledger.leases())
    world.document = world.document.model_copy(
        update={"budget": world.document.budget.model_copy(update={"usd_per_month": spent + 0.5})}
    )
    world.pass_by(60.0, 5.0)
    assert not world.cloud.alive()
    assert any("g5-1 is ended under its jobs" in text for text in world.events("needs_a_person"))


def test_the_brake_leaves_a_silent_ones_nodes_alone(world):
    busy_on_both(world, runs_s=7000.0)
    world.ways["kubernetes"].off = True
    world.tick()
    site = world.controller.site(world.document)
    for _ in range(3):
        world.clock.at += 200.0
        world.controller._brake.pull(lambda: site)
    assert len(world.cloud.alive()) == 2


def test_both_silent_is_a_failed_tick(world):
    world.tick()
    for way in world.ways.values():
        way.off = True
    with pytest.raises(SchedulerError, match=r"Slurm: slurmctld is away; Kubernetes: the API server is away"):
        world.tick()


def test_a_silent_one_is_asked_once_a_tick(world):
    world.fill()
    world.tick()
    world.ways["kubernetes"].off = True
    asked = world.ways["kubernetes"].asked
    world.slurm.submit()
    world.tick(5)
    assert world.ways["kubernetes"].asked - asked == 5


def test_a_ledger_that_knows_less_is_brought_up_to_date_when_both_answer(world):
    heard = ownership.Said(at_s=world.clock.now())
    world.tick()
    world.ways["slurm"].off = True
    site, seen = world.controller.site(world.document), world.both.observe()
    with pytest.raises(SchedulerError, match="slurm must answer, too"):
        rebuild.run(site, seen, heard)


# ---- whose site it is


def other_controller(world):
    """Another ledger's, which reaches both."""
    nodes = {node: pool.scheduler for pool in world.document.pools for node in pool.nodes}
    return Both(world.ways, nodes, {})


def test_two_controllers_cant_have_a_scheduler_each(world):
    """Each would spend the budget."""
    world.ways["slurm"].off = True
    with pytest.raises(SchedulerError, match="can't be claimed before both schedulers answer: Slurm: slurmctld"):
        world.tick()
    assert world.kube.claimed is None
    world.ways["slurm"].off = False
    world.tick()
    world.ways["slurm"].off = True
    world.tick()  # it is ours: it goes on
    stranger = other_controller(world)
    held = stranger.claim("stranger", "", 600.0)
    assert held.owner == ownership.owner_of(world.ledger).id and world.kube.claimed[0] == held.owner


def test_nothing_is_claimed_beside_another_controller(world):
    world.slurm.claimed = ("stranger", world.clock.now(), "")
    with pytest.raises(ownership.OwnedElsewhere):
        world.tick()
    assert world.kube.claimed is None


def test_a_tick_of_two_is_recorded_and_read_again(world):
    busy_on_both(world)
    ticks = world.rounds()
    assert any(pool.home == "pods" for tick in ticks for pool in tick.snapshot.pools)
    assert {tick.policy.other_homes for tick in ticks} == {("pods",)}
    assert all(decide(tick.snapshot, tick.policy) == tick.decision for tick in ticks)
