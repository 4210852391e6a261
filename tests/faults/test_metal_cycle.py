"""Every Redfish call of a node's life cycle fails, hangs, lies or is half answered once, or the plugin dies before or
after it; then `up` is run again. The plugin's own code, sushy, and the emulated BMC over HTTP; the machine behind it
has its disk in a folder, and the medium's guard is run by a real shell.
"""

import asyncio
import contextlib
import threading
import time

import pytest
from pulumi.provider.experimental import provider as sdk

from ironburst.adapters.redfish import cycle as metal_cycle
from ironburst.adapters.redfish import power
from ironburst.baremetal import install_scripts
from ironburst.baremetal.install_scripts import Target
from lab.bmc import Fault, Machine, write_fault
from providers.baremetal import values
from providers.baremetal.provider import BaremetalProvider, NodeError
from tests.contract.emulator import PASSWORD, InstallableMachine, medium, serving
from tests.faults.redfish_calls import DEATHS, FAULTS, Died, changes, made, meeting, places, planned

TARGET = Target("dgx01", "CHG-1", "LAB-DGX01", "LABDISK01")
URL = "http://10.0.0.5/media/dgx01-CHG-1.iso"
# few parts of each kind: every kind of call is there, and a table of all calls costs the square of their number
MACHINE = Machine(
    "dgx01",
    "LAB-DGX01",
    "8b1e7f0e-0000-4000-8000-00000000000b",
    ("52:54:00:4e:00:0b",),
    gpus=0,
    cpus=1,
    dimms=2,
    psus=2,
    drives=1,
    hcas=1,
)
NAMED = ("ready", "failed", "verified")


def run(call):
    """To its end, in a loop of its own: asyncio.run leaves the thread without the loop that Pulumi's SDK asks for."""
    loop = asyncio.new_event_loop()
    try:
        return loop.run_until_complete(call)
    finally:
        loop.run_until_complete(loop.shutdown_default_executor())
        loop.close()


class Story:
    """One node, and Pulumi's state of it: None until a create has succeeded."""

    def __init__(self, bmc, machine, folder):
        self.bmc, self.machine, self.folder, self.state, self.said = bmc, machine, folder, None, []
        self.provider = BaremetalProvider(self._warn)
        self.inputs = {
            "name": "dgx01",
            "bmcAddress": bmc.url,
            "bmcUsername": "admin",
            "passwordRef": "env:LAB_BMC_PASSWORD",
            "serial": "LAB-DGX01",
            "timeoutSeconds": 5,
            "install": {
                "mark": "CHG-1",
                "medium": URL,
                "allow": True,
                "hostAddress": "10.0.0.11",
                "knownHosts": "known_hosts",
            },
        }

    async def _warn(self, _, message):
        self.said.append(message)

    def up(self):
        """`pulumi up`: what fails leaves no state, what succeeded is not asked again while nothing differs."""
        if self.state is None:
            request = sdk.CreateRequest("urn", values.values(self.inputs), 0, False)
            self.state = values.plain(run(self.provider.create(request)).properties)

    def wait(self):
        """One look and its actions of `ironburst node wait`."""
        state, self.state = self.state, None  # it has a record of its own, which may be lost
        try:
            self.up()
        finally:
            self.state = self.state or state
        return self.state["state"]

    def requests(self):
        return made(self.folder)

    def settle(self):
        for thread in self.bmc.resets:
            thread.join(5)

    def to_its_end(self, limit=6):
        """`up`, again and again, then `wait` until nothing goes on. The last state, or the sentence of an error."""
        ends = []
        for _ in range(limit):
            self.settle()
            try:
                if self.state is None:
                    self.up()
                else:
                    self.wait()
                ends.append(self.state["state"])
            except (NodeError, metal_cycle.redfish_boot.BmcError) as error:
                ends.append(str(error))
            if ends[-2:] == ["ready", "ready"]:
                break
        return ends[-1]


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """No waiting for wall time, and no ssh: the emulated machine answers for its host."""
    sleep = time.sleep
    monkeypatch.setattr(time, "sleep", lambda seconds: sleep(min(seconds, 0.003)))
    monkeypatch.setattr(power, "SWITCH_S", 1.0)  # by the clock: a switch that only says so is waited for
    monkeypatch.setenv("LAB_BMC_PASSWORD", PASSWORD)


@contextlib.contextmanager
def story(folder, monkeypatch, serial="LAB-DGX01", disk="LABDISK01"):
    machine = InstallableMachine(folder / "machine", {URL: medium(folder / "medium", TARGET)}, serial, disk)

    def ask_host(install, node, timeout_s):
        said = machine.says()
        return said and (install_scripts.mark_in(said, node) or metal_cycle.ANOTHER)

    monkeypatch.setattr(metal_cycle, "ask_host", ask_host)
    with serving(folder, MACHINE, machine) as (bmc, _):
        yield Story(bmc, machine, folder)


def clean_run(folder, monkeypatch):
    """The calls of a life cycle without faults, in order."""
    folder.mkdir()
    with story(folder, monkeypatch) as one:
        assert one.to_its_end() == "ready" and one.machine.outcomes == ["installed"]
        return one.requests()


def played(folder, monkeypatch, what, number, **machine):
    """The fault `what` at call `number` (from 0), then up again until the end. The end, and the story."""
    folder.mkdir()
    with monkeypatch.context() as patched, story(folder, patched, **machine) as one:
        one.inputs["timeoutSeconds"] = planned(patched, folder, what, number)
        with contextlib.suppress(Died, NodeError, metal_cycle.redfish_boot.BmcError):
            if what in DEATHS:
                one.to_its_end()
            else:
                one.up()
        one.inputs["timeoutSeconds"] = 5
        end = one.to_its_end()
        one.settle()
        return end, one


def judged(end, one, where):
    assert one.machine.outcomes.count("installed") == 1, where
    assert end == "ready", (where, end, one.machine.outcomes)
    assert one.bmc.media.next_start() is None, where


@pytest.mark.parametrize("what", ["lies", "is done and not answered", *DEATHS])
def test_each_call_of_an_installation(tmp_path, monkeypatch, what):
    calls = clean_run(tmp_path / "clean", monkeypatch)
    assert len(changes(calls)) == 5  # insert, arm, power on; the usual start again, eject
    for number in changes(calls)[:3]:
        end, one = played(tmp_path / f"{number}", monkeypatch, what, number)
        judged(end, one, (what, number, calls[number]))


@pytest.mark.slow
@pytest.mark.parametrize("what", FAULTS)
def test_every_call(tmp_path, monkeypatch, what):
    with places(monkeypatch) as run:
        calls = clean_run(tmp_path / "clean", monkeypatch)
    assert len(run) == len(calls)
    for number in meeting(what, run):
        end, one = played(tmp_path / f"{number}", monkeypatch, what, number)
        judged(end, one, (what, number, calls[number]))


@pytest.mark.slow
@pytest.mark.parametrize(("serial", "disk"), [("LAB-DGX07", "LABDISK01"), ("LAB-DGX01", "LABDISK07")])
@pytest.mark.parametrize("what", ["fails", "lies", "is done and not answered", *DEATHS])
def test_a_wrong_disk_is_never_written(tmp_path, monkeypatch, what, serial, disk):
    """The BMC says that it is the declared machine, and it isn't: crossed cables, or a swapped disk."""
    calls = clean_run(tmp_path / "clean", monkeypatch)
    for number in changes(calls):
        end, one = played(tmp_path / f"{number}", monkeypatch, what, number, serial=serial, disk=disk)
        assert one.machine.writes == 0 and "installed" not in one.machine.outcomes, (what, number)
        assert end in ("installing", "failed", "verified"), end  # refused, until its time is over


@pytest.mark.parametrize("moment", ["before the disk is written", "while it is written", "right after"])
def test_the_host_loses_its_power(tmp_path, monkeypatch, moment):
    with story(tmp_path, monkeypatch) as one:
        start_from, write = one.machine.start_from, one.machine._write

        def cut():
            one.machine.start_from, one.machine._write = start_from, write
            one.machine.off()
            raise threading.ThreadError  # the emulated machine's thread ends here

        def cut_start(url):
            if moment == "right after":
                start_from(url)
            cut()

        def cut_write():
            write()
            cut()

        if moment == "while it is written":
            one.machine._write = cut_write
        else:
            one.machine.start_from = cut_start
        monkeypatch.setattr(threading, "excepthook", lambda _: None)
        assert one.to_its_end(limit=10) == "ready"
        assert one.machine.outcomes.count("installed") == 1


def test_up_again_and_again_installs_once(tmp_path, monkeypatch):
    with story(tmp_path, monkeypatch) as one:
        one.to_its_end()
        for _ in range(3):  # the state is lost, the machine is off: its own disk says no
            one.state = None
            one.machine.off()
            one.to_its_end()
        assert one.machine.outcomes == ["installed", "already", "already", "already"]


def test_a_declaration_of_another_machine_takes_the_medium_out(tmp_path, monkeypatch):
    with story(tmp_path, monkeypatch) as one:
        one.bmc.media.medium = URL  # of an up that died right there
        one.inputs["serial"] = "LAB-DGX09"
        with pytest.raises(NodeError, match="LAB-DGX09"):
            one.up()
        assert one.bmc.media.medium is None and one.machine.outcomes == []


def test_delete_leaves_nothing_that_would_start(tmp_path, monkeypatch):
    with story(tmp_path, monkeypatch) as one:
        one.machine.media = {}  # the installer of this one never ends
        one.up()
        one.machine.off()
        request = sdk.DeleteRequest("urn", "dgx01", values.values(one.state), 0)
        run(one.provider.delete(request))
        assert one.bmc.media.medium is None and one.bmc.media.next_start() is None


def read(one):
    inputs = {key: one.state[key] for key in one.inputs}
    request = sdk.ReadRequest("urn", "dgx01", values.values(one.state), values.values(inputs))
    answer = run(one.provider.read(request))
    return values.plain(answer.properties), values.plain(answer.inputs)


def update(one, **install):
    one.inputs["install"] = one.inputs["install"] | install
    request = sdk.UpdateRequest("urn", "dgx01", values.values(one.state), values.values(one.inputs), 0, [], False)
    one.state = values.plain(run(one.provider.update(request)).properties)
    return one.state


def test_refresh_looks_and_does_nothing(tmp_path, monkeypatch):
    with story(tmp_path, monkeypatch) as one:
        one.up()
        assert one.state["state"] == "installing" and one.state["installingSince"] > 0
        one.settle()
        before = len(changes(one.requests()))
        state, inputs = read(one)
        assert (state["state"], state["installed"]) == ("ready", "CHG-1") and "installingSince" not in state
        assert inputs == one.inputs and len(changes(one.requests())) == before and one.bmc.media.medium == URL


def test_refresh_shows_no_drift_of_a_machine_that_starts(tmp_path, monkeypatch):
    with story(tmp_path, monkeypatch) as one:
        one.machine.media = {}
        one.inputs["macs"] = ["52:54:00:4e:00:0b"]
        one.up()
        write_fault(tmp_path / "faults.json", "dgx01", Fault(hardware={"macs": []}))
        state, inputs = read(one)
        assert state["state"] == "installing" and inputs == one.inputs
        one.machine.off()
        state, inputs = read(one)
        assert state["state"] == "failed" and inputs["macs"] == []


def test_another_mark_waits_for_a_person_and_then_begins(tmp_path, monkeypatch):
    with story(tmp_path, monkeypatch) as one:
        one.to_its_end()
        url = URL.replace("CHG-1", "CHG-2")
        one.machine.media[url] = medium(tmp_path / "medium2", Target("dgx01", "CHG-2", "LAB-DGX01", "LABDISK01"))
        assert update(one, mark="CHG-2", medium=url)["state"] == "verified"
        assert "ironburst node power dgx01 off" in one.said[-1] and one.machine.outcomes == ["installed"]
        assert read(one)[1]["install"]["mark"] == "CHG-1"  # so the next up has something to do
        one.machine.off()
        assert update(one)["state"] == "installing"
        one.settle()
        assert read(one)[0]["installed"] == "CHG-2" and one.machine.outcomes == ["installed"] * 2


def test_a_node_that_was_installed_begins_nothing_while_it_is_silent(tmp_path, monkeypatch):
    with story(tmp_path, monkeypatch) as one:
        one.to_its_end()
        one.machine.off()
        assert update(one, timeoutSeconds=60)["state"] == "maintenance"
        assert one.machine.outcomes == ["installed"] and not one.machine.on
