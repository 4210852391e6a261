"""A hall of one's own, two teams share it and nothing is rented: every verb of its days works, on a machine without
credentials or region of any cloud, and without a network.
"""

import io
import json
import os
import socket
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from ironburst import cli, document
from ironburst.adapters.no_cloud import NoCloud
from ironburst.adapters.slurm.accounting import COLUMNS
from ironburst.cli import cost, run, status, tick
from ironburst.controller.ledger import Ledger
from ironburst.ports import CloudError, LaunchRequest
from ironburst.wiring import clouds
from tests.fakes import T0, FakeClock, FakeSlurm, connect_to
from tests.fakes.world import World
from tests.unit.plan.steps import preview, step

# what docs/tutorial/first-hall.md ends with, with two teams
STACK = """\
config:
  ironburst:cluster:
    name: hall
    software: {driver: "580", os: debian13, slurm: "24.11"}
    halls:
      - name: hall-a
        cidr: 10.78.0.0/21
        nodes:
          - {names: head, role: head, addresses: 10.78.0.10}
          - {names: "dgx[01-02]", platform: dgx-h100, addresses: "10.78.0.[11-12]", infiniband_links: 8}
    shares:
      - {team: vision, guaranteed_gpus: 8}
      - {team: nlp, guaranteed_gpus: 8}
    scheduler: {head: head, munge_key: "file:/etc/ironburst/munge.key"}
"""


@pytest.fixture(autouse=True)
def alone(tmp_path, monkeypatch):
    """No credentials, no region, no network."""

    def refused(*_):
        raise AssertionError("a hall of one's own asks nobody")

    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(socket.socket, "connect", refused)
    monkeypatch.setattr(socket, "getaddrinfo", refused)


@pytest.fixture(scope="module")
def declared(tmp_path_factory):
    """The stack file, locked, and the folder that its document is published in."""
    stack = tmp_path_factory.mktemp("hall") / "Pulumi.hall.yaml"
    stack.write_text(STACK)
    assert cli.main(["lock", str(stack)]) == 0
    return stack


@pytest.fixture
def hall(declared, tmp_path, monkeypatch, capsys):
    """The hall's document, published; Slurm is in memory, and its clock stands where the tests put it."""
    stack, published = declared, declared.with_name("hall.json")
    if not published.exists():
        assert cli.main(["document", str(stack)]) == 0
        monkeypatch.setattr("sys.stdin", io.StringIO(capsys.readouterr().out))
        assert cli.main(["publish", "--to", str(published)]) == 0
    clock = FakeClock()
    slurm = FakeSlurm(clock)
    monkeypatch.setenv("IRONBURST_DOCUMENT", str(published))
    monkeypatch.setenv("IRONBURST_LEDGER", str(tmp_path / "ledger.sqlite"))
    monkeypatch.delenv("IRONBURST_SLURM_PREFIX", raising=False)
    for module in (tick, run):
        monkeypatch.setattr(module, "SystemClock", lambda: clock)
    monkeypatch.setattr(status.schedulers, "Slurm", lambda prefix, jobs=0: slurm)
    monkeypatch.setattr(f"{status.__name__}.time.time", clock.now)
    capsys.readouterr()
    made = {"stack": stack, "published": published, "clock": clock, "slurm": slurm}
    return type("Hall", (), made | {"ledger": tmp_path / "ledger.sqlite"})


def test_it_is_published_without_a_cloud(hall):
    said = json.loads(hall.published.read_text())
    assert said["cloud"] is None and [share["account"] for share in said["shares"]] == ["vision", "nlp"]


def test_a_tick_looks_at_the_queue_and_rents_nothing(hall, capsys):
    hall.slurm.submit(nodes=2, limit_s=7200, runs_s=7200)
    waits = hall.slurm.submit(limit_s=600)
    assert cli.main(["tick", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["pending"], said["running"], said["leases"], said["events"]) == (1, 1, {}, [])
    assert cli.main(["status"]) == 0
    assert str(waits) in capsys.readouterr().out
    assert cli.main(["explain", str(waits)]) == 0
    assert f"job {waits}" in capsys.readouterr().out
    assert cli.main(["shares"]) == 0


def test_the_controller_runs_until_it_is_told_to_stop(hall, monkeypatch, capsys):
    hall.slurm.submit(limit_s=600)
    waits = []
    monkeypatch.setattr(FakeClock, "stopped", property(lambda _: len(waits) > 3), raising=False)
    monkeypatch.setattr(hall.clock, "wait", lambda seconds: waits.append(seconds))
    assert cli.main(["run"]) == 0
    told = capsys.readouterr()
    assert "trouble" not in told.out and told.err == ""
    with closing(Ledger(hall.ledger, read_only=True)) as ledger:
        assert ledger.noted("last_tick")


def test_nothing_is_to_be_reaped(hall, capsys):
    assert cli.main(["reap", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"orphans": [], "ended": True}


def test_the_doctor_says_that_there_is_no_cloud_to_look_at(hall, capsys):
    assert cli.main(["doctor", str(hall.stack)]) == 0
    told = capsys.readouterr().out
    assert "ok" in told and "nothing is rented" in told and "--from" in told


def test_a_plan_of_nothing_but_halls(hall, tmp_path, capsys):
    path = tmp_path / "preview.json"
    path.write_text(preview(step("create", "baremetal:index:Node", "dgx01", after={"name": "dgx01"}, stack="hall")))
    assert cli.main(["plan", str(hall.stack), "--preview", str(path)]) == 0
    told = capsys.readouterr()
    assert "dgx01" in told.out and told.err == ""


def test_a_report_of_what_its_gpus_did(hall, tmp_path, monkeypatch, capsys):
    assert cli.main(["tick"]) == 0
    jobs = tmp_path / "sacct.txt"
    ran = f"1|1|{T0:.0f}|{T0:.0f}|{T0 + 7200:.0f}|7200|gres/gpu=8,node=1|ann|vision|dgx01|COMPLETED"
    jobs.write_text("\n".join(["|".join(COLUMNS), ran]) + "\n")
    monkeypatch.setattr(cost.time, "time", lambda: T0 + 86400.0)
    capsys.readouterr()
    assert cli.main(["report", "--jobs", str(jobs), "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["rows"]
    assert (row["name"], row["gpu_hours"]["home"], row["usd"]["rented"]) == ("vision", 16.0, 0.0)


def test_no_verb_of_its_days_loads_a_clouds_sdk():
    program = """
import sys
from ironburst.cli import doctor, image, publish, reap, run, status, stop, tick
from ironburst.wiring import clouds
clouds.PROVIDERS[None].api(None)
print(sorted(name for name in sys.modules if name.split(".")[0] in ("boto3", "botocore")))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_cloud_that_a_document_no_longer_names_is_asked_on(tmp_path, monkeypatch):
    """What is rented was rented there; and where nobody knows where, nothing is taken for gone."""
    world = World(tmp_path, markets=["on-demand"])
    world.fill_home()
    world.slurm.submit(runs_s=30_000, limit_s=36_000)
    world.until(lambda: world.states() == ["ready"], 60)
    made = world.document
    connect_to(world.cloud, monkeypatch)
    connection = clouds.CloudConnection()
    assert connection.follow(made) is world.cloud
    assert connection.follow(made.model_copy(update={"cloud": None})) is world.cloud
    world.controller.cloud = NoCloud()  # of a process that has started since
    world.slurm.nodes["p5-1"].states |= {"NOT_RESPONDING"}  # nothing but the cloud could prove that it lives
    for _ in range(20):
        world.pass_by(30.0)
    assert world.states() != [] and len(world.cloud.alive()) == 1
    assert any("the document declares no cloud" in text for text in world.events())


def test_a_hall_that_gets_a_cloud_rents_there_without_a_restart(hall, tmp_path, monkeypatch):
    world = World(tmp_path)
    connect_to(world.cloud, monkeypatch)
    connection = clouds.CloudConnection()
    alone = document.read(hall.published)
    assert isinstance(connection.follow(alone), NoCloud) and connection.follow(alone) is connection.follow(alone)
    assert connection.follow(world.document) is world.cloud


@pytest.mark.parametrize("ids", [["i-1"], ["i-1", "i-2"]])
def test_no_cloud_knows_no_instance_and_says_so(ids):
    cloud = NoCloud()
    assert cloud.instances("hall") == cloud.described([]) == cloud.interruptions([]) == cloud.troubles([]) == []
    assert cloud.terminate([]) == set() and cloud.image_id("x") is None
    for ask in (cloud.described, cloud.terminate, cloud.troubles):
        with pytest.raises(CloudError, match="declares no cloud"):
            ask(ids)
    request = LaunchRequest("t", "l", "hall", "p5", "z", "spot", 1, {}, "ami", "{}")
    assert [type(answer).__name__ for answer in cloud.launch_all([request])] == ["Refused"]


def test_nothing_in_the_product_guesses_a_region():
    """A region that nobody wrote is nobody's: of the verbs that make a stack file the user is asked, and shown it."""
    here = Path(cli.__file__).parents[1]
    guesses = [
        f"{path.name}:{n}"
        for path in sorted(here.rglob("*.py"))
        for n, line in enumerate(path.read_text().splitlines(), 1)
        if 'or "us-east-1"' in line
    ]
    assert guesses == []
