"""The verbs on a ledger that two heads share: one of them acts, the other one waits for its turn."""

import sys

import pytest

from ironburst import cli
from ironburst.cli.site_options import TURN_S
from ironburst.controller.ledger import Ledger
from tests import postgresql
from tests.fakes import FakeClock
from tests.unit.cli.test_controller import site as site


@pytest.fixture
def shared(site, tmp_path, monkeypatch):
    """The site, its ledger in PostgreSQL."""
    site.ledger = postgresql.ledger_file(tmp_path / "ledger")
    monkeypatch.setenv("IRONBURST_LEDGER", str(site.ledger))
    return site


def waiting(site, monkeypatch, *steps):
    """Each wait of the loop takes one of these steps; the last one stops it."""
    left, stopped = list(steps), []

    def wait(seconds):
        site.clock.at += seconds
        stopped.extend([1] if not left or left.pop(0)() == "stop" else [])
        return bool(stopped)

    monkeypatch.setattr(site.clock, "wait", wait)
    monkeypatch.setattr(FakeClock, "stopped", property(lambda _: bool(stopped)), raising=False)


def test_the_second_one_waits_for_the_first_one_and_takes_over(shared, monkeypatch, capsys):
    first = Ledger(shared.ledger)
    waiting(shared, monkeypatch, lambda: None, first.close, lambda: None, lambda: "stop")
    assert cli.main(["run", "--metrics", "none"]) == 0
    said = capsys.readouterr().err
    assert said.count("ironburst: waits: another controller holds the ledger postgresql://") == 1
    assert "(ironburst on " in said and " since " in said
    ledger = Ledger(shared.ledger, read_only=True)
    assert ledger.noted("last_tick") and TURN_S < 10


def test_stopped_while_it_waits_it_ends_in_order(shared, monkeypatch, capsys):
    first = Ledger(shared.ledger)
    waiting(shared, monkeypatch, lambda: None, lambda: "stop")
    assert cli.main(["run", "--metrics", "none"]) == 0
    first.close()


def test_what_lost_the_ledger_ends_and_says_why(shared, monkeypatch, capsys):
    """As a head whose network was away: the server has ended its session, and the other head may have the ledger."""

    def ended():
        postgresql.query(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'ironburst on%'"
            " AND pid IN (SELECT pid FROM pg_locks WHERE locktype = 'advisory')"
        )

    waiting(shared, monkeypatch, lambda: None, ended, lambda: None, lambda: None, lambda: None)
    assert cli.main(["run", "--metrics", "none"]) == 4
    said = capsys.readouterr().err
    assert said.count("nothing is done any more, for the other head may have taken over") == 1
    assert "Traceback" not in said


@pytest.mark.parametrize("verb", ["tick", "reap"])
def test_other_verbs_that_write_dont_wait(shared, capsys, verb):
    first = Ledger(shared.ledger)
    assert cli.main([verb]) == 4
    assert "another controller holds the ledger" in capsys.readouterr().err
    first.close()
    assert cli.main([verb]) == 0


def test_whoever_reads_needs_no_turn(shared, monkeypatch, capsys):
    assert cli.main(["status"]) == 2
    assert capsys.readouterr().err.endswith("yet: start `ironburst run`\n")
    first = Ledger(shared.ledger)
    assert cli.main(["status"]) in (0, 5)
    assert cli.main(["reap", "--dry-run"]) == 0
    assert cli.main(["explain", "1"]) in (0, 2)
    first.close()


def test_an_order_is_taken_up_by_whoever_acts(shared, capsys):
    assert cli.main(["tick"]) == 0
    assert cli.main(["pause", "--until", "8h"]) == 5, "nobody acts: it waits beside the ledger"
    assert cli.main(["tick"]) == 0
    assert "paused" in str([event.text for event in Ledger(shared.ledger, read_only=True).events()])


def test_a_database_that_is_away_is_one_sentence_and_waited_for(shared, monkeypatch, capsys):
    shared.ledger.write_text("postgresql://ironburst@/nothing?host=/nonexistent\n")
    assert cli.main(["status"]) == 2
    said = capsys.readouterr().err
    assert said.startswith("ironburst: the ledger postgresql://ironburst@/nothing can't be reached: ")
    assert len(said.splitlines()) == 1
    waiting(shared, monkeypatch, lambda: None, lambda: "stop")
    assert cli.main(["run", "--metrics", "none"]) == 0
    assert capsys.readouterr().err.count("can't be reached") == 1


@pytest.mark.parametrize(
    "text",
    [
        "",
        "# nothing\n",
        "sqlite:///x\n",
        "postgresql://ironburst:hunter2@db/ironburst\n",
        "postgresql://a@b/c hunter2",
    ],
)
def test_a_file_that_names_no_database_is_one_sentence_without_the_password(shared, capsys, text):
    shared.ledger.write_text(text)
    assert cli.main(["status"]) == 2
    said = capsys.readouterr().err
    assert len(said.splitlines()) == 1 and "hunter2" not in said
    assert "file:/etc/ironburst/ledger.password" in said or "is not a secret reference" in said


def test_without_psycopg_it_is_said_what_to_install(shared, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "psycopg", None)
    assert cli.main(["status"]) == 2
    assert "pip install 'ironburst[postgresql]', or Debian's python3-psycopg" in capsys.readouterr().err
