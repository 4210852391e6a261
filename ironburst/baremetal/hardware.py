"""What a node's BMC reports, as plain data. None, here: the BMC does not say."""

from dataclasses import dataclass

from ironburst.baremetal.bios import Bios


@dataclass(frozen=True)
class GpuGroup:
    """`count` GPUs with the same reported name, such as "NVIDIA H100 80GB HBM3"; empty: without a name."""

    model: str
    count: int


@dataclass(frozen=True)
class GpuDevice:
    """One GPU; `lanes` of PCIe in use, and at most."""

    id: str
    model: str | None
    serial: str | None
    lanes: int | None
    max_lanes: int | None
    health: str | None


@dataclass(frozen=True)
class Dimm:
    """One memory module that is there."""

    id: str
    gib: int | None
    serial: str | None
    health: str | None


@dataclass(frozen=True)
class Port:
    """One network port; InfiniBand ports have no `mac`."""

    id: str
    mac: str | None
    gbps: float | None
    link: str | None


@dataclass(frozen=True)
class Drive:
    """One local drive."""

    id: str
    gb: int | None
    model: str | None
    serial: str | None
    health: str | None


@dataclass(frozen=True)
class PowerSupply:
    """One power supply that is plugged in."""

    id: str
    watts: float | None
    has_input: bool | None
    health: str | None


@dataclass(frozen=True)
class Slot:
    """A PCIe slot, and whether something is in it."""

    id: str
    lanes: int | None
    filled: bool | None


@dataclass(frozen=True)
class Sensor:
    """A reading, in `unit` (Cel, W); `context` is Redfish's PhysicalContext ("Intake", "GPU")."""

    name: str
    reading: float
    unit: str
    context: str | None = None


@dataclass(frozen=True)
class Ill:
    """Something that is broken by the BMC's word, as `says` ends the sentence; `field`: the mismatch that it is.
    `rollup`: it, or something in it.
    """

    field: str
    name: str
    says: str
    rollup: bool = False


@dataclass(frozen=True)
class Component:
    """Something with firmware of its own; `path` is its document's, and a maker may put the version into it."""

    id: str
    name: str
    version: str | None
    path: str


@dataclass(frozen=True)
class Hardware:
    """One node's inventory as its BMC reports it. Empty tuples of parts may mean that there are none, or that the BMC
    doesn't say: then their name is in `not_said`.

    `serial` is the system's, or else that of its `serial_of` (chassis, board). Dell's customers know a machine by its
    `service_tag`, and so does its firmware; the serial number is that of its main board.
    `macs` are lower case and sorted; `memory_gib` is the total in GiB; `power_state` is Redfish's ("On", "Off",
    "PoweringOn"...); `free_sockets` for memory are those that it lists as empty;
    `psus_needed` of the power supplies carry the load; `firmware` is (name, version), `components`
    the same with what a minimum knows it by; `unread` lists what of its documents couldn't be read, in sentences.
    """

    serial: str | None
    manufacturer: str | None
    model: str | None
    uuid: str | None
    macs: tuple[str, ...]
    gpus: tuple[GpuGroup, ...]
    cpu_count: int
    memory_gib: int | None
    power_state: str | None
    bios_version: str | None
    bmc_version: str | None
    gpu_devices: tuple[GpuDevice, ...] = ()
    dimms: tuple[Dimm, ...] = ()
    free_sockets: int = 0
    ports: tuple[Port, ...] = ()
    drives: tuple[Drive, ...] = ()
    power_supplies: tuple[PowerSupply, ...] = ()
    psus_needed: int | None = None
    redundant: bool | None = None
    slots: tuple[Slot, ...] = ()
    sensors: tuple[Sensor, ...] = ()
    firmware: tuple[tuple[str, str], ...] = ()
    components: tuple[Component, ...] = ()
    bios: Bios | None = None
    height_u: int | None = None
    chassis_type: str | None = None
    serial_of: str = "system"
    service_tag: str | None = None
    not_said: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()
    ill: tuple[Ill, ...] = ()

    @property
    def gpu_count(self) -> int:
        """All GPUs, of whatever model."""
        return sum(group.count for group in self.gpus)
