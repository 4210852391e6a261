"""Recorded documents of real BMCs are read; none are kept here, for they are others'.

IRONBURST_RECORDINGS names a folder with a folder for each BMC, as the DMTF's mockups are: redfish/v1/.../index.json.
"""

import json
import os
import re
from pathlib import Path

import pytest

from ironburst.baremetal import documents, inventory, telemetry
from ironburst.baremetal.discovered import Discovered

GIVEN = os.environ.get("IRONBURST_RECORDINGS")
BMCS = sorted(path for path in Path(GIVEN).iterdir() if path.is_dir()) if GIVEN else []
OF_PARTS = re.compile(r"/HGX_|RoT|/CPLD|Schemas", re.IGNORECASE)
"""paths of what belongs to a board alone"""

pytestmark = pytest.mark.skipif(not BMCS, reason="IRONBURST_RECORDINGS names no folder with recordings of BMCs")


def is_there(document):
    status = document.get("Status")
    return not isinstance(status, dict) or status.get("State") != "Absent"


class Recording:
    """All documents of one BMC; paths in small letters, for HPE's links are written in both."""

    def __init__(self, folder):
        files = {path.relative_to(folder).parent.as_posix().lower(): path for path in folder.rglob("index.json")}
        self.documents = {f"/{path}": json.loads(file.read_text()) for path, file in files.items()}

    def get(self, path):
        return self.documents.get(path.rstrip("/").lower())

    def of(self, *types):
        """(path, document) of the types, which are there."""
        for path, each in self.documents.items():
            kind = each.get("@odata.type", "") if isinstance(each, dict) else ""
            if kind.startswith(tuple(f"#{name}." for name in types)) and is_there(each) and not OF_PARTS.search(path):
                yield path, each

    def processors(self, kind):
        found = [each for each in self.documents.values() if isinstance(each, dict)]
        return {each.get("UUID") or each["Id"] for each in found if each.get("ProcessorType") == kind}


@pytest.fixture(scope="module", params=BMCS, ids=lambda folder: folder.name)
def recording(request):
    return Recording(request.param)


def read(recording):
    try:
        return inventory.hardware(documents.read(recording.get, sensors=True))
    except documents.Incomplete as error:
        pytest.skip(f"what was recorded is no inventory: it {error}")


def test_parts_are_counted_as_the_recording_counts_them(recording):
    hardware = read(recording)
    gpus, cpus = recording.processors("GPU"), recording.processors("CPU")
    if gpus:
        assert hardware.gpu_count == len(gpus)
    assert bool(hardware.cpu_count) >= bool(cpus)
    modules = [each.get("CapacityMiB") or 0 for _, each in recording.of("Memory")]
    summed = [
        (each.get("MemorySummary") or {}).get("TotalSystemMemoryGiB") for _, each in recording.of("ComputerSystem")
    ]
    if any(modules) or any(summed):
        assert hardware.memory_gib
    serials = {each["SerialNumber"] for path, each in recording.of("Drive") if (each.get("SerialNumber") or "").strip()}
    assert len({drive.serial for drive in hardware.drives if drive.serial}) <= len(serials)
    assert len(hardware.drives) == len({drive.serial or drive for drive in hardware.drives})


def test_a_healthy_machine_is_not_refused_for_its_supplies(recording):
    hardware = read(recording)
    if len(hardware.power_supplies) > 1 and all(supply.health == "OK" for supply in hardware.power_supplies):
        assert hardware.redundant is not False


def test_what_has_no_cpus_is_no_node(recording):
    hardware = read(recording)
    found = Discovered("10.0.9.1", "https://10.0.9.1", None, None, None, hardware=hardware)
    assert bool(found.no_node) == (not hardware.cpu_count and not hardware.gpu_count)
    if any((each.get("ProcessorSummary") or {}).get("Count") for _, each in recording.of("ComputerSystem")):
        assert not found.no_node


def test_power_and_inlet_are_found_where_they_are_said(recording):
    try:
        seen = telemetry.look(recording.get)
    except documents.Incomplete as error:
        pytest.skip(f"what was recorded has no chassis: it {error}")
    watts = [
        each["PowerControl"][0].get("PowerConsumedWatts")
        for _, each in recording.of("Power")
        if each.get("PowerControl")
    ]
    chassis = [
        each for path, each in recording.of("EnvironmentMetrics") if re.fullmatch(r".*/chassis/[^/]+/[^/]+", path)
    ]
    watts += [(each.get("PowerWatts") or {}).get("Reading") for each in chassis]
    watts += [each.get("Reading") for path, each in recording.of("Sensor") if re.search(r"/(pwr|power)_system$", path)]
    if any(watts):
        assert seen.power_w is not None and 20 < seen.power_w < 20_000
    names = [each.get("Name") for _, each in recording.of("Sensor") if each.get("ReadingType") == "Temperature"]
    for _, each in recording.of("Thermal"):
        there = [one for one in each.get("Temperatures") or [] if is_there(one)]
        names += [one.get("Name") for one in there]
    if any(re.search(r"ambient|inlet", name or "", re.IGNORECASE) and "PDB" not in name for name in names):
        assert seen.inlet_c is not None
    assert seen.inlet_c is None or 5 < seen.inlet_c < 45
    assert all(celsius < 110 for celsius in seen.celsius.values())
