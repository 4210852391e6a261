"""`ironburst node bios` on a stack file, against the lab's BMC emulators: every maker's shape, every quirk."""

import copy
import json
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path

import pytest
import yaml

from ironburst import cli
from ironburst.adapters.redfish import cycle as metal_cycle
from ironburst.baremetal import bios_cycle
from ironburst.baremetal.install_scripts import Target, mark_in
from ironburst.cli import node_bios, node_guard
from ironburst.convergence import guard
from ironburst.ports.service import SchedulerMissing
from lab.bmc import Fault, write_fault
from lab.bmc.bios import FACTORY, SHAPES
from tests.contract import emulator
from tests.contract.emulator import PASSWORD, InstallableMachine, medium, serving
from tests.contract.test_node_cli import KEY, Service

LAB = yaml.safe_load((Path(__file__).parents[2] / "stacks/Pulumi.lab.yaml").read_text())
MACHINE = replace(emulator.MACHINE, gpus=2)
WANTED = {"ProcVirtualization": "Enabled", "NumaNodes": 4, "QuietBoot": False}
SETUP = {"BootSourceOverrideTarget": "BiosSetup", "BootSourceOverrideEnabled": "Continuous"}


class Site:
    def __init__(self, folder, bmc, power, capsys):
        self.folder, self.bmc, self.power, self.capsys = folder, bmc, power, capsys
        self.stack = folder / "Pulumi.x.yaml"
        self.declare(WANTED)

    def declare(self, bios, allow=(), **more):
        value = copy.deepcopy(LAB)
        value["config"]["ironburst:cluster"]["allow"] = list(allow)
        hall = value["config"]["ironburst:cluster"]["halls"][0]
        hall["bmc_cidr"] = "127.0.0.0/24"
        head, dgx = hall["nodes"]
        head.pop("bmc")
        dgx |= {"names": "dgx01", "units": [1], "addresses": "10.78.0.11", "macs": ["52:54:00:4e:00:0b"]}
        dgx |= {"serials": ["LAB-DGX01"], "bios": bios, "allow_bios": ["dgx01"]} | more
        dgx["bmc"] = {"addresses": self.bmc.url, "username": "admin", "password": "env:LAB_BMC_PASSWORD"}
        self.stack.write_text(yaml.safe_dump(value, sort_keys=False))

    def quirks(self, *quirks, **fault):
        write_fault(self.folder / "faults.json", "dgx01", Fault(quirks=list(quirks), **fault))

    def run(self, *words, verb="bios"):
        code = cli.main(["node", verb, "dgx01", str(self.stack), *words])
        out, err = self.capsys.readouterr()
        return code, out.strip(), err.strip()

    def set(self, *words):
        return self.run("--set", *words)

    def in_force(self):
        return {name: self.bmc.bios.attributes[name] for name in WANTED}

    def sent(self, method):
        log = self.folder / "requests.jsonl"
        lines = map(json.loads, log.read_text().splitlines() if log.exists() else [])
        return [each for each in lines if each["method"] == method and "SessionService" not in each["path"]]


@pytest.fixture
def quick(monkeypatch):
    """No waiting for wall time, and a scheduler that has drained the node already."""
    service = Service()
    monkeypatch.setattr(node_guard, "_service", lambda *_: service)
    monkeypatch.setattr(guard, "POLL_S", 0.0)
    monkeypatch.setattr(node_bios.time, "sleep", lambda _: None)
    monkeypatch.setattr(bios_cycle, "SETTLED_LOOKS", 6)
    monkeypatch.setenv("LAB_BMC_PASSWORD", PASSWORD)
    return service


@pytest.fixture
def site(tmp_path, capsys, quick):
    with serving(tmp_path, MACHINE) as (bmc, power):
        power.on = False
        yield Site(tmp_path, bmc, power, capsys)


# ---- the report


def test_the_report_says_what_differs_and_what_is_allowed(site):
    site.declare(WANTED | {"QuietBoot": True, "NumaNode": 2, "BootMode": "UEFI", "CpuStepping": "9"})
    code, out, _ = site.run()
    assert code == 4 and out.splitlines() == [
        "dgx01: 6 settings are declared",
        '  differs         BIOS ProcVirtualization is "Disabled", "Enabled" is declared',
        "  differs         BIOS NumaNodes is 1, 4 is declared",
        "  in force        BIOS QuietBoot is true",
        "  unknown         BIOS NumaNode: 2 is declared, the BMC says no setting of that name: did you mean NumaNodes?",
        '  differs         BIOS BootMode is "Bios", "UEFI" is declared',
        '  differs         BIOS CpuStepping is "8", "9" is declared',
        "  can't be set    BIOS NumaNode: this BIOS has no such setting: did you mean NumaNodes?",
        '  can\'t be set    BIOS BootMode: "UEFI" is declared, allowed is one of "Uefi", "Bios"',
        "  can't be set    BIOS CpuStepping: it is read only, and can't be set",
    ]
    assert site.sent("PATCH") == site.sent("POST") == []


def test_what_is_wrong_in_the_declaration_is_said_before_anything_is_done(site):
    site.declare(WANTED | {"NumaNodes": 9})
    code, _, err = site.set()
    assert code == 2 and "nothing is set: BIOS NumaNodes: 9 is declared, allowed is at least 1 and at most 4" in err
    assert site.sent("PATCH") == site.sent("POST") == []


def test_the_report_without_a_declaration_and_for_programs(site):
    site.declare({}, allow_bios=[])
    code, out, _ = site.run()
    assert code == 0 and "dgx01: no settings are declared" in out and "  NumaNodes: 1" in out
    site.declare({"NumaNodes": 4})
    code, out, _ = site.run("--json")
    told = json.loads(out)
    assert (code, told["settings"][0]["order"], told["in_force"]["BootMode"]) == (4, "differs", "Bios")


def test_without_a_registry_that_is_said_and_names_are_compared(site):
    site.quirks("bios-without-registry")
    assert "no registry of its settings" in site.run()[1]
    site.declare({"NumaNode": 4})
    code, _, err = site.set()
    assert code == 2 and "no setting of that name: did you mean NumaNodes?" in err


def test_no_leave_no_set(site):
    site.declare(WANTED, allow_bios=[])
    code, _, err = site.set()
    assert code == 2 and "name it in allow_bios" in err and site.sent("PATCH") == []
    site.declare({}, allow_bios=[])
    assert site.set()[0] == 2
    assert site.set("--timeout", "soon")[0] == 2


def test_a_bmc_without_a_bios(site):
    site.quirks("bios-nowhere")
    code, _, err = site.run()
    assert code == 3 and "says nothing of its BIOS' settings" in err


# ---- setting


def off_and_on(kinds):
    """Each kind with a machine that is off or with one that is on, in turn; with both where slow tests are run."""
    return [
        pytest.param(kind, on, id=f"{kind}-{on}", marks=() if on == number % 2 else pytest.mark.slow)
        for number, kind in enumerate(kinds)
        for on in (False, True)
    ]


@pytest.mark.parametrize(("vendor", "on"), off_and_on(SHAPES))
def test_every_makers_shape(tmp_path, capsys, quick, vendor, on):
    machine = replace(MACHINE, vendor=vendor)
    with serving(tmp_path, machine) as (bmc, power):
        power.on = on
        site = Site(tmp_path, bmc, power, capsys)
        code, out, err = site.set()
        assert (code, site.in_force()) == (0, WANTED), (out, err)
        said = f"dgx01: everything that is declared is in force; it is {'on' if on else 'off'}"
        assert out.splitlines() == [said, f"dgx01: {GIVEN_BACK}"][: 2 if on else 1]
        # no system was started but the one that ran before; none was left with a changed start
        assert power.calls == (["stop", "off", "start"] if on else ["off"]) and power.on == on == bmc.is_on()
        assert bmc.media.next_start() is None and bmc.sessions == {}
        assert len([each for each in site.sent("PATCH") if "ios" in each["path"].rsplit("/System", 1)[1]]) == 1
        before = len(site.sent("PATCH"))
        assert site.set()[0] == 0 == site.run()[0] and len(site.sent("PATCH")) == before  # nothing is left to do


@pytest.mark.parametrize(
    ("quirks", "on"),
    off_and_on(
        [
            "bios-needs-etag",
            "bios-weak-etag",
            "bios-refuses-time",
            "bios-needs-job",
            "bios-unlinked",
            "bios-unlinked bios-needs-etag",
            "bios-busy",
            "bios-lags",
            "bios-waits-a-start",
            "bios-waits-a-start bios-needs-job bios-lags",
            "bios-unsaid-before-a-start",
            "bios-without-registry",
            "setup-once",
            "needs-mode",
            "no-mode",
            "needs-etag once-lost power-lags",
            "on-twice-refused few-sessions no-clean-off",
            "once-kept setup-once",
        ]
    ),
)
def test_every_quirk(site, quirks, on):
    site.power.on = on
    site.quirks(*quirks.split())
    force = ["--force"] if "no-clean-off" in quirks else []
    code, out, err = site.set("--timeout", "3m", *force)  # a start that takes nothing is waited out
    assert (code, site.in_force()) == (0, WANTED), (out, err)
    assert site.power.on == on == site.bmc.is_on() and site.power.calls.count("start") == int(on)
    assert site.bmc.media.boot["BootSourceOverrideEnabled"] == "Disabled"


def test_what_the_bios_drops_is_said_and_not_tried_again(site):
    site.quirks("bios-drops")
    code, out, _ = site.set()
    assert code == 4 and "accepted the settings and dropped them" in out
    assert "  differs         BIOS NumaNodes is 1, 4 is declared" in out.splitlines()
    assert site.bmc.bios.starts == 1 and not site.bmc.is_on() and site.bmc.media.next_start() is None


def test_settings_that_no_start_takes(site, monkeypatch):
    monkeypatch.setattr(site.bmc.bios, "started", lambda: None)
    code, out, _ = site.set("--timeout", "1m")
    assert code == 4 and "took the settings at none of 2 starts" in out
    assert "  waits           BIOS NumaNodes is 1, 4 is declared and waits for the next start" in out
    assert not site.bmc.is_on()


def test_without_a_setup_a_machine_that_is_off_is_not_started(site):
    site.quirks("no-setup")
    code, out, _ = site.set()
    assert code == 4 and "waits for its next start" in out and "and waits for the next start" in out
    assert site.power.calls == [] and site.bmc.bios.pending == WANTED
    site.bmc.power.start()
    site.bmc.bios.started()
    assert site.run()[0] == 0


def test_without_a_setup_the_system_of_a_node_in_service_is_started_drained(site, quick):
    site.power.on = True
    site.quirks("no-setup")
    assert site.set()[0] == 0 and site.in_force() == WANTED
    assert site.power.calls == ["stop", "start"] and quick.drains


def test_a_node_with_jobs_is_drained_and_waited_for(site, quick):
    site.power.on, quick.busy_looks = True, 3
    looks = []
    stop = site.power.stop
    site.power.stop = lambda: looks.append(quick.busy_looks) or stop()
    code, out, err = site.set()
    assert code == 0 and looks == [0] and quick.drains[0][0] == ["dgx01"] and "waits for 42" in err
    assert "it is on" in out and GIVEN_BACK in out


GIVEN_BACK = "it is drained: `ironburst converge --always --limit dgx01` checks it and gives it back"


def test_a_drained_node_is_said_to_be_drained_however_it_ends(site):
    site.power.on = True
    site.quirks("bios-drops")
    code, out, _ = site.set()
    assert code == 4 and GIVEN_BACK in out


def test_a_drained_node_is_said_to_be_drained_when_its_bmc_fails(site):
    site.power.on = True
    site.quirks(answer="missing", path="/Bios/Settings", after=4)
    code, _, err = site.set()
    assert code == 3 and GIVEN_BACK in err


def test_a_node_that_was_not_drained_is_not_said_to_be(site, quick):
    code, out, err = site.set()
    assert code == 0 and "drained" not in out + err and not quick.drains
    site.bmc.bios.attributes = dict(FACTORY)
    site.power.on = True

    def occupancy():
        raise SchedulerMissing("no slurm here")

    quick.occupancy = occupancy
    code, out, err = site.set("--no-scheduler-yet")
    assert code == 0 and "no scheduler knows it yet" in err and "it is drained" not in out + err


def test_programs_are_told_that_it_is_drained(site):
    site.power.on = True
    said = json.loads(site.set("--json")[1])
    assert said["drained"] is True and said["outcome"] == "in force"
    assert json.loads(site.set("--json")[1])["drained"] is False


def test_a_node_whose_jobs_do_not_end_is_left_as_it_is(site, quick):
    site.power.on, quick.busy_looks = True, 10**9
    code, _, err = site.set("--drain-timeout", "1s")
    assert code == 5 and "did not end in time" in err
    assert site.power.on and site.sent("PATCH") == [] and site.power.calls == []


def test_no_drain_makes_a_head_safe(site):
    site.power.on = True
    site.declare(WANTED, role="login", platform=None, infiniband_links=0)
    code, _, err = site.set()
    assert code == 2 and "login node" in err and site.power.on and site.sent("PATCH") == []


def test_an_earlier_runs_start_is_not_cut_off(site, quick):
    """It was killed while the machine wrote its settings."""
    site.bmc.bios.pending, site.bmc.media.boot = dict(WANTED), site.bmc.media.boot | SETUP
    site.bmc._in_setup = True
    seen = []
    read = site.bmc.bios.add

    def add(documents, path):
        seen.append(site.bmc.is_on())
        if len(seen) == 60:
            site.bmc.bios.started()
        read(documents, path)

    site.bmc.bios.add = add
    code, _, err = site.set()
    assert code == 0 and site.in_force() == WANTED and site.bmc.bios.starts == 1 and all(seen[:60]), err
    assert not site.bmc.is_on() and site.bmc.media.next_start() is None


def test_a_setup_that_was_left_behind_is_ended(site):
    site.bmc.bios.attributes |= WANTED
    site.bmc.media.boot |= SETUP
    assert "its next start is into its setup" in site.run()[1]
    assert site.set()[0] == 0 and site.bmc.media.next_start() is None and site.power.calls == []


def test_a_value_that_only_the_bmc_knows_to_be_wrong(site):
    """Nothing of what the BMC wrote is repeated but the names that are ours."""
    site.quirks("bios-without-registry")
    site.declare(WANTED | {"NumaNodes": 9})
    code, _, err = site.set()
    assert code == 3 and "refuses NumaNodes (HTTP 400)" in err and "from 1 to 4" not in err
    assert site.bmc.bios.pending == {} and not site.bmc.is_on()


def test_a_job_of_somebody_else_is_in_the_way(site):
    site.quirks("bios-needs-job")
    site.bmc.bios.pending, site.bmc.bios.job = {"BootMode": "Uefi"}, True
    code, _, err = site.set()
    assert code == 3 and "a job for its BIOS is waiting" in err


def test_a_refused_password_is_not_tried_again_and_again(site):
    site.quirks(wrong_password=True)
    code, _, err = site.set()
    logins = [json.loads(each) for each in (site.folder / "requests.jsonl").read_text().splitlines()]
    assert code == 3 and "refuses the login" in err
    assert len([each for each in logins if each["method"] == "POST" and each["path"].endswith("Sessions")]) == 1


def test_it_is_set_before_anything_is_installed(tmp_path, capsys, quick, monkeypatch):
    """`node wait` installs nothing on a machine that is not as declared; the setup starts nothing of its disk."""
    url = "http://10.0.0.5/media/dgx01-CHG-1.iso"
    target = Target("dgx01", "CHG-1", "LAB-DGX01", "LABDISK01")
    machine = InstallableMachine(tmp_path / "machine", {url: medium(tmp_path / "medium", target)})
    monkeypatch.setattr(metal_cycle, "ask_host", lambda *_, **__: mark_in(machine.says() or "", "dgx01"))
    with serving(tmp_path, replace(MACHINE, gpus=8), machine) as (bmc, _):
        site = Site(tmp_path, bmc, machine, capsys)
        given = {"mark": "CHG-1", "medium": "http://10.0.0.5/media/{node}-{mark}.iso", "allow_install": ["dgx01"]}
        given |= {"disks": ["LABDISK01"], "authorized_keys": [KEY], "mirror": "http://10.78.0.1/debian"}
        site.declare(WANTED, install=given)
        code, out, _ = site.run("--once", verb="wait")
        assert code == 4 and "inspected" in out and "BIOS NumaNodes is 1, 4 is declared" in out
        assert site.set()[0] == 0 and machine.outcomes == [] and not machine.on
        bmc.media.medium = url  # an installation was begun: it may be writing
        bmc.bios.attributes["NumaNodes"], machine.on = 1, True
        code, out, _ = site.set()
        assert code == 4 and "its install medium is in" in out and machine.on and bmc.bios.pending == {}
        bmc.bios.attributes["NumaNodes"], machine.on = 4, False
        code, out, err = site.run(verb="wait")
        assert code == 0 and machine.outcomes == ["installed"], (out, err)


def test_show_and_allow_know_it_as_a_mismatch(site):
    code, out, _ = site.run(verb="show")
    assert code == 4 and "  - dgx01: BIOS NumaNodes is 1, 4 is declared (bios)" in out
    site.bmc.bios.pending = dict(WANTED)
    assert "BIOS NumaNodes is 1, 4 is declared and waits for the next start" in site.run(verb="show")[1]
    site.bmc.bios.attributes = FACTORY | WANTED
    assert "(bios)" not in site.run(verb="show")[1]
    reason = {"reason": "its registry lags", "by": "ops", "until": (date.today() + timedelta(days=7)).isoformat()}
    site.bmc.bios.attributes = dict(FACTORY)
    site.declare(WANTED, allow=[{"rule": "hardware", "of": "dgx01/bios"} | reason])
    out = site.run(verb="show")[1]
    assert "BIOS NumaNodes is 1" in out.partition("not as declared, allowed:")[2]
