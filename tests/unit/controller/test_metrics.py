"""What the controller says of itself to Prometheus, and that no scrape waits for it, nor it for a scrape."""

import os
import socket
import ssl
import subprocess
import threading
import urllib.error
import urllib.request

import pytest

from ironburst import cli
from ironburst.controller.metrics import Metrics
from ironburst.ports import CloudError, SchedulerError
from ironburst.system import certificates, exposition
from tests import prometheus
from tests.fakes.world import World


def samples(text):
    return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in text.splitlines() if line[0] != "#")}


class Watched(World):
    """A site whose controller's metrics are looked at."""

    def start(self, **breaking):
        super().start(**breaking)
        self.metrics = Metrics(self.ledger)

    def tick(self, times=1):
        for _ in range(times):
            report = super().tick()
            self.metrics.ended(self.document, report)
        return report

    def said(self):
        return samples(self.metrics.text)


@pytest.fixture
def world(tmp_path):
    return Watched(tmp_path, home=1)


@pytest.fixture(scope="module")
def promtool():
    return prometheus.program("promtool")


def rented(world):
    """A job for which a node is rented, beside one at home; until it has ended."""
    world.fill_home()
    job = world.slurm.submit(limit_s=600, runs_s=300)
    world.until(lambda: world.slurm.state(job) == "RUNNING")


def test_money_leases_jobs_and_ticks(world, promtool):
    assert world.said()['ironburst_ticks_total{result="ok"}'] == 0  # before the first one, too
    rented(world)
    world.slurm.submit(limit_s=None)
    world.tick()
    said, status = world.said(), world.ledger.leases()[0]
    assert (
        said[f'ironburst_leases{{state="ready",market="{status.market}",instance_type="{status.instance_type}"}}'] == 1
    )
    assert said["ironburst_usd_spent"] == pytest.approx(status.usd(world.clock.now()), abs=0.1)
    assert said["ironburst_usd_committed"] > 0 and said["ironburst_usd_hour"] == status.usd_per_hour
    assert said['ironburst_usd_ceiling{ceiling="month"}'] == said["ironburst_usd_budget"]
    assert said['ironburst_pending_jobs{code="no_time_limit"}'] == 1
    assert said["ironburst_document_serial"] == world.document.serial and said["ironburst_closed_offers"] == 0
    assert said['ironburst_decisions_total{code="launch"}'] == 1
    assert not any(name.startswith("ironburst_lease_without_job") for name in said)
    prometheus.check_metrics(promtool, world.metrics.text)


def test_a_wait_counts_once_however_long_it_lasts(world):
    world.fill_home()
    world.tick(3)
    world.slurm.submit(limit_s=None)
    world.tick(5)
    decided = {name: n for name, n in world.said().items() if name.startswith("ironburst_decisions_total")}
    assert decided == {'ironburst_decisions_total{code="no_time_limit"}': 1}


def test_a_rented_node_without_a_job_says_for_how_long(world):
    rented(world)
    node = world.ledger.leases()[0].node
    name = f'ironburst_lease_without_job_seconds{{node="{node}"}}'
    world.until(lambda: name in world.said())
    before, at = world.said()[name], world.clock.now()
    world.tick()
    assert 0 < before < world.said().get(name, before + 1) and world.clock.now() > at


def test_errors_have_classes_and_the_last_good_tick_stays(world):
    world.tick(2)
    good = world.said()["ironburst_last_tick_timestamp_seconds"]
    for error in (SchedulerError("away"), CloudError("away"), CloudError("away"), ValueError("a bug")):
        world.clock.at += 60
        world.metrics.ended(world.document, error)
    said = world.said()
    errors = {
        name: said[f'ironburst_errors_total{{class="{name}"}}'] for name in ("scheduler", "cloud", "document", "bug")
    }
    assert errors == {"scheduler": 1, "cloud": 2, "document": 0, "bug": 1}
    assert (said['ironburst_ticks_total{result="ok"}'], said['ironburst_ticks_total{result="failed"}']) == (2, 4)
    assert said["ironburst_last_tick_timestamp_seconds"] == good and "ironburst_usd_spent" in said


def test_after_a_start_the_last_tick_is_that_of_the_process_before(world):
    world.tick()
    assert Metrics(world.ledger).text.partition("ironburst_last_tick_timestamp_seconds ")[2]


def test_a_ledger_that_takes_nothing_fails_no_tick_a_second_time(world):
    report = world.tick()
    before = world.metrics.text
    world.ledger.close()
    world.metrics.ended(world.document, report)
    assert world.metrics.text == before


def test_a_backup_and_certificates_say_when(world, tmp_path, promtool):
    folder, pem = tmp_path / "backups", tmp_path / "head.pem"
    world.metrics = Metrics(world.ledger, folder, [pem])
    names = (
        "ironburst_ledger_backup_timestamp_seconds",
        'ironburst_certificate_expiry_timestamp_seconds{name="head.pem"}',
    )
    assert [world.said()[name] for name in names] == [0, 0]  # declared, and not there: that is old
    folder.mkdir()
    for name, at_s in (("new", 1_795_000_000), ("old", 1_794_000_000)):
        (folder / name).touch()
        os.utime(folder / name, (at_s, at_s))
    make = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:P-256",
        "-nodes",
        "-subj",
        "/CN=head",
    ]
    subprocess.run([*make, "-days", "90", "-keyout", os.devnull, "-out", pem], check=True, capture_output=True)
    said = subprocess.run(
        ["openssl", "x509", "-enddate", "-noout", "-in", pem], check=True, capture_output=True, text=True
    )
    world.tick()
    assert [world.said()[name] for name in names] == [
        1_795_000_000,
        ssl.cert_time_to_seconds(said.stdout.partition("=")[2].strip()),
    ]
    prometheus.check_metrics(promtool, world.metrics.text)


@pytest.mark.parametrize("days", [1, 20_000])  # UTCTime, and GeneralizedTime from 2050 on
@pytest.mark.parametrize("key", [["ec", "-pkeyopt", "ec_paramgen_curve:P-256"], ["rsa:2048"]])
def test_the_end_of_any_certificate_is_read_and_of_a_chain_the_first(tmp_path, days, key):
    texts, ends = [], []
    for number in (days, days + 30):
        pem = tmp_path / f"{number}.pem"
        make = [
            "openssl",
            "req",
            "-x509",
            "-newkey",
            *key,
            "-nodes",
            "-subj",
            f"/O={'x' * 60}/CN=n",
            "-days",
            str(number),
        ]
        subprocess.run([*make, "-keyout", os.devnull, "-out", pem], check=True, capture_output=True)
        out = subprocess.run(
            ["openssl", "x509", "-enddate", "-noout", "-in", pem], check=True, capture_output=True, text=True
        )
        texts.append(pem.read_text())
        ends.append(ssl.cert_time_to_seconds(out.stdout.partition("=")[2].strip()))
    assert certificates.end_s(texts[1]) == ends[1] and certificates.end_s("\n".join(reversed(texts))) == ends[0]


@pytest.mark.parametrize("text", ["", "hello", "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----"])
def test_what_is_no_certificate_is_one_error(text):
    with pytest.raises(ValueError):
        certificates.end_s(text)


# ---- the server


def get(server, path="/metrics"):
    with urllib.request.urlopen(f"http://127.0.0.1:{server.port}{path}", timeout=20) as answer:
        return answer.headers["Content-Type"], answer.read().decode()


@pytest.fixture
def serve():
    servers = []

    def start(read):
        servers.append(exposition.Server("127.0.0.1", 0, read))
        return servers[-1]

    yield start
    for server in servers:
        server.close()


def test_a_hung_tick_still_answers_with_what_was_known(world, serve):
    """The ticking thread holds the ledger in a transaction and sleeps; a scrape comes from another thread."""
    world.tick()
    server, hangs, go_on = serve(lambda: world.metrics.text), threading.Event(), threading.Event()

    def scrape():
        hangs.wait(20)
        found.append(get(server))
        go_on.set()

    found = []
    thread = threading.Thread(target=scrape)
    thread.start()
    with world.ledger.transaction():
        hangs.set()
        assert go_on.wait(20)
    thread.join(20)
    kind, text = found[0]
    assert kind == exposition.CONTENT_TYPE and text == world.metrics.text


def test_who_asks_slowly_keeps_nobody_waiting(serve):
    server = serve(lambda: "up 1\n")
    with socket.create_connection(("127.0.0.1", server.port)) as slow:
        slow.sendall(b"GET /met")
        assert get(server)[1] == "up 1\n"


def test_nothing_else_is_served(serve):
    with pytest.raises(urllib.error.HTTPError, match="404"):
        get(serve(lambda: "up 1\n"), "/../etc/passwd")


@pytest.mark.parametrize(
    "address", ["0.0.0.0:8643", "[::]:8643", "8.8.8.8:8643", "8643", "head:8643", "127.0.0.1:99999"]
)
def test_an_address_that_is_open_to_the_world_or_none_is_refused(tmp_path, monkeypatch, capsys, address):
    monkeypatch.delenv("IRONBURST_METRICS", raising=False)
    assert cli.main(["run", "--document", str(tmp_path / "none.json"), "--metrics", address]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("ironburst: --metrics") and "127.0.0.1" in line


def test_labels_are_escaped_and_what_is_none_is_left_out():
    family = exposition.Family("a", "gauge", "b", [({"x": 'a"b\\\n', "y": None, "z": ""}, 1700000000.25)])
    assert exposition.text([family]).splitlines()[-1] == 'a{x="a\\"b\\\\\\n"} 1700000000.25'
    assert exposition.text([family._replace(samples=[])]) == ""
