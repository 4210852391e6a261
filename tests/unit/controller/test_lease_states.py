"""The table of a lease's states: what it allows is written, and nothing else."""

import re
from pathlib import Path

import pytest

from ironburst.burst import Launch
from ironburst.controller.lease_states import MOVES, State
from ironburst.controller.lease_table import RULES
from ironburst.controller.ledger import IllegalMove, Ledger

ROOT = Path(__file__).parents[3]
PAIRS = [(at, to) for at in State for to in State]


@pytest.fixture
def ledger(tmp_path):
    ledger = Ledger(tmp_path / "ledger.sqlite")
    ledger.add_launch(
        "L", Launch("p5", ("a",), "spot", ("p5-1", "p5-2"), (1,), 36.0, 9.0, 0.0, ""), "p5", "ami", 60, 1, 1.0
    )
    yield ledger
    ledger.close()


def states(ledger):
    return [(lease.state, lease.changed_s) for lease in ledger.leases(open_only=False)]


@pytest.mark.parametrize(("at", "to"), PAIRS, ids=lambda state: state.value)
def test_a_move_is_written_if_the_table_has_it_and_else_refused(ledger, at, to):
    _, second = ledger.leases()
    ledger._update("leases", second.id, {"state": at})
    before = states(ledger)
    if at == to:  # it is there; other columns are set
        ledger.move([second], to, 7.0, end_reason="again")
        assert states(ledger) == before and ledger.leases(open_only=False)[1].end_reason == "again"
    elif to in MOVES[at]:
        ledger.move([second], to, 7.0)
        assert states(ledger) == [before[0], (to, 7.0)]
    else:
        with pytest.raises(IllegalMove, match=f"can't go from {at} to {to}"):
            ledger.move([second], to, 7.0, end_reason="no")
        assert states(ledger) == before


def test_of_several_leases_one_that_is_refused_keeps_all(ledger):
    first, second = ledger.leases()
    ledger.move([second], State.LEAVING, 5.0)
    before = states(ledger)
    with pytest.raises(IllegalMove, match="lease L/p5-2 can't go from leaving to powering"):
        ledger.move([first, second], State.POWERING, 7.0)
    assert states(ledger) == before


def test_every_state_has_a_way_to_the_end_and_none_to_the_first():
    for state in State:
        seen, ahead = set(), [state]
        while ahead:
            at = ahead.pop()
            seen.add(at)
            ahead += set(MOVES[at]) - seen
        assert State.ENDED in seen
        assert State.INTENDED not in MOVES[state]


def test_the_state_is_written_by_move_alone(ledger):
    with pytest.raises(AssertionError):
        ledger.update(ledger.leases(), state=State.READY)
    writers = [
        path.name
        for path in sorted((ROOT / "ironburst").rglob("*.py"))
        if re.search(r"UPDATE leases SET state|update\([^)]*state=records|_update\(\"leases\"", path.read_text())
    ]
    assert writers == ["ledger.py"]


def test_the_glossary_names_every_state():
    (row,) = (
        line for line in (ROOT / "docs/reference/glossary.md").read_text().splitlines() if "| **lease** |" in line
    )
    assert re.findall(r"\w+", row.rpartition(":")[2]) == [state.value for state in RULES]


def test_the_operators_page_names_every_state_that_is_shown():
    page = (ROOT / "docs/how-to/operator/README.md").read_text()
    (line,) = (line for line in page.splitlines() if line.startswith("- *rented*"))
    assert set(re.findall(r"`(\w+)`", line)) == set(RULES) - {State.ENDED}
