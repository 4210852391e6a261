"""Of a large queue the ledger gets what changed; who reads it sees the same as if all had been written."""

import json
import random
import sqlite3
from dataclasses import replace

import pytest

from ironburst.burst import Decision, Infeasible, Job, Policy, Resources, Snapshot, Wait
from ironburst.controller import written
from ironburst.controller.ledger import Ledger
from ironburst.controller.ledger_decisions import Wording
from ironburst.controller.logbook import Logbook
from ironburst.ports import Observation
from tests.fakes import T0

TICK_S, STATES = 30.0, ("PENDING", "PENDING", "PENDING", "RUNNING", "COMPLETING")
POLICY = Policy("home", 0.0)
CODES = ("budget", "home_sooner", "max_nodes")


def job(number, state="PENDING"):
    on = ("dgx01",) if state != "PENDING" else ()
    return Job(number, f"j{number}", "ada", state, T0, 1, Resources(8), 3600.0, ("home",), on=on)


def days(seed, ticks=60):
    """Of each tick the queue and what is decided: codes that come and go, jobs without an answer, predictions."""
    dice, queue, codes, starts, now = random.Random(seed), {}, {}, {}, T0
    for n in range(ticks):
        now += TICK_S * dice.choice((1, 1, 1, 20))
        for _ in range(dice.randrange(3)):
            queue[n * 10 + dice.randrange(10)] = "PENDING"
        for number in list(queue):
            if dice.random() < 0.1:
                queue[number] = dice.choice((*STATES, None))
            if queue[number] is None:
                del queue[number]
                continue
            if dice.random() < 0.15:
                codes[number] = dice.choice((*CODES, "infeasible", ""))
            if dice.random() < 0.5:
                starts[number] = dice.choice((None, now + dice.uniform(0, 7200)))
        waiting = {number: codes.get(number, "budget") for number, state in queue.items() if state == "PENDING"}
        yield now, tuple(job(*item) for item in queue.items()), decision(waiting, starts)


def decision(waiting, starts):
    waits = [Wait(n, code, f"{starts.get(n)}", start_s=starts.get(n)) for n, code in waiting.items() if code in CODES]
    return Decision(
        waits=tuple(waits),
        infeasible=tuple(Infeasible(n, "partition", "no") for n, code in waiting.items() if code == "infeasible"),
    )


def read(ledger):
    jobs = {row.job: (row.state, row.ran_on, row.start_s) for row in map(ledger.job, sorted(ledger.in_queue()))}
    latest = {number: (row.kind, row.code) for number, row in ledger.last_decisions().items()}
    story = [(row.job, row.kind, row.code, row.at_s) for row in ledger.decisions()]
    return jobs, latest, story


@pytest.mark.parametrize("seed", range(6))
def test_a_reader_sees_no_difference_but_older_wording(seed, tmp_path, monkeypatch):
    ledgers = [Ledger(tmp_path / name) for name in ("whole", "changes")]
    logbooks = [Logbook(ledger, None) for ledger in ledgers]
    for now, jobs, decided in days(seed):
        for large, logbook in zip((10**9, 0), logbooks, strict=True):
            monkeypatch.setattr(written, "LARGE", large)
            logbook.write(POLICY, Snapshot(now, jobs, (), ()), decided, Observation(jobs, ()))
        whole, changes = map(read, ledgers)
        assert whole == changes
        for row in ledgers[1].last_decisions().values():
            assert 0 <= now - row.last_s < written.REFRESH_S


class Died(Exception):
    """The process is gone: nothing more is written."""


class Mortal:
    """A connection whose process dies before one of its statements, and is heard of no more."""

    __class__ = sqlite3.Connection  # to isinstance

    def __init__(self, db, statements):
        self._db, self._left = db, statements

    def __getattr__(self, name):
        return getattr(self._db, name)

    def _count(self):
        self._left -= 1
        if self._left < 0:
            raise Died

    def execute(self, *said):
        self._count()
        return self._db.execute(*said)

    def executemany(self, *said):
        self._count()
        return self._db.executemany(*said)


def story(decided, now, lives):
    """What a ledger is to hold in the end: by job each thing that was decided, from when to when, as it read last."""
    for item in (*decided.infeasible, *decided.waits):
        kind = "wait" if isinstance(item, Wait) else "infeasible"
        of = lives.setdefault(item.job, [])
        if not of or of[-1][:2] != [kind, item.code]:
            of.append([kind, item.code, now, now, item.text])
        of[-1][3:] = [now, item.text]


@pytest.mark.parametrize("seed", range(12))
def test_a_death_between_any_two_writes_loses_no_decision(seed, tmp_path, monkeypatch):
    """A tick that was written whole is never lost. Of a decision that holds on no older wording is read than
    REFRESH_S; nor of one that is over, and without a death before it that of the last tick at which it held.
    """
    monkeypatch.setattr(written, "LARGE", 0)
    dice, lives, died_s = random.Random(1000 + seed), {}, 0.0
    ledger = Ledger(tmp_path / "ledger")
    logbook = Logbook(ledger, None)
    for now, jobs, decided in days(seed, ticks=80):
        texts = [replace(wait, text=f"{now:.0f}") for wait in decided.waits]
        decided = replace(decided, waits=tuple(texts))
        said = POLICY, Snapshot(now, jobs, (), ()), decided, Observation(jobs, ())
        if dice.random() < 0.25:
            whole = ledger._db
            ledger._db = Mortal(whole, dice.randrange(40))
            try:
                logbook.write(*said)
                story(decided, now, lives)
            except Died:
                assert ledger.__dict__["_db"]._left < 0
            whole.close()
            died_s = now
            ledger = Ledger(tmp_path / "ledger")
            logbook = Logbook(ledger, None)
        else:
            logbook.write(*said)
            story(decided, now, lives)
        told = {}
        for row in ledger.decisions():
            told.setdefault(row.job, []).append(row)
        assert told.keys() == lives.keys()
        for job, of in lives.items():
            assert [[row.kind, row.code, row.at_s] for row in told[job]] == [each[:3] for each in of]
            for row, (kind, _, _, last_s, text) in zip(told[job], of, strict=True):
                over = row is not told[job][-1] or job not in {
                    each.job for each in (*decided.waits, *decided.infeasible)
                }
                exact = over and not last_s - written.REFRESH_S <= died_s <= now
                assert last_s - written.REFRESH_S < row.last_s <= last_s and (row.last_s == last_s or not exact)
                if kind == "wait":
                    assert float(text) - written.REFRESH_S < float(row.text) <= float(text)
                    assert row.text == text or not exact


def test_newer_wordings_are_read_wherever_a_decision_is(tmp_path, monkeypatch):
    monkeypatch.setattr(written, "LARGE", 0)
    logbook, jobs = Logbook(ledger := Ledger(tmp_path / "ledger"), None), (job(1), job(2))
    for n in (0, 1):
        now = T0 + n * written.REFRESH_S
        decided = decision({1: "budget", 2: "max_nodes"}, {1: now, 2: now})
        logbook.write(POLICY, Snapshot(now, jobs, (), ()), decided, Observation(jobs, ()))
    stored = {row["text"] for row in ledger._rows("SELECT text FROM decisions")}
    assert stored == {f"{T0}"}, "the rows stay as they are"
    for reader in (ledger, Ledger(tmp_path / "ledger", read_only=True)):
        for rows in (reader.decisions(), reader.newest_decisions(9), reader.last_decisions().values()):
            assert {(row.text, row.last_s, json.loads(row.figures)["start_s"]) for row in rows} == {
                (f"{now}", now, now)
            }
        assert [row.text for row in reader.decisions(2)] == [f"{now}"]


def test_a_queue_that_gets_small_keeps_the_newest_wordings(tmp_path, monkeypatch):
    monkeypatch.setattr(written, "LARGE", 2)
    logbook, ledger = (book := Logbook(Ledger(tmp_path / "ledger"), None)), book._ledger
    for n, jobs in enumerate(((job(1), job(2)), (job(1), job(2)), (job(2),))):
        now = T0 + n * written.REFRESH_S
        decided = decision({each.id: "budget" for each in jobs}, {1: now, 2: now})
        logbook.write(POLICY, Snapshot(now, jobs, (), ()), decided, Observation(jobs, ()))
    assert [row.text for row in ledger.decisions(1)] == [f"{T0 + written.REFRESH_S}"]
    assert [row.text for row in ledger.decisions(2)] == [f"{now}"] and not ledger._rows("SELECT * FROM wordings")


def test_a_reader_of_an_older_ledger_needs_no_table_of_wordings(tmp_path):
    ledger = Ledger(tmp_path / "ledger")
    ledger.decided([(1, Wording("wait", "budget", "as it was"))], T0)
    ledger._db.execute("DROP TABLE wordings")
    ledger._db.execute("DROP INDEX jobs_by_part")
    ledger.close()
    reader = Ledger(tmp_path / "ledger", read_only=True)
    assert [row.text for row in reader.decisions(1)] == ["as it was"] and reader.parts(1) == []


def test_a_decision_that_changes_has_held_up_to_the_tick_before(tmp_path, monkeypatch):
    monkeypatch.setattr(written, "LARGE", 0)
    logbook = Logbook(ledger := Ledger(tmp_path / "ledger"), None)
    for n, code in enumerate(("budget", "budget", "budget", "max_nodes")):
        jobs = (job(1),)
        logbook.write(POLICY, Snapshot(T0 + n * TICK_S, jobs, (), ()), decision({1: code}, {}), Observation(jobs, ()))
    first, second = ledger.decisions(1)
    assert (first.at_s, first.last_s, second.at_s) == (T0, T0 + 2 * TICK_S, T0 + 3 * TICK_S)


def test_what_stays_is_not_written_again(tmp_path, monkeypatch):
    monkeypatch.setattr(written, "LARGE", 0)
    logbook, statements = Logbook(ledger := Ledger(tmp_path / "ledger"), None), []
    jobs = tuple(job(n) for n in range(50))
    starts = dict.fromkeys(range(50), T0 + 3600)
    for n in range(3):
        ledger._db.set_trace_callback(statements.append if n else None)
        again = (replace(jobs[0], state="RUNNING", on=("dgx01",)), *jobs[1:]) if n == 2 else jobs
        waiting = dict.fromkeys((each.id for each in again if each.pending), "budget")
        later = {number: start + n for number, start in starts.items()}
        logbook.write(
            POLICY, Snapshot(T0 + n * TICK_S, again, (), ()), decision(waiting, later), Observation(again, ())
        )
    wrote = [line for line in statements if line.lstrip().startswith(("INSERT", "UPDATE"))]
    wrote = [line for line in wrote if "gpu_use" not in line]  # once a tick, however many jobs there are
    assert len(wrote) == 2, "the job that started, and until when its decision held"


def test_a_write_that_fails_is_made_again(tmp_path, monkeypatch):
    monkeypatch.setattr(written, "LARGE", 0)
    logbook = Logbook(ledger := Ledger(tmp_path / "ledger"), None)
    jobs = (job(1),)
    with monkeypatch.context() as broken:
        broken.setattr(ledger, "decided", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            logbook.write(POLICY, Snapshot(T0, jobs, (), ()), decision({1: "budget"}, {}), Observation(jobs, ()))
    logbook.write(POLICY, Snapshot(T0 + 1, jobs, (), ()), decision({1: "budget"}, {}), Observation(jobs, ()))
    assert ledger.in_queue() == {1} and ledger.last_decisions()[1].code == "budget"


def test_a_clock_that_was_put_back_hides_no_decision(tmp_path, monkeypatch):
    monkeypatch.setattr(written, "LARGE", 0)
    logbook, jobs = Logbook(ledger := Ledger(tmp_path / "ledger"), None), (job(1),)
    for now in (T0, T0 - 3600):
        logbook.write(POLICY, Snapshot(now, jobs, (), ()), decision({1: "budget"}, {}), Observation(jobs, ()))
    assert ledger.last_decisions()[1].code == "budget"
