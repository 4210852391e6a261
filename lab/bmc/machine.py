"""The hardware behind a BMC of the lab."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Machine:
    """The hardware that a BMC reports; memory in GiB. Parts are counted from 1: `missing_dimms` are empty sockets,
    `lost_gpus` fell off the bus, `dead_psus` have no input. `vendor`: whose BMC it is, of lab/bmc/vendors.py.
    """

    name: str
    serial: str
    uuid: str
    macs: tuple[str, ...]
    manufacturer: str = "LabCorp (simulated)"
    model: str = "HGX-8H100"
    gpus: int = 8
    gpu_model: str = "NVIDIA H100 80GB HBM3"
    cpus: int = 2
    cpu_model: str = "Intel(R) Xeon(R) Platinum 8480C"
    memory_gib: int = 2048
    vendor: str = "lab"
    dimms: int = 8
    missing_dimms: tuple[int, ...] = ()
    lost_gpus: tuple[int, ...] = ()
    gpu_lanes: int = 16
    psus: int = 6
    psu_watts: int = 3300
    dead_psus: tuple[int, ...] = ()
    drives: int = 4
    hcas: int = 8
    height_u: int = 8
    bios_version: str = "1.0"
    bmc_version: str = "lab-1.0"
    gpu_firmware: str = "96.00.5E.00.01"

    @property
    def memory_there_gib(self) -> int:
        """Without the missing DIMMs."""
        return self.memory_gib - len(self.missing_dimms) * self.memory_gib // max(1, self.dimms)
