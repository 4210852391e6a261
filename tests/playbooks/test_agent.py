"""What a rented node pushes: Prometheus' own agent, set up as role metrics bakes it, through `ironburst receive` into
Prometheus.
"""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request

import pytest
import templated
from programs import PLAYBOOKS

from ironburst.burst import Launch
from ironburst.controller import records
from ironburst.controller.ledger import Ledger
from ironburst.monitoring import receiving, targets
from lab.system import wait_for
from tests import prometheus

EXPORTED = """\
# TYPE DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION counter
DCGM_FI_DEV_GPU_TEMP{gpu="0",Hostname="dgx01",hpc_job="4711"} 41
DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION{gpu="0"} 2
node_load1 3
ironburst_usd_spent 7
"""
ENERGY = "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION"  # 2, 3, 4 …: the number of each scrape
RECEIVES = "--web.enable-remote-write-receiver"
TEMPERATURE = 'DCGM_FI_DEV_GPU_TEMP{job="dcgm"}'


def baked(exporter, interval_s=5):
    """The agent's settings on a node where both exporters are the one of a test."""
    port = int(exporter.rpartition(":")[2])
    ports = {"metrics_node_port": port, "metrics_dcgm_port": port, "metrics_dcgm": True}
    return templated.value("metrics", "metrics_agent", {}, ports | {"metrics_push_interval": interval_s})


@contextlib.contextmanager
def agent(folder, config, receiver):
    """Its process and address, started as the unit starts it, with settings as ironburst-join completes them."""
    config["remote_write"][0]["url"] = f"http://{receiver}{receiving.PATH}"
    folder.mkdir()
    (folder / "agent.json").write_text(json.dumps(config))
    unit = (PLAYBOOKS / "roles/metrics/files/ironburst-agent.service").read_text()
    (start,) = [line.partition("=")[2] for line in unit.splitlines() if line.startswith("ExecStart=")]
    at = prometheus.free_address()
    here = {"--config.file": "agent.json", "--storage.agent.path": "wal", "--web.listen-address": at}
    given = [option.partition("=") for option in start.split()[1:]]
    assert set(here) < {name for name, _, _ in given}
    options = [f"{name}={here.get(name, value)}" for name, _, value in given]
    with prometheus.started([prometheus.program("prometheus"), *options], folder, at) as process:
        yield process, at


@pytest.fixture
def ledger(tmp_path):
    """With the lease of a node at 127.0.0.1."""
    ledger = Ledger(tmp_path / "ledger.sqlite")
    launch = Launch("p5", ("a",), "spot", ("p5-1",), (2,), 20.0, 9e9, 50.0, "late")
    ledger.add_launch("l1", launch, "p5.48xlarge", "ami", boot_s=600.0, serial=1, now_s=0.0)
    for state in (records.POWERING, records.REQUESTED, records.LAUNCHED, records.JOINED, records.READY):
        ledger.move(ledger.leases(), state, 1.0)
    ledger.update(ledger.leases(), address="127.0.0.1")
    yield ledger
    ledger.close()


@contextlib.contextmanager
def received(ledger, at, home):
    """`ironburst receive`, and what it says."""
    argv = [sys.executable, "-m", "ironburst.cli", "receive", "--ledger", str(ledger.path), "--listen", at]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    log = ledger.path.with_suffix(".log")
    with log.open("a") as file:
        process = subprocess.Popen([*argv, "--to", f"{home}{receiving.PATH}"], stderr=file, env=environment)
        try:
            wait_for(lambda: listens(at) or process.poll() is not None, 60, "the gate")
            yield log
        finally:
            process.send_signal(signal.SIGTERM)
            assert process.wait(30) == 0, log.read_text()


def listens(at):
    with contextlib.suppress(OSError), socket.create_connection(at.rsplit(":", 1), timeout=5):
        return True


def found(url, expression):
    return [(each["metric"], float(each["value"][1])) for each in prometheus.query(url, expression)]


def seen(url):
    """The scrapes that Prometheus knows of."""
    return sorted(
        {int(float(value)) for each in prometheus.query(url, f"{ENERGY}[10m]") for _, value in each["values"]}
    )


def whole(numbers, count):
    """At least so many, without a gap."""
    return len(numbers) >= count and numbers == list(range(2, numbers[-1] + 1))


def scrapes(at):
    """How often the agent has scraped DCGM's exporter, each second."""
    with urllib.request.urlopen(f"http://{at}/metrics", timeout=10) as answer:
        text = answer.read().decode()
    return int(text.partition('prometheus_target_interval_length_seconds_count{interval="1s"} ')[2].split()[0])


def test_what_is_pushed_is_its_leases_and_ends_with_it(tmp_path, ledger):
    """The exporter claims to be dgx01, and has a metric of the controller's."""
    receiver = prometheus.free_address()
    with (
        prometheus.running(tmp_path, {}, RECEIVES) as home,
        prometheus.exporter(EXPORTED) as exporter,
        received(ledger, receiver, home) as log,
    ):
        config = baked(exporter)
        config["global"]["scrape_interval"] = "4s"  # of the node exporter: the test waits for both
        with agent(tmp_path / "node", config, receiver) as (process, _):
            wait_for(lambda: len(seen(home)) > 3 and found(home, "node_load1"), 120, "samples")
            ((labels, temperature),) = found(home, TEMPERATURE)
            its = {"node": "p5-1", "lease": "l1/p5-1", "rented": "true", "Hostname": "p5-1", "gpu": "0"}
            assert temperature == 41 and its.items() <= labels.items() and labels["hpc_job"] == "4711"
            assert found(home, '{__name__=~"ironburst_.*|up|scrape_.*|go_.*"}') == []
            process.kill()  # the instance ends at once
            process.wait(30)
            ended_s = time.time()
        ((_, last_s),) = found(home, f"timestamp({TEMPERATURE})")
        assert ended_s - last_s <= 10
        ledger.move(ledger.leases(), records.LEAVING, 2.0)
        ledger.move(ledger.leases(), records.TERMINATED, 3.0)
        wait_for(lambda: found(home, TEMPERATURE) == [], 60, "the series' end")
        assert found(home, "node_load1") == []
    assert log.read_text() == f"ironburst: receives at {receiver}\n"


def test_nothing_is_lost_while_home_is_away(tmp_path, ledger):
    """First Prometheus, then the gate, too: longer than the agent pauses at most before it tries again (5 s)."""
    receiver = prometheus.free_address()
    with prometheus.exporter(EXPORTED) as exporter, contextlib.ExitStack() as node:
        with prometheus.running(tmp_path, {}, RECEIVES) as home, received(ledger, receiver, home):
            _, at = node.enter_context(agent(tmp_path / "node", baked(exporter, 1), receiver))
            wait_for(lambda: len(seen(home)) > 3, 120, "samples")
            before = scrapes(at)
        with received(ledger, receiver, home) as log:  # Prometheus alone is away
            wait_for(lambda: scrapes(at) >= before + 7, 120, "scrapes")
            assert "gives no answer" in log.read_text()
        wait_for(lambda: scrapes(at) >= before + 14, 120, "scrapes")
        with prometheus.running(tmp_path, {}, RECEIVES) as home, received(ledger, receiver, home):
            wait_for(lambda: scrapes(at) >= before + 16, 120, "scrapes")
            every = scrapes(at) + 1  # and one of the node exporter's
            wait_for(lambda: whole(seen(home), every), 60, "all that was scraped")
            node.close()  # it would wait for a receiver that has gone


DEBIAN = {"distribution": "Debian", "distribution_major_version": "13", "os_family": "Debian"}
EL = {"distribution": "Rocky", "distribution_major_version": "9", "os_family": "RedHat"}  # it has no such package


@pytest.mark.parametrize(
    ("facts", "image", "receiver", "pushes"),
    [
        (DEBIAN, True, "10.0.0.10:8644", True),
        (DEBIAN, True, "", False),
        (DEBIAN, False, "10.0.0.10:8644", False),
        (EL, True, "10.0.0.10:8644", False),
    ],
)
def test_only_the_image_of_a_site_with_a_receiver_has_the_agent(facts, image, receiver, pushes):
    """Owned nodes are scraped: theirs stay as they are. DCGM's exporter collects as often as it is scraped."""
    known = {"ansible_facts": facts, "image_build": image, "cluster_receiver": receiver, "group_names": ["dcgm"]}
    known |= {"ansible_host": "10.0.0.5"}
    assert templated.value("metrics", "metrics_push", known) == pushes
    assert ("prometheus" in templated.value("metrics", "metrics_packages", known)) == pushes
    text = (PLAYBOOKS / "roles/metrics/templates/dcgm-exporter.conf.j2").read_text()
    collects = templated.expression(text, known | templated.variables_of("metrics"))
    assert ("-c 5000 --hpc-job-mapping-dir" in collects) == pushes and ("-c " in collects) == pushes


def test_a_rented_node_leaves_out_what_home_leaves_out():
    (rule,) = baked("127.0.0.1:1")["scrape_configs"][0]["metric_relabel_configs"]
    assert rule == targets.OF_EACH_CPU
    unit = (PLAYBOOKS / "roles/metrics/files/ironburst-agent.service").read_text()
    assert f"--storage.agent.retention.max-time={targets.LATE} " in unit
