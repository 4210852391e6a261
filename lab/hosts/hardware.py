"""The hardware that a host sees: DMI and SMBIOS, PCI functions, /sys/class/infiniband. Simulated, in the shape of
sysfs.

`plan` is a pure function: hardware and identity in, {path: content} out. `write` puts it below a host's folder `hw`,
which lies over the host's /sys (lab-hw.service in the base image). A fault is a write into one of these files *in
place*: the host sees it at once. Every start of a host writes them anew, so a start repairs what `fail_*` broke.
"""

import shutil
import struct
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

NVIDIA, MELLANOX, AMAZON = 0x10DE, 0x15B3, 0x1D0F
H100, NVSWITCH, CONNECTX7, EFA = 0x2330, 0x22A3, 0x1021, 0xEFA2
MICROSOFT = "Microsoft Corporation"
AZURE_CHASSIS = "7783-7084-3265-9085-8269-3286-77"  # by which cloud-init's ds-identify knows a machine of Azure's
CLASS_3D, CLASS_BRIDGE, CLASS_INFINIBAND, CLASS_ETHERNET = 0x030200, 0x068000, 0x020700, 0x020000


@dataclass(frozen=True)
class Hardware:
    """What is in one machine. Counts of devices; `gpu_name` as nvidia-smi says it."""

    product: str
    vendor: str = "LabCorp (simulated)"
    gpus: int = 0
    gpu_device: int = H100  # PCI device id
    nvswitches: int = 0
    mlx5: int = 0  # InfiniBand HCAs, one 400 Gb/s port each
    efa: int = 0  # Elastic Fabric Adapters, 100 Gb/s each
    gvnics: int = 0  # Google's network cards beside the first: eth1, eth2, ...


HEAD = Hardware("Head-Node", mlx5=1)
HGX_H100 = Hardware("HGX-8H100", gpus=8, nvswitches=4, mlx5=8)
INSTANCE_TYPES = {  # only what the lab's stacks rent; any other type is a machine without GPUs
    "p5.48xlarge": Hardware("p5.48xlarge", vendor="Amazon EC2", gpus=8, nvswitches=4, efa=32),
    "p5.4xlarge": Hardware("p5.4xlarge", vendor="Amazon EC2", gpus=1, efa=1),
    # DMI as of every machine there, whatever its type
    "a3-highgpu-8g": Hardware("Google Compute Engine", vendor="Google", gpus=8, nvswitches=4, gvnics=4),
    "Standard_ND96isr_H100_v5": Hardware("Virtual Machine", vendor=MICROSOFT, gpus=8, nvswitches=4, mlx5=8),
}


def bare_metal(name: str) -> Hardware:
    """Hardware of a bare-metal host: a head or a login node, or else an HGX H100 machine with 8 GPUs."""
    return HEAD if name.startswith(("head", "login")) else HGX_H100


def instance(instance_type: str) -> Hardware:
    """Hardware of a cloud instance of this type: EC2's have a dot in their names, Azure's an underscore, Google's a
    hyphen.
    """
    if "_" in instance_type:
        return INSTANCE_TYPES.get(instance_type, Hardware("Virtual Machine", vendor=MICROSOFT))
    if "." not in instance_type:
        return INSTANCE_TYPES.get(instance_type, Hardware("Google Compute Engine", vendor="Google"))
    return INSTANCE_TYPES.get(instance_type, Hardware(instance_type, vendor="Amazon EC2"))


@dataclass(frozen=True)
class PciFunction:
    address: str  # 0000:18:00.0
    vendor: int
    device: int
    class_code: int
    numa_node: int


def pci_functions(hardware: Hardware) -> list[PciFunction]:
    """All PCI functions, by address. Cloud machines follow p5.48xlarge: four EFA devices, then their GPU, on
    neighbouring buses.
    """
    cloud = hardware.efa > 0
    gpu_bus = [0x53 + 0x11 * i if cloud else 0x18 + 0x10 * i for i in range(hardware.gpus)]
    efa_bus = [0x4F + 0x11 * (i // 4) + i % 4 for i in range(hardware.efa)]
    switch_bus = [0xD4 + i if cloud else 0xC4 + i for i in range(hardware.nvswitches)]
    hca_bus = [0x1A + 0x10 * i for i in range(hardware.mlx5)]

    def functions(buses: list[int], vendor: int, device: int, class_code: int) -> list[PciFunction]:
        half = (len(buses) + 1) // 2  # first half of each kind at the first socket
        return [
            PciFunction(f"0000:{bus:02x}:00.0", vendor, device, class_code, int(i >= half))
            for i, bus in enumerate(buses)
        ]

    present = (
        functions(gpu_bus, NVIDIA, hardware.gpu_device, CLASS_3D)
        + functions(switch_bus, NVIDIA, NVSWITCH, CLASS_BRIDGE)
        + functions(hca_bus, MELLANOX, CONNECTX7, CLASS_INFINIBAND)
        + functions(efa_bus, AMAZON, EFA, CLASS_ETHERNET)
    )
    return sorted(present, key=lambda function: function.address)


def _pci_files(function: PciFunction) -> dict[str, str | bytes]:
    folder = f"pci/{function.address}"
    cls = function.class_code
    class_bytes = (cls & 255, cls >> 8 & 255, cls >> 16)
    identity = struct.pack("<HHHHBBBB", function.vendor, function.device, 0x0006, 0x0010, 0xA1, *class_bytes)
    subsystem = struct.pack("<HH", function.vendor, 1)
    config = identity.ljust(0x2C, b"\0") + subsystem + bytes(16)  # 64 bytes: a standard header
    return {
        f"{folder}/vendor": f"0x{function.vendor:04x}",
        f"{folder}/device": f"0x{function.device:04x}",
        f"{folder}/class": f"0x{cls:06x}",
        f"{folder}/subsystem_vendor": f"0x{function.vendor:04x}",
        f"{folder}/subsystem_device": "0x0001",
        f"{folder}/revision": "0xa1",
        f"{folder}/irq": "0",
        f"{folder}/numa_node": str(function.numa_node),
        f"{folder}/config": config,
        f"{folder}/resource": "\n".join(["0x0 0x0 0x0"] * 7),
    }


def rdma_devices(hardware: Hardware) -> dict[str, PciFunction]:
    """RDMA device name -> its PCI function: mlx5_0... for HCAs, rdmap79s0... (named after the bus) for EFA."""
    functions = pci_functions(hardware)
    hcas = [f for f in functions if f.vendor == MELLANOX]
    adapters = [f for f in functions if f.device == EFA]
    return {f"mlx5_{i}": f for i, f in enumerate(hcas)} | {f"rdmap{int(f.address[5:7], 16)}s0": f for f in adapters}


def _rdma_files(name: str, function: PciFunction, host: str, host_number: int, lid: int) -> dict[str, str]:
    folder = f"class/infiniband/{name}"
    guid = f"0010:00ff:fe{host_number >> 8 & 255:02x}:{host_number & 255:02x}{int(function.address[5:7], 16):02x}"
    if function.vendor == AMAZON:
        kind = {"node_type": "7: <unknown>", "hca_type": "EFA", "fw_ver": "0.0.0.0", "node_desc": f"{host} {name}"}
        port = {"rate": "100 Gb/sec (4X EDR)", "link_layer": "Unspecified", "lid": "0x0", "sm_lid": "0x0"}
    else:
        kind = {
            "node_type": "1: CA",
            "hca_type": "MT4129",
            "board_id": "LAB0000000001",
            "fw_ver": "28.42.1000",
            "node_desc": f"{host} {name}",
        }
        port = {"rate": "400 Gb/sec (4X NDR)", "link_layer": "InfiniBand", "lid": f"0x{lid:x}", "sm_lid": "0x1"}
    files = {"node_guid": guid, "sys_image_guid": guid} | kind
    files |= {f"ports/1/{key}": value for key, value in port.items()}
    files |= {
        "ports/1/state": "4: ACTIVE",
        "ports/1/phys_state": "5: LinkUp",
        "ports/1/gids/0": f"fe80:0000:0000:0000:{guid}",
    }
    files |= {
        f"ports/1/counters/{counter}": "0"
        for counter in ("symbol_error", "link_downed", "link_error_recovery", "port_rcv_errors")
    }
    return {f"{folder}/{key}": value for key, value in files.items()}


def _smbios(dmi: dict[str, str]) -> tuple[bytes, bytes]:
    """SMBIOS 3.2 (entry point, table), as dmidecode reads them, with the same facts as the DMI files."""

    def structure(kind: int, handle: int, fixed: bytes, *strings: str) -> bytes:
        text = b"".join(value.encode() + b"\0" for value in strings) + b"\0" if strings else b"\0\0"
        return struct.pack("<BBH", kind, 4 + len(fixed), handle) + fixed + text

    vendor, product = dmi["sys_vendor"], dmi["product_name"]
    bios = (dmi["bios_vendor"], dmi["bios_version"], dmi["bios_date"])
    system = (vendor, product, dmi["product_version"], dmi["product_serial"])
    board = (vendor, dmi["board_name"], dmi["board_serial"], dmi["board_asset_tag"])
    chassis = (vendor, dmi["chassis_serial"], dmi["chassis_asset_tag"])
    system_uuid = uuid.UUID(dmi["product_uuid"]).bytes_le
    table = structure(0, 0, bytes([1, 2, 0, 0, 3, 0]) + bytes(14), *bios)
    table += structure(1, 1, bytes([1, 2, 3, 4]) + system_uuid + bytes([6, 0, 0]), *system)
    table += structure(2, 2, bytes([1, 2, 0, 3, 4]), *board)
    table += structure(3, 3, bytes([1, 23, 0, 2, 3]), *chassis)
    table += structure(127, 4, b"")
    entry = bytearray(b"_SM3_" + bytes([0, 24, 3, 2, 0, 1, 0]) + struct.pack("<IQ", len(table), 0))
    entry[5] = -sum(entry) & 255  # checksum: all bytes add up to 0
    return bytes(entry), table


# Runs in the host before sysinit: nspawn gives it a read-only tmpfs as /sys with parts of sysfs, and no /sys/firmware
MOUNT_SCRIPT = """set -e
over() { mount -t overlay -o "ro,lowerdir=$1:$2" lab-hw "$2"; }
mount -o remount,rw /sys; mkdir -p /sys/firmware; mount -o remount,ro /sys
mount --bind /lab-hw/firmware /sys/firmware
mount --bind /lab-hw/pci /sys/bus/pci/devices
over /lab-hw/devices-virtual /sys/devices/virtual
over /lab-hw/class /sys/class
"""


def plan(hardware: Hardware, name: str, serial: str, system_uuid: str, address: str) -> dict[str, str | bytes]:
    """All files of a host's hardware, {path below hw/: content}; text gets a newline when written.

    `name` is the host's name, or the instance id of a cloud machine (its board asset tag, as on EC2).
    """
    number = int.from_bytes(bytes(int(part) for part in address.split(".")[2:]), "big")  # host part of a /16
    dmi = {
        "sys_vendor": hardware.vendor,
        "product_name": hardware.product,
        "product_serial": serial,
        "product_uuid": system_uuid,
        "product_version": "1",
        "product_family": "lab",
        "board_vendor": hardware.vendor,
        "board_name": "LAB-X1",
        "board_serial": f"B-{serial}",
        "board_version": "1",
        "board_asset_tag": name,
        "chassis_vendor": hardware.vendor,
        "chassis_type": "23",
        "chassis_serial": f"C-{serial}",
        "chassis_asset_tag": AZURE_CHASSIS if hardware.vendor == MICROSOFT else name,
        "bios_vendor": hardware.vendor,
        "bios_version": "1.0",
        "bios_date": "01/01/2026",
    }
    entry, table = _smbios(dmi)
    files: dict[str, str | bytes] = {
        "mount.sh": MOUNT_SCRIPT,
        "firmware/dmi/tables/DMI": table,
        "firmware/dmi/tables/smbios_entry_point": entry,
    }
    files |= {f"devices-virtual/dmi/id/{key}": value for key, value in dmi.items()}
    for function in pci_functions(hardware):
        files |= _pci_files(function)
    for lid, (device, function) in enumerate(rdma_devices(hardware).items(), 1):
        files |= _rdma_files(device, function, name, number, lid)
    return files


def write(folder: Path, hardware: Hardware, name: str, serial: str, system_uuid: str, address: str) -> None:
    """Write `plan` below `folder` (made anew), and the links that sysfs has."""
    shutil.rmtree(folder, ignore_errors=True)
    for path in ("pci", "class", "devices-virtual"):
        (folder / path).mkdir(parents=True)
    _write_files(folder, plan(hardware, name, serial, system_uuid, address))
    (folder / "class/dmi").mkdir()
    (folder / "class/dmi/id").symlink_to("../../devices/virtual/dmi/id")
    for device, function in rdma_devices(hardware).items():
        (folder / "class/infiniband" / device / "device").symlink_to(f"../../../bus/pci/devices/{function.address}")
    for number in range(1, hardware.gvnics + 1):  # the interface itself is real
        card = folder / f"devices-virtual/net/eth{number}/device"
        card.mkdir(parents=True)
        (card / "driver").symlink_to("../../../../bus/pci/drivers/gve")


def _write_files(folder: Path, files: Mapping[str, str | bytes]) -> None:
    for path, content in files.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content if isinstance(content, bytes) else content.rstrip("\n").encode() + b"\n")


# --- faults: `folder` is a host's hw/ --------------------------------------------------------------------------------


def set_link(folder: Path, device: str, up: bool) -> None:
    """Let the port of an RDMA device go down or come up, as sysfs shows it."""
    port = folder / "class/infiniband" / device / "ports/1"
    shown = (
        {"state": "4: ACTIVE", "phys_state": "5: LinkUp"} if up else {"state": "1: DOWN", "phys_state": "3: Disabled"}
    )
    for name, value in shown.items():
        with (port / name).open("r+") as handle:  # in place: the host would not see a rename
            handle.truncate()
            handle.write(value + "\n")


def gpus_of(hardware: Hardware) -> set[str]:
    """PCI addresses of the GPUs that belong in it."""
    return {function.address for function in pci_functions(hardware) if function.class_code == CLASS_3D}


def gpus_on_the_bus(folder: Path) -> set[str]:
    """PCI addresses of the GPUs that it shows."""
    classes = (folder / "pci").glob("*/class")
    return {path.parent.name for path in classes if path.read_text().strip() == f"0x{CLASS_3D:06x}"}


def remove_gpu(folder: Path, index: int = 0) -> str:
    """Let a GPU fall off the bus: lspci and nvidia-smi show one less. Returns its PCI address."""
    address = sorted(gpus_on_the_bus(folder))[index]
    shutil.rmtree(folder / "pci" / address)
    return address


def repair_gpus(folder: Path, hardware: Hardware) -> None:
    """Every GPU that fell off is on the bus again."""
    fell = gpus_of(hardware) - gpus_on_the_bus(folder)
    for function in pci_functions(hardware):
        if function.address in fell:
            _write_files(folder, _pci_files(function))


def links_down(folder: Path) -> list[str]:
    """RDMA devices whose port is down."""
    states = sorted((folder / "class/infiniband").glob("*/ports/1/state"))
    return [path.parts[-4] for path in states if "DOWN" in path.read_text()]
