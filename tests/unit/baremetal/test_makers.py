"""Healthy documents of every maker's shape are read, and none is refused."""

import pytest

from ironburst.baremetal.verify import Declaration, examine
from ironburst.catalog.hardware import gpus
from tests.unit.baremetal import redfish

MODELS = {
    "HGX H100": "H100 SXM5 80GB",
    "HGX H200": "H200 SXM 141GB",
    "HGX B200": "B200 180GB",
    "HGX A100": "A100 SXM4 80GB",
    "8 PCIe GPUs": "L40S",
    "4 PCIe GPUs": "H100 NVL 94GB",
}
UNSAID = {"hpe-ilo5": ["gpu_lanes"], "hpe-ilo6": ["gpu_lanes"]}


@pytest.mark.parametrize("vendor", redfish.VENDORS)
def test_healthy_nodes_are_accepted(vendor):
    for server, changes in redfish.SERVERS.items():
        machine = redfish.machine(vendor, server)
        hardware = redfish.read(redfish.served(machine), vendor, sensors=True)
        declared = Declaration(
            "n",
            serial=machine.serial,
            uuid=machine.uuid,
            macs=machine.macs,
            gpu_model=MODELS.get(server),
            gpu_count=machine.gpus,
            cpu_count=2,
            memory_gib=machine.memory_gib,
            height_u=machine.height_u,
        )
        verdict = examine(declared, hardware, gpus().values())
        assert verdict.mismatches == (), (server, verdict.mismatches)
        expected = UNSAID.get(vendor, []) if changes.get("gpus") != 0 else []
        assert [each.field for each in verdict.not_said] == expected, server
        assert len(hardware.dimms) == 8 and len(hardware.drives) == 4 and len(hardware.power_supplies) == machine.psus
        assert hardware.bios_version == "1.0" and hardware.bmc_version == "lab-1.0"
        assert {"Cel", "W"} == {sensor.unit for sensor in hardware.sensors} or vendor == "hpe-ilo6"
        assert not [each for each in hardware.firmware if each[1] == "0.9"]


@pytest.mark.parametrize("vendor", redfish.VENDORS)
def test_what_is_wrong_is_seen_in_every_makers_words(vendor):
    machine = redfish.machine(vendor, missing_dimms=(3,), dead_psus=(2,), lost_gpus=(8,))
    hardware = redfish.read(redfish.served(machine), vendor)
    assert hardware.gpu_count == 7
    assert len(hardware.dimms) == 7 and hardware.memory_gib == 1792
    assert [each.id for each in hardware.power_supplies if each.has_input is False] == ["PSU2"]


@pytest.mark.parametrize("vendor", ["nvidia-hgx", "supermicro-x14", "dell", "lenovo-xcc2"])
def test_expanded_lists_save_requests_and_say_the_same(vendor):
    docs = redfish.served(redfish.machine(vendor))
    asked, one_by_one = [], []
    whole = redfish.documents.read(redfish.getter(docs, vendor, asked))
    docs["/redfish/v1"]["ProtocolFeaturesSupported"] = None
    plain = redfish.documents.read(redfish.getter(docs, vendor, one_by_one))
    assert len(asked) < 60 < len(one_by_one)
    inventory = redfish.inventory.hardware
    assert inventory(whole) == inventory(plain)


def changed(vendor, kind, properties, **options):
    """A healthy node whose documents of this kind (a part of their path) say these properties."""
    docs = redfish.served(redfish.machine(vendor, **options))
    hit = [path for path in docs if kind in path and "Members" not in docs[path]]
    assert hit
    for path in hit:
        docs[path] |= properties
    return redfish.read(docs, vendor)


def test_a_gpu_is_called_by_the_name_that_the_catalogue_knows():
    """As recorded of HPE (the model is a part number) and of Lenovo (it is N/A)."""
    part = {"Model": "900-21010-0320-030", "Name": "NVIDIA H100 NVL", "Links": {}}
    assert [each.model for each in changed("dell", "Video.Slot", part).gpus] == ["NVIDIA H100 NVL"]
    unsaid = {"Model": "N/A", "Name": "NVIDIA L40"}
    assert [each.model for each in changed("dell-idrac8", "PCIeDevices/GPU", unsaid).gpus] == ["NVIDIA L40"]
    nobodys = {"Model": "900-99999-0000-000", "Name": "Processor", "Links": {}}
    assert [each.model for each in changed("dell", "Video.Slot", nobodys).gpus] == ["900-99999-0000-000"]


def test_gpus_whose_cards_name_no_maker_are_seen():
    """As recorded of Supermicro's SYS-821GE-TNHR."""
    seen = changed("dell-idrac8", "PCIeDevices/GPU", {"Manufacturer": None, "Model": "H100 80GB HBM3"})
    assert seen.gpu_count == 8 and "gpus" not in seen.not_said


def test_virtual_media_is_no_local_storage():
    """As recorded of a DGX H100, whose BMC lists the drives of its virtual media."""
    assert changed("dgx", "/Drives/", {"Model": "Virtual Cdrom Device"}).drives == ()


def test_a_supply_without_input_is_seen_in_the_older_document():
    """As recorded of Dell's iDRAC 9 and HPE's iLO 6, which have both."""
    docs = redfish.served(redfish.machine("lab"))
    supplies = {path: each for path, each in docs.items() if "/PowerSupplies/" in path}
    for each in supplies.values():
        del each["LineInputStatus"]
    older = [{"SerialNumber": each["SerialNumber"], "LineInputVoltage": 230} for each in supplies.values()]
    older[1]["LineInputVoltage"] = 0
    docs["/redfish/v1/Chassis/1"]["Power"] = {"@odata.id": "/redfish/v1/Chassis/1/Power"}
    docs["/redfish/v1/Chassis/1/Power"] = {"PowerSupplies": older}
    hardware = redfish.read(docs, "lab")
    assert [each.id for each in hardware.power_supplies if each.has_input is False] == ["PSU2"]
    assert sum(each.has_input is True for each in hardware.power_supplies) == 5


def test_firmware_has_the_names_that_tell_it_apart():
    """As recorded of GB200, whose BMC names each "Software Inventory"; of Dell, which lists what runs once more as
    Current-; of Lenovo, with what waits.
    """
    docs = redfish.served(redfish.machine("lab"))
    place = "/redfish/v1/UpdateService/FirmwareInventory"
    bios = docs[f"{place}/BIOS"]
    for path in [path for path in docs if path.startswith(f"{place}/")]:
        docs[path] |= {"Name": "Software Inventory"}
    for more in ("Current-159-1.0__BIOS.Setup.1-1", "UEFI-Pending"):
        docs[f"{place}/{more}"] = bios | {"@odata.id": f"{place}/{more}", "Id": more}
        docs[place]["Members"].append({"@odata.id": f"{place}/{more}"})
    firmware = dict(redfish.read(docs, "lab").firmware)
    assert firmware["BIOS"] == "1.0" and firmware["BMC"] == "lab-1.0" and len(firmware) == 10
