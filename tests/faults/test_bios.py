"""Every Redfish call by which a BIOS is set fails, hangs, lies or is half answered once, or the process dies before or
after it; then it is run again. The product's own code, sushy, and the emulated BMC over HTTP.
"""

import contextlib
import time
from dataclasses import replace

import pytest

from ironburst.adapters.redfish import power
from ironburst.adapters.redfish.bios import PASSING, RedfishBios
from ironburst.adapters.redfish.client import BmcAccess
from ironburst.baremetal import bios_cycle
from ironburst.baremetal.bios_cycle import Setter
from ironburst.baremetal.cycle import ConsoleError
from tests.contract.emulator import MACHINE, PASSWORD, MemoryPower, serving
from tests.faults.redfish_calls import DEATHS, FAULTS, Died, changes, made, meeting, places, planned

WANTED = {"ProcVirtualization": "Enabled", "NumaNodes": 4, "QuietBoot": False}


class Story:
    """One node whose BIOS is set. `taken`: how often it was made sure that no job is on it."""

    def __init__(self, bmc, machine, folder):
        self.bmc, self.machine, self.folder, self.taken, self.timeout_s = bmc, machine, folder, 0, 5.0

    def set(self):
        access = BmcAccess("dgx01", self.bmc.url, "admin", PASSWORD, timeout_s=self.timeout_s)
        how = {"pause": lambda _: None, "start_looks": 40, "say": lambda _: None, "passing": PASSING}
        return Setter(WANTED, RedfishBios(access), take=self._take, **how).run()[0]

    def _take(self):
        self.taken += 1

    def to_its_end(self, limit=4):
        """Set, again and again, until it says that all is in force."""
        for _ in range(limit):
            for thread in self.bmc.resets:
                thread.join(5)
            try:
                end = self.set()
            except ConsoleError as error:
                end = str(error)
            if end == "in force":
                break
        return end

    def requests(self):
        return made(self.folder)


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    sleep = time.sleep
    monkeypatch.setattr(time, "sleep", lambda seconds: sleep(min(seconds, 0.003)))
    monkeypatch.setattr(power, "SWITCH_S", 1.0)  # by the clock: a switch that only says so is waited for
    monkeypatch.setattr(bios_cycle, "SETTLED_LOOKS", 6)


@contextlib.contextmanager
def story(folder, on, vendor="lab"):
    folder.mkdir()
    with serving(folder, replace(MACHINE, vendor=vendor, gpus=0), MemoryPower(on)) as (bmc, machine):
        yield Story(bmc, machine, folder)


def clean_run(folder, on, vendor="lab"):
    with story(folder, on, vendor) as one:
        # asked before it is stopped for its setup, and again before it is off: it may have been given back meanwhile
        assert one.set() == "in force" and one.taken == 2 * int(on)
        return one.requests()


def played(folder, monkeypatch, what, number, on, vendor="lab"):
    """The fault `what` at call `number` (from 0), then set again until the end. The end, and the story."""
    with monkeypatch.context() as patched, story(folder, on, vendor) as one:
        one.timeout_s = planned(patched, folder, what, number)
        with contextlib.suppress(Died, ConsoleError):
            one.set()
        one.timeout_s = 5.0
        end = one.to_its_end()
        return end, one


def judged(end, one, on, where):
    assert end == "in force", (where, end)
    assert {name: one.bmc.bios.attributes[name] for name in WANTED} == WANTED, where
    assert one.bmc.media.next_start() is None and not one.bmc._in_setup, where
    # nothing that was off was started; what was on was never switched without asking who uses it
    assert one.machine.calls.count("start") <= int(on), (where, one.machine.calls)
    assert one.taken or not on, where


@pytest.mark.parametrize("turn", [0, 1])
def test_each_change(tmp_path, monkeypatch, turn):
    """Each meets two faults; test_every_call has all of them."""
    faults = ("lies", DEATHS[1], "is done and not answered", DEATHS[0])
    calls = clean_run(tmp_path / "clean", False)
    found = changes(calls)
    assert [calls[n]["path"].rsplit("/", 1)[-1] for n in found] == [
        "Settings",
        "1",  # the next start: the setup
        "ComputerSystem.Reset",
        "ComputerSystem.Reset",  # off, by force: a setup has no system that could end
        "1",  # as usual
    ]
    for count, number in enumerate(found, turn):
        what = faults[count % 4]
        end, one = played(tmp_path / f"{number}", monkeypatch, what, number, False)
        judged(end, one, False, (what, number, calls[number]))


@pytest.mark.parametrize("what", DEATHS)
def test_a_node_in_service_and_a_job_that_has_to_be_made(tmp_path, monkeypatch, what):
    """The job of an iDRAC 8 is a call of its own, and settings without one wait for ever."""
    calls = clean_run(tmp_path / "clean", True, "dell-idrac8")
    jobs = [number for number in changes(calls) if calls[number]["path"].endswith("Jobs")]
    assert len(jobs) == 1
    for number in (jobs[0] - 1, *jobs):
        end, one = played(tmp_path / f"{number}", monkeypatch, what, number, True, "dell-idrac8")
        judged(end, one, True, (what, number, calls[number]))


@pytest.mark.slow
@pytest.mark.parametrize("what", FAULTS)
def test_every_call(tmp_path, monkeypatch, what):
    known = []
    for vendor, on in (("lab", False), ("dell-idrac8", True)):
        with places(monkeypatch) as run:
            calls = clean_run(tmp_path / vendor, on, vendor)
        assert len(run) == len(calls)
        for number in meeting(what, run, known):
            end, one = played(tmp_path / f"{vendor}-{number}", monkeypatch, what, number, on, vendor)
            judged(end, one, on, (what, number, calls[number]))
        known += run
