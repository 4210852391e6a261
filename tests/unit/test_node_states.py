"""What Slurm's node states say: every state of every release is in the table, and each name covers what it should."""

import json
from pathlib import Path

import pytest

from ironburst.burst import Node, Resources
from ironburst.nodes import states as node_states
from ironburst.ports.service import Occupancy
from ironburst.replay import view

FIXTURES = Path(__file__).parents[1] / "adapters" / "slurm_fixtures"

# All of NODE_STATES in src/plugins/data_parser/v0.0.N/parsers.c of Slurm's public source, on the release's branch
ALWAYS = {
    "ALLOCATED",
    "CLOUD",
    "COMPLETING",
    "DOWN",
    "DRAIN",
    "DYNAMIC_FUTURE",
    "DYNAMIC_NORM",
    "ERROR",
    "FAIL",
    "FUTURE",
    "IDLE",
    "INVALID",
    "INVALID_REG",
    "MAINTENANCE",
    "MIXED",
    "NOT_RESPONDING",
    "PLANNED",
    "POWERED_DOWN",
    "POWERING_DOWN",
    "POWERING_UP",
    "POWER_DOWN",
    "POWER_DRAIN",
    "POWER_UP",
    "REBOOT_CANCELED",
    "REBOOT_ISSUED",
    "REBOOT_REQUESTED",
    "RESERVED",
    "RESUME",
    "UNDRAIN",
    "UNKNOWN",
}
RELEASES = {
    "23.02": ALWAYS | {"PERFCTRS"},  # v0.0.39
    "23.11": ALWAYS | {"PERFCTRS"},  # v0.0.40
    "24.05": ALWAYS,  # v0.0.41
    "24.11": ALWAYS,  # v0.0.42
    "25.05": ALWAYS,  # v0.0.43
    "25.11": ALWAYS | {"BLOCKED", "EXTERNAL"},  # v0.0.44
    "26.05": ALWAYS | {"BLOCKED", "EXTERNAL", "POWER_DOWN_ASAP", "POWER_DOWN_FORCE"},  # v0.0.45
}
POWERING_OFF = {"POWER_DOWN", "POWER_DRAIN", "POWER_DOWN_ASAP", "POWER_DOWN_FORCE", "POWERING_DOWN"}
POWERING_ON = {"POWER_UP", "POWERING_UP"}
# out of service: nothing is given to it before somebody, or a boot, brings it back
OUT = {"DOWN", "DRAIN", "FAIL", "FUTURE", "INVALID_REG", "MAINTENANCE", "POWERED_DOWN", "UNKNOWN"}
OUT |= POWERING_OFF | {"ERROR", "INVALID", "REBOOT_ISSUED"}
NEVER_LAUNCHED = ("DOWN", "MAINTENANCE", "RESERVED")


@pytest.mark.parametrize("release", RELEASES)
def test_every_state_of_a_release_is_in_the_table(release):
    assert RELEASES[release] - node_states.STATES.keys() == set(), "say in ironburst/nodes/states.py what these mean"


def test_the_table_has_no_state_that_no_release_shows():
    assert node_states.STATES.keys() == set().union(*RELEASES.values())


@pytest.mark.parametrize("release", [path.name for path in sorted(FIXTURES.iterdir()) if path.is_dir()])
def test_what_a_release_printed_is_among_its_states(release):
    nodes = json.loads((FIXTURES / release / "nodes.json").read_text())["nodes"]
    shown = {state for node in nodes for state in node["state"]}
    assert shown and shown <= RELEASES[release]


@pytest.mark.parametrize(
    ("says", "states"),
    [
        (node_states.closed, OUT | POWERING_ON),
        (lambda states: not node_states.available(states), OUT),
        (node_states.moving, POWERING_OFF | POWERING_ON),
        (node_states.powering_up, POWERING_ON),
        (node_states.going_down, POWERING_OFF | {"POWERED_DOWN", "DOWN"}),
        (node_states.unregistered, {"UNKNOWN", "FUTURE", "DOWN"}),
        (node_states.busy, {"ALLOCATED", "MIXED", "COMPLETING", "BLOCKED"}),
    ],
    ids=["closed", "not available", "moving", "powering_up", "going_down", "unregistered", "busy"],
)
def test_each_name_covers_its_states_alone_and_among_others(says, states):
    assert {state for state in node_states.STATES if says([state])} == states
    assert {state for state in node_states.STATES if says(["IDLE", "CLOUD", state, "PLANNED"])} == states
    assert not says([]) and not says(["SOMETHING_NEW"])


def test_nodes_and_occupancies_answer_by_the_table():
    for state in node_states.STATES:
        node = Node("n", (), Resources(8), ("CLOUD", "IDLE", state))
        off = Node("n", (), Resources(8), ("CLOUD", "DRAIN", "IDLE", "POWERED_DOWN", state))
        seen = Occupancy("n", (), frozenset({"IDLE", state}), registered=False)
        assert node.open == (not node_states.closed([state]))
        assert off.launchable == (not node_states.moving([state]) and state not in NEVER_LAUNCHED)
        assert seen.available == (state not in OUT) and seen.busy == node_states.busy([state])
        assert seen.joined == (seen.busy or not node_states.unregistered([state]))


@pytest.mark.parametrize(
    ("states", "opened", "launchable", "going_down"),
    [
        (view.OFF, False, True, True),
        (view.COMING, False, False, False),
        (view.JOINED, False, False, False),
        (view.READY, True, False, False),
    ],
    ids=["off", "coming", "joined", "ready"],
)
def test_a_rented_node_on_its_way(states, opened, launchable, going_down):
    node = Node("n", (), Resources(8), states)
    assert (node.open, node.launchable, node_states.going_down(states)) == (opened, launchable, going_down)
