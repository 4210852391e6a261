"""GPU models, server platforms and NVSwitch boards."""

import functools
import re
from dataclasses import dataclass

from ironburst.catalog.errors import look_up
from ironburst.catalog.tables import Row, filled, integer, table


@dataclass(frozen=True)
class Gpu:
    """One GPU model. Memory in GB as marketed, power in W, NVLink in GB/s (both directions); None is unknown."""

    model: str
    architecture: str
    compute_capability: str | None
    memory_gb: int | None
    form_factor: str | None
    tdp_w: float | None
    nvlink_total_gb_s: float | None
    nvlink_topology: str | None
    nvswitch_needed: str | None
    mig_max_instances: int | None
    mig_min_driver: str | None
    open_kernel_module: str
    """not_supported, allowed or required"""
    open_first_driver: str | None
    min_driver: str | None
    min_driver_branch: int | None
    last_driver_branch: int | None
    """None: still supported"""
    cuda_first: str | None
    cuda_last: str | None
    pci_device_ids: tuple[str, ...]
    cloud_families: tuple[str, ...]
    notes: str | None
    source: str

    @property
    def nvlink(self) -> bool | None:
        """NVLink joins all GPUs of a node. Bridges between some don't, and nobody declares whether they are there."""
        wired = self.nvlink_topology
        return None if wired is None else "switch" in wired or wired == "mesh"


@dataclass(frozen=True)
class Platform:
    """One server model, as its maker states it (power in W, heat in BTU/h, weight in kg); None is unknown."""

    slug: str
    name: str
    vendor: str
    kind: str
    gpu: Gpu
    gpu_count: int
    gpu_memory_total_gb: int | None
    gpu_power_floor_w: float | None
    nvswitch_count: int | None
    height_u: int | None
    """rack units"""
    max_power_w: float | None
    psu_count: int | None
    psu_watts_each: float | None
    psu_redundancy: str | None
    heat_btu_h_plan: float | None
    airflow_cfm: float | None
    inlet_min_c: float | None
    inlet_max_c: float | None
    weight_kg: float | None
    depth_mm: float | None
    cooling: str | None
    """air or liquid"""
    system_memory_gb: int | None
    compute_nics: str | None
    notes: str | None
    source: str

    @property
    def gpu_model(self) -> str:
        """The name of its GPU in the catalogue."""
        return self.gpu.model

    @property
    def psus_needed(self) -> int | None:
        """4 of 4+2: supplies that are enough to carry it."""
        stated = re.match(r"(\d+)\+\d+", self.psu_redundancy or "")
        return int(stated[1]) if stated else None

    @property
    def fabric_links(self) -> int | None:
        """How many ports the compute fabric has in this server."""
        count = re.match(r"(\d+)(x| InfiniBand)", self.compute_nics or "")
        return int(count[1]) if count else None


@dataclass(frozen=True)
class Board:
    """What wires the GPUs of a node, and the software that it needs. None is unknown."""

    nvswitch: bool | None
    """NVSwitches on the node itself, so fabric manager"""
    nvlsm: bool | None
    imex: bool | None
    row: str | None
    """platform in nvswitch_pci.csv"""


def slug(name: str) -> str:
    """The name as it is written in a declaration: "generic HGX H100 8-GPU" -> "generic-hgx-h100-8-gpu"."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


@functools.cache
def gpus() -> dict[str, Gpu]:
    """All GPU models by name."""
    return {row["model"]: filled(Gpu, row) for row in table("gpus.csv").rows}


def gpu(model: str) -> Gpu:
    """The GPU with this name ("H100 SXM5 80GB"); raises Unknown."""
    return look_up("GPU model", model, gpus())


@functools.cache
def platforms() -> dict[str, Platform]:
    """All server platforms by slug."""
    return {slug(row["platform"]): _platform(row) for row in table("platforms.csv").rows}


def _platform(row: Row) -> Platform:
    return filled(
        Platform,
        row,
        slug=slug(row["platform"]),
        name=row["platform"],
        gpu=gpu(row["gpu_model"]),
        gpu_count=int(row["gpus"]),
        height_u=integer(row, "rack_units"),
    )


def platform(name: str) -> Platform:
    """The server platform with this slug ("dgx-h100"); raises Unknown."""
    return look_up("platform", name, platforms())


# (form factor, word in the model's name) -> row of nvswitch_pci.csv, for boards with NVSwitches in the node or the rack
_BOARDS = {
    ("SXM3", "V100"): "DGX-2, Lambda Hyperplane-16 (V100 SXM3)",
    ("SXM4", "A100"): "HGX/DGX A100 8-GPU",
    ("SXM5", "H100"): "HGX/DGX H100, H200 8-GPU",
    ("SXM5", "H200"): "HGX/DGX H100, H200 8-GPU",
    ("SXM5", "H20"): "HGX/DGX H100, H200 8-GPU",
    ("SXM6", "B200"): "HGX/DGX B200 8-GPU",
    ("SXM6", "B300"): "HGX/DGX B300 8-GPU",
    ("superchip tray", "GB200"): "GB200/GB300 NVL compute tray",
    ("superchip tray", "GB300"): "GB200/GB300 NVL compute tray",
}


def nvswitch_pci_ids() -> tuple[str, ...]:
    """PCI ids ("10de:22a3") by which NVSwitches are recognised.
    NVLink5 switches have none: text in the bridge's VPD identifies them.
    """
    rows = table("nvswitch_pci.csv").rows
    return tuple(
        row["vendor_device_id"]
        for row in rows
        if row["is_switch"] == "yes" and re.match(r"10de:\w{4}$", row["vendor_device_id"])
    )


def board(model: Gpu, count: int) -> Board:
    """How `count` GPUs of this model in one node are wired.
    Fewer than 8 of an "8-gpu board" are meshed, without NVSwitch.
    """
    needed = model.nvswitch_needed
    if needed is None:
        return Board(None, None, None, None)
    if needed == "no" or (needed == "8-gpu board" and count < 8):
        return Board(False, False, False, None)
    key = (model.form_factor or "", model.model.split()[0])
    rows = {row["platform"]: row for row in table("nvswitch_pci.csv").rows}
    row = rows[_BOARDS[key]]
    return Board(row["fabric_manager"] == "yes", row["nvlsm"] == "yes", row["imex"] == "yes", row["platform"])
