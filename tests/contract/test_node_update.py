"""`ironburst node firmware --update` on a stack file, against the lab's BMC emulators: two nodes in two racks."""

import copy
import fcntl
import hashlib
import json
import threading
from contextlib import ExitStack
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
import yaml

from ironburst import cli
from ironburst.cli import node_guard, node_update
from ironburst.convergence import guard
from ironburst.ports.service import Occupancy, SchedulerError
from lab.bmc import Fault, write_fault
from tests.contract.emulator import MACHINE, PASSWORD, serving
from tests.contract.test_node_firmware import LAB

FILE = json.dumps({"component": "BIOS", "version": "1.2"}).encode()
LEAST = {"component": "BIOS", "at_least": "1.2", "source": "advisory 7", "as_of": "2026-10-01"}


class Service:
    """A scheduler in memory. `busy`: nodes that have a job at the first look."""

    def __init__(self, *busy):
        self.busy, self.drained = set(busy), {}

    def occupancy(self):
        found = {}
        for name in ("dgx01", "dgx02"):
            states = {"IDLE", "DRAIN"} if name in self.drained else {"IDLE"}
            jobs = (42,) if name in self.busy else ()
            reason = self.drained.get(name, "")
            found[name] = Occupancy(name, ("home",), frozenset(states), jobs=jobs, reason=reason)
        self.busy = self.busy - set(self.drained)
        return found

    def drain(self, nodes, reason):
        self.drained |= dict.fromkeys(nodes, reason)


class Site:
    def __init__(self, folder, bmcs, uri, capsys):
        self.folder, self.bmcs, self.capsys = folder, bmcs, capsys
        self.stack, self.record = folder / "Pulumi.x.yaml", folder / "Pulumi.x.firmware.json"
        self.image = {"uri": uri, "sha256": hashlib.sha256(FILE).hexdigest()}
        self.declare()

    def declare(self, allow=("dgx01", "dgx02"), racks=("a01", "a02"), **image):
        value = copy.deepcopy(LAB)
        hall = value["config"]["ironburst:cluster"]["halls"][0]
        hall["bmc_cidr"] = "127.0.0.0/24"
        head, dgx = hall["nodes"]
        head.pop("bmc")
        for node in (head, dgx):
            for key in ("rack", "units"):
                node.pop(key, None)
        hall["racks"] = [{"name": name} for name in sorted(set(racks))]
        ranges = []
        for n, (bmc, rack) in enumerate(zip(self.bmcs, racks, strict=True), 1):
            one = dgx | {"names": f"dgx0{n}", "addresses": f"10.78.0.1{n}", "rack": rack, "units": [1 + 10 * n]}
            for key in ("macs", "serials"):
                one.pop(key, None)
            one["bmc"] = {"addresses": bmc.url, "username": "admin", "password": "env:LAB_BMC_PASSWORD"}
            one["firmware"] = [LEAST | {"image": self.image | image}]
            one["allow_update"] = [name for name in allow if name == one["names"]]
            ranges.append(one)
        hall["nodes"] = [head, *ranges]
        self.stack.write_text(yaml.safe_dump(value))

    def run(self, *words):
        code = cli.main(["node", "firmware", str(self.stack), *words])
        out, err = self.capsys.readouterr()
        return code, out.strip(), err.strip()

    def flashed(self):
        return [each.updates.flashed for each in self.bmcs]

    def quirks(self, node, *quirks):
        write_fault(self.folder / node / "faults.json", node, Fault(quirks=list(quirks)))


@pytest.fixture
def site(tmp_path, monkeypatch, capsys):
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.end_headers()
            self.wfile.write(FILE)

        def log_message(self, *_):
            pass

    monkeypatch.setenv("LAB_BMC_PASSWORD", PASSWORD)
    monkeypatch.setattr(node_update, "LOOK_EVERY_S", 0.0)
    monkeypatch.setattr(guard, "POLL_S", 0.0)
    with ExitStack() as running:
        server = running.enter_context(ThreadingHTTPServer(("127.0.0.1", 0), Handler))
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        running.callback(server.shutdown)
        bmcs = []
        for name in ("dgx01", "dgx02"):
            (tmp_path / name).mkdir()
            bmcs.append(running.enter_context(serving(tmp_path / name, replace(MACHINE, name=name, gpus=0)))[0])
        yield Site(tmp_path, bmcs, f"http://127.0.0.1:{server.server_port}/bios", capsys)


@pytest.fixture(autouse=True)
def service(monkeypatch):
    service = Service("dgx01")
    monkeypatch.setattr(node_guard, "_service", lambda *_: service)
    return service


def test_rack_by_rack_drained_first(site, service):
    code, out, err = site.run("--update")
    assert code == 0, (out, err)
    assert out.splitlines() == [
        "dgx01:",
        "  reached        BIOS, was 1.0: it has the version",
        "  it is drained: `ironburst converge --always --limit dgx01` checks it and gives it back",
        "dgx02:",
        "  reached        BIOS, was 1.0: it has the version",
        "  it is drained: `ironburst converge --always --limit dgx02` checks it and gives it back",
    ]
    assert site.flashed() == [[("BIOS", "1.2")]] * 2 and list(service.drained) == ["dgx01", "dgx02"]
    assert all(reason == "ironburst converge: node firmware" for reason in service.drained.values())
    assert err.index("dgx01: drained, waits for 42") < err.index("dgx01: BIOS 1.0: 1.2 is sent") < err.index("dgx02:")
    assert json.loads(site.record.read_text()) == {}
    code, out, _ = site.run("--update")
    assert code == 0 and "every declared minimum" in out and "drained" not in out and len(site.flashed()[0]) == 1


def test_the_next_rack_is_not_touched_after_a_failure(site, service):
    site.quirks("dgx01", "task-fails")
    code, out, err = site.run("--update")
    assert code == 4 and "  failed         BIOS, was 1.0: its BMC says that the update has failed; look at" in out
    assert "not touched after that: dgx02" in err and list(service.drained) == ["dgx01"]
    assert not (site.folder / "dgx02/requests.jsonl").exists()
    assert list(json.loads(site.record.read_text())["dgx01"]) == ["BIOS"]
    site.quirks("dgx01")
    assert site.run("--update")[0] == 4 and site.bmcs[0].updates.posts == 1
    assert site.run("--update", "--again")[0] == 0 and site.bmcs[0].updates.posts == 2


def test_a_rack_at_once_and_a_start_when_it_is_asked_for(site):
    site.declare(racks=("a01", "a01"))
    for node in ("dgx01", "dgx02"):
        site.quirks(node, "task-waits-for-a-start")
    code, out, err = site.run("--update", "--json")
    told = json.loads(out)
    assert (
        code == 4
        and [each["components"][0]["state"] for each in told] == ["waits", "waits"]
        and "not touched" not in err
    )
    assert told[0]["drained"] and told[0]["rack"].endswith("/a01") and told[0]["error"] is None
    code, out, _ = site.run("--update")
    assert code == 4 and f"`ironburst node power dgx01 {site.stack} restart`" in out
    code, out, err = site.run("--update", "--restart")
    assert code == 0 and site.flashed() == [[("BIOS", "1.2")]] * 2 and "dgx02: BIOS: starts the machine" in err
    assert [each.power.calls for each in site.bmcs] == [["stop", "start"]] * 2


@pytest.mark.parametrize(("quirk", "pressed"), [("few-sessions", 1), ("no-clean-restart", 2)])
def test_a_start_is_clean_with_a_bmc_that_offers_no_clean_restart(site, quirk, pressed):
    site.quirks("dgx01", "task-waits-for-a-start", quirk)
    assert site.run("dgx01", "--update", "--restart")[0] == 0
    log = (site.folder / "dgx01/requests.jsonl").read_text().splitlines()
    presses = [each for each in map(json.loads, log) if each["path"].endswith("ComputerSystem.Reset")]
    assert [each["status"] < 300 for each in presses] == [True] * pressed, "a shutdown and a start, or both in one"
    assert site.bmcs[0].power.calls == ["stop", "start"]


@pytest.mark.parametrize(
    ("words", "allow", "sentence"),
    [
        (["--update"], [], "allow_update does not name any node: without it nothing is written"),
        (["dgx02", "--update"], ["dgx01"], "allow_update does not name dgx02"),
        (["dgx09", "--update"], ["dgx01"], "'dgx09' is no managed node with a bmc"),
        (["--restart"], ["dgx01"], "--restart and --again are for --update"),
        (["--update", "--timeout", "soon"], ["dgx01"], "--timeout 'soon' is no duration"),
    ],
)
def test_what_is_refused_before_anything_is_asked(site, words, allow, sentence):
    site.declare(allow=allow)
    code, _, err = site.run(*words)
    assert code == 2 and sentence in err and not (site.folder / "dgx01/requests.jsonl").exists()


def test_only_who_is_permitted(site):
    site.declare(allow=["dgx02"])
    assert site.run("--update")[0] == 0 and site.flashed() == [[], [("BIOS", "1.2")]]


def test_another_image_drains_nobody(site, service):
    site.declare(sha256="0" * 64)
    code, out, _ = site.run("--update")
    assert code == 4 and "declared is 0000" in out and "nothing was begun" in out and service.drained == {}


def test_a_scheduler_that_does_not_answer_and_a_bmc(site, service, monkeypatch):
    monkeypatch.setattr(service, "occupancy", lambda: (_ for _ in ()).throw(SchedulerError("slurmctld is away")))
    code, out, _ = site.run("--update")
    assert code == 3 and "isn't known: slurmctld is away" in out and site.flashed() == [[], []]
    write_fault(site.folder / "dgx01/faults.json", "dgx01", Fault(wrong_password=True))
    code, out, _ = site.run("--update")
    assert code == 3 and "refuses the login" in out


def test_one_run_at_a_time_and_a_record_that_is_one(site):
    with (site.folder / "Pulumi.x.firmware.json.lock").open("a") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert site.run("--update")[0] == 2
    site.record.write_text('{"dgx01": {"BIOS": {"sent": 1}}}')
    code, _, err = site.run("--update")
    assert code == 2 and "is no record of firmware updates" in err
    code, _, err = site.run("--update", "--record", str(site.folder / "nowhere/record.json"))
    assert code == 2 and "give another --record" in err and site.flashed() == [[], []]


def test_a_record_that_can_not_be_written_sends_nothing(site, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("ironburst.system.files.write", full)
    code, out, _ = site.run("--update")
    assert code == 3 and "can't be written (No space left on device): nothing is sent without" in out
    assert site.flashed() == [[], []] and site.bmcs[0].updates.posts == 0
