"""status, explain, tick, run and reap: what they print, and their exit codes."""

import json
import os
import re
import signal
import socket
import sqlite3
import threading
import time
import urllib.request
from dataclasses import replace

import pytest
from rich.cells import cell_len

from ironburst import cli
from ironburst.cli import reap, run, status, tick
from ironburst.controller import lock
from ironburst.controller.ledger import Ledger
from ironburst.controller.recorder import ticks
from ironburst.controller.tick import Controller
from ironburst.document import parse
from tests.fakes import FakeClock, FakeCloud, FakeSlurm, connect_to, document
from tests.fakes.karpenter import FakeKarpenter


@pytest.fixture
def site(tmp_path, monkeypatch):
    """A document, a ledger path, and the verbs wired to in-memory ports."""
    clock = FakeClock()
    slurm = FakeSlurm(clock)
    cloud = FakeCloud(clock, slurm)
    path = tmp_path / "cluster.json"
    path.write_text(document().model_dump_json())
    monkeypatch.setenv("IRONBURST_DOCUMENT", str(path))
    monkeypatch.setenv("IRONBURST_LEDGER", str(tmp_path / "ledger.sqlite"))
    monkeypatch.delenv("IRONBURST_SLURM_PREFIX", raising=False)
    connect_to(cloud, monkeypatch)
    for module in (tick, run, reap):
        monkeypatch.setattr(module, "SystemClock", lambda: clock)
    monkeypatch.setattr(status.schedulers, "Slurm", lambda prefix, jobs=0: slurm)
    monkeypatch.setattr(f"{status.__name__}.time.time", clock.now)
    return type(
        "Site", (), {"clock": clock, "slurm": slurm, "cloud": cloud, "path": path, "ledger": tmp_path / "ledger.sqlite"}
    )


def rented(site):
    """One job runs at home, one was rented for and runs, one waits."""
    site.slurm.submit(nodes=2, limit_s=7200, runs_s=7200)
    job = site.slurm.submit(limit_s=600, runs_s=300)
    site.slurm.submit(limit_s=None)
    ledger = Ledger(site.ledger)
    for _ in range(12):
        Controller(site.slurm, site.cloud, ledger, site.clock).tick(document())
        site.clock.at += 2
    ledger.close()
    assert site.slurm.state(job) == "RUNNING"
    return job


def test_status_shows_queue_leases_and_money_with_the_prices_age(site, capsys):
    job = rented(site)
    assert cli.main(["status", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert [row["job"] for row in said["queue"]] == [1, 2, 3] and "no finite time limit" in said["queue"][2]["why"]
    assert [(x["node"], x["market"], x["jobs"], x["state"]) for x in said["leases"]] == [
        ("p5-1", "spot", [job], "ready")
    ]
    assert said["money"]["usd_per_month"] == 20000 and said["money"]["prices_as_of"] == "2026-11-01"
    assert 0 < said["money"]["spent_usd"] < said["money"]["committed_usd"]
    assert [node["gpus_used"] for node in said["home"]] == [8, 8]
    assert cli.main(["status"]) == 0
    text = capsys.readouterr().out
    assert "estimates, prices of 2026-11-01" in text and "p5.48xlarge spot us-east-1a" in text
    assert "this day" not in text and [each["kind"] for each in said["money"]["ceilings"]] == ["month"]


def test_status_shows_the_ceilings_of_the_day_and_of_accounts(site, capsys):
    declared = json.loads(site.path.read_text())
    declared["budget"] |= {"usd_per_day": 900.0, "accounts": {"vision": 400.0}}
    site.path.write_text(json.dumps(declared))
    rented(site)
    assert cli.main(["status"]) == 0
    text = capsys.readouterr().out
    assert "set aside of $900.00, until 2026-11-22 00:00:00" in text
    assert "account vision, this month: $0.00 spent, $0.00 set aside of $400.00" in text


def test_status_shows_what_karpenter_has_of_the_budget(site, capsys):
    pool = {
        "name": "g6e",
        "node_pool": "ironburst-lab-g6e",
        "instance_type": "g6e.12xlarge",
        "gpus": 4,
        "cpus": 48,
        "market": "on-demand",
        "usd_per_hour": 10.0,
        "max_nodes": 3,
        "max_run_s": 3600,
    }
    declared = parse(json.loads(site.path.read_text()) | {"karpenter": [pool]})
    site.path.write_text(declared.model_dump_json())
    its = FakeKarpenter(site.clock)
    its.declare("ironburst-lab-g6e")
    ledger = Ledger(site.ledger)
    controller = Controller(site.slurm, site.cloud, ledger, site.clock, karpenter=its)
    controller.tick(declared)
    its.end(its.launch(declared.karpenter[0]), site.clock.now(), 3600.0)
    its.launch(declared.karpenter[0])
    site.clock.at += 360.0
    controller.tick(declared)
    ledger.close()
    assert cli.main(["status", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    (row,) = said["karpenter"]
    assert (row["nodes"], row["ending"], row["usd_per_hour"], row["limit_nodes"]) == (2, 1, 20.0, 3)
    assert said["money"]["spent_usd"] == pytest.approx(2.0, rel=0.02) and said["money"]["committed_usd"] > 20.0
    assert cli.main(["status"]) == 0
    line = "Karpenter's ironburst-lab-g6e: 2 x g6e.12xlarge on-demand (1 ending), $20.00 an hour, $2.0"
    assert line in (text := capsys.readouterr().out) and "so far, limit 3" in text


def test_rounds_are_kept_beside_the_ledger_and_status_says_what_they_take(site, capsys):
    site.slurm.submit()
    assert cli.main(["tick"]) == 0
    capsys.readouterr()
    assert [len(each.snapshot.jobs) for each in ticks(site.ledger.with_name("ticks"))] == [1]
    assert cli.main(["status", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)["ticks"]
    assert said["files"] == 1 and said["bytes"] > 100 and said["from_s"] == site.clock.now()
    assert cli.main(["status"]) == 0 and "ticks on disk: 0.00" in capsys.readouterr().out
    before = signal.getsignal(signal.SIGTERM)
    assert cli.main(["run", "--keep-days", "0"]) == 2
    assert signal.getsignal(signal.SIGTERM) is before
    assert "ticks are kept for 0 days: more than 0 is needed" in capsys.readouterr().err


def test_status_without_a_ledger_still_shows_the_queue(site, capsys):
    site.slurm.submit()
    assert cli.main(["status"]) == 0
    assert "no controller has run yet" in capsys.readouterr().out and not site.ledger.exists()


def test_explain_tells_the_story_also_after_the_job_has_ended(site, capsys):
    job = rented(site)
    site.clock.at += 400
    ledger = Ledger(site.ledger)
    Controller(site.slurm, site.cloud, ledger, site.clock).tick(document())
    ledger.close()
    assert cli.main(["explain", str(job), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["state"] == "LEFT_QUEUE" and said["ran_on"] == "p5-1"
    events = [each["code"] for each in said["story"] if each["kind"] == "event"]
    assert events[:5] == ["rent", "requested", "launched", "joined", "widened"]
    assert [each["code"] for each in said["story"] if each["kind"] == "wait"] == ["renting", "coming", "widened"]
    assert said["leases"][0]["usd"] > 0 and "over the wait limit" in said["leases"][0]["why"]
    assert cli.main(["explain", str(job)]) == 0
    assert "rented p5-1: p5.48xlarge spot us-east-1a" in capsys.readouterr().out


def test_explain_of_a_waiting_job_is_a_sentence_with_its_alternatives(site, capsys):
    site.slurm.submit(nodes=2, limit_s=7200, runs_s=7200)
    job = site.slurm.submit(nodes=2, limit_s=7200)
    for minutes, hours in ((0, 2.0), (30, 1.5)):
        site.clock.at += minutes * 60
        ledger = Ledger(site.ledger)
        Controller(site.slurm, site.cloud, ledger, site.clock).tick(document(wait_limit_s=8000))
        ledger.close()
        assert cli.main(["explain", str(job)]) == 0
        text = capsys.readouterr().out
        assert f"Job {job} (16 GPUs, 2 h) waits until " in text and "two nodes free up at home by then" in text
        dollars = 2 * 55.04 * (7200 + 120) / 3600
        assert f"renting two p5.48xlarge now would cost about ${dollars:,.0f} and save {hours} h." in text
        rejected = f"two p5.48xlarge (on-demand, pool p5): ${dollars:,.0f} more, {hours} h sooner"
        assert f"instead: {rejected}; home is soon enough" in text
    assert cli.main(["explain", str(job), "--json"]) == 0
    (said,) = [each for each in json.loads(capsys.readouterr().out)["story"] if each["kind"] == "wait"]
    assert said["run_s"] == 7200 and said["alternatives"][0]["usd_per_hour"] == pytest.approx(110.08)


def test_a_ledger_from_before_the_figures_is_read_and_gets_them(site, capsys):
    rented(site)
    db = sqlite3.connect(site.ledger)
    db.execute("ALTER TABLE decisions DROP COLUMN figures")
    db.commit()
    assert cli.main(["explain", "2"]) == 0 and cli.main(["status"]) == 0  # readers change nothing
    Ledger(site.ledger).close()
    assert "figures" in {row[1] for row in db.execute("PRAGMA table_info(decisions)")}
    db.close()


def test_explain_takes_a_name_and_of_several_jobs_the_last(site, capsys):
    first, last = (site.slurm.submit(limit_s=600, runs_s=300) for _ in range(2))
    ledger = Ledger(site.ledger)
    Controller(site.slurm, site.cloud, ledger, site.clock).tick(document())
    ledger.close()
    with sqlite3.connect(site.ledger) as written:
        written.execute("UPDATE jobs SET name = 'team-a/train', submit_s = job")
    written.close()
    assert cli.main(["explain", "team-a/train", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["job"] == last > first
    assert cli.main(["explain", "team-a/trane"]) == 2
    assert "no job 'team-a/trane' was seen" in capsys.readouterr().err


def test_explain_of_an_infeasible_job_and_of_nobodys_job(site, capsys):
    rented(site)
    assert cli.main(["explain", "3"]) == 0
    assert "can't be rented for" in capsys.readouterr().out
    assert cli.main(["explain", "99"]) == 2
    assert (
        capsys.readouterr().err
        == "ironburst: job 99 was never seen by the controller of this ledger: check the number, or --ledger\n"
    )
    assert cli.main(["explain", str(10**30)]) == 2


def test_tick_does_one_round_and_says_what_it_did(site, capsys):
    site.slurm.submit(nodes=2, limit_s=7200, runs_s=7200)
    site.slurm.submit(limit_s=600)
    assert cli.main(["tick"]) == 0
    text = capsys.readouterr().out
    assert "rent: job 2" in text and "launched:" in text
    assert cli.main(["tick", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["leases"] == {"launched": 1}


def test_reap_ends_orphans_and_dry_run_only_tells(site, capsys):
    from ironburst.ports import LaunchRequest

    site.cloud.launch(
        LaunchRequest("ib-x", "lost", "lab", "p5", "us-east-1a", "spot", 1, {}, "ami-1", '{"nodes": ["p5-3"]}')
    )
    assert cli.main(["reap", "--grace", "0", "--dry-run"]) == 0 and len(site.cloud.alive()) == 1
    assert "would be ended" in capsys.readouterr().out
    assert cli.main(["reap"]) == 0 and len(site.cloud.alive()) == 1  # young
    assert cli.main(["reap", "--grace", "0", "--json"]) == 0 and site.cloud.alive() == []
    assert json.loads(capsys.readouterr().out.splitlines()[-1]) == {"orphans": ["i-1"], "ended": True}


@pytest.mark.parametrize("verb", ["tick", "run", "reap", "status"])
def test_without_a_document_nothing_is_touched(site, monkeypatch, capsys, verb):
    monkeypatch.delenv("IRONBURST_DOCUMENT")
    assert cli.main([verb]) == 2
    assert capsys.readouterr().err == "ironburst: no ClusterDocument: give --document PATH or set IRONBURST_DOCUMENT\n"
    assert not site.ledger.exists()


@pytest.mark.parametrize("verb", ["tick", "run", "reap", "status"])
def test_a_document_of_an_unknown_version_is_refused(site, capsys, verb):
    site.path.write_text('{"version": 7}')
    assert cli.main([verb]) == 2 and "version 7" in capsys.readouterr().err


def test_a_scheduler_out_of_reach_is_exit_code_3(site, monkeypatch, capsys):
    from ironburst.adapters.slurm.scheduler import Slurm

    monkeypatch.setattr(status.schedulers, "connect", lambda *_: Slurm(["/nonexistent/prefix"]))
    assert cli.main(["status"]) == 3 and "--slurm-prefix" in capsys.readouterr().err


def test_a_second_controller_is_refused_and_told_who_the_first_is(site, capsys):
    with lock.held(site.ledger):
        assert cli.main(["tick"]) == 4
    assert f"process {os.getpid()} on" in capsys.readouterr().err
    assert cli.main(["tick"]) == 0


@pytest.fixture
def claimed(site):
    """A controller of another ledger holds the site, and has launched something that this ledger doesn't know."""
    from ironburst.ports import LaunchRequest

    site.slurm.claim("0a1b2c", '{"at_s": 1.0}', 600)
    told = '{"nodes": ["p5-3"]}'
    site.cloud.launch(
        LaunchRequest("ib-x", "l", "lab", "p5", "us-east-1a", "spot", 1, {}, "ami-1", told, owner="0a1b2c")
    )
    site.clock.at += 500
    return site


def test_a_site_that_another_ledgers_controller_holds_is_left_alone(claimed, capsys):
    for verb in (["tick"], ["reap", "--grace", "0"]):
        assert cli.main(verb) == 4
        error = capsys.readouterr().err
        assert error.startswith(
            "ironburst: another controller holds this site: controller 0a1b2c, as it said 500 s ago"
        )
        assert "Stop one of the two; 10 min after its last word this one takes the site over" in error
    assert len(claimed.cloud.alive()) == 1 and claimed.slurm.claimed[0] == "0a1b2c"


def test_a_dry_run_of_reap_claims_nothing_and_names_no_node_of_who_holds_the_site(claimed, capsys):
    before = claimed.slurm.claimed
    assert cli.main(["reap", "--grace", "0", "--dry-run", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["orphans"] == [] and claimed.slurm.claimed == before
    claimed.clock.at += 200  # it is stale
    assert cli.main(["reap", "--grace", "0", "--dry-run", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["orphans"] == ["i-1"] and claimed.slurm.claimed == before
    assert cli.main(["reap", "--grace", "0"]) == 0 and claimed.cloud.alive() == []


def test_run_says_who_holds_the_site_and_waits_until_that_is_stale(claimed, monkeypatch, capsys):
    clock, told = claimed.clock, []
    monkeypatch.setattr(FakeClock, "stopped", property(lambda _: bool(told)), raising=False)

    def wait(seconds):
        clock.at += 30 * seconds  # of ticks 2 s apart: a minute
        if claimed.slurm.claimed[0] != "0a1b2c":
            told.append(1)
        return False

    monkeypatch.setattr(clock, "wait", wait)
    assert cli.main(["run"]) == 0
    out = capsys.readouterr()
    assert out.err.count("another controller holds this site") == 2
    assert "owner: took the site over from controller 0a1b2c" in out.out


def test_an_unknown_pool_can_not_be_reopened(site, capsys):
    assert cli.main(["tick", "--reopen", "p6"]) == 2
    assert capsys.readouterr().err == "ironburst: --reopen p6: there is no such pool; the document has: p5\n"


def running(site, monkeypatch, during, *options):
    """`ironburst run` until its third tick, in which `during` is called; the exit code."""
    from ironburst.controller.loop import SystemClock

    clock = SystemClock()
    monkeypatch.setattr(run, "SystemClock", lambda: clock)
    site.path.write_text(document(tick_s=1).model_dump_json())
    calls, real = [], site.slurm.observe

    def observe():
        calls.append(1)
        if len(calls) == 3:
            during()
            threading.Timer(0, os.kill, (os.getpid(), signal.SIGTERM)).start()
        return real()

    monkeypatch.setattr(site.slurm, "observe", observe)
    return cli.main(["run", *options])


@pytest.fixture
def port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


@pytest.mark.parametrize("by", ["option", "environment"])
def test_run_is_scraped_while_a_tick_goes_on(site, monkeypatch, port, by):
    """The scrape comes in the middle of a tick, which waits for it here: it gets what the ticks before made."""
    scraped, at = [], f"127.0.0.1:{port}"

    def scrape():
        with urllib.request.urlopen(f"http://{at}/metrics", timeout=20) as answer:
            scraped.append(answer.read().decode())

    if by == "environment":
        monkeypatch.setenv("IRONBURST_METRICS", at)
    assert running(site, monkeypatch, scrape, *(["--metrics", at] if by == "option" else [])) == 0
    assert 'ironburst_ticks_total{result="ok"} 2\n' in scraped[0] and "ironburst_usd_spent 0\n" in scraped[0]
    with pytest.raises(OSError):  # and nobody answers any more
        socket.create_connection(("127.0.0.1", port), 5)


def test_a_port_that_is_taken_costs_the_metrics_and_not_the_controller(site, monkeypatch, capsys):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        at = f"127.0.0.1:{taken.getsockname()[1]}"
        assert running(site, monkeypatch, lambda: None, "--metrics", at) == 0
    assert f"ironburst: no metrics: {at}: Address already in use" in capsys.readouterr().err


def test_run_ticks_until_sigterm_and_survives_an_unreachable_site(site, monkeypatch, capsys):
    from ironburst.controller.loop import SystemClock
    from ironburst.ports import SchedulerError

    clock = SystemClock()
    monkeypatch.setattr(run, "SystemClock", lambda: clock)
    site.path.write_text(document(tick_s=1).model_dump_json())
    calls, real = [], site.slurm.observe

    def observe():
        calls.append(1)
        if len(calls) == 1:
            raise SchedulerError("slurmctld is away")
        if len(calls) == 3:
            threading.Timer(0, os.kill, (os.getpid(), signal.SIGTERM)).start()
        return real()

    monkeypatch.setattr(site.slurm, "observe", observe)
    assert cli.main(["run", "--json"]) == 0
    out = capsys.readouterr()
    assert "slurmctld is away" in out.err and len(out.out.splitlines()) >= 1


def test_status_fits_a_terminal_of_100_columns(site, capsys, monkeypatch):
    for each in range(4):
        site.slurm.submit(nodes=2, limit_s=7200, runs_s=7200, user=f"a-rather-long-name-{each}")
    rented(site)
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("NO_COLOR", "1")
    assert cli.main(["status"]) == 0
    text = capsys.readouterr().out
    assert max(map(len, text.splitlines())) <= 100 and "\x1b" not in text
    said = " ".join(text.split())
    for title in ("job state user GPUs where why", "node GPUs state reason"):
        assert title in said
    monkeypatch.delenv("NO_COLOR")
    assert cli.main(["status"]) == 0
    assert "\x1b[32mRUNNING" in capsys.readouterr().out


WIDE = "\u8a13\u7df4" * 20  # 40 characters of two columns each


@pytest.mark.parametrize("columns", [80, 100])
def test_long_and_wide_words_fit_the_terminal(site, capsys, monkeypatch, columns):
    template = site.slurm.nodes["dgx01"]
    for n in range(3, 201):
        site.slurm.nodes[f"dgx{n:03d}"] = replace(template, name=f"dgx{n:03d}", states={"IDLE", "DRAIN"}, reason=WIDE)
    for name, user in (("n" * 80, "u" * 80), (WIDE, WIDE)):
        job = site.slurm.submit(nodes=1, limit_s=7200, runs_s=7200, name=name, user=user)
        assert site.slurm.state(job) == "RUNNING"
    job = site.slurm.submit(nodes=150, limit_s=7200, runs_s=7200, name=WIDE, user=WIDE)
    for node in site.slurm.nodes.values():
        if "home" in node.partitions:
            node.states -= {"DRAIN"}
    site.slurm.schedule()
    assert site.slurm.state(job) == "RUNNING"
    waits = site.slurm.submit(nodes=1, limit_s=600, name=WIDE + " " + "n" * 80, user=WIDE)
    assert cli.main(["tick"]) == 0
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("NO_COLOR", "1")
    capsys.readouterr()
    assert cli.main(["status"]) == 0
    said = capsys.readouterr().out
    assert max(map(cell_len, said.splitlines())) <= columns and "dgx[003-152]" in "".join(said.split())
    assert cli.main(["explain", str(waits)]) == 0
    said = capsys.readouterr().out
    assert max(map(cell_len, said.splitlines())) <= columns and WIDE in "".join(said.split())


def test_all_times_are_local_and_of_one_form(site, capsys, monkeypatch):
    job = rented(site)
    waits = site.slurm.submit(limit_s=600, nodes=3)
    assert cli.main(["tick"]) == 0
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    try:
        capsys.readouterr()
        for argv in (["status"], ["explain", str(job)], ["explain", str(waits)], ["tick"], ["replay"]):
            assert cli.main(argv) == 0
            said = capsys.readouterr().out
            # noon in UTC, when all of this happens, is 21:00 there
            assert re.search(r"\b2026-11-2[12] 2[0-3]:\d\d:\d\d\b", said) or argv == ["status"], said
            assert not re.search(r":\d\dZ|(?<!\d{4}-)\b\d\d-\d\d \d\d:| 12:0", said), said
    finally:
        monkeypatch.delenv("TZ")
        time.tzset()


def test_a_pipe_gets_no_escape(site, capsys, monkeypatch):
    monkeypatch.setattr(f"{status.__name__}.time.sleep", lambda seconds: (_ for _ in ()).throw(KeyboardInterrupt))
    rented(site)
    capsys.readouterr()
    for argv in (["status"], ["status", "--watch"]):
        assert cli.main(argv) == 0
        assert "\x1b" not in capsys.readouterr().out


def test_words_of_users_are_no_markup(site, capsys, monkeypatch):
    site.slurm.submit(user="[bold]a[/bold]")
    assert cli.main(["status"]) == 0
    assert "[bold]a[/bold]" in capsys.readouterr().out


def test_status_is_shown_again_until_ctrl_c(site, capsys, monkeypatch):
    waited = []

    def sleep(seconds):
        waited.append(seconds)
        if len(waited) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(f"{status.__name__}.time.sleep", sleep)
    assert cli.main(["status", "--watch", "0.5"]) == 0
    assert waited == [0.5] * 3 and capsys.readouterr().out.count("cluster lab") == 3
    assert cli.main(["status", "--watch", "0"]) == 2
    assert "--watch 0: write seconds, 0.5 or more" in capsys.readouterr().err


def test_explain_is_wrapped_to_the_terminal(site, capsys, monkeypatch):
    job = rented(site)
    assert cli.main(["explain", str(job)]) == 0
    whole = capsys.readouterr().out
    assert max(map(len, whole.splitlines())) > 60
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", "60")
    assert cli.main(["explain", str(job)]) == 0
    narrow = capsys.readouterr().out
    assert max(map(len, narrow.splitlines())) <= 60 and narrow.split() == whole.split()
