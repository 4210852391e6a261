"""What makers' BMCs do otherwise with the same Redfish, as a table, and what turns plain documents into theirs.

By the makers' own documentation and by recorded answers in public projects: NVIDIA's DGX user guides (an AMI BMC) and
HGX baseboards (a second computer system), Supermicro's Redfish guide (Power and Thermal until X13, PowerSubsystem since
X14; GPUs also listed as nameless PCIe devices), Dell iDRAC 8 and 9 (System.Embedded.1; GPUs as processors named
Video.Slot.1-1, or only as PCIe devices), HPE iLO 5 to 7 (GPUs in Chassis/1/Devices under Oem.Hpe, links in small
letters; since iLO 7 processors with a part number as model), Lenovo XCC and XCC2 (GPUs as processors without a model,
known by the PCI ids of their functions), trays of superchips (GB200, GH200, Supermicro's GB300: the system lacks a
serial number or memory, which its chassis or HGX board has; no power supplies; GH200's lists no drives).

As recorded, so that what a BMC claims is no better here: one of DGX H100's six supplies, or of Supermicro's eight,
carries all; HPE needs all to be redundant; Dell says nothing of it, and the serial number of its main board.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from lab.bmc.parts import Document


@dataclass(frozen=True)
class Vendor:
    """One kind of BMC. The defaults are the lab's own."""

    root: Document = field(default_factory=dict)
    """beside what every service root has"""
    manufacturer: str = ""
    system: str = "1"
    chassis: str = "1"
    manager: str = "bmc"
    gpus: Literal["board", "processors", "devices", "pcie"] = "board"
    gpu_id: str = "GPU{n}"
    gpu_called: Literal["model", "name", "pci id", "nothing"] = "model"
    """where its model is said"""
    gpu_serials: Literal["own", "board", "none"] = "own"
    """board: two have the serial number of their board"""
    gpu_lanes: Literal["all", "one", "unsaid"] = "all"
    board_gpus_twice: bool = False
    """also PCIe devices, without a name"""
    bears_name: Literal["system", "chassis", "board"] = "system"
    """what has the serial number and the model"""
    tagged: bool = False
    """known by a service tag, and the serial number is the main board's"""
    power: Literal["subsystem", "legacy", "both"] = "subsystem"
    """both: PowerSubsystem has the supplies, and Power what they draw and their input"""
    power_said: Literal["sensor", "named", "environment", "nowhere"] = "sensor"
    """named: a sensor is known by its name alone, and Power has no figure"""
    needed: Literal["half", "one", "all", "unsaid"] = "half"
    """the number of a redundant group of supplies"""
    mute_supplies: bool = False
    """say neither what they give nor whether they have input"""
    sensors: Literal["collection", "thermal", "both", "metrics"] = "collection"
    """metrics: the sensors, and each temperature once more"""
    memory: Literal["number", "text", "missing", "board"] = "number"
    lists_drives: bool = True
    """if not, its one storage subsystem is empty: neither drives nor a controller"""
    ports: Literal["Ports", "NetworkPorts"] = "Ports"
    expand: Literal["no", "right", "poor"] = "no"
    """poor: answers, but leaves required properties of the members out"""
    page: int | None = None
    """members a page"""
    wrong_count: bool = False
    """Members@odata.count isn't the number of members"""
    small_links: bool = False
    lacks: tuple[str, ...] = ()
    """linked, and answered with 404"""
    nulls: tuple[str, ...] = ()
    """properties that are null everywhere"""
    previous_firmware: bool = False


AMI_ROOT = {"Vendor": "AMI", "Product": "AMI Redfish Server", "RedfishVersion": "1.11.0", "Oem": {"Ami": {}}}
EXPAND = {"ExpandQuery": {"ExpandAll": True, "Levels": True, "Links": True, "NoLinks": True, "MaxLevels": 2}}
"""as recorded of Supermicro (Redfish 1.11, in gofish's oem/smc); AMI's has 5 levels, Dell's iDRAC 9 one"""
EXPAND_HPE = {"ExpandQuery": {"ExpandAll": False, "Levels": True, "Links": False, "NoLinks": True, "MaxLevels": 1}}
"""as recorded of iLO 5 in DL325 and XL675d Gen10+ (Cray-HPE's csm-redfish-interface-emulator), and by HPE's guide of
OData query options, which is of iLO 6 and 7, too
"""
VENDORS: dict[str, Vendor] = {
    "lab": Vendor(),
    "dgx": Vendor(
        root=AMI_ROOT | {"ProtocolFeaturesSupported": EXPAND},
        manufacturer="NVIDIA",
        system="DGX",
        chassis="DGX",
        manager="BMC",
        power_said="named",
        needed="one",
        mute_supplies=True,
        sensors="both",
        expand="poor",
        nulls=("ChassisType",),
    ),
    "nvidia-hgx": Vendor(
        root={"Vendor": "NVIDIA", "ProtocolFeaturesSupported": EXPAND},
        manufacturer="NVIDIA",
        system="System_0",
        chassis="Chassis_0",
        manager="BMC_0",
        gpu_id="GPU_SXM_{n}",
        expand="right",
    ),
    "nvidia-gb200": Vendor(
        root={"Vendor": "NVIDIA", "ProtocolFeaturesSupported": EXPAND},
        manufacturer="NVIDIA",
        system="System_0",
        chassis="Chassis_0",
        manager="BMC_0",
        gpu_id="GPU_{n}",
        gpu_called="nothing",
        gpu_serials="none",
        gpu_lanes="unsaid",
        bears_name="chassis",
        power_said="environment",
        sensors="metrics",
        expand="right",
        nulls=("HeightMm",),
    ),
    "nvidia-gh200": Vendor(
        root={"Vendor": "NVIDIA"},
        manufacturer="NVIDIA",
        system="System_0",
        chassis="Chassis_0",
        manager="BMC_0",
        gpu_lanes="one",
        bears_name="board",
        power_said="nowhere",
        lists_drives=False,
        nulls=("HeightMm",),
    ),
    "supermicro-gb300": Vendor(
        root={"Vendor": "Supermicro", "ProtocolFeaturesSupported": EXPAND},
        manufacturer="Supermicro",
        system="System_0",
        chassis="Chassis_0",
        manager="BMC_0",
        gpu_serials="board",
        power_said="environment",
        sensors="metrics",
        memory="board",
        expand="right",
        nulls=("HeightMm",),
    ),
    "supermicro": Vendor(
        root={"Oem": {"Supermicro": {}}, "RedfishVersion": "1.11.0", "ProtocolFeaturesSupported": EXPAND},
        manufacturer="Supermicro",
        manager="1",
        board_gpus_twice=True,
        power="legacy",
        needed="one",
        sensors="thermal",
        expand="right",
        lacks=("/PCIeSlots",),
    ),
    "supermicro-x14": Vendor(
        root={"Vendor": "Supermicro", "Oem": {"Supermicro": {}}, "ProtocolFeaturesSupported": EXPAND},
        manufacturer="Supermicro",
        manager="1",
        board_gpus_twice=True,
        expand="right",
    ),
    "dell": Vendor(
        root={
            "Vendor": "Dell",
            "Product": "Integrated Dell Remote Access Controller",
            "Oem": {"Dell": {"ServiceTag": "LAB0001"}},
            "ProtocolFeaturesSupported": EXPAND,
        },
        manufacturer="Dell Inc.",
        system="System.Embedded.1",
        chassis="System.Embedded.1",
        manager="iDRAC.Embedded.1",
        gpus="processors",
        gpu_id="Video.Slot.{n}-1",
        tagged=True,
        power="legacy",
        needed="unsaid",
        sensors="thermal",
        expand="right",
        page=50,
        nulls=("LineInputVoltage",),
        previous_firmware=True,
    ),
    "dell-idrac8": Vendor(
        root={"Oem": {"Dell": {}}, "RedfishVersion": "1.4.0"},
        manufacturer="Dell Inc.",
        system="System.Embedded.1",
        chassis="System.Embedded.1",
        manager="iDRAC.Embedded.1",
        gpus="pcie",
        power="legacy",
        sensors="thermal",
        ports="NetworkPorts",
        lacks=("/PCIeSlots",),
        previous_firmware=True,
    ),
    "hpe-ilo5": Vendor(
        root={
            "Oem": {"Hpe": {"Manager": [{"ManagerType": "iLO 5"}]}},
            "RedfishVersion": "1.6.0",
            "ProtocolFeaturesSupported": EXPAND_HPE,
        },
        manufacturer="HPE",
        expand="right",
        manager="1",
        gpus="devices",
        power="legacy",
        needed="all",
        sensors="thermal",
        ports="NetworkPorts",
        lacks=("/PCIeSlots",),
        nulls=("LineInputStatus",),
    ),
    "hpe-ilo6": Vendor(
        root={
            "Vendor": "HPE",
            "Oem": {"Hpe": {"Manager": [{"ManagerType": "iLO 6"}]}},
            "ProtocolFeaturesSupported": EXPAND_HPE,
        },
        manufacturer="HPE",
        expand="right",
        manager="1",
        gpus="devices",
        power="both",
        needed="all",
        sensors="thermal",
        small_links=True,
    ),
    "hpe-ilo7": Vendor(
        root={
            "Vendor": "HPE",
            "Oem": {"Hpe": {"Manager": [{"ManagerType": "iLO 7"}]}},
            "ProtocolFeaturesSupported": EXPAND_HPE,
        },
        manufacturer="HPE",
        expand="right",
        manager="1",
        gpus="processors",
        gpu_id="{n}",
        gpu_called="name",
        gpu_lanes="unsaid",
        power="both",
        needed="all",
        sensors="both",
    ),
    "lenovo-xcc": Vendor(
        root={"Vendor": "Lenovo", "Oem": {"Lenovo": {}}},
        manufacturer="Lenovo",
        manager="1",
        gpus="processors",
        gpu_called="pci id",
        power="legacy",
        sensors="thermal",
        memory="text",
        wrong_count=True,
    ),
    "lenovo-xcc2": Vendor(
        root={"Vendor": "Lenovo", "Oem": {"Lenovo": {}}, "ProtocolFeaturesSupported": EXPAND},
        manufacturer="Lenovo",
        manager="1",
        gpus="processors",
        gpu_called="pci id",
        memory="missing",
        expand="right",
        page=4,
    ),
}
PCI_IDS = {
    "NVIDIA H100 80GB HBM3": "0x2330",
    "NVIDIA H200": "0x2335",
    "NVIDIA B200": "0x2901",
    "NVIDIA H100 NVL": "0x2321",
    "NVIDIA L40S": "0x26b9",
    "NVIDIA A100 80GB PCIe": "0x20b5",
    "NVIDIA A100-SXM4-80GB": "0x20b2",
    "NVIDIA A100-SXM4-40GB": "0x20b0",
}
"""of the functions of these GPUs"""
