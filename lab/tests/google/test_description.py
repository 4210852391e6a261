"""The stand-in of Compute Engine refuses what the API's own description lacks, and answers with nothing else."""

import json

import pytest

from lab.google.description import ROOT, Wrong, call, check
from lab.google.filters import holds

PATH = f"{ROOT}projects/p-1/zones/us-central1-a/instances"
LAUNCH = {
    "count": "1",
    "perInstanceProperties": {"a-0": {}},
    "instanceProperties": {"machineType": "a3-highgpu-8g", "scheduling": {"provisioningModel": "SPOT"}},
}


def launch(**properties):
    body = LAUNCH | {"instanceProperties": LAUNCH["instanceProperties"] | properties}
    return call("POST", f"{PATH}/bulkInsert", json.dumps(body).encode())


def test_a_request_is_the_call_of_its_path_and_verb():
    assert launch().id == "compute.instances.bulkInsert"
    found = call("GET", f"{PATH}/4711?alt=json", b"")
    assert (found.id, found.parameters["instance"], found.response) == ("compute.instances.get", "4711", "Instance")
    assert call("GET", f"{ROOT}projects/p-1/nothing", b"") is None


@pytest.mark.parametrize(
    ("properties", "what"),
    [
        ({"machineTyp": "x"}, "machineTyp"),
        ({"scheduling": {"provisioningModel": "SPOTT"}}, "SPOTT"),
        ({"scheduling": {"maxPrice": "5"}}, "maxPrice"),  # Google has no ceiling
        ({"scheduling": {"provisioning_model": "SPOT"}}, "provisioning_model"),
        ({"scheduling": {"automaticRestart": "false"}}, "automaticRestart"),
        ({"disks": [{"initializeParams": {"diskSizeGb": 100}}]}, "diskSizeGb"),  # int64 is text in JSON
        ({"disks": [{"initializeParams": {"diskSizeGb": "100 GB"}}]}, "diskSizeGb"),
        ({"disks": {"boot": True}}, "disks"),
        ({"networkInterfaces": [{"name": "nic0"}]}, "name"),  # output only
        ({"networkInterfaces": [{"nicType": "EFA"}]}, "EFA"),
        ({"params": {"requestValidForDuration": {"seconds": "60"}}}, "params"),  # of insert alone
        ({"labels": {"team": 1}}, "labels"),
        ({"metadata": {"items": [{"key": "user-data", "valu": ""}]}}, "valu"),
    ],
)
def test_a_body_is_checked_to_its_last_field(properties, what):
    with pytest.raises(Wrong, match=what):
        launch(**properties)


@pytest.mark.parametrize(
    ("url", "what"),
    [
        (f"{PATH}?maxResults=501", "maxResults"),
        (f"{PATH}?maxResults=many", "maxResults"),
        (f"{PATH}?returnPartialSuccess=true", "returnPartialSuccess"),  # beta's, see docs/adr/0121
        (f"{PATH}/A_Name", "A_Name"),
    ],
)
def test_parameters_are_those_of_the_description(url, what):
    with pytest.raises(Wrong, match=what):
        call("GET", url, b"")


def test_a_call_without_a_body_takes_none_and_one_with_takes_json():
    with pytest.raises(Wrong):
        call("DELETE", f"{PATH}/a", b"{}")
    with pytest.raises(Wrong, match="Parse"):
        call("POST", f"{PATH}/bulkInsert", b"{")


def test_an_answer_may_have_what_a_request_may_not():
    shown = {"id": "4711", "status": "RUNNING"}
    check(shown, {"$ref": "Instance"}, "", output=True)
    with pytest.raises(Wrong, match="output only"):
        check(shown, {"$ref": "Instance"}, "")
    with pytest.raises(Wrong, match="GONE"):
        check({"status": "GONE"}, {"$ref": "Instance"}, "", output=True)


VM = {"name": "a-0", "labels": {"ironburst-lease": "l1"}, "targetId": "4711"}


@pytest.mark.parametrize(
    ("filter", "found"),
    [
        ('labels.ironburst-lease = "l1"', True),
        ('labels.ironburst-lease = "l2"', False),
        ("labels.ironburst-lease:*", True),
        ("labels.ironburst-pool:*", False),
        ('(labels.ironburst-lease = "l1") (name != "b-0")', True),
        ('(labels.ironburst-lease = "l1") AND (name = "b-0")', False),
        ("targetId = 4711", True),
        ("", True),
    ],
)
def test_filters(filter, found):
    assert holds(filter, VM) is found


@pytest.mark.parametrize("filter", ["labels.a", 'name eq "a.*"', '(a = "1") OR (b = "2")', "a ="])
def test_a_filter_that_is_not_known_is_refused_and_never_finds_all(filter):
    with pytest.raises(Wrong):
        holds(filter, VM)
