"""What is done next with one component's firmware, from what its BMC says and what was noted."""

import json
from dataclasses import fields
from itertools import product
from typing import get_args, get_type_hints

import pytest

from ironburst.baremetal import updates
from ironburst.baremetal.firmware import Minimum
from ironburst.baremetal.hardware import Component
from ironburst.baremetal.updates import (
    ComponentFacts,
    Image,
    Limits,
    NeededUpdate,
    Seen,
    Task,
    UpdateNote,
    WantedFirmware,
)

LEAST = Minimum(component="BIOS", atLeast="2.0", source="advisory 7", asOf="2026-10-01")
IMAGE = Image("http://10.0.9.5/bios", "a" * 64, "2.0")
NOTE = UpdateNote("1.0", "2.0", IMAGE.uri, IMAGE.sha256, sent=100.0, at=100.0, others=("/T/1",))
EVERY = [
    ComponentFacts(**dict(zip([each.name for each in fields(ComponentFacts)], words, strict=True)))
    for words in product(*(get_args(get_type_hints(ComponentFacts)[each.name]) for each in fields(ComponentFacts)))
]


def bios(version, own="BIOS", name="BIOS"):
    return Component(own, name, version, f"/redfish/v1/UpdateService/FirmwareInventory/{own}")


def test_nothing_is_sent_while_there_is_a_doubt():
    sent = [each for each in EVERY if updates.rule(each).action == "send"]
    known = {(each.task, each.other, each.note, each.staged) for each in sent}
    assert known == {("none", "none", "none", "no")}
    assert {each.version for each in sent} <= {"below", "moved"}  # moved: since a note, so never without one


def test_the_machine_is_started_once_and_never_while_its_bmc_writes():
    started = [each for each in EVERY if updates.rule(each).action == "start"]
    assert started and {each.start for each in started} == {"not asked"}
    assert all(each.task != "runs" and each.other != "runs" for each in started if each.task != "waits")
    assert all(updates.rule(each).state == "waits" for each in started)


def test_every_row_is_of_use():
    assert {updates.rule(each) == row for each in EVERY for row in updates.RULES} == {True, False}
    assert [row for row in updates.RULES if not any(updates.rule(each) is row for each in EVERY)] == []


@pytest.mark.parametrize(
    ("state", "status", "phase"),
    [
        ("New", None, "runs"),
        ("Running", "OK", "runs"),
        ("SomethingOfNextYear", "OK", "runs"),
        ("Suspended", "OK", "waits"),
        ("Pending", "OK", "waits"),
        ("Completed", "OK", "done"),
        ("Completed", None, "done"),
        ("Completed", "Warning", "done"),
        ("Completed", "Critical", "failed"),
        ("Exception", "OK", "failed"),
        ("Cancelled", None, "failed"),
    ],
)
def test_a_tasks_state_and_its_status_count_both(state, status, phase):
    body = {"TaskState": state, "TaskStatus": status, "TaskMonitor": "/M/1/"}
    assert updates.task(body, "/T/1") == Task("/T/1", "/M/1", phase)


def test_what_a_task_was_asked():
    def asked(payload):
        return updates.task({"TaskState": "Running", "Payload": payload}, "/T/1")

    target = "/redfish/v1/UpdateService/Actions/UpdateService.SimpleUpdate"
    sent = {"ImageURI": "http://10.0.9.5/" + "x" * 300}
    assert asked({"TargetUri": target, "JsonBody": json.dumps(sent)}).image == sent["ImageURI"]
    assert asked({"TargetUri": target, "JsonBody": "{ no JSON"}).image is None
    assert asked({"TargetUri": "/redfish/v1/Systems/1/Actions/ComputerSystem.Reset"}) is None
    assert updates.task({"error": {}}, "/T/1") is None


def test_whose_task_it_is():
    old, new = Task("/T/1", "/M/1", "done", IMAGE.uri), Task("/T/2", "/M/2", "runs")
    other = Task("/T/3", "/M/3", "runs", "http://10.0.9.5/bmc")
    seen = Seen((old, new, other), ())
    assert updates.own(seen, NOTE, IMAGE) == new  # new since the note, and not known to be of another image
    known = UpdateNote(**(vars(NOTE) | {"task": "/M/1"}))
    assert updates.own(seen, known, IMAGE) == old
    assert updates.own(seen, UpdateNote(**(vars(NOTE) | {"task": "/T/9"})), IMAGE) is None
    assert updates.own(seen, None, IMAGE) == old  # the note is lost: by what it was asked
    assert updates.own(seen, None, IMAGE, frozenset({"/T/1"})) is None


def test_a_component_is_found_again_by_its_name_or_where_that_is_not_its_own_by_its_id():
    dells = (bios("1.0", "Installed-159-1.0__BIOS"), bios("3.0", "Installed-25227-3.0__iDRAC", "iDRAC"))
    assert [updates.key(each, dells) for each in dells] == ["BIOS", "iDRAC"]
    assert updates.found("BIOS", (bios("2.0", "Installed-159-2.0__BIOS"),)).version == "2.0"
    same = (bios("1.0", "GPU1", "GPU"), bios("1.0", "GPU2", "GPU"))
    assert [updates.key(each, same) for each in same] == ["GPU1", "GPU2"] and updates.found("GPU", same) is None


def test_what_is_below_and_what_was_begun_in_the_order_of_the_declaration():
    wanted = [WantedFirmware(LEAST.model_copy(update={"component": "B*"}), IMAGE)]
    every = (bios("2.0", "B1", "B1"), bios("1.0", "B2", "B2"), bios(None, "B3", "B3"), bios("A7", "B4", "B4"))
    assert [each.key for each in updates.needs(wanted, every)] == ["B2"]
    assert [each.key for each in updates.needs(wanted, every, ["B1", "B3"])] == ["B2", "B3"]


def facts(version, note=None, mine=None, tasks=(), staged=(), now=1000.0, quiet=0.0):
    need = NeededUpdate("BIOS", next(updates.needs([WantedFirmware(LEAST, IMAGE)], [bios("1.0")])).row, IMAGE)
    seen = Seen(tasks, (bios(version),), staged)
    return updates.facts(need, seen, note, mine, now, quiet, Limits(settle=180, start=3600))


def test_facts_of_versions():
    assert facts("1.0").version == "below" and facts("2.0").version == "reached"
    assert facts(None).version == facts("U54 v1.0").version == "unread"
    assert facts("1.5", NOTE).version == facts("U54 v1.0", NOTE).version == "moved"
    assert facts("1.0", staged=(bios("2.0", "BIOS_pending"),)).staged == "yes"
    assert facts("1.0", staged=(bios("1.5", "BIOS_pending"), bios("2.0", "GPU1_pending"))).staged == "no"


def test_facts_of_time():
    assert facts("1.0", NOTE, now=279).time == "short" and facts("1.0", NOTE, now=281).time == "enough"
    assert facts("1.0", NOTE, now=400, quiet=300).time == "short"  # it was away until right now
    assert facts("1.0").time == "enough"
    started = UpdateNote(**(vars(NOTE) | {"started": 200.0}))
    assert facts("1.0", started).start == "asked" and facts("1.0", started, now=3801).start == "long ago"


def test_facts_of_tasks():
    mine, other = Task("/T/2", None, "done"), Task("/T/3", None, "waits")
    assert facts("1.0", NOTE, mine, (mine,)).other == "none"
    assert facts("1.0", NOTE, mine, (mine, other)).other == "waits"
    assert facts("1.0", NOTE, mine, (mine, other, Task("/T/4", None, "runs"))).other == "runs"
    assert facts("1.0", None, None, (Task("/T/4", None, "failed"),)).other == "none"
    assert facts("1.0", UpdateNote(**(vars(NOTE) | {"ended": "failed"}))).note == "failed"
