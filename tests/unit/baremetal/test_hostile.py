"""Damaged and hostile Redfish documents: each gives an inventory that can be stored, or one sentence."""

import itertools
import json

import pytest

from ironburst.baremetal import documents, drift, node
from ironburst.baremetal.verify import Declaration, examine
from ironburst.catalog.hardware import gpus, platform
from tests.unit.baremetal import redfish

DECLARED = Declaration("dgx01", serial="LAB-DGX01", gpu_model="H100 SXM5 80GB", gpu_count=8, memory_gib=2000)
TAKEN = drift.accepted(redfish.read(redfish.served(redfish.machine("lab")), "lab"))


def outcome(docs, vendor):
    """What the plugin makes of it: a sentence, or the state that it stores."""
    try:
        hardware = redfish.read(docs, vendor, sensors=True)
    except documents.Incomplete as error:
        sentence = str(error)
        assert sentence and "\n" not in sentence and sentence.isprintable() and len(sentence) < 600
        return sentence
    verdict = examine(DECLARED, hardware, gpus().values())
    found = [*verdict.mismatches, *drift.changes(TAKEN, hardware)]
    state = node.outputs({"name": "dgx01", "gpuCount": 8}, hardware, found, drift.accepted(hardware))
    assert len(json.dumps(state, allow_nan=False)) < 400_000
    for each in [*found, *verdict.not_said]:
        assert each.sentence.isprintable() and len(each.sentence) < 5000, each
    return hardware


def tried(vendor, stride, start=0):
    docs = redfish.served(redfish.machine(vendor))
    count = 0
    for what, damaged in itertools.islice(redfish.mutations(docs), start, None, stride):
        try:
            outcome(damaged, vendor)
        except Exception as error:
            error.add_note(f"{vendor}: {what}")
            raise
        count += 1
    return count


@pytest.mark.parametrize("vendor", redfish.VENDORS)
def test_damaged_documents_never_crash_the_plugin(vendor):
    assert tried(vendor, 97, start=len(vendor)) >= 30  # 11 makers: more than 300


@pytest.mark.slow
@pytest.mark.parametrize("vendor", ["lab", "dell", "hpe-ilo6", "lenovo-xcc2"])
def test_damage_of_every_property(vendor):
    assert tried(vendor, 3) >= 1000


def test_endless_pages_end():
    docs = redfish.served(redfish.machine("lab"))
    plain = redfish.getter(docs, "lab")
    asked = []

    def get(path):
        asked.append(path)
        if "FirmwareInventory" in path:
            return {
                "Members": [],
                "Members@odata.nextLink": f"/redfish/v1/UpdateService/FirmwareInventory?p={len(asked)}",
            }
        return plain(path)

    read = documents.read(get)
    assert len(asked) < 500 and "its list never ends" in " ".join(read.notes)


def test_pages_in_a_circle_end():
    docs = redfish.served(redfish.machine("lab"))
    path = "/redfish/v1/Systems/HGX_Baseboard_0/Processors"
    docs[path]["Members@odata.nextLink"] = path
    assert "its list never ends" in outcome(docs, "lab")


def test_a_list_of_more_members_than_any_node_has_ends():
    docs = redfish.served(redfish.machine("lab"))
    flood(docs, "Memory", 1200)
    assert "lists more than 1000" in " ".join(outcome(docs, "lab").unread)


def test_more_documents_than_any_node_has_are_not_read():
    docs = redfish.served(redfish.machine("lab"))
    for kind in ("Memory", "Storage", "EthernetInterfaces", "SimpleStorage"):
        flood(docs, kind, 1000)
    assert outcome(docs, "lab") == "has more than 4000 documents for one node: it isn't read further"


def flood(docs, kind, count):
    path = f"/redfish/v1/Systems/1/{kind}"
    members = [f"{path}/{n}" for n in range(count)]
    docs[path] = {"Members": [{"@odata.id": each} for each in members]}
    docs |= {each: {"Id": each} for each in members}
    docs["/redfish/v1/Systems/1"][kind] = {"@odata.id": path}


def test_what_leads_off_the_bmc_is_told_and_not_asked_for():
    docs = redfish.served(redfish.machine("lab"))
    docs["/redfish/v1/Chassis/1"]["PCIeDevices"] = {"@odata.id": "http://169.254.169.254/latest/meta-data"}
    hardware = outcome(docs, "lab")
    assert hardware.unread == ("PCIeDevices of Chassis/1: it leads off this BMC's Redfish service, and isn't followed",)


def test_a_starting_bmc_is_no_node_without_hardware():
    docs = redfish.served(redfish.machine("dgx"))
    docs["/redfish/v1"] = {"@odata.id": "/redfish/v1", "Vendor": "AMI", "RedfishVersion": "1.11.0"}
    assert outcome(docs, "dgx") == "has no Systems in its service root: it may still be starting, try again"
    docs = redfish.served(redfish.machine("lab"))
    docs["/redfish/v1/Systems/HGX_Baseboard_0/Processors"] = {"Members": None}
    assert "has no complete Processors of Systems/HGX_Baseboard_0: it lists no members" in outcome(docs, "lab")


def test_platforms_of_the_catalogue_are_verified():
    wanted = ("dgx-a100-320gb", "dgx-a100-640gb", "dgx-station-a100-160gb", "dgx-station-a100-320gb")
    wanted += ("lambda-hyperplane-a100-80gb-gpus", "dgx-h100", "dgx-h200", "dgx-b200")
    for name in wanted:
        model = platform(name)
        declared = Declaration("n", platform=model, gpu_model=model.gpu.model, gpu_count=model.gpu_count)
        server = {
            "gpus": model.gpu_count,
            "gpu_model": f"NVIDIA {model.gpu.model}",
            "memory_gib": model.system_memory_gb or 512,
            "psus": model.psu_count or 2,
            "height_u": model.height_u or 4,
        }
        whole = redfish.replace(redfish.MACHINE, **server)
        hardware = redfish.read(redfish.served(whole), "lab")
        assert examine(declared, hardware, gpus().values()).mismatches == (), name
        short = redfish.replace(whole, lost_gpus=(1,), memory_gib=16, gpu_lanes=8)
        hardware = redfish.read(redfish.served(short), "lab")
        fields = {each.field for each in examine(declared, hardware, gpus().values()).mismatches}
        assert {"gpu_count", "memory_minimum", "gpu_lanes"} <= fields, name
