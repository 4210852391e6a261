"""sushy's adapter against the lab's BMC emulator, on the loopback: the inventory, the power button, and every way a BMC
fails.
"""

import json
import socket
import threading
from dataclasses import replace

import pytest

from ironburst.adapters.redfish import client as redfish
from ironburst.adapters.redfish import power as redfish_power
from ironburst.baremetal.hardware import GpuGroup
from lab.bmc import Bmc, Fault, write_fault
from tests.contract import emulator
from tests.contract.emulator import PASSWORD, MemoryPower, serving

MACHINE = replace(emulator.MACHINE, macs=("52:54:00:4E:00:0B",))


class Site:
    def __init__(self, bmc, power, folder):
        self.bmc, self.power, self.folder = bmc, power, folder

    def access(self, **changes):
        access = redfish.BmcAccess("dgx01", self.bmc.url, "admin", PASSWORD, timeout_s=20)
        return replace(access, **changes)

    def fault(self, **fault):
        write_fault(self.folder / "faults.json", "dgx01", Fault(**fault))

    def requests(self):
        return [json.loads(line) for line in (self.folder / "requests.jsonl").read_text().splitlines()]


@pytest.fixture
def site(tmp_path):
    with serving(tmp_path, MACHINE) as (bmc, power):
        yield Site(bmc, power, tmp_path)


def failure(site, kind, **changes):
    with pytest.raises(kind) as caught:
        redfish.read_hardware(site.access(**changes))
    text = str(caught.value)
    assert text.startswith(f"dgx01: BMC {changes.get('address', site.bmc.url)} ") and "\n" not in text
    assert PASSWORD not in text
    return text


def test_the_inventory_is_read_and_the_session_closed(site):
    hardware = redfish.read_hardware(site.access())
    assert hardware.serial == "LAB-DGX01" and hardware.uuid == MACHINE.uuid
    assert hardware.macs == ("52:54:00:4e:00:0b",) and hardware.sensors == ()
    assert hardware.gpus == (GpuGroup("NVIDIA H100 80GB HBM3", 8),) and hardware.gpu_count == 8
    assert (hardware.cpu_count, hardware.memory_gib, hardware.power_state) == (2, 2048, "On")
    assert (hardware.bios_version, hardware.bmc_version) == ("1.0", "lab-1.0")
    assert site.bmc.sessions == {}
    assert {each["method"] for each in site.requests()} == {"GET", "POST", "DELETE"}  # POST and DELETE are the session
    assert site.power.calls == []


def test_a_machine_without_gpus(site):
    site.fault(hardware={"gpus": 0})
    assert redfish.read_hardware(site.access()).gpus == ()


@pytest.mark.parametrize("answer", ["unavailable", "echo"])
def test_a_bmc_without_sessions_is_read_with_basic_authentication(site, answer):
    site.fault(answer=answer, path="SessionService")
    assert redfish.read_hardware(site.access()).serial == "LAB-DGX01"


def test_a_wrong_password(site):
    text = failure(site, redfish.BmcLoginRefused, password="wrong")
    assert "refuses the login of user 'admin': check that name and the secret that its password refers to" in text
    site.fault(wrong_password=True)
    failure(site, redfish.BmcLoginRefused)
    assert site.bmc.sessions == {}


def test_nobody_listens(site):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{free.getsockname()[1]}"
    assert "cannot be reached" in failure(site, redfish.BmcUnreachable, address=address, timeout_s=1)


def test_a_silent_bmc_costs_no_more_than_its_time(site):
    site.fault(answer="silent", path="Systems")
    assert "does not answer within 1 s" in failure(site, redfish.BmcUnreachable, timeout_s=1)


def test_a_bmc_that_answers_too_slowly_is_given_up(site):
    site.power.is_on = lambda: not threading.Event().wait(0.25)  # every document takes that long
    assert "did not finish its answers within 1 s (timeoutSeconds)" in failure(
        site, redfish.BmcUnreachable, timeout_s=1
    )
    assert site.bmc.sessions == {}


def test_a_dropped_connection(site):
    site.fault(answer="reset")
    assert "closes the connection" in failure(site, redfish.BmcUnreachable, timeout_s=1)


@pytest.mark.parametrize("path", ["", "Processors/GPU_SXM_3", "EthernetInterfaces"])
def test_half_an_answer(site, path):
    site.fault(answer="half", path=path)
    assert "broke off in the middle of an answer" in failure(site, redfish.BmcIncompleteAnswer, timeout_s=8)


def test_an_answer_that_is_not_json(site):
    site.fault(answer="garbled", path="Systems/1")
    assert "not a complete Redfish document" in failure(site, redfish.BmcIncompleteAnswer)


def test_a_busy_bmc_is_asked_again_and_then_reported(site):
    site.fault(answer="unavailable", path="Systems", times=1)
    assert redfish.read_hardware(site.access()).gpu_count == 8
    site.fault(answer="unavailable", path="Systems")
    assert "HTTP 503" in failure(site, redfish.BmcUnavailable, timeout_s=1)


def test_a_bmc_that_repeats_the_login_does_not_put_it_into_the_error(site):
    site.fault(answer="echo")
    failure(site, redfish.BmcError)


def test_the_power_button(site):
    redfish_power.power_off(site.access())
    assert site.power.calls == ["stop"] and not site.power.on
    redfish_power.power_off(site.access())
    assert site.power.calls == ["stop"]


def test_the_machine_among_two_systems_is_told_by_its_first_cpu_or_known(site):
    redfish_power.power_off(site.access())
    asked = [each["path"].rsplit("/", 1)[1] for each in site.requests() if "/Processors/" in each["path"]]
    assert asked == ["CPU0", *(f"GPU_SXM_{n}" for n in range(1, 9))]
    before = len(site.requests())
    redfish_power.power_off(site.access(), host="/redfish/v1/Systems/1")
    assert len(site.requests()) - before == 4  # the root, the session and its end, the machine


def test_a_node_that_ignores_the_shutdown_is_forced(site):
    site.power.stubborn = True
    redfish_power.power_off(site.access(), clean_s=0.5, force=True)
    assert site.power.calls == ["stop", "off"]


def test_two_readers_at_once(site):
    inventories = []
    readers = [
        threading.Thread(target=lambda: inventories.append(redfish.read_hardware(site.access()))) for _ in range(3)
    ]
    for reader in readers:
        reader.start()
    for reader in readers:
        reader.join(30)
    assert len(inventories) == 3 and site.bmc.sessions == {}


def test_an_address_in_use_is_an_error(site):
    with pytest.raises(OSError):
        Bmc(MACHINE, MemoryPower(), PASSWORD, port=int(site.bmc.url.rsplit(":", 1)[1]))


# ---- a BMC that is not to be trusted


class Elsewhere:
    """A server that must hear nothing."""

    def __init__(self):
        self.heard = []
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.socket.getsockname()[1]}"
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self):
        while True:
            try:
                connection, _ = self.socket.accept()
            except OSError:
                return
            with connection:
                self.heard.append(connection.recv(65536))


@pytest.fixture
def elsewhere():
    server = Elsewhere()
    yield server
    server.socket.close()


@pytest.mark.parametrize("path", ["/redfish/v1", "/redfish/v1/Systems", "/redfish/v1/Chassis/1"])
def test_no_link_is_followed_to_another_host(site, elsewhere, path):
    name = {"/redfish/v1": "Chassis", "/redfish/v1/Systems": "Members", "/redfish/v1/Chassis/1": "PowerSubsystem"}[path]
    link = {"@odata.id": f"{elsewhere.url}/redfish/v1/Chassis/1"}
    site.fault(documents={path: {name: [link] if name == "Members" else link}})
    if name == "Members":
        assert "leads off this BMC" in failure(site, redfish.BmcIncompleteAnswer)
    else:
        hardware = redfish.read_hardware(site.access())
        assert hardware.gpu_count == 8 and "leads off this BMC" in " ".join(hardware.unread)
    assert elsewhere.heard == []


def test_the_login_is_sent_to_no_other_host(site, elsewhere):
    sessions = {"Links": {"Sessions": {"@odata.id": f"{elsewhere.url}/redfish/v1/SessionService/Sessions"}}}
    site.fault(documents={"/redfish/v1": sessions})
    assert "sends us to another host" in failure(site, redfish.BmcIncompleteAnswer)
    assert elsewhere.heard == []


@pytest.mark.parametrize("path", ["", "Systems"])
def test_no_redirection_is_followed_to_another_host(site, path):
    site.fault(answer="redirect", path=path)
    assert "sends us to another host" in failure(site, redfish.BmcIncompleteAnswer)
    assert site.bmc.sessions == {} or path == ""


def test_an_answer_without_an_end_is_not_taken(site):
    site.fault(answer="huge", path="Systems/1/Memory")
    assert "more than 16 MiB" in failure(site, redfish.BmcIncompleteAnswer)
    site.fault(answer="drip", path="Systems/1/Memory")
    assert "did not finish its answers within 1 s" in failure(site, redfish.BmcUnreachable, timeout_s=1)
    site.fault()
    redfish.read_hardware(site.access())


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ("forbidden", "may not read it (HTTP 403)"),
        ("missing", "it isn't there"),
        ("unavailable", "answers with HTTP 503"),
    ],
)
def test_parts_that_a_bmc_keeps_to_itself_are_not_said(site, answer, words):
    site.fault(answer=answer, path="/PowerSubsystem")
    hardware = redfish.read_hardware(site.access())
    assert hardware.not_said == ("power_supplies",) and hardware.gpu_count == 8
    (note,) = hardware.unread
    assert note.startswith("PowerSubsystem of Chassis/1: ") and words in note
    assert site.bmc.sessions == {}


def test_a_wrong_password_is_tried_once(site):
    failure(site, redfish.BmcLoginRefused, password="wrong")
    assert [each["path"] for each in site.requests() if each["status"] == 401] == [
        "/redfish/v1/SessionService/Sessions"
    ]
    site.fault(answer="missing", path="SessionService")  # then by basic authentication, and once
    failure(site, redfish.BmcLoginRefused, password="wrong")
    assert len([each for each in site.requests() if each["status"] == 401]) == 2


def test_sensors_are_read_where_they_are_asked_for(site):
    read = redfish.read_hardware(site.access(), sensors=True)
    assert ("Inlet", 24.5, "Cel") in {(each.name, each.reading, each.unit) for each in read.sensors}
