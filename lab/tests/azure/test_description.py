"""The stand-in of ARM refuses what the SDK's own models and requests lack, and answers with nothing else."""

import json

import pytest
from azure.mgmt.compute import models

from lab.azure.description import Wrong, call, check, check_answer
from lab.azure.server import Cloud

VERSION = "api-version=2026-04-01"
PATH = "/subscriptions/s-1/resourceGroups/g-1/providers/Microsoft.Compute/virtualMachines"
MACHINE = {"location": "eastus", "properties": {"hardwareProfile": {"vmSize": "Standard_ND96isr_H100_v5"}}}


def put(**properties):
    body = MACHINE | {"properties": MACHINE["properties"] | properties}
    return call("PUT", f"{PATH}/a-0?{VERSION}", json.dumps(body).encode(), {"If-None-Match": "*"})


def test_a_request_is_the_call_of_its_path_and_verb_in_any_case():
    assert (put().name, put().path["vmName"], put().headers["if-none-match"]) == (
        "virtual_machines.create_or_update",
        "a-0",
        "*",
    )
    assert call("GET", f"{PATH.replace('resourceGroups', 'RESOURCEGROUPS')}?{VERSION}", b"", {}).name == (
        "virtual_machines.list"
    )
    assert call("GET", f"/subscriptions/s-1/providers/Microsoft.Compute/nothing?{VERSION}", b"", {}) is None


@pytest.mark.parametrize(
    ("properties", "what"),
    [
        ({"hardwareProfil": {}}, "hardwareProfil"),
        ({"priority": "Spott"}, "Spott"),
        ({"evictionPolicy": "delete"}, "delete"),
        ({"vmId": "4711"}, "vmId"),  # output only
        ({"provisioningState": "Succeeded"}, "provisioningState"),
        ({"billingProfile": {"maxPrice": "5"}}, "maxPrice"),
        ({"billingProfile": {"max_price": 5.0}}, "max_price"),
        ({"storageProfile": {"osDisk": {"diskSizeGB": "200", "createOption": "FromImage"}}}, "diskSizeGB"),
        ({"storageProfile": {"osDisk": {"deleteOption": "Delete"}}}, "createOption"),  # required
        ({"storageProfile": {"osDisk": {"createOption": "FromImage", "deleteOption": "Remove"}}}, "Remove"),
        ({"networkProfile": {"networkInterfaceConfigurations": {"name": "nic"}}}, "networkInterfaceConfigurations"),
        ({"networkProfile": {"networkInterfaceConfigurations": [{"name": "a", "properties": {}}]}}, "ipConfigurations"),
        ({"capacityReservation": {"disableCapacityReservationAssignment": "true"}}, "disableCapacity"),
        ({"virtualMachineScaleSet": {"name": "x"}}, "name"),
    ],
)
def test_a_body_is_checked_to_its_last_field(properties, what):
    with pytest.raises(Wrong, match=what):
        put(**properties)


def test_tags_are_text():
    with pytest.raises(Wrong, match="tags"):
        call("PUT", f"{PATH}/a-0?{VERSION}", json.dumps(MACHINE | {"tags": {"team": 1}}).encode(), {})


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("", "MissingApiVersionParameter"),
        ("?api-version=2020-01-01", "InvalidApiVersionParameter"),
        (f"?{VERSION}&statusOnly=true", "InvalidQueryParameter"),  # of the subscription's list alone
    ],
)
def test_parameters_are_those_of_the_request_that_the_sdk_builds(query, code):
    with pytest.raises(Wrong) as wrong:
        call("GET", f"{PATH}{query}", b"", {})
    assert wrong.value.code == code


def test_a_call_without_a_body_takes_none_and_one_with_takes_json():
    with pytest.raises(Wrong):
        call("DELETE", f"{PATH}/a-0?{VERSION}", b"{}", {})
    with pytest.raises(Wrong):
        call("PUT", f"{PATH}/a-0?{VERSION}", b"{", {})


def test_an_answer_may_have_what_a_request_may_not():
    shown = {"location": "eastus", "properties": {"vmId": "4711", "timeCreated": "2026-11-28T10:00:00+00:00"}}
    check(shown, models.VirtualMachine, "", output=True)
    with pytest.raises(Wrong, match="read-only"):
        check(shown, models.VirtualMachine, "")
    with pytest.raises(Wrong, match="gone"):
        check_answer("virtual_machines.list", {"value": [shown | {"gone": True}]})


def test_who_has_no_token_is_told_nothing():
    cloud = Cloud()
    try:
        answer = cloud.handle("GET", f"{PATH}?{VERSION}".replace("s-1", cloud.subscription), b"", {})
        assert answer.status == 401
    finally:
        cloud.close()
