"""The lab's own BIOS and update service do what real ones do (docs/adr/0070)."""

import http.client
import json
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest

from lab.bmc import Fault, write_fault
from lab.bmc.bios import SHAPES
from lab.bmc.updates import MONITORS, SIMPLE, TASKS, Task
from lab.bmc.updates import SHAPES as UPDATE_SHAPES
from tests.contract.emulator import MACHINE, serving

IMAGE = json.dumps({"component": "BIOS", "version": "2.0"}).encode()
ROOT = "/redfish/v1"


class Client:
    def __init__(self, bmc, folder):
        self.bmc, self.folder = bmc, folder

    def quirks(self, *quirks):
        write_fault(self.folder / "faults.json", "dgx01", Fault(quirks=list(quirks)))

    def ask(self, method, path, sent=None, **headers):
        link = http.client.HTTPConnection(self.bmc.url.removeprefix("http://"), timeout=5)
        headers = {"Authorization": self.bmc._basic, **{name.replace("_", "-"): each for name, each in headers.items()}}
        body = sent if isinstance(sent, bytes | None) else json.dumps(sent).encode()
        link.request(method, path, body, headers)
        answer = link.getresponse()
        text = answer.read()
        return answer.status, json.loads(text) if text else {}, answer.headers

    def reset(self, kind):
        self.bmc.reset(kind)
        for thread in self.bmc.resets:
            thread.join(5)

    def version(self):
        return self.ask("GET", f"{ROOT}/UpdateService/FirmwareInventory/BIOS")[1]["Version"]

    def read_task(self, place=MONITORS):
        return self.ask("GET", f"{place}/1")


@pytest.fixture
def images():
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.end_headers()
            self.wfile.write(IMAGE)

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        yield {"ImageURI": f"http://127.0.0.1:{server.server_port}/bios", "TransferProtocol": "HTTP"}
        server.shutdown()


@pytest.fixture
def client(tmp_path):
    with serving(tmp_path) as (bmc, _):
        yield Client(bmc, tmp_path)


@pytest.mark.parametrize("vendor", SHAPES)
def test_settings_are_in_force_after_a_start_alone_in_every_makers_shape(tmp_path, vendor):
    machine = replace(MACHINE, vendor=vendor)
    with serving(tmp_path, machine) as (bmc, _):
        client, shape = Client(bmc, tmp_path), SHAPES[vendor]
        system = client.ask("GET", f"{ROOT}/Systems")[1]["Members"][0]["@odata.id"]
        bios = client.ask("GET", client.ask("GET", system)[1]["Bios"]["@odata.id"])[1]
        place = bios["@Redfish.Settings"]["SettingsObject"]["@odata.id"]
        sent = {"Attributes": {"BootMode": "Uefi"}}
        if shape.times:
            sent["@Redfish.SettingsApplyTime"] = {"ApplyTime": "OnReset"}
        tag = client.ask("GET", place)[2]["ETag"]
        if shape.etag:
            assert client.ask("PATCH", place, sent)[0] == 428
            assert client.ask("PATCH", place, sent, If_Match='"old"')[0] == 412
        assert client.ask("PATCH", place, sent, If_Match=tag)[0] in (200, 202)
        assert client.ask("GET", place)[1]["Attributes"]["BootMode"] == "Uefi"
        if shape.job == "posted":
            jobs = f"{ROOT}/Managers/iDRAC.Embedded.1/Jobs"
            assert client.ask("POST", jobs, {"TargetSettingsURI": place})[0] == 200
        assert client.ask("GET", bios["@odata.id"])[1]["Attributes"]["BootMode"] == "Bios"
        client.reset("ForceRestart")
        assert client.ask("GET", bios["@odata.id"])[1]["Attributes"]["BootMode"] == "Uefi"


@pytest.mark.parametrize(
    ("attributes", "code"),
    [
        ({"BootMod": "Uefi"}, "PropertyUnknown"),
        ({"BootMode": "UEFI"}, "PropertyValueNotInList"),
        ({"CpuStepping": "9"}, "PropertyNotWritable"),
    ],
)
def test_what_a_bios_does_not_take(client, attributes, code):
    status, said, _ = client.ask("PATCH", f"{ROOT}/Systems/1/Bios/Settings", {"Attributes": attributes})
    assert status == 400 and said["error"]["code"].endswith(code)


def test_a_start_into_the_setup_starts_no_system(client):
    client.reset("ForceOff")
    boot = {"BootSourceOverrideTarget": "BiosSetup", "BootSourceOverrideEnabled": "Continuous"}
    assert client.ask("PATCH", f"{ROOT}/Systems/1", {"Boot": boot})[0] == 204
    client.reset("On")
    assert client.bmc.is_on() and not client.bmc.power.is_on()
    client.reset("ForceOff")
    assert not client.bmc.is_on()


def test_an_update_by_its_monitor(client, images):
    status, _, headers = client.ask("POST", SIMPLE, images)
    assert status == 202 and headers["Location"] == f"{MONITORS}/1" and client.version() == "1.0"
    assert client.ask("POST", SIMPLE, images)[0] == 503  # another one goes on
    assert [client.read_task()[0] for _ in range(4)] == [202, 202, 202, 200]
    assert client.version() == "2.0" and client.bmc.updates.flashed == [("BIOS", "2.0")]


@pytest.mark.parametrize(
    ("quirk", "state", "version"),
    [
        ("task-fails", "Exception", None),
        ("completed-critical", "Completed", None),
        ("completed-and-old", "Completed", None),
        ("version-after-a-start", "Completed", "2.0"),
        ("task-waits-for-a-start", "Suspended", "2.0"),
    ],
)
def test_an_update_that_ends_otherwise(client, images, quirk, state, version):
    client.quirks(quirk)
    client.ask("POST", SIMPLE, images)
    for _ in range(5):
        task = client.read_task(TASKS)[1]
    assert task["TaskState"] == state and client.version() == "1.0"
    client.reset("ForceRestart")
    assert client.version() == (version or "1.0")


def test_the_bmc_restarts_and_forgets(client, images):
    client.quirks("bmc-restarts")
    client.ask("POST", SIMPLE, images)
    for _ in range(3):
        client.read_task()
    silent = 0
    while True:
        try:
            status = client.read_task()[0]
        except ConnectionError:
            silent += 1
        else:
            break
    assert status == 404 and silent > 3 and client.version() == "2.0"


def test_an_image_that_is_pushed(client):
    client.quirks("no-simple-update")
    parts = [("UpdateParameters", b"{}"), ("UpdateFile", IMAGE)]

    def body(parts):
        each = [b'--x\r\nContent-Disposition: form-data; name="%s"\r\n\r\n%s\r\n' % (n.encode(), c) for n, c in parts]
        return b"".join(each) + b"--x--\r\n"

    place, kind = f"{ROOT}/UpdateService/update-multipart", "multipart/form-data; boundary=x"
    assert client.ask("POST", place, body(parts[::-1]), Content_Type=kind)[0] == 400
    assert client.ask("POST", place, body(parts), Content_Type=kind)[0] == 202


# ---- each quirk: what a client that knows only the specification would fall over

SETTINGS = f"{ROOT}/Systems/1/Bios/Settings"
UEFI = {"Attributes": {"BootMode": "Uefi"}}
SETUP = {"BootSourceOverrideTarget": "BiosSetup", "BootSourceOverrideEnabled": "Continuous"}
TIMED = UEFI | {"@Redfish.SettingsApplyTime": {"ApplyTime": "OnReset"}}


def bios(client):
    return client.ask("GET", f"{ROOT}/Systems/1/Bios")[1]


def mode(client, starts=0):
    for _ in range(starts):
        client.reset("ForceRestart")
    return bios(client)["Attributes"].get("BootMode")


def test_settings_with_conditions(client):
    client.quirks("bios-needs-etag")
    assert client.ask("PATCH", SETTINGS, UEFI)[0] == 428
    client.quirks("bios-refuses-time")
    assert client.ask("PATCH", SETTINGS, TIMED)[0] == 400
    assert "SupportedApplyTimes" not in bios(client)["@Redfish.Settings"]
    client.quirks("bios-busy")
    assert [client.ask("PATCH", SETTINGS, UEFI)[0] for _ in range(4)] == [503, 503, 503, 200]


def test_settings_that_need_a_job(client):
    client.quirks("bios-needs-job")
    assert client.ask("PATCH", SETTINGS, UEFI)[0] == 200 and mode(client, 2) == "Bios"
    assert client.ask("PATCH", SETTINGS, TIMED)[0] == 202 and client.ask("PATCH", SETTINGS, TIMED)[0] == 400
    assert mode(client, 1) == "Uefi"


def test_settings_that_are_nowhere_said(client):
    client.quirks("bios-unlinked")
    assert "@Redfish.Settings" not in bios(client)
    assert client.ask("PATCH", f"{ROOT}/Systems/1/Bios/SD", UEFI)[0] == 200
    client.quirks("bios-without-registry")
    assert "Registries" not in client.ask("GET", ROOT)[1]
    client.quirks("bios-unsaid-before-a-start")
    assert bios(client)["Attributes"] == {} and mode(client, 1) == "Uefi"
    client.quirks("bios-nowhere")
    assert "Bios" not in client.ask("GET", f"{ROOT}/Systems/1")[1]


def test_settings_that_are_late_or_dropped(client):
    client.quirks("bios-lags")
    client.ask("PATCH", SETTINGS, UEFI)
    shown = [client.ask("GET", SETTINGS)[1]["Attributes"].get("BootMode") for _ in range(4)]
    assert shown == [None, None, None, "Uefi"]
    client.reset("ForceRestart")
    assert [mode(client) for _ in range(4)] == ["Bios", "Bios", "Bios", "Uefi"]
    client.quirks("bios-drops")
    client.ask("PATCH", SETTINGS, {"Attributes": {"NumaNodes": 4, "QuietBoot": False}})
    client.reset("ForceRestart")
    now = bios(client)["Attributes"]
    assert (now["NumaNodes"], now["QuietBoot"]) == (1, False)


def test_settings_that_wait_for_a_second_start(client):
    client.quirks("bios-waits-a-start")
    client.ask("PATCH", SETTINGS, UEFI)
    assert mode(client, 1) == "Bios" and mode(client, 1) == "Uefi"


def test_a_setup_that_may_be_next_but_not_always(client):
    client.quirks("setup-once")
    always = {"BootSourceOverrideTarget": "BiosSetup", "BootSourceOverrideEnabled": "Continuous"}
    assert client.ask("PATCH", f"{ROOT}/Systems/1", {"Boot": always})[0] == 400
    assert client.ask("PATCH", f"{ROOT}/Systems/1", {"Boot": always | {"BootSourceOverrideEnabled": "Once"}})[0] == 204


def test_what_the_update_service_offers(client, images):
    service = f"{ROOT}/UpdateService"
    timed = images | {"@Redfish.OperationApplyTime": "OnReset"}
    assert client.ask("POST", SIMPLE, timed)[0] == 400
    client.quirks("no-push", "protocols-in-action-info", "refuses-targets", "no-simple-update")
    said = client.ask("GET", service)[1]
    update = said["Actions"]["#UpdateService.SimpleUpdate"]
    assert "MultipartHttpPushUri" not in said and "TransferProtocol@Redfish.AllowableValues" not in update
    (allowed,) = client.ask("GET", update["@Redfish.ActionInfo"])[1]["Parameters"]
    assert allowed["AllowableValues"] == ["NFS", "TFTP"]
    assert client.ask("POST", SIMPLE, images | {"Targets": [f"{service}/FirmwareInventory/BIOS"]})[0] == 400
    assert client.ask("POST", SIMPLE, images)[0] == 400
    client.quirks("update-busy", "apply-time-offered")
    assert [client.ask("POST", SIMPLE, timed)[0] for _ in range(4)] == [409, 409, 409, 202]


@pytest.mark.parametrize(
    ("quirk", "location", "body"),
    [
        ("location-is-the-task", f"{TASKS}/1", True),
        ("no-location", None, True),
        ("empty-answer", f"{MONITORS}/1", False),
    ],
)
def test_where_the_task_is_said(client, images, quirk, location, body):
    client.quirks(quirk)
    status, said, headers = client.ask("POST", SIMPLE, images)
    assert status == 202 and headers["Location"] == location and bool(said) == body
    assert client.read_task(TASKS)[0] == 200  # from the first look on, whatever its state


def test_a_task_that_says_little_and_is_gone_when_it_has_ended(client, images):
    client.quirks("hides-payload", "task-vanishes")
    client.ask("POST", SIMPLE, images)
    assert "Payload" not in client.read_task(TASKS)[1]
    assert [client.read_task(TASKS)[1]["TaskState"] for _ in range(3)] == ["Running", "Running", "Completed"]
    assert client.read_task(TASKS)[0] == 404


def test_a_version_that_is_late_and_one_that_is_listed_beside(client, images):
    client.quirks("version-lags")
    client.ask("POST", SIMPLE, images)
    for _ in range(4):
        client.read_task(TASKS)
    assert [client.version() for _ in range(4)] == ["1.0", "1.0", "1.0", "2.0"]
    client.quirks("version-after-a-start", "lists-staged")
    client.ask("POST", SIMPLE, images)
    for _ in range(4):
        client.ask("GET", f"{TASKS}/2")
    listed = client.ask("GET", f"{ROOT}/UpdateService/FirmwareInventory")[1]["Members"]
    assert any(each["@odata.id"].endswith("/BIOS_pending") for each in listed)


def test_a_web_server_that_gives_up_while_the_update_goes_on(client, images):
    client.quirks("gateway-gives-up")
    assert client.ask("POST", SIMPLE, images)[0] == 502
    assert [client.read_task(TASKS)[1]["TaskState"] for _ in range(4)][-1] == "Completed" and client.version() == "2.0"


def test_a_start_while_firmware_is_written_breaks_it(client, images):
    client.ask("POST", SIMPLE, images)
    client.read_task()
    client.reset("ForceRestart")
    assert client.bmc.updates.broken == ["BIOS"]


def test_apply_times(client, images):
    client.quirks("apply-time-offered")
    client.ask("POST", SIMPLE, images | {"@Redfish.OperationApplyTime": "OnReset"})
    assert [client.read_task(TASKS)[1]["TaskState"] for _ in range(5)][-1] == "Suspended" and client.version() == "1.0"
    client.reset("ForceRestart")
    assert client.version() == "2.0"
    client.quirks("apply-time-offered", "task-waits-for-a-start")
    client.ask("POST", SIMPLE, images | {"@Redfish.OperationApplyTime": "Immediate"})
    before = client.bmc.power.calls.count("start")
    for _ in range(3):
        client.ask("GET", f"{TASKS}/2")
    for thread in client.bmc.resets:
        thread.join(5)
    assert client.bmc.power.calls.count("start") == before + 1  # by itself, as Dell's


@pytest.mark.parametrize("vendor", UPDATE_SHAPES)
def test_an_update_in_every_makers_shape(tmp_path, vendor):
    with serving(tmp_path, replace(MACHINE, vendor=vendor)) as (bmc, _):
        client = Client(bmc, tmp_path)
        inventory = f"{ROOT}/UpdateService/FirmwareInventory"

        def versions():
            listed = client.ask("GET", inventory)[1]["Members"]
            every = [client.ask("GET", each["@odata.id"])[1] for each in listed]
            return [each["Version"] for each in every if each["Name"] == "BIOS"], [each["Id"] for each in every]

        assert "1.0" in versions()[0]
        bmc.updates._write(Task(1, "BIOS", "2.0", {}))
        client.reset("ForceRestart")
        now, ids = versions()
        assert now[0] == "2.0" and ("Installed-159-2.0__BIOS" in ids) == vendor.startswith("dell")


def test_values_that_a_bios_does_not_take(client):
    def code(**attributes):
        return client.ask("PATCH", SETTINGS, {"Attributes": attributes})[1]["error"]["code"].rpartition(".")[2]

    assert code(NumaNodes=9) == "PropertyValueOutOfRange" == code(AssetName="longer than ten")
    assert code(NumaNodes="4") == "PropertyValueTypeError" == code(QuietBoot=1) == code(BootMode=True)


def test_a_weak_tag_that_has_to_be_strong(client):
    client.quirks("bios-weak-etag")
    tag = client.ask("GET", SETTINGS)[2]["ETag"]
    assert tag.startswith('W/"') and client.ask("PATCH", SETTINGS, UEFI, If_Match=tag)[0] == 412
    assert client.ask("PATCH", SETTINGS, UEFI)[0] == 428
    assert client.ask("PATCH", SETTINGS, UEFI, If_Match=tag.removeprefix("W/"))[0] == 200


@pytest.mark.parametrize("vendor", SHAPES)
def test_every_makers_machine_is_switched_and_its_next_start_set(tmp_path, vendor):
    with serving(tmp_path, replace(MACHINE, vendor=vendor)) as (bmc, power):
        client = Client(bmc, tmp_path)
        system = client.ask("GET", f"{ROOT}/Systems")[1]["Members"][0]["@odata.id"]
        said = client.ask("GET", system)[1]
        reset = said["Actions"]["#ComputerSystem.Reset"]["target"]
        assert client.ask("POST", reset, {"ResetType": "ForceOff"})[0] == 204
        assert client.ask("PATCH", system, {"Boot": SETUP})[0] == 204
        assert client.ask("GET", system)[1]["Boot"]["BootSourceOverrideTarget"] == "BiosSetup"
        assert client.ask("POST", reset, {"ResetType": "On"})[0] == 204
        for thread in bmc.resets:
            thread.join(5)
        assert client.ask("GET", system)[1]["PowerState"] == "On" and power.calls == ["off"]


def test_a_setup_that_no_start_can_have(client):
    client.quirks("no-setup")
    boot = client.ask("GET", f"{ROOT}/Systems/1")[1]["Boot"]
    assert "BiosSetup" not in boot["BootSourceOverrideTarget@Redfish.AllowableValues"]
    assert client.ask("PATCH", f"{ROOT}/Systems/1", {"Boot": SETUP})[0] == 400
