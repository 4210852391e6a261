"""SQLite and PostgreSQL hold the same ledger: the same story leaves the same rows, and they answer the same."""

import itertools
import sqlite3
from contextlib import closing
from functools import partial

import pytest

from ironburst.burst import Job, Resources
from ironburst.controller import copies, ownership, postgresql
from ironburst.controller.ledger import Ledger
from ironburst.controller.ledger_decisions import Wording
from ironburst.controller.lock import Lost
from ironburst.controller.records import CoolDownRow, Place
from ironburst.controller.schema import LedgerError
from tests import postgresql as servers
from tests.faults.story import Story
from tests.faults.test_adapters import no_capacity, spot_notice
from tests.postgresql import ledger_path as ledger_path


class Short(Story):
    runs_s = (600.0, 250.0, 150.0)


def played(monkeypatch, folder, ledger=None):
    """The ledger's path after a gang and a single job, no capacity for a while, and a spot notice."""
    numbers = itertools.count(1)
    monkeypatch.setattr("secrets.token_hex", lambda size: f"{next(numbers):0{2 * size}x}")
    story = Short(folder, ledger=ledger)
    no_capacity(story)
    story.after(900, partial(spot_notice, story))
    story.end().check(again=(story.gang, story.single))
    story.ledger.close()
    return story


def test_the_same_story_leaves_the_same_rows_and_answers(tmp_path, monkeypatch):
    in_file = played(monkeypatch, tmp_path / "one")
    (tmp_path / "two").mkdir()
    in_database = played(monkeypatch, tmp_path / "two", servers.ledger_file(tmp_path / "two/ledger"))
    found = []
    for story in (in_file, in_database):
        with closing(postgresql.database(story.path, read_only=True)) as db:
            columns = copies.tables(db)
            found.append((columns, {**copies.contents(db, columns), "meta": None}))
        with closing(Ledger(story.path, read_only=True)) as ledger:
            last = story.clock.at
            answers = [
                ledger.leases(open_only=False),
                ledger.events(),
                ledger.newest_decisions(9),
                ledger.gpu_use(0.0),
            ]
            answers += [ledger.newest_boots_s("p5", 9), ledger.leases_paid_after(0), ledger.rates_paid_after(0)]
            answers += [ledger.refused_s([f"p5-{n}" for n in range(1, 7)]), ledger.spot_losses(), ledger.in_queue()]
            answers += [[ledger.job(job), ledger.leases_for(job), ledger.decisions(job)] for job in story.slurm.jobs]
            answers += [ledger.cool_downs(last), ledger.all_cool_downs(), ledger.open_tokens(), ledger.parts(1)]
            found[-1] += (answers, ledger.noted("owner"))
    assert found[0] == found[1]
    rows = found[0][1]
    assert min(rows[name].rows for name in ("leases", "events", "decisions", "intents", "rates", "assignments")) > 2


def test_what_databases_read_otherwise_they_answer_alike(ledger_path):
    """A place that is closed twice, half a surrogate, infinity, nothing: as the ledger's callers give them."""
    with closing(Ledger(ledger_path)) as ledger:
        closed = CoolDownRow("p5", "a", "spot", 1, None, "no 'capacity' at 100 % ? ?1", 1, 1.0, 1)
        ledger.put_cool_down(closed)
        ledger.put_cool_down(CoolDownRow(*closed.place[:4], 9.0, "again", 2, 2.0, 1))
        assert [row.reason for row in ledger.all_cool_downs()] == ["again"]
        assert ledger.cool_down_of(Place("p5", "a", "spot", 1)).strikes == 2
        assert (ledger.reopen("p5", market="on-demand"), ledger.reopen("p5", nodes=1)) == (0, 1)
        ledger.event("x", "half \ud800 of a pair, 100 %s, 'quoted' \\ \"twice\"", 1.0, job=2**40)
        assert ledger.events()[0].text == "half ? of a pair, 100 %s, 'quoted' \\ \"twice\""
        ledger.note("key", "one")
        ledger.note("key", "two")
        assert (ledger.noted("key"), ledger.noted("other")) == ("two", None)
        assert ledger.events(float("-inf")) == ledger.events() and ledger.events(float("inf")) == []
        assert ledger.refused_s(["p5-1"]) == {} == ledger.refused_s([]) and ledger.last_event() == 1
        assert ledger.events_of(2**40, []) == ledger.events() and ledger.events_of(1, ["l"]) == []
        with pytest.raises(sqlite3.IntegrityError), ledger.transaction():
            ledger._insert("launches", id="l", pool="p5")
        ledger.note("key", "after a refusal the ledger goes on")
        assert ownership.owner_of(ledger).id == ownership.owner_of(ledger).id


def test_of_a_session_that_is_lost_nothing_is_written_not_even_what_was_begun(tmp_path):
    path = servers.ledger_file(tmp_path / "ledger")
    first = Ledger(path)
    first.note("key", "before")
    with pytest.raises(Lost, match="nothing is done any more"), first.transaction():
        first.note("key", "half")
        servers.query(f"SELECT pg_terminate_backend({first._db._session.info.backend_pid})")
        first.note("key", "whole")
    for act in (lambda: first.note("key", "late"), first.check, first.leases):
        with pytest.raises(Lost):
            act()
    with closing(Ledger(path)) as second:
        assert second.noted("key") == "before"
        with pytest.raises(Lost):
            first.check()


def test_a_pooler_in_between_is_refused(tmp_path, monkeypatch):
    """It shares one session of the server among many: their process ids aren't those that it tells its clients."""
    path = servers.ledger_file(tmp_path / "ledger")
    session = postgresql._session

    class Pooled:
        backend_pid = 1

        def __init__(self, info):
            self.transaction_status = info.transaction_status

    def pooled(path):
        where, real = session(path)
        monkeypatch.setattr(type(real), "info", property(lambda _: Pooled(real.pgconn)))
        return where, real

    monkeypatch.setattr(postgresql, "_session", pooled)
    with pytest.raises(LedgerError, match="behind a pooler of connections"):
        Ledger(path)


def test_wordings_of_a_large_queue_and_parts_of_a_job_in_both(ledger_path):
    """Compressed, and found by an index of text: compared byte by byte, whatever the server's language is."""
    with closing(Ledger(ledger_path)) as ledger:
        for id, called in ((1, ""), (70, "7_1"), (71, "7_2"), (72, "7+0"), (73, "7@2026-11-28T12:00Z"), (74, "71_1")):
            job = Job(id, "train", "ann", "PENDING", 5.0, 1, Resources(8), 3600.0, ("home",), called=called)
            ledger.saw_jobs([job], 1.0)
            ledger.decided([(id, Wording("wait", "home_soon", "first"))], 1.0)
        assert [row.called for row in ledger.parts(7)] == ["7_1", "7_2", "7+0", "7@2026-11-28T12:00Z"]
        ledger.word({1: Wording("wait", "home_soon", "later", 9.0, "{}"), 70: Wording("wait", "other", "x")}, 2.0)
        assert [(row.text, row.last_s) for row in ledger.decisions(1)] == [("later", 2.0)]
        assert ledger.last_decisions()[70].text == "first" == ledger.newest_decisions(2)[0].text
        assert ledger.set_apart([Job(1, "other", "bob", "PENDING", 900.0, 1, Resources(8), 60.0, ("home",))]) == [1]
        (apart,) = [row for row in ledger.decisions() if row.text == "later"]
        assert apart.job < 0 and ledger.decisions(1) == []
