"""The controller itself over the Kubernetes adapter: its whole way, with a cloud and a cluster in memory."""

import itertools

import pytest

from ironburst.adapters.kubernetes import scheduler
from ironburst.ports import InsufficientCapacity, SchedulerError
from tests.fakes.kube_api import Refusal
from tests.fakes.kube_world import KubeWorld, fill_home


@pytest.fixture(params=["by-token", "eks"])
def world(request, api, client, tmp_path, monkeypatch):
    monkeypatch.setattr(scheduler, "_SETTLE_S", 0.0)
    it = KubeWorld(tmp_path, api, client, eks=request.param == "eks")
    yield it
    it.kube.close()


def test_a_gang_that_home_has_no_room_for_is_rented_for_and_all_of_it_goes_again(world):
    fill_home(world)
    world.submit("train", 2)
    world.until(lambda: "train" in world.started)
    assert world.started["train"][0][1] == ("p5-1", "p5-2")
    assert [request.count for request in world.cloud.requests] == [2]
    world.until(lambda: world.done("train"))
    world.until(world.nothing_left)
    assert len(world.started["train"]) == len(world.started["home"]) == 1
    assert world.events("needs_a_person") == []
    assert world.events("trouble") == []


def test_a_gang_of_more_pods_than_home_has_nodes_is_rented_for_beside_an_idle_home(world):
    """Its pods stay Pending; nothing refuses them."""
    world.submit("large", 3)
    world.until(lambda: "large" in world.started)
    assert world.started["large"][0][1] == ("p5-1", "p5-2", "p5-3")
    world.until(lambda: world.done("large"))


def test_no_capacity_touches_no_job_and_home_takes_it_when_it_is_free(world):
    fill_home(world, runs_s=900)
    world.cloud.errors = [InsufficientCapacity("none", "InsufficientInstanceCapacity")] * 500
    world.submit("train", 2)
    world.until(lambda: "train" in world.started)
    assert world.started["train"][0][1] == ("dgx01", "dgx02")
    assert world.events("refused")
    world.until(lambda: world.done("train"))
    assert world.nothing_left()


def test_a_job_that_home_takes_first_gives_its_rented_nodes_back(world):
    fill_home(world, runs_s=70)
    world.cloud.boot_s = 30.0
    world.submit("train", 2, runs_s=300)
    world.until(lambda: "train" in world.started)
    world.until(lambda: world.done("train"))
    world.until(world.nothing_left)
    assert len(world.started["train"]) == 1


def test_a_spot_notice_puts_the_job_back_and_it_starts_again(world):
    fill_home(world)
    world.submit("train", 2, runs_s=1200)
    world.until(lambda: "train" in world.started)
    world.pass_by(60)
    world.cloud.interrupt(world.cloud.alive()[0].id)
    world.until(lambda: len(world.started["train"]) == 2)
    assert len(world.events("requeued")) == 1
    world.until(lambda: world.done("train"))
    world.until(world.nothing_left)
    assert len(world.started["train"]) == 2


def test_an_instance_that_ends_without_a_word(world):
    fill_home(world)
    world.submit("train", 1, runs_s=1200)
    world.until(lambda: "train" in world.started)
    world.pass_by(30)
    world.cloud.die(world.cloud.alive()[0].id)
    world.until(lambda: len(world.started["train"]) == 2)
    world.until(lambda: world.done("train"))
    world.until(world.nothing_left)
    assert len(world.started["train"]) == 2 and len(world.cloud.all) == 2


def test_nothing_is_lost_or_run_twice_while_the_server_is_difficult(world):
    """Every tick a conflict and a 429, every third the watches break off and what they saw has expired, and now and
    then the server fails: whoever can't see does nothing, and goes on.
    """
    ticks, failed = itertools.count(), []
    tick = world.controller.tick

    def difficult(document):
        n, api = next(ticks), world.api
        api.conflicts = 1
        api.faults.clear()
        api.fail(Refusal(429, "TooManyRequests", "busy", retry_after=0))
        if n % 3 == 0:
            with api.lock:
                api.drop_streams()
                api.compact()
        if n % 4 == 0:
            api.fail(Refusal(500, "InternalError", "etcdserver: leader changed"), when=lambda call: call[0] != "watch")
        try:
            tick(document)
        except SchedulerError as error:
            failed.append(str(error))
        api.conflicts = 0

    world.controller.tick = difficult
    fill_home(world)
    for name, count in (("train", 2), ("one", 1)):
        world.submit(name, count, runs_s=300)
    world.until(lambda: {"train", "one"} <= world.started.keys())
    world.until(lambda: world.done("train") and world.done("one"))
    world.until(world.nothing_left)
    assert [len(world.started[name]) for name in ("train", "one", "home")] == [1, 1, 1]
    assert failed  # it was difficult


def test_a_lost_ledger_is_rebuilt_from_what_the_cluster_shows(world):
    fill_home(world)
    world.submit("train", 2, runs_s=1200)
    world.until(lambda: "train" in world.started)
    world.pass_by(30)
    world.ledger.close()
    world.path.unlink()
    world.start()
    world.until(lambda: world.done("train"))
    world.until(world.nothing_left)
    assert len(world.started["train"]) == 1
