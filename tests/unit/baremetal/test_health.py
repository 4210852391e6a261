"""What a BMC calls Critical, in every document and every part of every maker's shape."""

import copy
from datetime import date

import pytest

from ironburst.baremetal import documents, inventory
from ironburst.baremetal.verify import Declaration, examine
from ironburst.catalog.hardware import gpus
from lab.bmc.vendors import VENDORS
from tests.unit.baremetal.redfish import getter, machine, served, servers


def read(docs, vendor):
    return documents.read(getter(docs, vendor))


def found(docs, vendor):
    hardware = inventory.hardware(read(docs, vendor))
    verdict = examine(Declaration("n1", gpu_model=None), hardware, gpus().values(), today=date(2026, 12, 1))
    return {each.field for each in verdict.mismatches}


def statuses(value, at=()):
    """Where a Status is."""
    if isinstance(value, dict):
        if isinstance(value.get("Status"), dict) and "State" in value["Status"]:
            yield at
        for key, each in value.items():
            yield from statuses(each, (*at, key)) if key not in ("Status", "Oem") else ()
    elif isinstance(value, list):
        for n, each in enumerate(value):
            yield from statuses(each, (*at, n))


def at(value, path):
    for key in path:
        value = value[key]
    return value


@pytest.mark.parametrize("vendor", VENDORS)
def test_each_part_that_is_critical_is_a_mismatch(vendor):
    server = next(iter(servers(vendor)))
    docs = served(machine(vendor, server))
    before, tried = found(docs, vendor), 0
    for each in read(docs, vendor).found:
        if each.path not in docs:
            continue
        for place in statuses(docs[each.path]):
            if at(docs[each.path], place)["Status"]["State"] == "Absent":
                continue
            broken = copy.deepcopy(docs)
            at(broken[each.path], place)["Status"] |= {"Health": "Critical"}
            new = found(broken, vendor) - before
            tried += 1
            assert new and all(field.endswith(("_health", "psu_redundancy")) for field in new), (each.path, place, new)
    assert tried > 5


@pytest.mark.parametrize("vendor", VENDORS)
def test_a_healthy_machine_has_nothing_broken(vendor):
    docs = served(machine(vendor, next(iter(servers(vendor)))))
    assert not [field for field in found(docs, vendor) if field.endswith("_health")]


def test_a_drive_that_predicts_its_failure_and_a_module_that_was_mapped_out():
    docs = served(machine("lab"))
    drive = next(each.path for each in read(docs, "lab").found if each.kind == "drive")
    docs[drive]["FailurePredicted"] = True
    assert "drive_health" in found(docs, "lab")
    dimm = next(each.path for each in read(docs, "lab").found if each.kind == "dimm")
    docs[dimm]["Status"] = {"State": "Disabled", "Health": "OK"}
    assert "memory_health" in found(docs, "lab")
