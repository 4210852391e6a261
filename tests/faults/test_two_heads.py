"""Two heads and one ledger in PostgreSQL. The first one dies at random moments: its process, its host, or its network;
the second one goes on, with leases in every state. No job is lost, nothing is rented twice, nothing is unaccounted.

What a death leaves is as PostgreSQL has it: a process' socket closes at once; of a host or a network nothing comes, and
the server ends the session when nobody answers its keepalives (here an administrator does, so much later in the story;
how long it takes on a wire: test_heads_live.py). A head without a network lives on: it is let go on where it was, even
in the middle of a call, and may do nothing more.
"""

import functools
import random
import threading
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from ironburst.cli.site_options import TURN_S
from ironburst.controller import records
from ironburst.controller.ledger import Ledger
from ironburst.controller.lock import LockedError, Lost
from ironburst.controller.postgresql import SILENT_S
from ironburst.ports import Uptime
from lab.system import wait_for
from tests import postgresql
from tests.fakes import Breaking, Crash
from tests.faults.story import Story
from tests.faults.test_adapters import spot_notice
from tests.parts import in_parts

MOMENTS, PARTS = 54, 18
DEATHS = ("process", "host", "network")
NEXT_TICK_S = 60.0
STATES = [state for state in records.State if state != records.ENDED]


class Moments:
    """Counts what a head writes and what it calls; dies at the n-th, before or after it."""

    def __init__(self, seen, at=-1, late=False, die=None):
        self.seen, self.at, self.late, self.die = seen, at, late, die
        self.states = []  # of the open leases, at each

    def of(self, step):
        def counted(*values, **named):
            self.states.append(self.seen() if self.at < 0 else None)
            here = len(self.states) == self.at
            if here and not self.late:
                self.die()
            done = step(*values, **named)
            if here and self.late:
                self.die()
            return done

        return counted


class Counted:
    """A port, or the ledger's connection, some of whose calls are moments."""

    def __init__(self, what, moments, counts):
        self._what, self._moments, self._counts = what, moments, counts

    def __getattr__(self, name):
        found = getattr(self._what, name)
        if not callable(found):
            return found

        def call(*values, **named):
            step = self._moments.of(found) if self._counts(name, *values) else found
            return step(*values, **named)

        return call


def writes(name, sql="", *_):
    return name in ("execute", "executemany") and sql.startswith(("INSERT", "UPDATE", "DELETE", "COMMIT"))


def calls(name, *_):
    return name not in Breaking.READS


class HostClock:
    """A head's: the same time, and a boot of its own."""

    def __init__(self, clock, head):
        self._clock, self._head = clock, head
        self.now, self.wait = clock.now, clock.wait

    def uptime(self):
        return Uptime(self._head, self._clock.at)


class Heads(Story):
    """`head1` controls the site until it dies; `head2` is there."""

    runs_s = (600.0, 250.0, 150.0)
    head, lost = "head1", None

    def __init__(self, folder, spot):
        self.ticks = []  # [head, when it began, when it ended; None: it didn't]
        self.spot = spot
        super().__init__(folder, ledger=postgresql.ledger_file(folder / "ledger"))
        if spot:
            self.after(200, functools.partial(spot_notice, self))

    def start(self):
        super().start()
        self.db, tick, head = self.ledger._db, self.controller.tick, self.head
        self.controller.clock = HostClock(self.clock, self.head)

        def once(document):
            self.ticks.append(mine := [head, self.clock.at, None])
            try:
                report = tick(document)
            except Lost as error:
                self.lost = error
                raise Crash("the process ends") from None
            mine[-1] = self.clock.at
            return report

        self.controller.tick = once

    def count(self, moments):
        self.ledger._db = Counted(self.db, moments, writes)
        self.controller.scheduler = Counted(self.slurm, moments, calls)
        self.controller.cloud = Counted(self.cloud, moments, calls)
        return moments

    def states_now(self):
        rows = self.db.execute("SELECT DISTINCT state FROM leases WHERE state != 'ended'").fetchall()
        return {row["state"] for row in rows}

    def take_over(self, death):
        """What head2 sees of head1's death, until it holds the ledger."""
        first = self.db._session
        if death == "process":
            first.close()
        else:
            with pytest.raises(LockedError, match=r"another controller holds the ledger .* since "):
                Ledger(self.path)
            self.clock.at += SILENT_S
            postgresql.query(f"SELECT pg_terminate_backend({first.info.backend_pid})")
        self.clock.at += TURN_S
        self.head = "head2"
        wait_for(self._started, 30, "the lock")

    def _started(self):
        try:
            self.start()
        except LockedError:
            return False
        return True


@functools.cache
def moments(spot):
    """The states of open leases at each moment of an undisturbed way."""
    with TemporaryDirectory() as folder:
        story = Heads(Path(folder), spot)
        counted = story.count(Moments(story.states_now))
        story.end().check(again=(story.gang, story.single) if spot else ())
    return counted.states


def chosen(number):
    """(spot, moment, late, death): each state of a lease has its turn, each death too."""
    dice, state = random.Random(number), STATES[number % len(STATES)]
    spot = state == records.INTERRUPTED or dice.random() < 0.3
    there = [at for at, states in enumerate(moments(spot), 1) if state in states]
    assert there, f"no moment has a lease that is {state}"
    return state, spot, dice.choice(there), dice.random() < 0.5, DEATHS[number % 3], dice.randint(0, 3)


@pytest.mark.parametrize("part", in_parts(PARTS))
def test_the_second_head_goes_on_wherever_the_first_one_died(tmp_path, part):
    for number in range(part, MOMENTS, PARTS):
        state, spot, at, late, death, ticks = chosen(number)
        (tmp_path / str(number)).mkdir()
        try:
            _fails_over(Heads(tmp_path / str(number), spot), at, late, death, ticks)
        except AssertionError as error:
            what = f"{death}, {state}, moment {at}, {'after' if late else 'before'}, spot {spot}, late by {ticks} ticks"
            raise AssertionError(f"number {number} ({what}): {error}") from None


def _fails_over(story, at, late, death, ticks):
    dead, on = threading.Event(), threading.Event()

    def die():
        dead.set()
        if death != "network":
            raise Crash(death)
        assert on.wait(120)

    def head1():
        with pytest.raises(Crash):
            story.end()

    story.count(Moments(story.states_now, at, late, die))
    thread = threading.Thread(target=head1)
    thread.start()
    assert dead.wait(120)
    if death != "network":
        thread.join()
    story.take_over(death)
    for _ in range(ticks):
        story.tick()
    on.set()  # what it was doing happens now, and nothing after that
    thread.join(120)
    assert bool(story.lost) == (death == "network")
    story.tick()
    story.end()
    last_s = max(began_s for head, began_s, _ in story.ticks if head == "head1")
    next_s = min(ended_s for head, _, ended_s in story.ticks if head == "head2" and ended_s)
    assert next_s - last_s <= NEXT_TICK_S
    story.check(again=(story.gang, story.single) if story.spot else ())
    accounted(story)


def accounted(story):
    """Each instance has one lease, which was paid for from its launch to its end."""
    leases = Counter(lease.instance_id for lease in story.ledger.leases(open_only=False) if lease.instance_id)
    assert leases == Counter(list(story.cloud.all)), "each instance has one lease"
    for lease in story.ledger.leases(open_only=False):
        if fake := story.cloud.all.get(lease.instance_id):
            assert lease.from_s <= fake.instance.launched_s + 1 and lease.to_s >= fake.ended_at - 1, lease


def test_every_state_of_a_lease_every_death_and_both_sides_of_a_step_are_among_the_moments():
    told = [chosen(number) for number in range(MOMENTS)]
    assert {state for state, *_ in told} == set(STATES)
    assert {(death, late) for *_, late, death, _ in told} == {(death, late) for death in DEATHS for late in (0, 1)}
    assert len({(spot, at, late) for _, spot, at, late, *_ in told}) >= 50
