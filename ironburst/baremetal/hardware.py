"""What a node's BMC reports, as plain data."""

from dataclasses import dataclass


@dataclass(frozen=True)
class GpuGroup:
    """`count` GPUs with the same reported name, such as "NVIDIA H100 80GB HBM3"."""

    model: str
    count: int


@dataclass(frozen=True)
class Hardware:
    """One node's inventory as its BMC reports it. None: the BMC does not say.

    `macs` are lower case and sorted; `memory_gib` is the total in GiB;
    `power_state` is Redfish's ("On", "Off", "PoweringOn"...).
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

    @property
    def gpu_count(self) -> int:
        """All GPUs, of whatever model."""
        return sum(group.count for group in self.gpus)
