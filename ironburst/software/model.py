"""What the version lock speaks of: groups of equal nodes, what is wished for them,
the exact set that they get, and broken rules.

All frozen. None is unknown (in a wish: no wish), never zero; ABSENT is known to be absent.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

ABSENT = "absent"
Os = Literal["debian12", "debian13", "ubuntu2204", "ubuntu2404", "rhel9", "rhel10"]
"""What a node may run; the catalogue and the playbooks have the same ones (tests)."""


class Gpu(Protocol):
    """What the rules read of a GPU model; catalog.Gpu fits. None is unknown."""

    @property
    def model(self) -> str:
        """The catalogue's name: "H100 SXM5 80GB"."""

    @property
    def architecture(self) -> str:
        """NVIDIA's: "Hopper"."""

    @property
    def open_kernel_module(self) -> str:
        """not_supported, allowed or required."""

    @property
    def open_first_driver(self) -> str | None:
        """The first driver whose open module knows it."""

    @property
    def min_driver(self) -> str | None:
        """The first driver that knows it."""

    @property
    def min_driver_branch(self) -> int | None:
        """The first branch that knows it, where the version is not known."""

    @property
    def cuda_first(self) -> str | None:
        """The first CUDA for it, major.minor."""

    @property
    def cuda_last(self) -> str | None:
        """The last CUDA for it, major.minor."""

    @property
    def mig_max_instances(self) -> int | None:
        """0: it has no MIG."""

    @property
    def mig_min_driver(self) -> str | None:
        """The first driver with MIG on it."""

    @property
    def pci_device_ids(self) -> tuple[str, ...]:
        """Hexadecimal, without the vendor: "2330"."""


class Board(Protocol):
    """What the GPUs are wired with; catalog.Board fits."""

    @property
    def nvswitch(self) -> bool | None:
        """NVSwitches on the node itself, so fabric manager."""

    @property
    def nvlsm(self) -> bool | None:
        """NVLink5 switches, so NVLink's subnet manager."""

    @property
    def imex(self) -> bool | None:
        """NVLink beyond the node, so IMEX."""


@dataclass(frozen=True)
class NoBoard:
    """No GPU, so nothing to wire."""

    nvswitch: bool | None = False
    nvlsm: bool | None = False
    imex: bool | None = False


class Rule(Protocol):
    """catalog.Rule fits."""

    @property
    def id(self) -> str:
        """As in DRV-001."""

    @property
    def severity(self) -> str:
        """error or warning."""

    @property
    def message(self) -> str:
        """What to do about it."""


class Cuda(Protocol):
    """catalog.Cuda fits."""

    @property
    def compat_floor_driver(self) -> str | None:
        """The oldest driver that runs any CUDA of this major version."""


class Branch(Protocol):
    """catalog.DriverBranch fits. `status` is supported, eol or unknown; `eol` is "YYYY-MM"."""

    @property
    def branch(self) -> int:
        """Its number: 580."""

    @property
    def type(self) -> str | None:
        """NVIDIA's word: LTSB for a long-term one."""

    @property
    def eol(self) -> str | None:
        """The month of its end, "YYYY-MM"."""

    @property
    def status(self) -> str:
        """supported, eol or unknown, at the date of the data."""

    @property
    def cuda_major_max(self) -> int | None:
        """The major version of CUDA that the driver itself has."""

    @property
    def cuda_native(self) -> str | None:
        """The toolkit that came with it, major.minor."""

    @property
    def example_versions(self) -> tuple[str, ...]:
        """Full versions that are known of it."""


class Bulletin(Protocol):
    """catalog.Bulletin fits: drivers of `branch` older than `fixed` have its `cves`."""

    @property
    def bulletin(self) -> str:
        """NVIDIA's number of it."""

    @property
    def updated(self) -> str:
        """YYYY-MM-DD."""

    @property
    def branch(self) -> int:
        """Of the driver."""

    @property
    def fixed(self) -> str:
        """The first version with the fixes."""

    @property
    def cves(self) -> tuple[str, ...]:
        """Their ids."""

    @property
    def cvss_max(self) -> float | None:
        """The worst one's score."""


class MigProfile(Protocol):
    """catalog.MigProfile fits: one profile of the GPUs with these PCI ids."""

    @property
    def pci_device_ids(self) -> tuple[str, ...]:
        """The GPUs that have it."""

    @property
    def profile(self) -> str:
        """As in 1g.10gb."""

    @property
    def compute_slices(self) -> int | None:
        """Of the GPU's seven."""

    @property
    def max_instances(self) -> int | None:
        """On one GPU."""

    @property
    def config_name(self) -> str | None:
        """What GPU Operator calls a GPU full of it: all-1g.10gb."""


class Facts(Protocol):
    """What the catalogue knows of software; catalog.software_facts() fits."""

    @property
    def rules(self) -> Mapping[str, Rule]:
        """By id."""

    @property
    def cuda(self) -> Mapping[str, Cuda]:
        """By version: 12.8, 12.8u1."""

    @property
    def branches(self) -> Mapping[int, Branch]:
        """By number."""

    @property
    def bulletins(self) -> tuple[Bulletin, ...]:
        """An entry for each branch that a bulletin names, oldest bulletin first."""

    @property
    def mig_profiles(self) -> tuple[MigProfile, ...]:
        """Of all GPUs."""

    @property
    def package_names(self) -> Mapping[str, Any]:
        """package_names.yaml."""

    @property
    def extra(self) -> Mapping[str, Any]:
        """software.yaml: profiles, known versions, the distributions' packages and kernels."""


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
    scheduler: str = "slurm"
    """slurm or kubernetes: whose version these nodes need; the other's is None"""
    slurm: str | None = None
    slurm_packages: str | None = None
    """distribution or schedmd: whose packages Slurm's are; None: the system's where it has the release"""
    kubernetes: str | None = None


@dataclass(frozen=True)
class Group:
    """Equal nodes. `span`: the partition whose jobs may run on any of its nodes. `gpu` None: a head or login node."""

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
    dgx_os: bool = False
    """its driver, Docker and kernels are what is on the nodes already"""
    login: bool = False


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
    kubernetes: str | None = None
    slurm_packages: str = "distribution"
    """or schedmd"""
    packages: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """role: package specs in the OS's own syntax, without spaces"""


@dataclass(frozen=True)
class Hit:
    """One rule that is broken. `severity` is error or warning;
    `remedies` are changes that would mend it, tried by the solver.
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
