"""Every Redfish call of a firmware update fails, hangs, lies or is half answered once, or the process dies before or
after it; then the same is run again. The product's own code and record, and the emulated BMC over HTTP with each of
its quirks: nothing is ever flashed twice, and everything ends updated or in a state that has a name.
"""

import contextlib
import hashlib
import json
import threading
import time
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from ironburst.adapters import firmware_image
from ironburst.adapters.redfish import power
from ironburst.adapters.redfish.client import BmcAccess
from ironburst.adapters.redfish.update import RedfishUpdate
from ironburst.adapters.redfish.update_record import UpdateRecord
from ironburst.baremetal.cycle import ConsoleError
from ironburst.baremetal.firmware import Minimum
from ironburst.baremetal.updates import Image, Limits, WantedFirmware
from ironburst.baremetal.updating import How, update
from lab.bmc import Fault, Machine, write_fault
from lab.bmc.quirks import UPDATE_QUIRKS
from lab.bmc.updates import SHAPES
from tests.contract.emulator import PASSWORD, MemoryPower, serving
from tests.faults.redfish_calls import DEATHS, FAULTS, Died, made, meeting, places, planned
from tests.parts import some_fast

MACHINE = Machine("dgx01", "LAB-DGX01", "8b1e7f0e-0000-4000-8000-00000000000b", ("52:54:00:4e:00:0b",), gpus=0)
FILE = json.dumps({"component": "BIOS", "version": "2.0"}).encode()
LEAST = Minimum(component="BIOS", atLeast="2.0", source="advisory 7", asOf="2026-10-01")
NAMED = {"waits", "failed", "unsure", "refused"}


@pytest.fixture(scope="module")
def images():
    """{path: file} over HTTP; the address of its server is `at`."""

    class Images(dict):
        at = ""

    files = Images({"/bios": FILE})

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            body = files.get(self.path)
            self.send_response(404 if body is None else 200)
            self.end_headers()
            self.wfile.write(body or b"")

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        files.at = f"http://127.0.0.1:{server.server_port}"
        yield files
        server.shutdown()


class Story:
    """One node, its BMC, and a person who gives the command again and again. Its clock goes on by looking."""

    def __init__(self, bmc, folder, images):
        self.bmc, self.folder, self.images = bmc, folder, images
        self.now, self.timeout_s, self.taken, self.said = 1_000_000.0, 5.0, 0, []

    def image(self, path="/bios", version="2.0"):
        body = self.images.get(path, b"")
        return Image(f"{self.images.at}{path}", hashlib.sha256(body).hexdigest(), version)

    def pause(self):
        for thread in self.bmc.resets:
            thread.join(5)
        self.now += 10

    def take(self):
        self.taken += 1

    def check(self, image):
        try:
            firmware_image.fetched(image, self.folder)
        except firmware_image.ImageError as error:
            return str(error)
        return None

    def run(self, *wanted, start=False, again=False, limit_s=2000.0):
        """The command, once: what it says of the last component."""
        access = BmcAccess("dgx01", self.bmc.url, "admin", PASSWORD, timeout_s=self.timeout_s)
        how = How(
            check=self.check,
            take=self.take,
            clock=lambda: self.now,
            pause=self.pause,
            say=self.said.append,
            limit_s=limit_s,
            start=start,
            again=again,
            limits=Limits(settle=60, start=200),
        )
        notes = UpdateRecord(self.folder / "record.json").of("dgx01")
        wanted = wanted or (WantedFirmware(LEAST, self.image()),)
        return update(wanted, RedfishUpdate(access, self.folder, start), notes, how)

    def state(self, **more):
        results = self.run(**more)
        return results[-1].state if results else "reached"

    def requests(self):
        return made(self.folder)

    def posts(self):
        """Of updates, that reached the BMC."""
        return [each for each in self.requests() if each["method"] == "POST" and "UpdateService" in each["path"]]

    def quirks(self, *quirks):
        write_fault(self.folder / "faults.json", "dgx01", Fault(quirks=list(quirks)))

    def flashed(self):
        updates = self.bmc.updates
        assert updates.broken == [], "the machine was started while its firmware was written"
        return updates.flashed.count(("BIOS", "2.0")), updates.posts

    def settle(self):
        for thread in self.bmc.resets:
            thread.join(5)


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    sleep = time.sleep
    monkeypatch.setattr(time, "sleep", lambda seconds: sleep(min(seconds, 0.003)))
    monkeypatch.setattr(power, "SWITCH_S", 1.0)  # by the clock: a switch that only says so is waited for


@contextlib.contextmanager
def story(folder, images, vendor="lab", *quirks):
    folder.mkdir(exist_ok=True)
    with serving(folder, replace(MACHINE, vendor=vendor), MemoryPower()) as (bmc, _):
        one = Story(bmc, folder, images)
        one.quirks(*quirks)
        yield one


# ---- each quirk, and each maker

ENDS = {
    "task-fails": "failed",
    "completed-critical": "failed",
    "completed-and-old": "waits",
    "task-waits-for-a-start": "waits",
    "version-after-a-start": "waits",
}
"""without a start; every other quirk ends reached"""
STARTED = {"task-fails": "failed", "completed-critical": "failed", "completed-and-old": "failed"}
WAITS = {
    "apply-time-offered",
    "nvidia-hgx",
    "nvidia-gb200",
    "nvidia-gh200",
    "supermicro-gb300",
    "dell",
    "dell-idrac8",
    "hpe-ilo5",
    "hpe-ilo6",
    "hpe-ilo7",
    "supermicro-x14",
}
"""without --restart: the BMC is told OnReset, or waits anyway"""


@pytest.mark.parametrize("quirk", UPDATE_QUIRKS)
def test_each_quirk(tmp_path, images, quirk):
    end = "waits" if quirk in WAITS else ENDS.get(quirk, "reached")
    with story(tmp_path, images, "lab", quirk) as one:
        assert one.state() == end, one.said
        assert one.flashed()[1] == 1 == len([each for each in one.posts() if each["status"] not in (400, 409)])
        assert one.state() == end and one.flashed()[1] == 1  # again: nothing more is sent
        before = one.flashed()
        assert one.state(start=True) == STARTED.get(quirk, "reached")
        assert one.flashed()[1] == 1 and one.flashed()[0] in (before[0], 1)
        assert one.bmc.updates.versions.get("BIOS", "1.0") == ("1.0" if quirk in STARTED else "2.0")


@pytest.mark.parametrize("vendor", SHAPES)
def test_each_maker(tmp_path, images, vendor):
    with story(tmp_path, images, vendor) as one:
        assert one.state() == ("waits" if vendor in WAITS else "reached"), one.said
        assert one.flashed()[1] == 1
        assert one.state(start=True) == "reached" == one.state() and one.flashed() == (1, 1)
        assert not (tmp_path / "record.json").exists() or json.loads((tmp_path / "record.json").read_text()) == {}


@pytest.mark.parametrize("vendor", SHAPES)
def test_each_maker_with_its_starts_at_once(tmp_path, images, vendor):
    with story(tmp_path, images, vendor) as one:
        assert one.state(start=True) == "reached", one.said
        assert one.flashed() == (1, 1) and one.bmc.power.calls.count("start") == (
            1 if vendor in WAITS - {"supermicro-x14"} else 0
        )


def together(folder, images, vendor, *quirks):
    """Whatever goes together: nothing is flashed twice, no start meets a flash, and the end has a name."""
    if {"no-simple-update", "no-push"} <= {*quirks} | SHAPES[vendor]:
        return
    with story(folder, images, vendor, *quirks) as one:
        ends = [one.state(), one.state(), one.state(start=True), one.state(start=True)]
        flashed, posts = one.flashed()
        assert flashed <= 1 and posts == 1, (vendor, quirks, ends, one.said)
        assert ends[-1] in NAMED | {"reached"}, (vendor, quirks, ends, one.said)


@pytest.mark.slow
@pytest.mark.parametrize("quirk", UPDATE_QUIRKS)
def test_two_quirks(tmp_path, images, quirk):
    for number, other in enumerate(UPDATE_QUIRKS):
        if other < quirk:
            together(tmp_path / str(number), images, "lab", quirk, other)


@pytest.mark.slow
@pytest.mark.parametrize("vendor", {shape: vendor for vendor, shape in SHAPES.items()}.values())
def test_each_quirk_of_each_maker(tmp_path, images, vendor):
    """Of makers with the same update service one, with each quirk that it hasn't anyway."""
    for quirk in UPDATE_QUIRKS:
        if quirk not in SHAPES[vendor]:
            together(tmp_path / quirk, images, vendor, quirk)


# ---- each call


def clean_run(folder, images):
    with story(folder, images) as one:
        assert one.state() == "reached" and one.flashed() == (1, 1)
        return one.requests()


def played(folder, images, monkeypatch, what, number, start=False, vendor="lab"):
    """The fault `what` at call `number` (from 0), then the command again until nothing changes, then with --again. Both
    ends, what was flashed until each, and what was said.
    """
    with monkeypatch.context() as patched, story(folder, images, vendor) as one:
        one.timeout_s = planned(patched, folder, what, number)
        with contextlib.suppress(Died, ConsoleError):
            one.state(start=start)
        one.timeout_s = 5.0
        ends = [one.state(start=start) for _ in range(2)]
        assert ends[0] == ends[1], (what, number, ends, one.said)
        flashed = one.flashed()
        again = one.state(start=start, again=True)
        return ends[-1], flashed, again, one.flashed(), one


def update_call(calls):
    (number,) = [n for n, call in enumerate(calls) if call["method"] == "POST" and "UpdateService" in call["path"]]
    return number


UNSURE = {"fails", "fails once", "hangs", "lies", DEATHS[0]}
"""the update's own call was not done, and nobody can know"""


@pytest.mark.parametrize("what", FAULTS)
def test_the_call_that_updates(tmp_path, images, monkeypatch, what):
    number = update_call(clean_run(tmp_path / "clean", images))
    end, flashed, again, in_all, one = played(tmp_path / "played", images, monkeypatch, what, number)
    done = what not in UNSURE
    assert end == ("reached" if done else "unsure"), (one.said, one.requests()[number:])
    assert flashed == ((1, 1) if done else (0, 0))
    assert again == "reached" and in_all == (1, 1)  # a person has looked


@pytest.mark.slow
@pytest.mark.parametrize("what", FAULTS)
def test_every_call(tmp_path, images, monkeypatch, what):
    with places(monkeypatch) as run:
        calls = clean_run(tmp_path / "clean", images)
    assert len(run) == len(calls)
    for number in meeting(what, run):
        end, flashed, *_, one = played(tmp_path / str(number), images, monkeypatch, what, number)
        unsure = number == update_call(calls) and what in UNSURE
        assert end == ("unsure" if unsure else "reached"), (what, calls[number], end, one.said)
        assert flashed == ((0, 0) if unsure else (1, 1)), (what, calls[number], one.said)


def starts(one):
    return one.bmc.power.calls.count("start")


@pytest.mark.parametrize("what", some_fast(FAULTS, "is done and not answered", *DEATHS))
def test_the_call_that_starts_the_machine(tmp_path, images, monkeypatch, what):
    """Once at most: firmware may be written in the self-test of the first start."""
    with story(tmp_path / "clean", images, "hpe-ilo6") as one:
        assert one.state(start=True) == "reached" and starts(one) == 1
        calls = one.requests()
    (number,) = [n for n, call in enumerate(calls) if call["path"].endswith("ComputerSystem.Reset")]
    end, flashed, again, in_all, one = played(tmp_path / "x", images, monkeypatch, what, number, True, "hpe-ilo6")
    done = what in ("is done and not answered", "is half answered", DEATHS[1])
    assert end == ("reached" if done else "failed") and flashed == (1, 1), (one.said, one.requests()[number:])
    assert again == "reached" and in_all == (1, 1) and starts(one) == 1  # --again starts it, and sends nothing


# ---- what else may be


def test_one_component_after_the_other_and_each_once(tmp_path, images):
    images["/bmc"] = json.dumps({"component": "BMC", "version": "3.0"}).encode()
    with story(tmp_path, images) as one:
        write_fault(tmp_path / "faults.json", "dgx01", Fault(hardware={"bmc_version": "2.9"}))
        least = LEAST.model_copy(update={"component": "BMC", "at_least": "3.0"})
        both = [WantedFirmware(LEAST, one.image()), WantedFirmware(least, one.image("/bmc", "3.0"))]
        assert [(each.key, each.state) for each in one.run(*both)] == [("BIOS", "reached"), ("BMC", "reached")]
        assert one.bmc.updates.flashed == [("BIOS", "2.0"), ("BMC", "3.0")] and one.run(*both) == []


def test_the_first_that_is_not_reached_ends_it(tmp_path, images):
    images["/bmc"] = json.dumps({"component": "BMC", "version": "3.0"}).encode()
    with story(tmp_path, images, "lab", "task-fails") as one:
        least = LEAST.model_copy(update={"component": "BMC", "at_least": "3.0"})
        both = [WantedFirmware(LEAST, one.image()), WantedFirmware(least, one.image("/bmc", "3.0"))]
        assert [(each.key, each.state) for each in one.run(*both)] == [("BIOS", "failed")]
        assert one.bmc.updates.posts == 1


@pytest.mark.parametrize("quirk", ["location-is-the-task", "version-after-a-start", "task-waits-for-a-start"])
def test_a_lost_record_is_no_reason_to_send_again(tmp_path, images, quirk):
    """The BMC's own tasks say what it was asked."""
    with story(tmp_path, images, "lab", quirk) as one:
        one.state(limit_s=20)
        (tmp_path / "record.json").unlink(missing_ok=True)
        end = "reached" if quirk == "location-is-the-task" else "waits"
        assert one.state() == end and one.state(start=True) == "reached" and one.flashed() == (1, 1)


def test_a_lost_record_and_a_bmc_that_forgets_and_lists_what_is_staged(tmp_path, images):
    with story(tmp_path, images, "lab", "version-after-a-start", "lists-staged", "task-vanishes") as one:
        assert one.state() == "waits"
        (tmp_path / "record.json").unlink()
        assert one.state() == "waits" and one.state(start=True) == "reached" and one.flashed() == (1, 1)


def test_somebody_elses_update_is_waited_for(tmp_path, images):
    with story(tmp_path, images) as one:
        one.bmc.updates.others = 10
        assert one.state() == "reached" and len(one.posts()) == 1
    with story(tmp_path / "long", images) as one:
        one.bmc.updates.others = 10_000
        assert one.state(limit_s=100) == "updating" and one.posts() == []


def test_the_time_is_over_and_the_next_run_goes_on(tmp_path, images):
    with story(tmp_path, images) as one:
        assert one.state(limit_s=20) == "updating"
        assert one.state() == "reached" and one.flashed() == (1, 1)


def test_an_image_that_is_another_one_or_not_there_is_never_sent(tmp_path, images):
    with story(tmp_path, images) as one:
        wrong = replace(one.image(), sha256="0" * 64)
        (result,) = one.run(WantedFirmware(LEAST, wrong))
        assert result.state == "refused" and f"declared is {'0' * 64}" in result.why
        (result,) = one.run(WantedFirmware(LEAST, one.image("/nowhere")))
        assert result.state == "refused" and "can't be fetched from here" in result.why
        assert one.posts() == [] and one.taken == 0  # not even drained


def test_an_image_that_is_not_what_was_declared_is_sent_once(tmp_path, images):
    images["/low"] = json.dumps({"component": "BIOS", "version": "1.5"}).encode()
    with story(tmp_path, images) as one:
        low = WantedFirmware(LEAST, one.image("/low"))
        ends = [one.run(low)[-1] for _ in range(3)]
        assert {each.state for each in ends} == {"failed"} and "another version" in ends[0].why
        assert one.bmc.updates.posts == 1
        assert one.state() == "reached" and one.bmc.updates.posts == 2  # another image is another update


def test_below_without_an_image_and_what_can_not_be_compared(tmp_path, images):
    with story(tmp_path, images) as one:
        (result,) = one.run(WantedFirmware(LEAST, None))
        assert result.state == "no image"
        least = LEAST.model_copy(update={"at_least": "U54 v2.0"})
        assert one.run(WantedFirmware(least, one.image())) == [] and one.posts() == []


def test_no_way_to_bring_it_there(tmp_path, images):
    with story(tmp_path, images, "lab", "no-simple-update", "no-push") as one:
        (result,) = one.run()
        assert result.state == "refused" and "neither fetches over HTTP nor has a MultipartHttpPushUri" in result.why


def test_a_password_is_tried_once(tmp_path, images):
    with story(tmp_path, images) as one:
        write_fault(tmp_path / "faults.json", "dgx01", Fault(wrong_password=True))
        with pytest.raises(ConsoleError, match="refuses the login"):
            one.run()
        assert len([each for each in one.requests() if each["method"] == "POST"]) == 1


def test_a_push_is_what_was_checked(tmp_path, images):
    """The file as it was fetched, whatever its server has by now."""
    with story(tmp_path, images, "lab", "no-simple-update") as one:
        wanted = WantedFirmware(LEAST, one.image())
        one.check(wanted.image)
        images["/bios"] = b"somebody else's"
        try:
            assert one.run(wanted)[-1].state == "reached" and one.flashed() == (1, 1)
        finally:
            images["/bios"] = FILE
