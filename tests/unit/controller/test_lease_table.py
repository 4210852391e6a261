"""The table of a lease's next step: asked for every combination of facts, and what may never be done."""

import json
import re
from itertools import chain, combinations, product
from pathlib import Path
from string import Formatter

import pytest

from ironburst.burst import Launch
from ironburst.controller import leases, order_spool, records, sightings
from ironburst.controller.lease_states import MOVES, State
from ironburst.controller.lease_table import RULES, facts, rule, those
from ironburst.ports import InstanceTrouble, Node, Resources
from tests.fakes.world import World

LAUNCHED = [state for state in State if state not in records.EARLY]
ROOT = Path(__file__).parents[3]
ENDS = (State.INTERRUPTED, State.LEAVING, State.TERMINATED, State.ENDED)
# as Slurm shows nodes: every mix of these, possible or not
BASES = ("ALLOCATED", "DOWN", "IDLE", "UNKNOWN")
FLAGS = ("DRAIN", "NOT_RESPONDING", "POWER_UP", "POWERING_UP", "POWER_DOWN", "POWERING_DOWN", "POWERED_DOWN")
REASONS = (("", ""), ("Kill task failed", "root"), ("bad link", "alice"))  # and the user who gave it
OTHERS = ("gone", "by_cloud", "spot", "overdue")


def subsets(items):
    return chain.from_iterable(combinations(items, size) for size in range(len(items) + 1))


def words(state):
    return sorted({word for row in RULES[state] for word in row.when.split()})


def nodes():
    for base, flags, (reason, by) in product(BASES, subsets(FLAGS), REASONS):
        yield Node("p5-1", ("p5",), Resources(8), (base, *flags), reason, reason_by=by)


@pytest.mark.parametrize("state", State)
def test_every_combination_has_its_row_and_every_row_is_some_combinations(state):
    met = {id(rule(state, frozenset(held))) for held in subsets(words(state))}
    assert met == {id(row) for row in RULES[state]}


@pytest.mark.parametrize("state", State)
def test_no_answer_is_an_illegal_move(state):
    assert {row.to for row in RULES[state]} <= {state, *MOVES[state]}


def test_every_fact_is_one_that_is_looked_at():
    """A word that nobody sets would never hold."""
    launched = {fact for node in (None, *nodes()) for fact in facts(node)} | {"jobs", *OTHERS}
    early = set(
        re.findall(r"(\w+)=", re.search(r"return lease_table.those\((.*?)\n    \)", source("launching"), re.DOTALL)[1])
    )
    for state in State:
        assert set(words(state)) <= (early if state in records.EARLY else launched), state


def source(module):
    return (ROOT / f"ironburst/controller/{module}.py").read_text()


def test_what_a_row_lets_be_filled_in_is_known():
    for state, rows in RULES.items():
        fields = {field for row in rows for _, field, _, _ in Formatter().parse(row.why) if field}
        early = {"unneeded"}
        assert fields <= (
            early if state in records.EARLY else {"gone", "lasts_s", "boot_s", "states", "reason", "verdict", "because"}
        )


def test_a_running_job_on_a_node_that_answers_is_ended_only_by_rows_that_name_it():
    ending = set()
    for node in nodes():
        for held in subsets(OTHERS) if sightings.answers(node) else ():
            known = facts(node, **dict.fromkeys(("jobs", *held), True))
            ending |= {
                (state, row.when) for state in LAUNCHED if (row := rule(state, known)).to in ENDS if row.to != state
            }
    assert ending == {
        # the cloud says itself that the instance has ended
        (State.READY, "gone by_cloud spot"),
        (State.READY, "gone"),
        (State.RELEASING, "gone"),
        (State.INTERRUPTED, "gone"),
        (State.TERMINATED, "gone"),
        # the jobs were told to leave, and had `stop_s` for it
        (State.INTERRUPTED, "overdue"),
    }


@pytest.mark.parametrize("state", records.EARLY)
def test_one_that_is_not_launched_yet_ends_none_either(state):
    for held in subsets(words(state)):
        row = rule(state, those(**dict.fromkeys(held, True)) | {"jobs", "works"})
        assert row.to not in ENDS, held


@pytest.mark.parametrize(
    ("state", "row"),
    [pytest.param(state, row, id=f"{state}-{row.when or 'else'}") for state in LAUNCHED for row in RULES[state]],
)
def test_an_act_takes_a_lease_where_its_row_says(tmp_path, state, row):
    world = World(tmp_path)
    world.ledger.add_launch(
        "L", Launch("p5", ("a",), "spot", ("p5-1",), (), 36.0, 9.0, 0.0, ""), "p5", "ami", 60, 1, 1.0
    )
    (lease,) = world.ledger.leases()
    world.ledger._update("leases", lease.id, {"state": state, "instance_id": "i-1"})
    site = world.controller.site(world.document)
    leases.take(site, world.ledger.lease(lease.id), row, "why")
    assert world.ledger.lease(lease.id).state == row.to


# ---- rows of the ledger that are a moment old


@pytest.fixture
def gang(tmp_path):
    """Two nodes of one launch, both launched; neither has booted."""
    world = World(tmp_path)
    world.fill_home(limit_s=86400.0)
    world.slurm.submit(nodes=2, limit_s=600)
    world.until(lambda: world.states() == ["launched", "launched"], 60)
    return world


def half_joined(world):
    first, _ = world.ledger.leases()
    world.cloud.all[first.instance_id].boots_at += 1000
    world.until(lambda: world.states() == ["launched", "joined"], 60)


def test_of_a_gang_one_dies_in_the_moment_in_which_another_registers(gang):
    first, _ = gang.ledger.leases()
    gang.cloud.die(first.instance_id)
    gang.clock.at += 10
    gang.tick()
    assert gang.events("trouble") == []
    assert not {"launched", "joined"} & set(gang.states())


def test_a_gang_that_has_joined_in_part_is_ordered_to_end(gang):
    half_joined(gang)
    order_spool.prepare(gang.path)
    order_spool.put(gang.path, json.dumps({"verb": "stop", "now": True}))
    gang.tick()
    gang.until(lambda: not gang.cloud.alive(), 600)
    assert gang.events("trouble") == []


def test_a_gang_that_has_joined_in_part_has_a_scheduled_event(gang):
    half_joined(gang)
    soon_s = gang.clock.now() + 60
    gang.cloud.ill = [
        InstanceTrouble(lease.instance_id, "EC2 has scheduled system-reboot", soon_s) for lease in gang.ledger.leases()
    ]
    gang.tick()
    gang.until(lambda: not gang.cloud.alive(), 600)
    assert gang.events("trouble") == []


def test_a_job_on_the_node_of_a_launch_that_was_not_made_goes_on(tmp_path):
    """The ledger is older than the world, and the cloud's list doesn't show the instance yet."""
    world = World(tmp_path)
    world.fill_home(limit_s=86400.0)
    job = world.slurm.submit(limit_s=600, runs_s=300)
    world.until(lambda: world.slurm.state(job) == "RUNNING", 60)
    (lease,) = world.ledger.leases()
    world.ledger._update("leases", lease.id, {"state": State.POWERING, "instance_id": None})
    world.cloud.hidden.add(lease.instance_id)
    world.pass_by(60, 10)
    assert world.slurm.state(job) == "RUNNING" and world.states() == ["powering"]
    world.cloud.hidden.clear()
    world.until(lambda: world.states() == ["ready"], 60)
    world.until(lambda: world.slurm.state(job) == "COMPLETED", 600)
