"""The verbs that give orders: what a person types at 3 am, through a controller that runs in a thread, or none."""

import json
import threading
import time

import pytest

from ironburst import cli
from ironburst.cli import order, run, status, stop
from ironburst.controller import burn, lock, order_book, order_spool
from ironburst.controller.ledger import Ledger
from ironburst.controller.order_book import Order, Request
from ironburst.controller.tick import Controller
from ironburst.document import BudgetDocument, parse
from ironburst.system.bad_input import BadInput
from ironburst.wiring import schedulers
from tests.fakes import FakeClock, FakeCloud, FakeSlurm, connect_to, document
from tests.fakes.world import World


class Site:
    """A controller that takes orders up while the verbs wait; in the fakes' time, which is real here."""

    def __init__(self, tmp_path):
        self.path = tmp_path / "ledger.sqlite"
        self.clock = FakeClock(time.time())
        self.slurm = FakeSlurm(self.clock)
        self.cloud = FakeCloud(self.clock, self.slurm)
        self.document = document()
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run)
        Ledger(self.path).close()
        order_spool.prepare(self.path)

    def _run(self):
        with lock.held(self.path):
            ledger = Ledger(self.path)
            controller = Controller(self.slurm, self.cloud, ledger, self.clock)
            self.ready.set()
            while not self._end.is_set():
                self.clock.at = time.time()
                controller.tick(self.document)
                self._end.wait(0.1)
            ledger.close()

    def __enter__(self):
        self.ready = threading.Event()
        self._thread.start()
        assert self.ready.wait(30)
        return self

    def __exit__(self, *_):
        self._end.set()
        self._thread.join()


@pytest.fixture
def site(tmp_path, monkeypatch):
    site = Site(tmp_path)
    monkeypatch.setenv("IRONBURST_LEDGER", str(site.path))
    monkeypatch.delenv("SUDO_USER", raising=False)
    return site


def in_force(site):
    ledger = Ledger(site.path, read_only=True)
    try:
        return {each.asked.verb: each for each in order_book.in_force(ledger, time.time())}
    finally:
        ledger.close()


def test_each_order_is_taken_up_answered_and_lifted(site, capsys):
    given = {
        "pause": ["pause", "--why", "night", "--until", "8h"],
        "close": ["close", "p5", "--why", "bad rack"],
        "budget": ["budget", "set", "$1,500", "--until", "2d"],
        "limit": ["limit", "bob", "--gpus", "8", "--usd", "500"],
    }
    lifted = [["resume"], ["open", "p5"], ["budget", "clear"], ["limit", "bob", "--clear"]]
    with site:
        for verb, argv in given.items():
            assert cli.main(argv) == 0
            assert f"by {in_force(site)[verb].who} since " in capsys.readouterr().out
        assert set(in_force(site)) == set(given) and in_force(site)["budget"].asked.usd == 1500.0
        for argv in lifted:
            assert cli.main(argv) == 0 and "it is over that " in capsys.readouterr().out
        assert in_force(site) == {}
        assert cli.main(["budget", "set", "1e6"]) == 2
        assert "an order only lowers it" in capsys.readouterr().err
        assert cli.main(["close", "p4", "--json"]) == 2
        said = json.loads(capsys.readouterr().out)
        assert said["order"]["refused"] and "it has p5, " in said["text"]


def test_stop_now_waits_until_nothing_is_rented(site, capsys):
    site.cloud.boot_s = 0.0
    with site:
        for _ in range(2):
            site.slurm.submit(limit_s=86400.0, runs_s=86400.0)
        job = site.slurm.submit(limit_s=7200.0, runs_s=7200.0)
        end = time.monotonic() + 60
        while site.slurm.state(job) != "RUNNING" or not site.slurm.jobs[job].job.on[0].startswith("p5"):
            assert time.monotonic() < end
            threading.Event().wait(0.1)
        assert cli.main(["stop", "--now", "--grace", "1s"]) == 0
        said = capsys.readouterr().out
        assert f"job {job} of alice" in said and "nothing is rented any more, after " in said
        assert not site.cloud.alive()


def test_without_a_controller_it_is_written_down_and_taken_up_first(site, capsys):
    assert cli.main(["pause", "--why", "night"]) == 5
    assert "no controller is running: the order is written down" in capsys.readouterr().err
    assert len(order_spool.waiting(site.path)) == 1
    site.slurm.submit(limit_s=86400.0)
    with site:
        end = time.monotonic() + 30
        while "pause" not in in_force(site):
            assert time.monotonic() < end
            threading.Event().wait(0.1)
    assert site.cloud.instances("lab") == []


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        (["stop", "--end-jobs"], "--end-jobs is for --now"),
        (["stop", "--now", "--grace", "long"], "--grace 'long' is no duration"),
        (["pause", "--until", "25:00"], "--until '25:00' is no moment"),
        (["pause", "--until", "2001-01-01"], "is over"),
        (["limit", "bob"], "say what the user may have"),
        (["limit", "bob", "--clear", "--gpus", "3"], "say what the user may have"),
    ],
)
def test_bad_options_are_one_sentence_and_no_order(site, capsys, argv, says):
    assert cli.main(argv) == 2
    assert says in capsys.readouterr().err and order_spool.waiting(site.path) == []


def test_without_a_ledger_nobody_rents(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("IRONBURST_LEDGER", str(tmp_path / "none.sqlite"))
    assert cli.main(["stop", "--now"]) == 2
    assert "so no controller rents" in capsys.readouterr().err


def test_who_may_not_is_told_whom_to_ask(site, capsys, monkeypatch):
    def refused(*_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(order_spool, "put", refused)
    assert cli.main(["pause"]) == 2
    assert "you may not give orders" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "seconds"), [("8h", 8 * 3600), ("2d", 2 * 86400), ("13:30", 5400), ("11:00", 82800), ("2026-11-22", 43200)]
)
def test_moments_as_people_write_them(monkeypatch, text, seconds):
    noon = time.mktime((2026, 11, 21, 12, 0, 0, 0, 0, -1))
    assert order.when(text, noon) == noon + seconds
    with pytest.raises(BadInput):
        order.when("tomorrow-ish", noon)


def test_a_price_that_is_not_known_is_no_zero(tmp_path):
    made = document()
    host = {
        "kind": "cloud",
        "role": "gpu",
        "address": "10.0.0.1",
        "partition": "fixed",
        "gpu": {"model": "H100 SXM5 80GB", "count": 8},
        "fabric": "efa",
        "fabric_links": 32,
        "slurm": None,
        "roles": [],
    }
    names = {"fixed-1": 6.88, "fixed-2": None}
    raw = made.model_dump() | {"hosts": [host | {"name": n, "usd_per_gpu_hour": usd} for n, usd in names.items()]}
    said = burn.gather(type(made).model_validate(raw), None, 0.0)
    assert [each["usd_per_hour"] for each in said["fixed"]] == [pytest.approx(55.04), None]
    told = "beside it 2 fixed cloud nodes for $55.04 an hour, working or not, under no ceiling"
    assert burn.fixed_line(said) == f"{told}; of 1 of them the price is unknown"
    unknown = {"fixed": said["fixed"][1:], "fixed_unknown": 1, "fixed_usd_per_hour": 0}
    assert "1 fixed cloud node of unknown price" in burn.fixed_line(unknown)


@pytest.fixture
def head(tmp_path, monkeypatch):
    """A head whose controller has rented a node and was stopped; a fixed cloud node is declared, too."""
    world = World(tmp_path)
    host = {"kind": "cloud", "role": "gpu", "address": "10.0.0.1", "partition": "fixed", "fabric": "efa", "roles": []}
    gpu = {"model": "H100 SXM5 80GB", "count": 8}
    host |= {"name": "fixed-1", "gpu": gpu, "fabric_links": 32, "slurm": None, "usd_per_gpu_hour": 6.88}
    world.document = parse(world.document.model_dump() | {"hosts": [host]})
    path = tmp_path / "cluster.json"
    path.write_text(world.document.model_dump_json())
    world.fill_home(limit_s=86400.0)
    world.job = world.slurm.submit(limit_s=7200.0, runs_s=7200.0)
    world.until(lambda: world.slurm.state(world.job) == "RUNNING", 600)
    world.ledger.close()
    monkeypatch.setenv("IRONBURST_DOCUMENT", str(path))
    monkeypatch.setenv("IRONBURST_LEDGER", str(world.path))
    connect_to(world.cloud, monkeypatch)
    monkeypatch.setattr(stop, "SystemClock", lambda: world.clock)
    monkeypatch.setattr(stop, "_environment", dict)
    monkeypatch.setattr(schedulers, "Slurm", lambda prefix, jobs=0: world.slurm)
    monkeypatch.setattr(f"{status.__name__}.time.time", world.clock.now)
    return world


def test_status_shows_orders_what_burns_and_fixed_cloud_nodes(head, capsys):
    head.start()
    asked = Request("pause", why="the bill", until_s=head.clock.now() + 3600)
    order_book.write(head.ledger, [Order("1", "ann", head.clock.now(), asked)])
    head.ledger.close()
    assert cli.main(["status", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    (pause,) = said["orders"]
    assert {**pause, "verb": "pause", "who": "ann", "why": "the bill", "lifted_by": "ironburst resume"} == pause
    assert said["money"]["fixed"] == [{"node": "fixed-1", "usd_per_hour": pytest.approx(55.04)}]
    assert said["money"]["usd_per_hour"] == 24.0
    assert cli.main(["status"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "renting is paused by ann since 2026-" in shown and "the bill (`ironburst resume` lifts it)" in shown
    assert "what is rented costs $24.00 an hour now" in shown
    assert "beside it 1 fixed cloud node for $55.04 an hour, working or not, under no ceiling" in shown


def test_days_to_the_ceiling_at_the_rate_of_now(head):
    head.start()
    small = head.document.model_copy(update={"budget": BudgetDocument(usd_per_month=24.0 * 24)})
    said = burn.gather(small, head.ledger, head.clock.now())
    assert 0.98 < said["days_to_ceiling"] < 1.0
    money = {**said, "usd_per_month": 576.0}
    assert "reaches the month's ceiling in 1.0 days at that rate" in burn.lines(money)[0]
    head.ledger.close()


def test_stop_now_works_without_a_controller(head, capsys):
    assert cli.main(["stop", "--now", "--why", "it is 3 am"]) == 0
    said = capsys.readouterr()
    assert "no controller is running: its work is done here" in said.err
    assert "p5-1 ends" in said.out and "nothing is rented any more, after " in said.out
    assert not head.cloud.alive()
    head.start()
    head.tick()
    assert head.slurm.state(head.job) == "PENDING"
    assert [each.asked.verb for each in order_book.in_force(head.ledger, head.clock.now())] == ["stop"]


def test_a_controller_that_ends_says_what_stays_rented(head):
    head.start()
    said = run._left(head.ledger)
    assert said.startswith("it has stopped, and stays rented at $24.00 an hour, with nobody to give it back: p5-1;")
    head.ledger.close()


def test_root_takes_the_settings_of_the_controllers_unit(tmp_path, monkeypatch):
    """As `systemctl show` of systemd 257 prints them."""
    settings = tmp_path / "controller.env"
    settings.write_text("# written by the lab\nAWS_PROFILE=controller\nHTTPS_PROXY='http://proxy:3128'\n\n")
    tool = tmp_path / "systemctl"
    tool.write_text(
        "#!/bin/sh\n"
        "echo 'Environment=IRONBURST_DOCUMENT=/srv/ironburst/CLUSTER.json \"WORDS=two words\"'\n"
        f"echo 'EnvironmentFiles={settings} (ignore_errors=yes)'\n"
        "echo 'EnvironmentFiles=/nowhere (ignore_errors=yes)'\n"
    )
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert stop._environment() == {
        "IRONBURST_DOCUMENT": "/srv/ironburst/CLUSTER.json",
        "WORDS": "two words",
        "AWS_PROFILE": "controller",
        "HTTPS_PROXY": "http://proxy:3128",
    }
    monkeypatch.setenv("PATH", "/nowhere")
    assert stop._environment() == {}
