"""What the version lock speaks of: groups of equal nodes, what is wished for them, the exact set that they get, and
broken rules.

All frozen. None is unknown (or, in a wish, "not said"), never zero; ABSENT is known to be absent.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

ABSENT = "absent"
OS_TARGETS = ("debian12", "debian13", "ubuntu2204", "ubuntu2404", "rhel8", "rhel9")


class Gpu(Protocol):
    """What the rules read of a GPU model; catalog.Gpu fits. None is unknown."""

    @property
    def model(self) -> str: ...
    @property
    def architecture(self) -> str: ...
    @property
    def open_kernel_module(self) -> str: ...
    @property
    def open_first_driver(self) -> str | None: ...
    @property
    def min_driver(self) -> str | None: ...
    @property
    def min_driver_branch(self) -> int | None: ...
    @property
    def last_driver_branch(self) -> int | None: ...
    @property
    def cuda_first(self) -> str | None: ...
    @property
    def cuda_last(self) -> str | None: ...
    @property
    def mig_max_instances(self) -> int | None: ...
    @property
    def mig_min_driver(self) -> str | None: ...
    @property
    def pci_device_ids(self) -> tuple[str, ...]: ...


class Board(Protocol):
    """What the GPUs are wired with; catalog.Board fits."""

    @property
    def nvswitch(self) -> bool | None: ...
    @property
    def nvlsm(self) -> bool | None: ...
    @property
    def imex(self) -> bool | None: ...


@dataclass(frozen=True)
class NoBoard:
    """No GPU, so nothing to wire."""

    nvswitch: bool | None = False
    nvlsm: bool | None = False
    imex: bool | None = False


class Rule(Protocol):
    """catalog.Rule fits."""

    @property
    def id(self) -> str: ...
    @property
    def severity(self) -> str: ...
    @property
    def message(self) -> str: ...


class Cuda(Protocol):
    """catalog.Cuda fits."""

    @property
    def compat_floor_driver(self) -> str | None: ...


class Branch(Protocol):
    """catalog.DriverBranch fits. `status` is supported, eol or unknown; `eol` is "YYYY-MM"."""

    @property
    def branch(self) -> int: ...
    @property
    def type(self) -> str | None: ...
    @property
    def eol(self) -> str | None: ...
    @property
    def status(self) -> str: ...
    @property
    def cuda_major_max(self) -> int | None: ...
    @property
    def cuda_native(self) -> str | None: ...
    @property
    def example_versions(self) -> tuple[str, ...]: ...


class MigProfile(Protocol):
    """catalog.MigProfile fits: one profile of the GPUs with these PCI ids."""

    @property
    def pci_device_ids(self) -> tuple[str, ...]: ...
    @property
    def profile(self) -> str: ...
    @property
    def compute_slices(self) -> int | None: ...
    @property
    def max_instances(self) -> int | None: ...
    @property
    def config_name(self) -> str | None: ...


class Facts(Protocol):
    """What the catalogue knows of software; catalog.software_facts() fits."""

    @property
    def rules(self) -> Mapping[str, Rule]: ...
    @property
    def cuda(self) -> Mapping[str, Cuda]: ...
    @property
    def branches(self) -> Mapping[int, Branch]: ...
    @property
    def mig_profiles(self) -> tuple[MigProfile, ...]: ...
    @property
    def package_names(self) -> Mapping[str, Any]: ...
    @property
    def extra(self) -> Mapping[str, Any]: ...


@dataclass(frozen=True)
class Mig:
    """A MIG layout of some GPUs of a node: GPU indices, and {profile: instances} for each of them."""

    gpus: tuple[int, ...]
    profiles: Mapping[str, int]


@dataclass(frozen=True)
class Wish:
    """What a person asks for. `driver` is a branch ("580") or a full version; None: the solver chooses."""

    driver: str | None = None
    kernel_module: str = "auto"
    cuda: str | None = None
    container_toolkit: str | None = None
    dcgm: str | None = None
    nccl: str | None = None
    container_runtimes: tuple[str, ...] = ("containerd",)
    rdma: str = "inbox"
    peer_memory: str = "auto"
    gds: bool = False
    kernel: str | None = None
    slurm: str | None = None


@dataclass(frozen=True)
class Group:
    """Equal nodes. `span`: the partition whose jobs may run on any of its nodes. `gpu` None: a head node."""

    name: str
    nodes: tuple[str, ...]
    span: str
    os: str
    gpu: Gpu | None
    gpu_count: int
    board: Board
    fabric: str
    """infiniband, efa or none"""
    wish: Wish
    mig: tuple[Mig, ...] = ()
    secure_boot: bool | None = None


@dataclass(frozen=True)
class SoftwareSet:
    """The exact set of one group. None: not on these nodes (or, for `kernel`, not pinned)."""

    driver: str | None
    driver_branch: int | None
    kernel_module: str | None
    fabric_manager: str | None
    nscq: str | None
    nvlsm: bool
    imex: str | None
    persistenced: str | None
    cuda: str | None
    container_toolkit: str | None
    container_runtimes: tuple[str, ...]
    dcgm: str | None
    nccl: str | None
    rdma: str
    rdma_version: str | None
    peer_memory: str
    gds: bool
    kernel: str | None
    slurm: str | None
    packages: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """role: package specs in the OS's own syntax, without spaces"""


@dataclass(frozen=True)
class Hit:
    """One rule that is broken. `severity` is error or warning; `remedies` are changes that would mend it, tried by the
    solver.
    """

    id: str
    severity: str
    message: str
    group: str = ""
    remedies: tuple[str, ...] = ()

    def __str__(self) -> str:
        where = f"{self.group}: " if self.group else ""
        out = f"; ways out: {' | '.join(self.remedies)}" if self.remedies else ""
        return f"{where}{self.message}{out} ({self.id})"
