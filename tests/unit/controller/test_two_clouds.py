"""A site that rents in two clouds: one policy, one budget and one ledger over both, and one that is out of reach or out
of capacity stops nothing in the other.
"""

from itertools import product

import pytest

from ironburst.ports import InstanceTrouble, OutcomeUnknown, Refused
from tests.fakes.several import TwoClouds

DEAD = OutcomeUnknown("compute.instances.aggregatedList: no answer (read timeout)")
DEARER = {"usd_per_hour": {"on-demand": 88.0, "spot": 40.0}}
CHEAPER = {"usd_per_hour": {"on-demand": 40.0, "spot": 20.0}}


@pytest.fixture
def world(tmp_path):
    """The first cloud is the cheaper one."""
    made = TwoClouds(tmp_path, second=DEARER, usd_per_month=1e6)
    made.fill_home(9e5)
    return made


def running(world, **job):
    job = world.slurm.submit(**{"limit_s": 7200, "runs_s": 7000} | job)
    world.until(lambda: world.slurm.state(job) == "RUNNING", 600)
    return job


def where(world):
    return sorted(lease.pool for lease in world.ledger.leases())


def has_none(cloud):
    cloud.capacity = dict.fromkeys(product(("us-east-1a", "us-east-1b"), ("spot", "on-demand")), 0)


def test_the_cheaper_cloud_is_rented_in_whichever_it_is(tmp_path):
    for n, (prices, pool) in enumerate(((DEARER, "p5"), (CHEAPER, "g5"))):
        folder = tmp_path / str(n)
        folder.mkdir()
        world = TwoClouds(folder, second=prices, usd_per_month=1e6)
        world.fill_home(9e5)
        running(world)
        assert where(world) == [pool]


def test_a_job_goes_to_the_second_cloud_while_the_first_one_is_out_of_capacity(world):
    world.first.capacity = {
        (zone, market): 0 for zone in ("us-east-1a", "us-east-1b") for market in ("spot", "on-demand")
    }
    job = running(world, runs_s=600)
    assert where(world) == ["g5"] and world.first.all == {}
    refused = world.events("refused")
    assert refused and all("us-east-1" in text and "no capacity" in text for text in refused)
    world.until(lambda: world.slurm.state(job) == "COMPLETED" and not world.ledger.leases(), 1800)
    assert world.cloud.alive() == [] and world.slurm.jobs[job].job.restarts == 0


def test_within_the_same_rules(world):
    """Out of capacity, and the second cloud is too dear for what is left of the month: nothing is rented."""
    world.first.capacity = {
        (zone, market): 0 for zone in ("us-east-1a", "us-east-1b") for market in ("spot", "on-demand")
    }
    budget = world.document.budget.model_copy(update={"usd_per_month": 70.0})
    world.document = world.document.model_copy(update={"budget": budget})
    job = world.slurm.submit(limit_s=7200, runs_s=600)  # two hours of spot there are 80 dollars
    world.pass_by(600, 10.0)
    assert world.cloud.alive() == [] and world.second.all == {}
    assert "budget" in world.ledger.decisions(job)[-1].text or "month" in world.ledger.decisions(job)[-1].text


def test_one_budget_is_over_both(tmp_path):
    """Each cloud alone would have had room for one more."""
    world = TwoClouds(tmp_path, second=DEARER, usd_per_month=110.0)
    world.fill_home(9e5)
    running(world, limit_s=7200, runs_s=7000)
    world.first.capacity = {
        (zone, market): 0 for zone in ("us-east-1a", "us-east-1b") for market in ("spot", "on-demand")
    }
    second = world.slurm.submit(limit_s=7200, runs_s=600)
    world.pass_by(300, 10.0)
    assert where(world) == ["p5"] and world.slurm.state(second) == "PENDING"


@pytest.mark.parametrize("error", [DEAD, Refused("no such credentials", "401")], ids=["silent", "refused"])
def test_one_cloud_out_of_reach_keeps_the_other_from_nothing(world, error):
    world.second.unlisted = error
    first = running(world, runs_s=900)
    assert where(world) == ["p5"]
    world.until(lambda: world.slurm.state(first) == "COMPLETED" and not world.ledger.leases(), 1800)
    assert world.first.alive() == []
    assert sum("google doesn't list" in text for text in world.events("trouble")) == 1


def test_nothing_new_is_rented_in_a_cloud_that_is_out_of_reach(world):
    world.first.unlisted = DEAD
    job = running(world, runs_s=900)
    assert where(world) == ["g5"] and world.first.requests == []
    world.until(lambda: world.slurm.state(job) == "COMPLETED" and not world.ledger.leases(), 1800)


def test_what_is_rented_in_a_silent_cloud_goes_on_and_is_ended(world):
    job = running(world, runs_s=1500)
    world.first.unlisted = DEAD
    other = running(world, runs_s=300)
    assert where(world) == ["g5", "p5"], "nothing is concluded from a list that lacks a cloud"
    world.until(lambda: world.slurm.state(job) == "COMPLETED", 1800)
    world.pass_by(600, 10.0)
    assert world.slurm.state(other) == "COMPLETED" and world.slurm.jobs[job].job.restarts == 0
    assert world.cloud.alive() == [], "both are ended, though one is silent"
    world.first.unlisted = None
    world.until(lambda: not world.ledger.leases(), 600)


def test_a_silent_cloud_hides_no_trouble_of_the_other(world):
    running(world)
    (instance,) = world.first.alive()
    world.second.unlisted = DEAD
    world.first.ill = [InstanceTrouble(instance.id, "its host is retired", world.clock.now() + 60)]
    world.tick(2)
    assert any("its host is retired" in text for text in world.events("interrupted"))


def test_spot_prices_of_one_count_while_the_other_gives_none(world):
    world.second.no_spot_prices = DEAD
    world.first.spot_usd = {"us-east-1a": 30.0, "us-east-1b": 30.0}
    job = running(world)
    assert where(world) == ["p5"]
    (lease,) = world.ledger.leases()
    assert lease.usd_per_hour == 30.0 and job
    assert any("spot prices can't be asked for" in text for text in world.events("trouble"))


def test_a_launch_without_an_answer_is_found_in_its_own_cloud(world):
    world.first.lost_answers = 1
    world.second.unlisted = DEAD
    running(world)
    assert len(world.first.all) == 1 and world.second.requests == []


def test_an_instance_of_neither_is_refused_an_answer(world):
    with pytest.raises(Refused, match="nobody knows whose"):
        world.cloud.terminate(["vm-1"])
