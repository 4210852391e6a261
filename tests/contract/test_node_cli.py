"""`ironburst node medium|wait|power|replace` on a stack file, against the lab's BMC emulator."""

import copy
import json
import stat
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from ironburst import cli
from ironburst.adapters.redfish import cycle as metal_cycle
from ironburst.adapters.redfish import power as redfish_power
from ironburst.baremetal import install_scripts
from ironburst.cli import node_cycle, node_guard
from ironburst.convergence import guard
from ironburst.ports.service import Occupancy, SchedulerError, SchedulerMissing
from lab.bmc import Fault, Machine, write_fault
from tests.contract.emulator import PASSWORD, InstallableMachine, serving

LAB = yaml.safe_load((Path(__file__).parents[2] / "stacks/Pulumi.lab.yaml").read_text())
MACHINE = Machine("dgx01", "LAB-DGX01", "8b1e7f0e-0000-4000-8000-00000000000b", ("52:54:00:4e:00:0b",))
URL = "http://10.0.0.5/media/dgx01-CHG-1.iso"
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJk8mGv3dXh8m2bM0Zf0o3Zz8b1mC5rC8xkq0Yy2aF3h ops"


class Service:
    """A scheduler in memory. `busy_looks`: how often a node is seen with a job."""

    def __init__(self, busy_looks=0, state="IDLE"):
        self.busy_looks, self.node, self.drains = busy_looks, Occupancy("dgx01", ("home",), frozenset({state})), []

    def occupancy(self):
        jobs = (42,) if self.busy_looks else ()
        self.busy_looks = max(0, self.busy_looks - 1)
        return {"dgx01": replace(self.node, jobs=jobs)}

    def drain(self, nodes, reason):
        self.drains.append((list(nodes), reason))
        self.node = replace(self.node, states=frozenset({"IDLE", "DRAIN"}), reason=reason)

    def resume(self, nodes):
        raise AssertionError("nobody asked for it")


class Site:
    def __init__(self, folder, bmc, machine, capsys):
        self.folder, self.bmc, self.machine, self.capsys = folder, bmc, machine, capsys
        self.stack = folder / "Pulumi.x.yaml"
        self.declare()

    def declare(self, **install):
        value = copy.deepcopy(LAB)
        hall = value["config"]["ironburst:cluster"]["halls"][0]
        hall["bmc_cidr"] = "127.0.0.0/24"
        head, dgx = hall["nodes"]
        head.pop("bmc")
        dgx |= {"names": "dgx01", "units": [1], "addresses": "10.78.0.11", "macs": ["52:54:00:4e:00:0b"]}
        dgx |= {"serials": ["LAB-DGX01"]}
        dgx["bmc"] = {"addresses": self.bmc.url, "username": "admin", "password": "env:LAB_BMC_PASSWORD"}
        given = {
            "mark": "CHG-1",
            "medium": "http://10.0.0.5/media/{node}-{mark}.iso",
            "allow_install": ["dgx01"],
            "disks": ["LABDISK01"],
            "authorized_keys": [KEY],
            "known_hosts": str(self.folder / "known_hosts"),
            "mirror": "http://10.78.0.1/debian",
        }
        dgx["install"] = given | install
        self.stack.write_text(yaml.safe_dump(value))

    def run(self, verb, *words, node="dgx01"):
        code = cli.main(["node", verb, node, str(self.stack), *map(str, words)])
        out, err = self.capsys.readouterr()
        return code, out.strip(), err.strip()

    def medium(self):
        code, _, err = self.run("medium", "--out", self.folder / "media")
        assert code == 0, err
        self.machine.media[URL] = self.folder / "media/dgx01-CHG-1"


@pytest.fixture
def site(tmp_path, monkeypatch, capsys):
    machine = InstallableMachine(tmp_path / "machine", {})

    def ask_host(install, node, timeout_s):
        said = machine.says()
        return said and install_scripts.mark_in(said, node)

    monkeypatch.setattr(metal_cycle, "ask_host", ask_host)
    monkeypatch.setattr(node_cycle, "LOOK_EVERY_S", 0.01)
    monkeypatch.setattr(guard, "POLL_S", 0.0)
    monkeypatch.setenv("LAB_BMC_PASSWORD", PASSWORD)
    with serving(tmp_path, MACHINE, machine) as (bmc, _):
        yield Site(tmp_path, bmc, machine, capsys)


def scheduled(monkeypatch, service):
    monkeypatch.setattr(node_guard, "_service", lambda *_: service)
    return service


def test_from_a_medium_to_a_ready_node(site):
    site.medium()
    code, out, err = site.run("wait")
    assert (code, err) == (0, "") and out.splitlines()[-1] == "dgx01: ready: it is installed, and says so itself"
    assert site.machine.outcomes == ["installed"] and site.bmc.media.medium is None
    assert site.run("wait", "--json")[1] == json.dumps(
        {"node": "dgx01", "state": "ready", "reason": "it is installed, and says so itself", "installed": "CHG-1"}
    )


def test_the_medium_is_for_the_owner_alone_and_its_key_is_known(site):
    site.medium()
    folder = site.folder / "media/dgx01-CHG-1"
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.rglob("*") if path.is_file()} <= {0o600, 0o644}
    assert (
        stat.S_IMODE((folder / "preseed.cfg").stat().st_mode)
        == 0o600
        == stat.S_IMODE((folder / "ironburst/ssh_host_ed25519_key").stat().st_mode)
    )
    public = (folder / "ironburst/ssh_host_ed25519_key.pub").read_text().split()
    assert (site.folder / "known_hosts").read_text() == f"10.78.0.11 {public[0]} {public[1]}\n"
    site.medium()  # again: the same key
    assert (folder / "ironburst/ssh_host_ed25519_key.pub").read_text().split() == public


def test_without_leave_it_says_where_it_stands(site):
    site.declare(allow_install=[])
    code, out, _ = site.run("wait")
    assert (code, out) == (4, "dgx01: verified: it lacks the installation, and allow_install does not name it")
    assert site.machine.outcomes == []


def test_an_installation_that_does_not_end_is_given_up(site):
    code, out, _ = site.run("wait", "--timeout", "1s")  # no medium at that URL
    assert code == 5 and "failed" in out and site.bmc.media.medium is None and site.machine.writes == 0


def test_a_node_that_is_on_is_named_with_the_way_out(site):
    site.machine.on = True
    code, out, _ = site.run("wait")
    assert code == 4 and "`ironburst node power dgx01 off`" in out


@pytest.mark.parametrize("words", [["off"], ["restart"]])
def test_power_waits_for_jobs_and_drains_first(site, monkeypatch, words):
    site.machine.on = True
    service = scheduled(monkeypatch, Service(busy_looks=3))
    code, out, err = site.run("power", *words)
    assert code == 0 and "drained, waits for 42" in err and "converge --always --limit dgx01" in out
    assert service.drains == [(["dgx01"], f"ironburst converge: node power {words[0]}")] and service.busy_looks == 0
    site.bmc.resets[-1].join(5)
    assert site.machine.on is (words == ["restart"])


def test_power_never_goes_under_jobs(site, monkeypatch):
    site.machine.on = True
    scheduled(monkeypatch, Service(busy_looks=10**6))
    code, _, err = site.run("power", "off", "--drain-timeout", "0s")
    assert code in (2, 5) and site.machine.on and site.machine.calls == []
    assert "did not end in time" in err or "no duration" in err


def test_power_of_a_node_that_nobody_can_ask_about(site, monkeypatch):
    site.machine.on = True
    service = scheduled(monkeypatch, Service())

    def unreachable():
        raise SchedulerError("slurmctld does not answer")

    service.occupancy = unreachable
    code, _, err = site.run("power", "off")
    assert code == 3 and "isn't known: slurmctld does not answer" in err and site.machine.on

    def missing():
        raise SchedulerMissing("no slurm here")

    service.occupancy = missing
    code, _, err = site.run("power", "off")
    assert code == 3 and "give --no-scheduler-yet" in err and site.machine.on
    code, _, err = site.run("power", "off", "--no-scheduler-yet")
    assert code == 0 and "no scheduler knows it yet" in err and not site.machine.on


@pytest.mark.parametrize("quirks", [[], ["no-clean-restart"], ["power-lags"]])
def test_a_restart_is_a_shutdown_and_a_start(site, monkeypatch, quirks):
    """DGX H100's BMC offers no GracefulRestart, and of one nobody sees that it was done."""
    site.machine.on = True
    scheduled(monkeypatch, Service())
    write_fault(site.folder / "faults.json", "dgx01", Fault(quirks=quirks))
    code, _, err = site.run("power", "restart")
    assert code == 0 and site.machine.on and site.machine.calls == ["stop", "start"], err


@pytest.mark.parametrize("verb", [["power", "off"], ["power", "restart"], ["replace"]])
@pytest.mark.parametrize("quirks", [[], ["no-clean-off"], ["no-clean-restart"]])
def test_nothing_is_cut_off_unless_that_is_asked_for(site, monkeypatch, verb, quirks):
    site.machine.on = site.machine.stubborn = True
    scheduled(monkeypatch, Service())
    monkeypatch.setattr(redfish_power, "CLEAN_S", 0.1)
    write_fault(site.folder / "faults.json", "dgx01", Fault(quirks=quirks))
    code, _, err = site.run(*verb)
    assert code == 3 and site.machine.on and "off" not in site.machine.calls and "--force" in err
    site.machine.stubborn = "no-clean-off" not in quirks
    assert site.run(*verb, "--force")[0] == 0 and "off" in site.machine.calls
    assert site.machine.on is ("restart" in verb)


@pytest.mark.parametrize("verb", [["power", "off"], ["power", "restart", "--force"], ["replace"]])
def test_a_bmc_of_another_machine_is_told_nothing(site, monkeypatch, verb):
    """Two BMCs' addresses that were mixed up: the jobs are on the other one."""
    site.machine.on = True
    scheduled(monkeypatch, Service())
    (site.folder / "faults.json").write_text(json.dumps({"dgx01": {"hardware": {"serial": "LAB-DGX09"}}}))
    code, _, err = site.run(*verb)
    assert code == 3 and "LAB-DGX09" in err and site.machine.on and not site.machine.calls


def test_power_on_asks_nobody(site, monkeypatch):
    scheduled(monkeypatch, None)
    assert site.run("power", "on")[0] == 0
    site.bmc.resets[-1].join(5)
    assert site.machine.on


def test_an_exchange(site, monkeypatch):
    site.machine.on = True
    service = scheduled(monkeypatch, Service())
    code, out, _ = site.run("replace")
    assert code == 0 and "--swapped" in out and service.node.drained and not site.machine.on
    assert site.bmc.media.lamp["LocationIndicatorActive"] is True
    (site.folder / "faults.json").write_text(json.dumps({"dgx01": {"hardware": {"serial": "LAB-DGX09"}}}))
    code, out, _ = site.run("replace", "--swapped")
    assert code == 4 and "LAB-DGX09" in out and site.bmc.media.lamp["LocationIndicatorActive"] is True
    (site.folder / "faults.json").unlink()
    code, out, _ = site.run("replace", "--swapped", "--json")
    said = json.loads(out)
    assert code == 0 and said["state"] == "verified" and said["next"][0] == "pulumi up"
    assert said["next"][-1] == "ironburst converge --always --limit dgx01"
    assert site.bmc.media.lamp["LocationIndicatorActive"] is False


@pytest.mark.parametrize(
    ("words", "node", "sentence"),
    [
        (["wait"], "dgx09", "'dgx09' is no managed node with a bmc"),
        (["wait", "--timeout", "soon"], "dgx01", "--timeout 'soon' is no duration"),
        (["power", "off", "--drain-timeout", "x"], "dgx01", "--drain-timeout 'x' is no duration"),
    ],
)
def test_bad_input_gets_a_sentence(site, words, node, sentence):
    site.machine.on = True
    code, _, err = site.run(words[0], *words[1:], node=node)
    assert code == 2 and sentence in err and "\n" not in err


def test_a_password_that_does_not_resolve(site, monkeypatch):
    monkeypatch.delenv("LAB_BMC_PASSWORD")
    code, _, err = site.run("wait")
    assert code == 2 and "LAB_BMC_PASSWORD" in err


def test_a_host_is_known_by_its_own_key_alone(tmp_path):
    """ssh itself: nobody listens there, so there is no answer."""
    install = metal_cycle.InstallInputs.model_validate(
        {"mark": "m", "medium": "http://x/y", "hostAddress": "127.0.0.1", "knownHosts": str(tmp_path / "none")}
    )
    assert metal_cycle.ask_host(install, "dgx01", timeout_s=5) is None
    assert list(tmp_path.iterdir()) == []
