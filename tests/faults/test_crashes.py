"""The controller is killed (kill -9) between any two steps of launch, join, widen, release and reap: before and after
each call that changes something outside, and before and after each write of the ledger that a step consists of. A new
process has the ledger, Slurm and the cloud, and nothing else. Of what comes from the same lines of the controller (each
tick notes that a node was seen) the first, the second and the last are tried.
"""

import re
import sqlite3
from traceback import walk_stack

import pytest

from ironburst.controller import schema
from tests.fakes import Breaking, Crash
from tests.faults.story import Story
from tests.parts import in_parts

STEP = re.compile(r"(INSERT|UPDATE|DELETE).*\b(launches|leases|rates|assignments|intents|cool_downs)\b", re.DOTALL)
PARTS = 16


class Counter:
    """Counts from 1, and notes the controller's lines that each was from."""

    def __init__(self):
        self.places = []

    def __next__(self):
        lines = ((frame.f_code.co_filename, line) for frame, line in walk_stack(None))
        self.places.append(tuple(each for each in lines if "/ironburst/controller/" in each[0]))
        return len(self.places)

    def points(self, part):
        """The numbers of the first, the second and the last from each place, shared out."""
        found = {}
        for number, place in enumerate(self.places, 1):
            found.setdefault(place, []).append(number)
        return sorted({number for numbers in found.values() for number in (*numbers[:2], numbers[-1])})[part::PARTS]


class Writes(sqlite3.Connection):
    """Dies at its n-th write of a step; all connections count together."""

    count, at, late = Counter(), -1, False

    def execute(self, sql, *values):
        number = next(Writes.count) if STEP.match(sql.strip()) else 0
        if number == Writes.at and number and not Writes.late:
            raise Crash(f"before {sql[:60]}")
        done = super().execute(sql, *values)
        if number == Writes.at and number:
            raise Crash(f"after {sql[:60]}")
        return done


@pytest.fixture
def writes(monkeypatch):
    connect = sqlite3.connect

    def connected(*args, **more):
        return connect(*args, factory=Writes, **more)

    monkeypatch.setattr(schema.sqlite3, "connect", connected)

    def dies_at(at, late):
        Writes.count, Writes.at, Writes.late = Counter(), at, late

    yield dies_at
    dies_at(-1, False)


def lives(story):
    """To the end, with one death on the way; whether there was one."""
    try:
        story.end()
        return False
    except Crash:
        story.restart()
        story.end()
        return True


def checked(story, where):
    try:
        story.check()
        assert not any(event.kind == "orphan" for event in story.ledger.events())
    except AssertionError as error:
        raise AssertionError(f"killed {where}: {error}") from None


@pytest.mark.parametrize("late", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("part", in_parts(PARTS))
def test_killed_at_any_write_of_a_step(tmp_path, writes, part, late):
    writes(-1, late)
    Story(tmp_path / "whole").end()
    whole = Writes.count
    assert len(whole.places) > 60 and len(set(whole.places)) > 15
    for at in whole.points(part):
        writes(at, late)
        story = Story(tmp_path / f"at{at}")
        assert lives(story), at
        writes(-1, late)
        checked(story, f"at write {at}, {'after' if late else 'before'}")


@pytest.mark.parametrize("late", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("part", in_parts(PARTS))
def test_killed_at_any_call_outside(tmp_path, part, late):
    def broken(folder, at):
        story, counter = Story(folder), Counter()
        for name in ("scheduler", "cloud"):
            port = getattr(story.controller, name)
            setattr(story.controller, name, Breaking(port, counter, at=at, after=late))
        return story, counter

    story, counter = broken(tmp_path / "whole", -1)
    story.end()
    assert len(counter.places) > 25 and len(set(counter.places)) > 10
    for at in counter.points(part):
        story, _ = broken(tmp_path / f"at{at}", at)
        assert lives(story), at
        checked(story, f"at call {at}, {'after' if late else 'before'}")
