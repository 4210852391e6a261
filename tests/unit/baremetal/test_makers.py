"""Healthy documents of every maker's shape are read, and none is refused."""

from dataclasses import replace

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
    "GB200 tray": "GB200 186GB",
    "GH200 node": "GH200 96GB",
    "GB300 tray": "GB300",
}
NO_WATTS = ("nvidia-gb200", "nvidia-gh200", "supermicro-gb300")
"""in EnvironmentMetrics or nowhere, which is no sensor"""
EVERY = frozenset(redfish.SERVERS)
HGX = frozenset(server for server in EVERY if server.startswith("HGX"))
TRAY = frozenset(MODELS) - EVERY
UNSAID = {
    "nvidia-gb200": dict.fromkeys(["gpu_model", "gpu_lanes", "psu_redundancy", "form_factor", "gpu_driver"], TRAY),
    "nvidia-gh200": dict.fromkeys(["psu_redundancy", "local_storage", "form_factor"], TRAY),
    "supermicro-gb300": dict.fromkeys(["psu_redundancy", "form_factor"], TRAY),
    "supermicro": {"psu_redundancy": HGX - {"HGX A100"}},  # one supply of 3300 W can't carry 8 GPUs of 700
    "dell": {"psu_redundancy": EVERY},
    "hpe-ilo5": {"gpu_lanes": EVERY - {"head node"}},
    "hpe-ilo6": {"gpu_lanes": EVERY - {"head node"}},
    "hpe-ilo7": {"gpu_lanes": EVERY - {"head node"}},
}


@pytest.mark.parametrize("vendor", redfish.VENDORS)
def test_healthy_nodes_are_accepted(vendor):
    for server in redfish.servers(vendor):
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
        expected = [field for field, servers in UNSAID.get(vendor, {}).items() if server in servers]
        assert [each.field for each in verdict.not_said] == expected, server
        assert (
            len(hardware.dimms) == machine.dimms
            and len(hardware.drives) == (0 if vendor == "nvidia-gh200" else 4)
            and len(hardware.power_supplies) == machine.psus
        )
        assert hardware.bios_version == "1.0" and hardware.bmc_version == "lab-1.0"
        assert {"Cel", "W"} == {sensor.unit for sensor in hardware.sensors} or vendor in NO_WATTS
        assert not [each for each in hardware.firmware if each[1] == "0.9"]


@pytest.mark.parametrize("vendor", redfish.VENDORS)
def test_what_is_wrong_is_seen_in_every_makers_words(vendor):
    machine = redfish.machine(vendor, missing_dimms=(3,), dead_psus=(2,), lost_gpus=(8,))
    hardware = redfish.read(redfish.served(machine), vendor)
    assert hardware.gpu_count == 7
    assert len(hardware.dimms) == 7 and hardware.memory_gib == 1792 and hardware.free_sockets == 1
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


OTHERS = ("NVIDIA HGX A100 8 GPU 40", "NVIDIA HGX H200 141GB 700W 8-GPU Board", "NVIDIA NV Switch", "NVSwitch 2")


@pytest.mark.parametrize("name", OTHERS)
@pytest.mark.parametrize(
    ("vendor", "kind"),
    [("supermicro-x14", "Processors/GPU_SXM_3"), ("hpe-ilo5", "Devices/4"), ("dell-idrac8", "PCIeDevices/GPU3")],
)
def test_a_board_and_its_switches_are_no_gpus_wherever_gpus_are_listed(vendor, kind, name):
    docs = redfish.served(redfish.machine(vendor))
    (path,) = [path for path in docs if path.endswith(kind)]
    docs[path] |= {"Name": name, "Model": name}
    assert redfish.read(docs, vendor).gpu_count == 7


def test_virtual_media_is_no_local_storage():
    """As recorded of a DGX H100, whose BMC lists the drives of its virtual media."""
    assert changed("dgx", "/Drives/", {"Model": "Virtual Cdrom Device"}).drives == ()


STORAGE = "/redfish/v1/Systems/1/Storage"
CONTROLLERS = f"{STORAGE}/1/Controllers"
NO_DRIVES = {"Drives": [], "Drives@odata.count": 0}
OLD_CONTROLLER = {"StorageControllers": [{"MemberId": "0"}]}
SMART = {"Oem": {"Hpe": {"Links": {"SmartStorage": {"@odata.id": "/redfish/v1/Systems/1/SmartStorage"}}}}}


@pytest.mark.parametrize(
    ("what", "host", "changed_documents", "power", "expected"),
    [
        ("neither list", {"Storage": None}, {}, "On", "unknown"),
        ("a list that isn't there", {}, {STORAGE: None}, "On", "unknown"),
        ("an empty list", {}, {STORAGE: {"Members": []}}, "On", "refused"),
        ("an empty list, off", {}, {STORAGE: {"Members": []}}, "Off", "unknown"),
        ("HPE's own list beside it", SMART, {STORAGE: {"Members": []}}, "On", "unknown"),
        ("as GH200", {}, {f"{STORAGE}/1": NO_DRIVES | {"Controllers": None}}, "On", "unknown"),
        (
            "as GH200, newer",
            {},
            {f"{STORAGE}/1": NO_DRIVES, f"{STORAGE}/1/Controllers": {"Members": []}},
            "On",
            "unknown",
        ),
        ("a controller without drives", {}, {f"{STORAGE}/1": NO_DRIVES}, "On", "refused"),
        ("an older one", {}, {f"{STORAGE}/1": NO_DRIVES | {"Controllers": None} | OLD_CONTROLLER}, "On", "refused"),
        ("a controller without drives, off", {}, {f"{STORAGE}/1": NO_DRIVES}, "Off", "unknown"),
        (
            "an empty older list",
            {"Storage": None, "SimpleStorage": {"@odata.id": f"{STORAGE}S"}},
            {f"{STORAGE}S": {"Members": []}},
            "On",
            "refused",
        ),
    ],
)
def test_drives_that_a_bmc_does_not_list_are_unknown_and_not_none(what, host, changed_documents, power, expected):
    docs = redfish.served(redfish.machine("lab"))
    docs["/redfish/v1/Systems/1"] |= host | {"PowerState": power}
    for path, properties in changed_documents.items():
        docs[path] = docs.get(path, {}) | properties if properties else None
    docs = {path: each for path, each in docs.items() if each is not None and "/Drives/" not in path}
    verdict = examine(Declaration("n"), redfish.read(docs, "lab"), gpus().values())
    fields = {"refused": verdict.mismatches, "unknown": verdict.not_said}
    assert {name: [each.field for each in found] for name, found in fields.items()} == {
        "refused": [],
        "unknown": [],
        expected: ["local_storage"],
    }, what


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


def seen(vendor, server="HGX H100", **options):
    return redfish.read(redfish.served(redfish.machine(vendor, server, **options)), vendor)


@pytest.mark.parametrize(
    ("vendor", "server", "bearer"), [("nvidia-gb200", "GB200 tray", "chassis"), ("nvidia-gh200", "GH200 node", "board")]
)
def test_a_system_without_a_serial_number_is_known_by_its_chassis_or_board(vendor, server, bearer):
    """As recorded of GB200 and GH200."""
    hardware = seen(vendor, server)
    assert (hardware.serial, hardware.serial_of) == ("LAB-DGX01", bearer)
    (found,) = examine(Declaration("n", serial="OTHER"), hardware, gpus().values()).mismatches
    assert found.sentence == (
        f"n: serial number 'OTHER' is declared, the BMC reports 'LAB-DGX01' of its {bearer} alone"
    )


def test_where_nothing_has_a_serial_number_it_is_said():
    docs = redfish.served(redfish.machine("nvidia-gb200", "GB200 tray"))
    for document in docs.values():
        document.pop("SerialNumber", None)
    hardware = redfish.read(docs, "nvidia-gb200")
    verdict = examine(Declaration("n", serial="S1"), hardware, gpus().values())
    assert verdict.mismatches == () and verdict.not_said[0].sentence == (
        "n: serial number 'S1' is declared, the BMC says none of the system, its chassis or its board"
    )


def test_a_chassis_of_several_nodes_names_none_of_them():
    docs = redfish.served(redfish.machine("nvidia-gb200", "GB200 tray"))
    docs["/redfish/v1/Chassis/Chassis_0"]["Links"]["ComputerSystems"].append({"@odata.id": "/redfish/v1/Systems/2"})
    assert redfish.read(docs, "nvidia-gb200").serial is None


def test_a_dell_is_known_by_its_service_tag_too():
    """As recorded: the serial number is the main board's; firmware, label and support have the tag."""
    hardware = seen("dell")
    assert (hardware.serial, hardware.service_tag) == ("CNLAB-DGX01", "LAB-DGX01")
    for serial in ("CNLAB-DGX01", "LAB-DGX01"):
        assert examine(Declaration("n", serial=serial), hardware, gpus().values()).mismatches == ()
    (found,) = examine(Declaration("n", serial="X"), hardware, gpus().values()).mismatches
    assert found.sentence.endswith("the BMC reports 'CNLAB-DGX01' and the service tag 'LAB-DGX01'")


def test_gpus_of_one_board_are_several():
    """As recorded of GB300 (two have their board's serial number) and of HPE Cray EX (all have zeros)."""
    assert seen("supermicro-gb300", "GB300 tray").gpu_count == 4
    zeros = {"SerialNumber": "00000000000000"}
    assert changed("nvidia-hgx", "/Processors/GPU", zeros).gpu_count == 8


def test_hpes_number_of_supplies_is_what_keeps_them_redundant():
    """As recorded of iLO 5 to 7: two of two."""
    for vendor in ("hpe-ilo5", "hpe-ilo6", "hpe-ilo7"):
        both, one = seen(vendor, "head node"), seen(vendor, "head node", dead_psus=(2,))
        assert (both.redundant, both.psus_needed, one.redundant) == (True, 1, False), vendor


def test_each_group_of_supplies_stands_for_itself():
    """As recorded of HPE's DL380a: two supply the system, two the GPUs."""
    docs = redfish.served(redfish.machine("hpe-ilo5", "8 PCIe GPUs", dead_psus=(3,)))
    power = docs["/redfish/v1/Chassis/1/Power"]
    group = power["Redundancy"][0] | {"MinNumNeeded": 2, "MaxNumSupported": 2}
    links = [{"@odata.id": f"/redfish/v1/Chassis/1/Power#PowerSupplies/PSU{n}"} for n in range(1, 5)]
    power["Redundancy"] = [group | {"RedundancySet": links[:2]}, group | {"RedundancySet": links[2:]}]
    hardware = redfish.read(docs, "hpe-ilo5")
    assert (hardware.psus_needed, hardware.redundant) == (2, False)
    power["PowerSupplies"][2] |= {"LineInputVoltage": 230, "Status": {"State": "Enabled", "Health": "OK"}}
    assert redfish.read(docs, "hpe-ilo5").redundant


def test_a_drive_of_two_lists_is_one():
    """As recorded of GB200: under its system, and under its backplane."""
    docs = redfish.served(redfish.machine("nvidia-gb200", "GB200 tray"))
    chassis, place = docs["/redfish/v1/Chassis/Chassis_0"], "/redfish/v1/Chassis/Chassis_0/Drives"
    drives = [path for path in docs if "/Drives/" in path]
    chassis["Drives"] = {"@odata.id": place}
    copies = {f"{place}/{path.rsplit('/', 1)[1]}": docs[path] for path in drives}
    docs |= copies | {place: {"Members": [{"@odata.id": path} for path in copies]}}
    assert len(drives) == 4 == len(redfish.read(docs, "nvidia-gb200").drives)


def test_an_adapter_has_a_port_that_it_does_not_list():
    """As recorded of GB200: one of six adapters lists its port."""
    docs = redfish.served(redfish.machine("nvidia-gb200", "GB200 tray"))
    for path in [path for path in docs if path.endswith("/Ports")]:
        docs[path] |= {"Members": []}
    hardware = redfish.read(docs, "nvidia-gb200")
    assert [port.id for port in hardware.ports if port.mac is None] == ["HCA1", "HCA2", "HCA3", "HCA4"]


def test_no_supply_that_is_needed_is_no_claim():
    docs = redfish.served(redfish.machine("nvidia-hgx"))
    (group,) = docs["/redfish/v1/Chassis/Chassis_0/PowerSubsystem"]["PowerSupplyRedundancy"]
    group["MinNeededInGroup"] = 0
    assert redfish.read(docs, "nvidia-hgx").redundant is None


def test_hpes_bmc_lists_the_board_of_the_gpus_and_its_switches_as_gpus():
    """The stand-in does, as recorded; else no test would see that they are counted."""
    machine = replace(redfish.MACHINE, vendor="hpe-ilo5", **redfish.SERVERS["HGX A100"])
    listed = [body["Name"] for body in redfish.served(machine).values() if body.get("DeviceType") == "GPU"]
    assert len(listed) == 8 + 2 and {"NVIDIA HGX A100 8 GPU 40", "NVIDIA NV Switch"} <= set(listed)
