"""DescribeInstances gives no answer: throttled, not allowed, not reached. What is rented goes on all the same."""

import pytest

from ironburst.adapters.aws.errors import by_code
from ironburst.controller import records
from ironburst.ports import CloudError, InstanceTrouble, OutcomeUnknown, SchedulerError
from tests.fakes.world import World

ANSWERS = [
    by_code("RequestLimitExceeded", 503, "DescribeInstances: RequestLimitExceeded"),
    by_code("UnauthorizedOperation", 403, "DescribeInstances: UnauthorizedOperation"),
    by_code("RequestExpired", 400, "DescribeInstances: RequestExpired"),
    OutcomeUnknown("DescribeInstances: no answer (read timeout)"),
]
OUTAGE_S = 600.0


@pytest.fixture(params=ANSWERS, ids=lambda error: error.code or "no answer")
def error(request):
    return request.param


@pytest.fixture
def world(tmp_path):
    world = World(tmp_path, markets=["spot"], usd_per_month=1e6, idle_s=300)
    world.fill_home(9e5)
    return world


def lower(document):
    return document.model_copy(update={"budget": document.budget.model_copy(update={"usd_per_month": 1.0})})


def running(world, **job):
    job = world.slurm.submit(**{"limit_s": 7200, "runs_s": 7000} | job)
    world.until(lambda: world.slurm.state(job) == "RUNNING", 400)
    return job


def test_a_spot_notice_puts_jobs_back(world, error):
    job = running(world)
    world.cloud.unlisted = error
    world.cloud.interrupt(world.cloud.alive()[0].id)
    world.tick()
    assert world.slurm.state(job) == "COMPLETING" and world.cloud.queue == []
    assert len(world.events("interrupted")) == 1


def test_the_node_hears_its_heartbeat_and_its_job_ends_well(world, error):
    job = running(world, runs_s=1200)
    world.cloud.unlisted = error
    world.until(lambda: world.slurm.state(job) == "COMPLETED", 1400, 10.0)
    world.pass_by(600, 10.0)
    assert world.cloud.alive() == [] and world.slurm.jobs[job].job.restarts == 0, "an idle node goes, too"
    world.cloud.unlisted = None
    world.until(lambda: world.states() == [], 600)


def test_a_node_that_was_on_its_way_joins_and_is_handed_over(world, error):
    world.cloud.boot_s = 60.0
    job = world.slurm.submit(limit_s=600, runs_s=60)
    world.until(lambda: world.cloud.alive(), 200)
    world.cloud.unlisted = error
    world.until(lambda: world.slurm.state(job) == "RUNNING", 200)
    assert len(world.cloud.alive()) == 1, "and nothing was rented anew meanwhile"


def test_a_node_that_never_joins_is_given_up(world, error):
    world.cloud.boot_s = 1e6
    world.slurm.submit(limit_s=600, runs_s=60)
    world.until(lambda: world.cloud.alive(), 200)
    world.cloud.unlisted = error
    world.pass_by(world.document.pools[0].boot_s + OUTAGE_S, 10.0)
    assert world.cloud.alive() == []


def test_nothing_new_is_rented_and_it_is_said_why(world, error):
    running(world)
    asked = len(world.cloud.requests)
    world.cloud.unlisted = error
    job = world.slurm.submit(limit_s=600, runs_s=60)
    world.pass_by(OUTAGE_S, 10.0)
    assert len(world.cloud.requests) == asked
    assert "doesn't list" in world.ledger.decisions(job)[-1].text
    world.cloud.unlisted = None
    world.until(lambda: world.slurm.state(job) == "RUNNING", 300)


def test_an_answer_that_was_lost_is_asked_for_again_and_nothing_is_launched_twice(world, error):
    world.cloud.lost_answers = 1
    world.cloud.hidden = {f"i-{n}" for n in range(1, 20)}
    job = world.slurm.submit(limit_s=600, runs_s=60)
    world.until(lambda: world.cloud.all, 200)
    world.cloud.unlisted = error
    world.until(lambda: world.slurm.state(job) == "RUNNING", 300)
    assert len(world.cloud.all) == 1 and len({request.token for request in world.cloud.requests}) == 1


def test_the_ceiling_is_enforced(world, error):
    job = running(world)
    world.cloud.unlisted = error
    world.document = lower(world.document)
    world.until(lambda: not world.cloud.alive(), OUTAGE_S)
    assert world.slurm.state(job) == "PENDING"


def test_the_scheduler_away_at_the_same_time_keeps_the_ceiling(world, error):
    running(world)
    world.cloud.unlisted = error
    world.document = lower(world.document)

    def away():
        raise SchedulerError("slurmctld is away")

    world.slurm.observe = away
    with pytest.raises(SchedulerError):
        world.tick()
    assert world.cloud.alive() == []


def test_what_is_ill_is_still_asked_for(world, error):
    running(world)
    (instance,) = world.cloud.alive()
    world.cloud.unlisted = error
    world.cloud.ill = [InstanceTrouble(instance.id, "EC2 has scheduled instance-retirement", world.clock.now() + 60)]
    world.tick(2)
    assert any("instance-retirement" in text for text in world.events("interrupted"))


def test_it_is_told_once_and_to_a_person_when_it_stays(world, error):
    running(world)
    world.cloud.unlisted = error
    world.pass_by(1700, 10.0)
    assert sum("doesn't list" in text for text in world.events("trouble")) == 1
    assert world.events("needs_a_person") == []
    world.pass_by(300, 10.0)
    assert sum("doesn't list" in text for text in world.events("needs_a_person")) == 1


def test_a_clock_that_nothing_proves_decides_nothing(world, error):
    running(world)
    world.cloud.unlisted = error
    world.clock.ahead_s = 86400.0
    before = world.ledger.leases()
    for _ in range(3):
        with pytest.raises(CloudError):
            world.controller.tick(world.document)
        world.clock.at += 10
    assert world.ledger.leases() == before and len(world.cloud.alive()) == 1


def test_a_controller_that_was_started_anew_goes_on_where_the_clock_does(world, error):
    job = running(world)
    world.cloud.unlisted = error
    world.ledger.close()
    world.start()
    world.cloud.interrupt(world.cloud.alive()[0].id)
    world.tick()
    assert world.slurm.state(job) == "COMPLETING"


# ---- ends of leases that stand in each other's way


@pytest.mark.parametrize("code", ["OperationNotPermitted", "UnauthorizedOperation", "RequestLimitExceeded"])
def test_one_instance_that_can_not_be_ended_keeps_no_other_and_is_told(world, code):
    jobs = [running(world, runs_s=100 + n) for n in range(3)]
    kept = world.cloud.alive()[0].id
    world.cloud.protected[kept] = by_code(code, 400, f"TerminateInstances: {code}")
    world.until(lambda: all(world.slurm.state(job) == "COMPLETED" for job in jobs), 900)
    world.pass_by(900, 10.0)
    assert [instance.id for instance in world.cloud.alive()] == [kept]
    told = [text for text in world.events("needs_a_person") if kept in text]
    assert len(told) == (code != "RequestLimitExceeded"), "slow is no refusal"
    world.cloud.protected.clear()
    world.until(lambda: not world.cloud.alive(), 300)
    (lease,) = [lease for lease in world.ledger.leases(open_only=False) if lease.instance_id == kept]
    assert lease.to_s is None or lease.to_s >= world.clock.now() - 400, "it was paid for until it ended"


def test_an_address_that_two_nodes_show_ends_no_tick(world):
    running(world)
    running(world)
    first, second = (lease.node for lease in world.ledger.leases())
    lost = next(lease for lease in world.ledger.leases() if lease.node == second)
    world.ledger.move([lost], records.ENDED, world.clock.now())
    address = world.slurm.nodes[second].address
    world.slurm.nodes[first].address = address
    world.tick(3)
    assert world.events("brake") == []
    lease = world.ledger.lease_of_instance(lost.instance_id)
    assert lease is not None and lease.node == second, "the other one's instance has another address"


def test_an_address_whose_node_can_not_be_told_is_spared_and_told(world):
    running(world)
    running(world)
    leases = world.ledger.leases()
    world.ledger.move(leases, records.ENDED, world.clock.now())
    address = world.slurm.nodes[leases[0].node].address
    world.slurm.nodes[leases[1].node].address = address
    world.pass_by(900, 10.0)
    assert world.events("brake") == []
    assert leases[0].instance_id in {instance.id for instance in world.cloud.alive()}
    assert any(address in text for text in world.events("needs_a_person"))


def test_a_refusal_of_a_repeated_request_says_nothing_of_the_first_one(world):
    """The answer was lost, then the credentials end: AWS asks for rights before it looks at the token."""
    world.cloud.lost_answers = 1
    world.cloud.hidden = {f"i-{n}" for n in range(1, 20)}
    world.cloud.errors = [
        None,
        by_code("ExpiredToken", 400, "ExpiredToken"),
        by_code("AuthFailure", 401, "AuthFailure"),
    ]
    job = world.slurm.submit(limit_s=600, runs_s=60)
    world.until(lambda: world.slurm.state(job) == "RUNNING", 300)
    assert len(world.cloud.all) == 1 and len({request.token for request in world.cloud.requests}) == 1


def test_a_node_that_the_scheduler_does_not_let_go_is_not_paid_for_for_ever(world):
    job = running(world, runs_s=60)

    def refuse(nodes, reason):
        raise SchedulerError("slurm_update error: Invalid node state specified")

    world.slurm.abandon = refuse
    world.slurm.release = lambda nodes: refuse(nodes, "")
    world.ledger.move(world.ledger.leases(), records.LEAVING, world.clock.now())
    world.pass_by(900, 10.0)
    assert world.cloud.alive() == [] and world.slurm.state(job) != "RUNNING"


def test_the_brake_ends_what_must_end_without_a_list(world, error, monkeypatch):
    running(world)
    world.cloud.unlisted = error
    world.document = lower(world.document)

    def broken(*_):
        raise ValueError("a fault of ours")

    monkeypatch.setattr("ironburst.controller.leases.advance", broken)
    with pytest.raises(ValueError, match="a fault of ours"):
        world.controller.tick(world.document)
    assert world.cloud.alive() == []


def test_calls_that_wait_for_a_minute_each_leave_time_for_a_notice(world):
    """EC2 isn't reached, and every call of it waits through its attempts; SQS answers."""
    job = running(world)
    error, clock = OutcomeUnknown("DescribeInstances: no answer (read timeout)"), world.clock

    def slow(*_):
        clock.at += 60.0
        raise error

    for name in ("instances", "described", "by_token", "troubles"):
        setattr(world.cloud, name, slow)
    world.tick()
    id, began = world.cloud.alive()[0].id, clock.at
    world.cloud.interrupt(id)
    while world.slurm.state(job) == "RUNNING":
        world.tick()
    assert clock.at - began < 120.0


def test_an_idle_node_is_given_to_the_next_job(world, error):
    running(world, runs_s=60)
    world.until(lambda: all(job.done or job.job.pending for job in list(world.slurm.jobs.values())[1:]), 300)
    world.cloud.unlisted = error
    job = world.slurm.submit(limit_s=600, runs_s=60)
    world.until(lambda: world.slurm.state(job) == "RUNNING", 60)
    assert len(world.cloud.all) == 1


def test_an_image_that_can_not_be_looked_up_is_the_one_of_before(world, error):
    def away(parameter):
        raise error

    running(world)
    image_id, world.cloud.image_id = world.cloud.image_id, away
    job = world.slurm.submit(limit_s=600, runs_s=60)
    world.until(lambda: world.slurm.state(job) == "RUNNING", 60)
    assert sum("ami-1 counts on" in text for text in world.events("trouble")) == 1
    world.cloud.images["/ironburst/lab/p5/image"] = "ami-2"
    world.cloud.image_id = image_id
    job = world.slurm.submit(limit_s=600, runs_s=60)
    world.until(lambda: world.slurm.state(job) == "RUNNING", 60)
    assert world.cloud.alive()[-1].image_id == "ami-2"
