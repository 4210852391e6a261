"""The controller is killed (kill -9) between any two steps of launch, join, widen, release and reap: before and after
each call that changes something outside, and before and after each write of the ledger that a step consists of. A new
process has the ledger, Slurm and the cloud, and nothing else.
"""

import itertools
import re
import sqlite3

import pytest

from ironburst.controller import schema
from tests.fakes import Breaking, Crash
from tests.faults.story import Story

STEP = re.compile(r"(INSERT|UPDATE|DELETE).*\b(launches|leases|rates|assignments|intents|cool_downs)\b", re.DOTALL)
PARTS = 12  # the points are shared out, for a test each; `make test` plays the first part


class Writes(sqlite3.Connection):
    """Dies at its n-th write of a step; all connections count together."""

    count, at, late = itertools.count(1), -1, False

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
        Writes.count, Writes.at, Writes.late = itertools.count(1), at, late

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


def points(total, part):
    return range(1 + part, total, PARTS)


def parts():
    for part in range(PARTS):
        yield pytest.param(part, marks=[pytest.mark.slow] if part else [])


def checked(story, where):
    try:
        story.check()
        assert not any(event.kind == "orphan" for event in story.ledger.events())
    except AssertionError as error:
        raise AssertionError(f"killed {where}: {error}") from None


@pytest.mark.parametrize("late", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("part", parts())
def test_killed_at_any_write_of_a_step(tmp_path, writes, part, late):
    writes(-1, late)
    Story(tmp_path / "whole").end()
    total = next(Writes.count)
    assert total > 60
    for at in points(total, part):
        writes(at, late)
        story = Story(tmp_path / f"at{at}")
        assert lives(story), at
        writes(-1, late)
        checked(story, f"at write {at}, {'after' if late else 'before'}")


@pytest.mark.parametrize("late", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("part", parts())
def test_killed_at_any_call_outside(tmp_path, part, late):
    def broken(folder, at):
        story, counter = Story(folder), itertools.count(1)
        for name in ("scheduler", "cloud"):
            port = getattr(story.controller, name)
            setattr(story.controller, name, Breaking(port, counter, at=at, after=late))
        return story, counter

    story, counter = broken(tmp_path / "whole", -1)
    story.end()
    total = next(counter)
    assert total > 25
    for at in points(total, part):
        story, _ = broken(tmp_path / f"at{at}", at)
        assert lives(story), at
        checked(story, f"at call {at}, {'after' if late else 'before'}")
