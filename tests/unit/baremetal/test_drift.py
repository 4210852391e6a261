"""What changed on a node since it was accepted."""

import json

import pytest

from ironburst.baremetal import drift
from tests.unit.baremetal import redfish

BEFORE = json.loads(json.dumps(drift.accepted(redfish.read(redfish.served(redfish.MACHINE), "lab"))))


def changes(documents=None, **changed):
    docs = redfish.served(redfish.replace(redfish.MACHINE, **changed))
    for path, properties in (documents or {}).items():
        docs[path] |= properties
    return [(each.field, each.sentence) for each in drift.changes(BEFORE, redfish.read(docs, "lab"))]


def test_nothing_changed():
    assert changes() == []


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"lost_gpus": (2, 10, 3)}, [("gpus", "GPU GPU_SXM_2, GPU_SXM_3 (NVIDIA H100 80GB HBM3) are gone")]),
        ({"missing_dimms": (8,)}, [("memory_modules", "memory module DIMM_8 (256 GiB) is gone")]),
        ({"drives": 5}, [("added", "drive Disk5 is new")]),
        ({"dead_psus": (1,)}, []),  # Critical is a mismatch of its own, whatever was accepted
        (
            {"bmc_version": "lab-1.1", "gpu_firmware": "97", "gpus": 1},
            [
                (
                    "gpus",
                    (
                        "GPU GPU_SXM_2, GPU_SXM_3, GPU_SXM_4, GPU_SXM_5, GPU_SXM_6, GPU_SXM_7, GPU_SXM_8 "
                        "(NVIDIA H100 80GB HBM3) are gone"
                    ),
                ),
                ("firmware", "firmware of BMC is lab-1.1, accepted was lab-1.0"),
                ("firmware", "firmware of GPU1 is 97, accepted was 96.00.5E.00.01"),
            ],
        ),
        ({"serial": "S2", "gpus": 4}, [("machine", "another machine: its serial number is S2, was LAB-DGX01")]),
        ({"serial": " "}, [("serial", "the BMC no longer says the serial number, which was LAB-DGX01")]),
    ],
)
def test_what_changed_is_told(changed, expected):
    assert changes(**changed) == expected


def test_an_exchanged_part():
    exchanged = {"/redfish/v1/Systems/1/Memory/DIMM3": {"SerialNumber": "NEW"}}
    assert changes(exchanged) == [("replaced", "memory module DIMM_3 is another one, serial number NEW")]


def test_what_a_bmc_does_not_say_is_not_gone():
    docs = redfish.served(redfish.MACHINE)
    for path in (
        "/redfish/v1/Systems/1/Memory",
        "/redfish/v1/Systems/1/Storage",
        "/redfish/v1/Chassis/1/PowerSubsystem",
    ):
        del docs[path]
    assert drift.changes(BEFORE, redfish.read(docs, "lab")) == []


def test_a_node_that_is_off_has_lost_nothing():
    docs = redfish.served(redfish.replace(redfish.MACHINE, gpus=0, missing_dimms=tuple(range(1, 9))))
    docs["/redfish/v1/Systems/1"]["PowerState"] = "Off"
    assert drift.changes(BEFORE, redfish.read(docs, "lab")) == []


def test_a_chassis_serial_number_is_no_proof_against_the_systems():
    """A DGX has two, and a BMC that starts may know the chassis' alone."""
    system, chassis = "/redfish/v1/Systems/1", "/redfish/v1/Chassis/1"
    starting = {system: {"SerialNumber": None}, chassis: {"SerialNumber": "LAB-CHASSIS"}}
    assert changes(starting) == [("serial", "the BMC no longer says the serial number, which was LAB-DGX01")]


def test_another_tray_is_another_machine():
    trays = [redfish.machine("nvidia-gb200", "GB200 tray"), redfish.machine("nvidia-gb200", "GB200 tray", serial="S2")]
    before, now = (redfish.read(redfish.served(tray), "nvidia-gb200") for tray in trays)
    (found,) = drift.changes(json.loads(json.dumps(drift.accepted(before))), now)
    assert (found.field, found.sentence) == ("machine", "another machine: its serial number is S2, was LAB-DGX01")
