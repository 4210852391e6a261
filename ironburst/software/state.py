"""What a rule looks at: nodes, a fleet, a fabric, a cluster, thresholds;
declared or observed. None is unknown: it breaks no rule.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ironburst.software.model import Board, Gpu, Mig, NoBoard

UNKNOWN_BOARD = NoBoard(None, None, None)


@dataclass(frozen=True)
class NodeState:
    """One node, or a group of equal ones."""

    group: str = ""
    os: str | None = None
    gpu: Gpu | None = None
    gpu_count: int | None = None
    board: Board = UNKNOWN_BOARD
    driver: str | None = None
    kernel_module: str | None = None
    """open or proprietary"""
    cuda: str | None = None
    fabric_manager: str | None = None
    """its version, or ABSENT"""
    fabric_manager_active: bool | None = None
    nvlsm: bool | None = None
    imex: str | None = None
    """its version, or ABSENT"""
    loaded_modules: frozenset[str] | None = None
    kernel: str | None = None
    """release of the running (or pinned, or the OS's first) kernel"""
    rdma: str | None = None
    """inbox, doca-ofed, mlnx-ofed or efa"""
    ofed_kernels: tuple[str, ...] | None = None
    """kernel releases that the installed OFED supports"""
    peer_memory: str | None = None
    """dma-buf, peermem or none"""
    gds: bool | None = None
    secure_boot: bool | None = None
    module_build: str | None = None
    """dkms or precompiled"""
    module_key_enrolled: bool | None = None
    packages: Mapping[str, str] | None = None
    """name: version (a pattern, or empty) of NVIDIA's packages wanted or installed"""
    candidates: Mapping[str, str] | None = None
    """name: version that the package manager would install now"""
    package_source: str | None = None
    """vendor or distro: the repository of the driver"""
    not_held: tuple[str, ...] | None = None
    """packages of the locked stack that the package manager may change"""
    unattended_upgrades: str | None = None
    """off, excluded (the locked packages are) or on"""
    mig: tuple[Mig, ...] | None = None
    mig_enabled: bool | None = None
    dcgm_level: int | None = None
    """level of `dcgmi diag -r` that is to run"""


@dataclass(frozen=True)
class FabricState:
    """One InfiniBand fabric."""

    name: str
    masters: int | None = None
    """master subnet managers seen"""
    managers: tuple[str, ...] | None = None
    """hosts declared to run opensm, in order of priority; empty: the switches or UFM do"""
    opensm_hosts: tuple[str, ...] | None = None
    """hosts where opensm is enabled"""
    compute_hosts: tuple[str, ...] = ()
    partitions_conf: str | None = None
    """text of partitions.conf; None: unknown or no such file"""


@dataclass(frozen=True)
class ClusterState:
    """Settings of the scheduler or of Kubernetes that touch the stack of the nodes."""

    gres_autodetect: str | None = None
    mig_used: bool | None = None
    nvlink_affinity: bool | None = None
    operator_driver: bool | None = None
    """GPU Operator's driver.enabled"""
    operator_toolkit: bool | None = None
    host_driver: bool | None = None
    """the nodes have a driver of their own"""
    relies_on_plugin_for_xids: tuple[int, ...] | None = None
    """Xids for which nothing but the device plugin's own health check acts"""


@dataclass(frozen=True)
class DetectionState:
    """How a tool recognises NVSwitch boards: PCI ids, "10de:22a3"."""

    name: str
    pci_ids: tuple[str, ...]


@dataclass(frozen=True)
class ThresholdState:
    """One bandwidth threshold that an acceptance gate compares with."""

    name: str
    gpu: str | None
    kind: str = "bandwidth"
    """bandwidth, or dcgm-memory-bandwidth (DCGM's own minimum)"""
    minimum: float | None = None
    message_size: str | None = None
    nodes: int | None = None
    unit: str | None = None
    statistic: str | None = None
    """busbw-at-size, or average-over-sweep"""
