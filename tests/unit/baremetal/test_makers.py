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
