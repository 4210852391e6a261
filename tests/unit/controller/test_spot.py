"""Spot: what the cloud says that it costs counts; what is taken back too often goes on demand."""

import json
from dataclasses import asdict
from datetime import UTC, datetime

import pytest

from ironburst.burst.policy import SPOT_RESTARTS
from ironburst.controller import job_story, spot_prices, status_report
from ironburst.ports import LaunchRequest, OutcomeUnknown, Refused, Throttled
from tests.fakes import document
from tests.fakes.world import World

HOUR = 3600.0


@pytest.fixture
def world(tmp_path):
    world = World(tmp_path)
    world.fill_home(limit_s=48 * HOUR)
    return world


def rented_spot(world):
    return [instance for instance in world.cloud.alive() if market(world, instance) == "spot"]


def market(world, instance):
    return world.cloud.tokens[instance.token][0].market


def test_where_nothing_is_known_of_spot_the_declared_ceiling_is_what_is_counted_and_paid(world):
    world.document = document(spot_max=24.0)
    world.slurm.submit(limit_s=600)
    world.slurm.submit(limit_s=600, requeue=False)
    world.tick(2)
    most = {request.market: request.max_usd_per_hour for request in world.cloud.requests}
    counted = {lease.market: lease.usd_per_hour for lease in world.ledger.leases()}
    assert most == {"spot": counted["spot"], "on-demand": None}


def test_spot_that_is_too_dear_is_left_alone_for_a_while_whatever_the_number(world):
    world.document = document(spot_max=24.0)
    world.cloud.spot_usd = {"us-east-1a": 24.01, "us-east-1b": 30.0}
    job = world.slurm.submit(limit_s=600)
    world.tick()
    assert [request.market for request in world.cloud.requests] == ["spot", "spot"]
    closed = {(place.zone, place.market, place.nodes) for place in world.ledger.cool_downs(world.clock.now())}
    assert closed == {("us-east-1a", "spot", 1), ("us-east-1b", "spot", 1)}
    world.until(lambda: world.slurm.state(job) == "RUNNING", 60)
    assert [market(world, instance) for instance in world.cloud.alive()] == ["on-demand"]


def test_spot_at_the_declared_ceiling_is_taken(world):
    world.document = document(spot_max=24.0)
    world.cloud.spot_usd = {"us-east-1a": 24.0}
    world.slurm.submit(limit_s=600)
    world.tick()
    assert len(rented_spot(world)) == 1


def test_a_price_that_is_declared_lower_counts_for_no_spot_node_that_may_cost_more(world):
    world.slurm.submit(limit_s=600)
    world.tick()
    (pool,) = world.document.pools
    cheaper = pool.model_copy(update={"usd_per_hour": {"spot": 10.0, "on-demand": 55.04}})
    world.document = world.document.model_copy(update={"pools": [cheaper]})
    world.tick()
    assert world.events("price") == []
    rates = world.ledger.rates_paid_after(0.0)
    assert [rate.usd_per_hour for of_lease in rates.values() for rate in of_lease] == [24.0]


def test_a_stored_intent_of_before_is_repeated_as_it_was(world):
    world.cloud.lost_answers = 1
    world.slurm.submit(limit_s=600)
    world.tick()
    (launch,) = {lease.launch for lease in world.ledger.leases()}
    (intent,) = world.ledger.intents(launch)
    old = {key: value for key, value in json.loads(intent.request).items() if key != "max_usd_per_hour"}
    world.ledger._db.execute("UPDATE intents SET request = ?", (json.dumps(old),))
    first = LaunchRequest.recorded(old)
    world.cloud.tokens[first.token] = (first, world.cloud.tokens[first.token][1])
    world.cloud.hidden |= set(world.cloud.all)  # else it is known by its token, and nobody is asked again
    world.until(lambda: world.states() == ["launched"], 60)
    assert world.cloud.requests[-1] == first and asdict(first)["max_usd_per_hour"] is None


def taken_back(world, job, times):
    """Let the job run on spot and be taken back, so many times."""
    for count in range(times):
        world.until(lambda: rented_spot(world) and world.slurm.state(job) == "RUNNING", 24 * HOUR, 15.0)
        (node,) = world.slurm.jobs[job].job.on
        world.cloud.interrupt(next(i.id for i in rented_spot(world) if world.cloud.all[i.id].node == node))
        world.until(lambda count=count: world.slurm.jobs[job].job.restarts == count + 1, HOUR, 15.0)


def test_an_offer_that_was_taken_back_is_left_alone_for_longer_each_time(world):
    world.document = document(zones=["us-east-1a"], markets=["spot"], cool_down_s=300)
    job = world.slurm.submit(limit_s=HOUR, runs_s=HOUR)
    closed_s = []
    for count in range(SPOT_RESTARTS):
        taken_back(world, job, 1) if not count else again(world, job, count)
        (row,) = world.ledger.all_cool_downs()
        assert (row.zone, row.market, row.nodes) == ("us-east-1a", "spot", 1) and "taken back" in row.reason
        closed_s.append(row.until_s - row.at_s)
    assert closed_s == [300, 600, 1200]


def again(world, job, restarts):
    world.until(lambda: rented_spot(world) and world.slurm.state(job) == "RUNNING", 24 * HOUR, 15.0)
    world.cloud.interrupt(rented_spot(world)[0].id)
    world.until(lambda: world.slurm.jobs[job].job.restarts == restarts + 1, HOUR, 15.0)


def test_one_that_dies_without_notice_cools_down_too(world):
    job = world.slurm.submit(limit_s=HOUR, runs_s=HOUR)
    world.until(lambda: world.slurm.state(job) == "RUNNING", HOUR, 15.0)
    world.cloud.die(rented_spot(world)[0].id, "Server.SpotInstanceTermination")
    world.tick(2)
    (row,) = world.ledger.all_cool_downs()
    assert (row.zone, row.market) == ("us-east-1a", "spot") and "taken back" in row.reason


def test_a_job_that_was_taken_back_again_and_again_goes_on_demand(world):
    job = world.slurm.submit(limit_s=HOUR, runs_s=HOUR)
    taken_back(world, job, SPOT_RESTARTS)
    world.until(lambda: world.slurm.state(job) == "COMPLETED", 24 * HOUR, 15.0)
    markets = [request.market for request in world.cloud.requests]
    assert markets.count("spot") == SPOT_RESTARTS and markets[-1] == "on-demand"


def test_a_job_that_spot_failed_shares_no_spot_node_either(world):
    young = world.slurm.submit(limit_s=HOUR, runs_s=60.0)
    world.until(lambda: world.slurm.state(young) == "COMPLETED", HOUR, 15.0)
    assert rented_spot(world)
    world.slurm.submit(limit_s=HOUR, runs_s=60.0, spot_losses=SPOT_RESTARTS)
    world.tick(2)
    assert world.cloud.requests[-1].market == "on-demand"


def shown(world):
    """What `ironburst status` has to say."""
    said = status_report.gather(world.document, world.slurm.observe(), world.ledger, world.clock.now())
    return said | {"ticks": {"files": 0}}


def counted(world):
    return {
        lease.market: world.ledger.rates_paid_after(0.0)[lease.id][-1].usd_per_hour for lease in world.ledger.leases()
    }


def test_what_counts_is_what_the_cloud_says_and_no_ceiling_is_sent(world):
    world.cloud.spot_usd = {"us-east-1a": 17.5, "us-east-1b": 19.0}
    world.slurm.submit(limit_s=600)
    world.tick()
    (request,) = world.cloud.requests
    (lease,) = world.ledger.leases()
    assert (request.market, request.max_usd_per_hour, lease.usd_per_hour) == ("spot", None, 19.0)  # the dearest zone's
    world.until(lambda: world.states() == ["launched"], 60)
    world.tick()
    assert counted(world) == {"spot": 17.5}  # its own zone's


def test_a_rise_counts_within_minutes(world):
    world.cloud.spot_usd = {"us-east-1a": 17.5}
    world.slurm.submit(limit_s=HOUR, runs_s=HOUR)
    world.until(lambda: world.states() == ["launched"], 60)
    world.cloud.spot_usd = {"us-east-1a": 30.0}
    world.pass_by(spot_prices.EVERY_S + 10.0, every_s=10.0)
    assert counted(world) == {"spot": 30.0}


def test_it_is_asked_for_now_and_then_and_survives_a_restart(world):
    asked, answer = [], world.cloud.spot_prices
    world.cloud.spot_prices = lambda types: asked.append(types) or answer(types)
    world.tick(5)
    world.start()
    world.tick(5)
    assert asked == [("p5.48xlarge",)]
    world.pass_by(spot_prices.EVERY_S * 3, every_s=10.0)
    assert 3 <= len(asked) <= 4


@pytest.mark.parametrize(
    "error", [Refused("no", "UnauthorizedOperation"), OutcomeUnknown("no answer"), Throttled("slow")]
)
def test_no_answer_stops_nothing_and_the_dated_price_counts(world, error):
    world.cloud.no_spot_prices = error
    world.slurm.submit(limit_s=600)
    world.tick(3)
    assert [lease.usd_per_hour for lease in world.ledger.leases()] == [24.0]
    (told,) = [text for text in world.events("trouble") if "spot prices" in text]
    assert told == f"spot prices can't be asked for, those of the document count: {error}"


def test_without_a_new_answer_the_last_one_counts_with_its_day(world):
    world.document = document(zones=["us-east-1a"], markets=["spot"])
    world.cloud.spot_usd = {"us-east-1a": 17.5}
    world.tick()
    world.cloud.no_spot_prices = OutcomeUnknown("no answer")
    asked_s = world.clock.now()
    world.clock.at += 40 * 24 * HOUR
    world.tick()
    said = shown(world)
    money = next(line for line in status_report.lines(said) if line.startswith("money"))
    day = f"{datetime.fromtimestamp(asked_s, UTC):%Y-%m-%d}"
    assert f"prices of {day}, 40 days old and too old to count on: declare today's under price of their cloud)" in money
    assert said["money"]["prices_age_days"] == 40


def test_a_fresh_price_has_its_age_in_status_and_explain(world):
    world.document = document(zones=["us-east-1a"], markets=["spot"])
    world.cloud.spot_usd = {"us-east-1a": 17.5}
    job = world.slurm.submit(limit_s=600)
    world.tick()
    today = f"{datetime.fromtimestamp(world.clock.now(), UTC):%Y-%m-%d}, 0 days old"
    said = shown(world)
    assert any(f"prices of {today}" in line for line in status_report.lines(said))
    assert f"prices of {today}" in job_story.lines(job_story.gather(world.ledger, job, world.clock.now()))[-1]


def test_what_a_boot_takes_is_measured_and_said(world):
    assert not any("from launch to joined" in line for line in status_report.lines(shown(world)))
    job = world.slurm.submit(limit_s=600)
    world.until(lambda: world.slurm.state(job) == "RUNNING", 120)
    (line,) = [line for line in status_report.lines(shown(world)) if "from launch to joined" in line]
    assert line.startswith("pool p5: ") and line.endswith("(the median of 1 node; 2 min are allowed)")


def test_a_declared_ceiling_is_sent_and_nothing_above_it_counts(world):
    world.document = document(spot_max=20.0)
    world.cloud.spot_usd = {"us-east-1a": 17.5, "us-east-1b": 45.0}
    world.slurm.submit(limit_s=600)
    world.tick()
    (request,) = world.cloud.requests
    (lease,) = world.ledger.leases()
    assert (request.max_usd_per_hour, lease.usd_per_hour) == (20.0, 20.0)
