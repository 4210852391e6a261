"""Of a large queue the ledger gets what changed; who reads it sees the same as if all had been written."""

import random
from dataclasses import replace

import pytest

from ironburst.burst import Decision, Infeasible, Job, Resources, Snapshot, Wait
from ironburst.controller import written
from ironburst.controller.ledger import Ledger
from ironburst.controller.logbook import Logbook
from ironburst.ports import Observation
from tests.fakes import T0

TICK_S, STATES = 30.0, ("PENDING", "PENDING", "PENDING", "RUNNING", "COMPLETING")
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
            logbook.write(None, Snapshot(now, jobs, (), ()), decided, Observation(jobs, ()))
        whole, changes = map(read, ledgers)
        assert whole == changes
        for row in ledgers[1].last_decisions().values():
            assert 0 <= now - row.last_s < written.REFRESH_S


def test_a_decision_that_changes_has_held_up_to_the_tick_before(tmp_path, monkeypatch):
    monkeypatch.setattr(written, "LARGE", 0)
    logbook = Logbook(ledger := Ledger(tmp_path / "ledger"), None)
    for n, code in enumerate(("budget", "budget", "budget", "max_nodes")):
        jobs = (job(1),)
        logbook.write(None, Snapshot(T0 + n * TICK_S, jobs, (), ()), decision({1: code}, {}), Observation(jobs, ()))
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
        logbook.write(None, Snapshot(T0 + n * TICK_S, again, (), ()), decision(waiting, later), Observation(again, ()))
    wrote = [line for line in statements if line.lstrip().startswith(("INSERT", "UPDATE"))]
    assert len(wrote) == 2, "the job that started, and until when its decision held"


def test_a_write_that_fails_is_made_again(tmp_path, monkeypatch):
    monkeypatch.setattr(written, "LARGE", 0)
    logbook = Logbook(ledger := Ledger(tmp_path / "ledger"), None)
    jobs = (job(1),)
    with monkeypatch.context() as broken:
        broken.setattr(ledger, "decided", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            logbook.write(None, Snapshot(T0, jobs, (), ()), decision({1: "budget"}, {}), Observation(jobs, ()))
    logbook.write(None, Snapshot(T0 + 1, jobs, (), ()), decision({1: "budget"}, {}), Observation(jobs, ()))
    assert ledger.in_queue() == {1} and ledger.last_decisions()[1].code == "budget"


def test_a_clock_that_was_put_back_hides_no_decision(tmp_path, monkeypatch):
    monkeypatch.setattr(written, "LARGE", 0)
    logbook, jobs = Logbook(ledger := Ledger(tmp_path / "ledger"), None), (job(1),)
    for now in (T0, T0 - 3600):
        logbook.write(None, Snapshot(now, jobs, (), ()), decision({1: "budget"}, {}), Observation(jobs, ()))
    assert ledger.last_decisions()[1].code == "budget"
