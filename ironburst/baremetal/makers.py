"""Where makers' BMCs keep what an inventory needs: tables, and no code.

By the DMTF's schemas (all versions at once: what was deprecated is still served), and by what makers do otherwise:
NVIDIA HGX (GPUs under a computer system of their own), Supermicro, Dell iDRAC 8 and 9, HPE iLO 4 to 6 (`Oem.Hp`,
`Oem.Hpe`), Lenovo XCC, AMI MegaRAC (DGX).
"""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class RedfishLink:
    """A link of a document, `at` a path of its properties, `to` one or many of another kind.

    `needed`: without what is behind it there is no inventory. `sensors`: followed only where readings are asked for.
    `unless` this property is present: not followed. `places`: where it may be below the document, if no link says it.
    `only` members whose path ends so. `cheap`: of a part of another chassis only where the list has its members inside
    ($expand). `late`: after all others of its document, for it names again what lists of theirs have. `inside`: where
    there are several, the document is asked for once more with them inside. `expanded`: it is asked for with what it
    links to inside.
    """

    at: str
    to: str
    many: bool = False
    needed: bool = False
    sensors: bool = False
    unless: str = ""
    places: tuple[str, ...] = ()
    only: re.Pattern[str] | None = None
    cheap: bool = False
    late: bool = False
    inside: bool = False
    expanded: bool = False


BIOS_SETTINGS = RedfishLink("@Redfish.Settings/SettingsObject", "bios_settings", places=("SD", "Settings", "Pending"))
"""what waits for the next start; Gigabyte has it without a link"""

WHOLE_POWER = re.compile(r"^(pwr|power)[ _]system$|^node$|^ChassisVoltageRegulator0InputPower$", re.IGNORECASE)
"""sensors of what the whole node draws, by Id or name: DGX H100's, HPE Cray's"""

LINKS: dict[str, tuple[RedfishLink, ...]] = {
    "root": (
        RedfishLink("Systems", "system", many=True, needed=True),
        RedfishLink("Chassis", "chassis", many=True),
        RedfishLink("Managers", "manager", many=True),
        RedfishLink("UpdateService", "update"),
    ),
    "system": (
        RedfishLink("Processors", "processor", many=True, needed=True),
        RedfishLink("Memory", "dimm", many=True),
        RedfishLink("Oem/Hpe/Links/Memory", "dimm", many=True),
        RedfishLink("Oem/Hp/Links/Memory", "dimm", many=True),
        RedfishLink("EthernetInterfaces", "ethernet", many=True),
        RedfishLink("Storage", "storage", many=True),
        RedfishLink("SimpleStorage", "simple_storage", many=True),
        RedfishLink("PCIeDevices", "pcie_device", late=True),
        RedfishLink("Bios", "bios", expanded=True),
    ),
    "bios": (BIOS_SETTINGS,),
    "processor": (
        RedfishLink("Links/PCIeDevice", "pcie_device", unless="SystemInterface/PCIe/LanesInUse"),
        RedfishLink("Links/PCIeFunctions", "pcie_function", unless="Model"),
    ),
    "storage": (
        RedfishLink("Drives", "drive", inside=True),
        RedfishLink("Controllers", "storage_controller", many=True, unless="Drives"),
    ),
    "chassis": (
        RedfishLink("PCIeDevices", "pcie_device", many=True),
        RedfishLink("Links/PCIeDevices", "pcie_device", late=True),
        RedfishLink("PCIeSlots", "slots"),
        RedfishLink("NetworkAdapters", "adapter", many=True),
        RedfishLink("Power", "power"),
        RedfishLink("PowerSubsystem", "power_subsystem"),
        RedfishLink("Drives", "drive", many=True),
        RedfishLink("Oem/Hpe/Links/Devices", "device", many=True),
        RedfishLink("Oem/Hp/Links/Devices", "device", many=True),
        RedfishLink("Thermal", "thermal"),
        RedfishLink("Sensors", "sensor", many=True, sensors=True),
        RedfishLink("ThermalSubsystem", "thermal_subsystem", sensors=True),
        RedfishLink("ThermalSubsystem", "thermal_subsystem", unless="Thermal/@odata.id"),
    ),
    "adapter": (RedfishLink("Ports", "port", many=True), RedfishLink("NetworkPorts", "port", many=True)),
    "power_subsystem": (RedfishLink("PowerSupplies", "power_supply", many=True),),
    "thermal_subsystem": (
        RedfishLink("Fans", "fan", many=True),
        RedfishLink("ThermalMetrics", "thermal_metrics", sensors=True),
    ),
    "update": (
        RedfishLink("FirmwareInventory", "firmware", many=True),
        RedfishLink("Oem/Supermicro/SmcFirmwareInventory", "firmware", many=True),
    ),
}
"""by the kind of document that they stand in"""

_MEDIA = (RedfishLink("VirtualMedia", "virtual_media", many=True),)
WITH_MEDIA = LINKS | {"system": (*LINKS["system"], *_MEDIA), "manager": _MEDIA}
"""with what an installation looks at: drives for its medium, of the system (since 2021) or its manager"""

TELEMETRY: dict[str, tuple[RedfishLink, ...]] = {
    "root": (RedfishLink("Chassis", "chassis", many=True, needed=True),),
    "chassis": (
        RedfishLink("Thermal", "thermal"),
        RedfishLink("Power", "power"),
        RedfishLink("EnvironmentMetrics", "environment", unless="Power/@odata.id"),
        RedfishLink("ThermalSubsystem", "thermal_subsystem", unless="Thermal/@odata.id"),
        RedfishLink("PowerSubsystem", "power_subsystem", unless="Power/@odata.id"),
        # 140 of a DGX H100's boards, one by one, are its chassis' once more
        RedfishLink("Sensors", "sensor", many=True, unless="Thermal/@odata.id", cheap=True),
    ),
    "thermal_subsystem": (RedfishLink("ThermalMetrics", "thermal_metrics"),),
    "power_subsystem": LINKS["power_subsystem"],
    "power_supply": (RedfishLink("Metrics", "psu_metrics"),),
}
"""what is read again and again: readings and power supplies alone"""

POWER_ELSEWHERE: dict[str, tuple[RedfishLink, ...]] = {
    "root": TELEMETRY["root"],
    "chassis": (
        RedfishLink("Sensors", "sensor", many=True, only=WHOLE_POWER),
        RedfishLink("PowerSubsystem", "power_subsystem"),
    ),
    "power_subsystem": LINKS["power_subsystem"],
    "power_supply": (RedfishLink("Metrics", "psu_metrics"),),
    "psu_metrics": (RedfishLink("OutputPowerWatts/DataSourceUri", "psu_sensor", unless="OutputPowerWatts/Reading"),),
}
"""what is read where those say no power: DGX H100's PowerControl has none"""

SKIPPED: dict[str, re.Pattern[str]] = {
    # an HGX board has some forty: each GPU, switch, retimer and root of trust
    "chassis": re.compile(r"^HGX_|[EI]RoT|CPLD", re.IGNORECASE),
    "manager": re.compile(r"^HGX_", re.IGNORECASE),
}
"""members of a collection that tell nothing of the node, by the end of their path"""

_MEGARAC = "AMI"
NO_EXPAND: tuple[dict[str, str], ...] = (
    {"Vendor": _MEGARAC, "RedfishVersion": "1.11.0"},
    {"Vendor": _MEGARAC, "Oem/Ami/RtpVersion": "13.09.1"},
)
"""service roots of BMCs that offer $expand and then leave out of members what is required, and who knows what else:
DGX H100's, GB300's (NVIDIA's nv-redfish, bmc_quirks.rs; by it its maker's other BMCs do it right)
"""
PIECES = frozenset({_MEGARAC})
"""`Vendor` of whose BMCs some do so: all that is required is looked for in each member"""

BOARD = re.compile(r"^HGX_", re.IGNORECASE)
"""computer systems that are none: no host boots there"""
TAKEN_BY_A_JOB = re.compile(r"^dell", re.IGNORECASE)
"""makers whose BIOS takes settings by a job alone: an apply time makes it or, where none is said, a POST"""
NOT_A_HOST = frozenset({"DPU", "OS", "Virtual"})
"""`SystemType`"""

INLETS = (re.compile(r"ambient|front[ _](panel|io)", re.IGNORECASE), re.compile(r"inlet|intake", re.IGNORECASE))
"""names of the sensor of the air that comes in, the surest first"""
OF_A_PART = re.compile(r"cpu|dimm|gpu|_gb\d|pdb|psu|p/s|hsc", re.IGNORECASE)
"""sensors that are none of the whole node's, by their names"""
PARTS = frozenset({"GPU", "PowerSupply"})
"""and by their `PhysicalContext`"""
WHOLE = frozenset({"Chassis", "SystemBoard"})
"""`PhysicalContext` of a power that is the node's"""
UNITS = {"Temperature": "Cel", "Power": "W"}
"""by `ReadingType`: DGX H100's sensors have no ReadingUnits"""
SUPPLY_WATTS = ("InputPowerWatts/Reading", "OutputPowerWatts/Reading")

NAMES = ("Id", "MemberId", "Name")
SERIALS = ("SerialNumber", "Oem/Hpe/SerialNumber")
SERVICE_TAG = "Oem/Dell/DellSystem/NodeID"
WHOLE_CHASSIS = frozenset({"RackMount", "Shelf", "Sled", "Blade", "StandAlone", "Other"})
"""`ChassisType` of what is one node, and no board or module of it: GB200's is a Shelf, DGX H100's Other"""
MACS = (
    "PermanentMACAddress",
    "MACAddress",
    "Ethernet/AssociatedMACAddresses",
    "Ethernet/PermanentMACAddress",
    "AssociatedNetworkAddresses",
)
NOT_A_PORT = re.compile(r"usb|host_?interface|to_?manager", re.IGNORECASE)
"""interfaces between host and BMC"""
SPEEDS = (("CurrentSpeedGbps", 1.0), ("CurrentLinkSpeedMbps", 0.001), ("SpeedMbps", 0.001))
"""(property, in Gb/s)"""
MEMORY_SIZES = (("CapacityMiB", 1 / 1024), ("SizeMB", 1 / 1024))
"""(property, in GiB)"""
DIMM_NAMES = ("DeviceLocator", "SocketLocator", "Id", "Name")
NOT_A_DIMM = frozenset({"HBM", "HBM2", "HBM2E", "HBM3", "GDDR", "GDDR6", "IntelOptane"})
"""`MemoryDeviceType`"""
OWN_DRIVES = ("Oem/Hpe/Links/SmartStorage", "Oem/Hpe/SmartStorage", "Oem/Hp/Links/SmartStorage")
"""HPE's list of drives until iLO 5, which isn't read: what it has may be missing in Redfish's own"""
VIRTUAL_DRIVE = re.compile(r"virtual", re.IGNORECASE)
"""models of drives that the BMC itself plugs in: AMI lists those of its virtual media"""
LANES = (
    ("SystemInterface/PCIe/LanesInUse", "SystemInterface/PCIe/MaxLanes"),
    ("PCIeInterface/LanesInUse", "PCIeInterface/MaxLanes"),
)
"""(in use, at most)"""
LINE_INPUT = {"Normal": True, "LossOfInput": False, "OutOfRange": False}
"""`LineInputStatus`: whether there is input"""
NEEDED = ("MinNeededInGroup", "MinNumNeeded")
GROUP_SIZES = ("MaxSupportedInGroup", "MaxNumSupported")
GROUP_MEMBERS = ("RedundancyGroup", "RedundancySet")
REDUNDANCY_KINDS = ("RedundancyType", "Mode")
ABSENT = "Absent"
LOST = frozenset({"UnavailableOffline", "Disabled"})
"""`Status.State` of a processor that is plugged in and not on the bus"""
GPU_DEVICES = frozenset({"GPU"})
"""HPE's `DeviceType`"""
GPU_MAKERS = re.compile(r"nvidia|10de", re.IGNORECASE)
GPU_CARD = re.compile(r"GPU ?\d+", re.IGNORECASE)
"""Supermicro's name of a GPU's card, of which it doesn't say the maker"""
NOT_A_GPU = re.compile(
    r"connectx|mellanox|bluefield|mcx|nv[ -]?switch|nv[ -]?link|infiniband|ethernet|bridge|hca|hdmi|audio|retimer|"
    r"gpu (base ?)?board|hgx .*\b\d+[ -]gpus?\b",
    re.IGNORECASE,
)
"""other things of the same maker, by their names: HPE lists an HGX board (NVIDIA HGX A100 8 GPU 40) and its switches"""
NO_NAME = "Software Inventory"
"""of each firmware of an NVIDIA HGX, GB200 or BlueField BMC: its Id says which"""
NOT_INSTALLED = re.compile(
    r"^(previous|current|available|rollback)-|pending|golden|backup|capsule|staged", re.IGNORECASE
)
"""firmware that is listed and doesn't run, or is listed once more (Dell's Current- beside Installed-), by its Id"""
