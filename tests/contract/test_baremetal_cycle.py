"""From an empty disk to an installed node over Redfish, against the lab's BMC emulator: as BMCs should be, and with
each of their quirks.
"""

import pytest

from ironburst.adapters.redfish import boot as redfish_boot
from ironburst.adapters.redfish import client as redfish
from ironburst.baremetal import install_scripts
from ironburst.baremetal.cycle import WantedInstall, advance
from ironburst.baremetal.install_scripts import Target
from ironburst.baremetal.lifecycle import NodeFacts
from lab.bmc import Fault, Machine, write_fault
from lab.bmc.quirks import QUIRKS
from tests.contract.emulator import PASSWORD, InstallableMachine, medium, serving

TARGET = Target("dgx01", "CHG-1", "LAB-DGX01", "LABDISK01")
URL = "http://10.0.0.5/media/dgx01-CHG-1.iso"
MACHINE = Machine("dgx01", "LAB-DGX01", "8b1e7f0e-0000-4000-8000-00000000000b", ("52:54:00:4e:00:0b",), gpus=0)


class Node:
    """One node, as a plugin or the command line deals with it: every call begins with nothing in memory."""

    def __init__(self, bmc, power, folder, by_http=False):
        self.bmc, self.power, self.folder, self.by_http = bmc, power, folder, by_http
        self.wanted = WantedInstall(TARGET.mark, URL, allowed=True)
        self.record = None

    def fault(self, **fault):
        write_fault(self.folder / "faults.json", "dgx01", Fault(**fault))

    def installed(self):
        said = self.power.says()
        return said and (install_scripts.mark_in(said, "dgx01") or "nobody's")

    def advance(self, timeout_s=5.0, **known):
        access = redfish.BmcAccess("dgx01", self.bmc.url, "admin", PASSWORD, timeout_s=timeout_s)
        if self.record:
            known = {"record": "wanted" if self.record == self.wanted.mark else "other"} | known
        with redfish_boot.console(access, by_http=self.by_http) as console:
            standing = advance(self.wanted, NodeFacts(**known), console, self.installed(), self.pause)
        self.record = standing.installed or self.record
        return standing

    def pause(self):
        for thread in self.bmc.resets:
            thread.join(5)

    def until_settled(self, limit=8, **known):
        for _ in range(limit):
            self.pause()
            standing = self.advance(**known)
            if standing.state != "installing":
                self.pause()
                standing = self.advance(**known)  # what a row says is done only by the next look
                break
        return standing


@pytest.fixture
def node(tmp_path):
    power = InstallableMachine(tmp_path / "machine", {URL: medium(tmp_path / "medium", TARGET)})
    with serving(tmp_path, MACHINE, power) as (bmc, _):
        yield Node(bmc, power, tmp_path)
        assert bmc.sessions == {}


def test_one_call_starts_the_installation_and_returns(node):
    assert node.advance().state == "installing"
    node.pause()
    assert node.power.outcomes == ["installed"] and node.power.writes == 1


def test_the_next_says_that_it_is_ready_and_the_medium_is_out(node):
    node.advance()
    standing = node.until_settled()
    assert (standing.state, standing.installed) == ("ready", "CHG-1")
    assert node.bmc.media.medium is None and node.bmc.media.boot["BootSourceOverrideEnabled"] == "Disabled"


def test_a_second_and_a_third_time_install_nothing(node):
    node.until_settled()
    for record in ("CHG-1", None):
        for on in (True, False):
            node.record, node.power.on, node.power.system = record, on, on
            node.until_settled()
            assert node.power.writes == 1
    assert node.power.outcomes == ["installed", "already"]  # without a record, and off: the disk itself was asked


@pytest.mark.parametrize("quirk", QUIRKS)
def test_each_quirk_ends_installed_once(node, quirk):
    node.fault(quirks=[quirk], hardware={"manufacturer": "Supermicro"} if quirk == "cd-is-usb" else {})
    node.advance()
    standing = node.until_settled()
    assert node.power.writes == 1, node.power.outcomes
    if quirk == "once-kept":
        # its medium is started again and again, and says each time that the disk is installed already
        assert standing.state == "installing" and set(node.power.outcomes) == {"installed", "already"}
        assert node.until_settled(time="over").state in ("failed", "verified")
        assert node.bmc.media.medium is None
    else:
        assert standing.state == "ready" and node.bmc.media.medium is None


def test_all_quirks_that_go_together(node):
    alone = {"once-kept", "no-mode", "needs-mode"}
    quirks = [quirk for quirk in QUIRKS if quirk not in alone]
    node.fault(quirks=quirks, hardware={"manufacturer": "Supermicro"})
    node.advance()
    assert node.until_settled().state == "ready" and node.power.writes == 1


def test_by_http(node):
    node.by_http = True
    node.advance()
    assert node.until_settled().state == "ready" and node.power.writes == 1
    assert node.bmc.media.boot["HttpBootUri"] is None


def test_a_node_that_is_on_is_left_alone(node):
    node.power.on = True
    standing = node.advance()
    assert standing.state == "verified" and "node power NODE off" in standing.why
    assert node.bmc.media.medium is None and node.power.on


def test_without_leave_nothing_is_done(node):
    node.wanted = WantedInstall("CHG-1", URL, allowed=False)
    assert node.advance().state == "verified"
    assert node.power.outcomes == [] and node.bmc.media.medium is None and not node.power.on


def test_leave_that_is_taken_back_takes_the_medium_out(node):
    node.bmc.media.medium = URL
    node.wanted = WantedInstall("CHG-1", URL, allowed=False)
    assert node.until_settled().state == "verified" and node.bmc.media.medium is None and not node.power.on


@pytest.mark.parametrize(("serial", "disk"), [("LAB-DGX07", "LABDISK01"), ("LAB-DGX01", "LABDISK07")])
def test_another_machine_behind_this_bmc_keeps_its_disk(tmp_path, serial, disk):
    power = InstallableMachine(tmp_path / "m", {URL: medium(tmp_path / "medium", TARGET)}, serial, disk)
    with serving(tmp_path, MACHINE, power) as (bmc, _):
        node = Node(bmc, power, tmp_path)
        assert node.until_settled().state == "installing"
        assert power.outcomes == ["refused"] and power.writes == 0
        assert node.until_settled(time="over").state in ("failed", "verified") and bmc.media.medium is None


def test_another_nodes_disk_stays_as_it_is(node):
    note = install_scripts.note(Target("dgx02", "CHG-1", "LAB-DGX02", "LABDISK01"))
    place = node.power.folder / "dev/nvme0n1p1" / install_scripts.NOTE
    place.parent.mkdir(parents=True)
    place.write_text(note)
    assert node.until_settled().state == "installing"
    assert node.power.outcomes == ["refused"] and place.read_text() == note


def test_another_mark_installs_anew_once_the_node_is_off(node):
    node.until_settled()
    again = Target("dgx01", "CHG-2", "LAB-DGX01", "LABDISK01")
    url = "http://10.0.0.5/media/dgx01-CHG-2.iso"
    node.power.media[url] = medium(node.folder / "medium2", again)
    node.wanted = WantedInstall("CHG-2", url, allowed=True)
    assert node.advance().state == "verified" and node.power.writes == 1  # it is on, perhaps with jobs
    node.power.off()
    standing = node.until_settled()
    assert (standing.state, standing.installed, node.power.writes) == ("ready", "CHG-2", 2)


def test_a_medium_of_somebody_else_is_taken_out_of_a_machine_that_is_off(node):
    node.bmc.media.medium = "http://elsewhere/rescue.iso"
    assert node.until_settled().state == "ready" and node.power.writes == 1


def test_the_old_system_in_place_of_the_medium_is_named(node):
    node.until_settled()
    node.power.off()
    node.wanted = WantedInstall("CHG-2", "http://10.0.0.5/media/dgx01-CHG-2.iso", allowed=True)
    node.advance()
    node.pause()
    node.power.start()  # its firmware passed the medium over
    assert "old system" in node.advance().why or node.bmc.media.medium is None


def test_retiring_leaves_nothing_that_would_start(node):
    node.bmc.media.medium = URL
    node.bmc.media.boot |= {"BootSourceOverrideTarget": "Cd", "BootSourceOverrideEnabled": "Once"}
    assert node.advance(asked="retiring").state == "released"
    assert node.bmc.media.medium is None and node.bmc.media.next_start() is None


def test_the_lamp(node):
    access = redfish.BmcAccess("dgx01", node.bmc.url, "admin", PASSWORD)
    with redfish_boot.console(access) as console:
        for lit in (True, False):
            console.lamp(lit)
            assert node.bmc.media.lamp["LocationIndicatorActive"] is lit
