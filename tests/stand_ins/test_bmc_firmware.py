"""The lab's own BIOS and update service do what real ones do: no product code asks them yet (docs/adr/0070)."""

import http.client
import json
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest

from lab.bmc import Fault, write_fault
from lab.bmc.bios import SHAPES
from lab.bmc.updates import MONITORS, SIMPLE, TASKS
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
