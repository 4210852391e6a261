"""A pool whose nodes are launched and never join (a broken image or link) costs three nodes, not a night."""

import pytest

from ironburst import ports
from ironburst.controller.broken_pool import last_words
from tests.fakes import document
from tests.fakes.world import World

NIGHT, MINUTE = 3 * 3600.0, 60.0


@pytest.fixture
def world(tmp_path):
    """Nodes of p5 boot and never join; a job waits for one."""
    world = World(tmp_path)
    world.slurm.gate_fails = {"p5-1", "p5-2", "p5-3"}
    world.fill_home(limit_s=48 * 3600.0)
    world.job = world.slurm.submit(limit_s=600)
    return world


def closed(world):
    return {(place.zone, place.market) for place in world.ledger.cool_downs(world.clock.now()) if place.until_s is None}


def told(world):
    return world.events("needs_a_person")


def test_three_nodes_in_a_row_that_never_joined_close_the_whole_pool(world):
    world.pass_by(NIGHT, MINUTE)
    assert len(world.cloud.all) == 3 and world.cloud.alive() == []
    zones, markets = ("us-east-1a", "us-east-1b"), ("spot", "on-demand")
    assert closed(world) == {(zone, market) for zone in zones for market in markets}
    assert len(told(world)) == 1 and "3 nodes in a row" in told(world)[0] and "ironburst open p5" in told(world)[0]
    assert "a person reopens it" in world.ledger.decisions(world.job)[-1].text


def test_the_last_words_of_the_node_are_told(world):
    noise = "".join(f"boot line {n}\n" for n in range(5000))
    world.cloud.consoles = {"p5-1": noise + "\x1b[31mironburst-join\x1b[0m: munge key:\x07 AccessDenied\r\n\x00\n"}
    world.until(lambda: told(world), NIGHT, 15.0)
    (text,) = told(world)
    assert text.endswith("ironburst-join: munge key: AccessDenied") and len(text) < 2500
    assert text.isprintable() and "boot line 4999" in text and "boot line 10 " not in text


@pytest.mark.parametrize("error", [ports.Refused("UnauthorizedOperation"), ports.OutcomeUnknown("timeout")])
def test_a_console_that_cannot_be_read_stops_nothing(world, monkeypatch, error):
    def console(instance_id):
        raise error

    monkeypatch.setattr(world.cloud, "console", console)
    world.until(lambda: told(world), NIGHT, 15.0)
    world.tick(3)
    assert len(closed(world)) == 4 and "its console can't be read" in told(world)[0]


def test_a_young_node_that_said_nothing_yet(world):
    world.until(lambda: told(world), NIGHT, 15.0)
    assert "its console shows nothing" in told(world)[0]


def test_the_count_outlives_the_controller(world):
    world.until(lambda: len(world.events("given_up")) == 2, NIGHT, 15.0)
    world.ledger.close()
    world.start()
    world.pass_by(NIGHT, MINUTE)
    assert len(world.cloud.all) == 3 and len(told(world)) == 1


def test_a_person_or_a_new_document_reopens_it_and_three_more_may_try(world):
    world.until(lambda: told(world), NIGHT, 15.0)
    world.ledger.reopen("p5")
    world.pass_by(NIGHT, MINUTE)
    assert len(world.cloud.all) == 6 and len(told(world)) == 2
    world.document = document(serial=2)
    world.pass_by(NIGHT, MINUTE)
    assert len(world.cloud.all) == 9 and len(told(world)) == 3


def test_a_node_that_joins_ends_the_row(world):
    world.until(lambda: len(world.events("given_up")) == 2, NIGHT, 15.0)
    world.slurm.gate_fails.clear()
    world.until(lambda: world.slurm.state(world.job) == "RUNNING", NIGHT, 15.0)
    joined = world.ledger.leases()[0].zone
    assert joined not in {row.zone for row in world.ledger.all_cool_downs()}  # what refused there counts no more
    world.slurm.cancel(world.job)
    world.until(lambda: not world.ledger.leases(), NIGHT, 15.0)
    world.slurm.gate_fails = {"p5-1", "p5-2", "p5-3"}
    world.slurm.submit(limit_s=600)
    world.until(lambda: len(world.events("given_up")) == 4, NIGHT, 15.0)
    assert told(world) == []
    world.until(lambda: told(world), NIGHT, 15.0)


def test_a_launch_forgives_nothing_a_join_does(world):
    """Strikes of nodes that didn't join double the cool-down, though each of these launches succeeded."""
    world.document = document(zones=["us-east-1a"], markets=["on-demand"], cool_down_s=200)
    world.until(lambda: len(world.events("given_up")) == 2, NIGHT, 5.0)
    (row,) = world.ledger.all_cool_downs()
    assert row.strikes == 2 and row.until_s - row.at_s == 400


def test_a_gang_that_never_booted_counts_each_of_its_nodes(world):
    world.slurm.cancel(world.job)
    world.slurm.submit(nodes=3, limit_s=600, requeue=False)
    world.pass_by(NIGHT, MINUTE)
    assert len(world.cloud.all) == 3 and len(told(world)) == 1


def test_one_bad_node_of_a_gang_is_no_broken_image(world):
    world.slurm.cancel(world.job)
    world.slurm.gate_fails = {"p5-2"}
    world.slurm.submit(nodes=3, limit_s=600, requeue=False)
    world.until(lambda: len(world.events("given_up")) == 4, NIGHT, 15.0)
    assert told(world) == []


@pytest.mark.parametrize("reason", ["Server.SpotInstanceTermination", "Server.InternalError"])
def test_what_the_cloud_takes_back_before_it_joined_says_nothing_of_the_image(world, reason):
    for _ in range(4):
        world.until(lambda: world.cloud.alive(), NIGHT, 15.0)
        world.cloud.die(world.cloud.alive()[0].id, reason)
        world.tick(2)
    assert told(world) == []


def test_a_node_that_powered_itself_off_did_not_join(world):
    for _ in range(3):
        world.until(lambda: world.cloud.alive(), NIGHT, 15.0)
        world.cloud.die(world.cloud.alive()[0].id, "Client.InstanceInitiatedShutdown")
        world.tick(2)
    assert len(told(world)) == 1


@pytest.mark.parametrize(
    ("console", "said"),
    [
        ("", ""),
        ("\n \r\n\x00", ""),
        ("a\r\nb\r\n", "a | b"),
        ("\x1b[1;32m[  OK  ]\x1b[0m Started \x1b]0;title\x07slurmd", "[  OK  ] Started slurmd"),
        ("x" * 9000, "x" * 1500),
        ("\ufffd\ud800bad\x9b31m", "\ufffdbad"),
        ("key\tvalue", "key value"),
    ],
)
def test_a_console_as_one_line(console, said):
    assert last_words(console) == said
