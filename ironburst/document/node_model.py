"""What the document says of a kind of node, owned or rented: its GPUs, its software, its disks."""

from __future__ import annotations

from pydantic import Field

from ironburst.document.part import Part


class GpuDocument(Part):
    """The GPUs of one node; `model` as the catalogue names it."""

    model: str
    count: int
    memory_gb: float | None = Field(
        default=None, description="of each, as marketed; of rented ones the smallest part of one; null: unknown"
    )
    nvlink: bool | None = Field(default=None, description="it joins all GPUs of the node; null: unknown")
    pcie_width: int | None = Field(
        default=None, description="PCIe lanes that the machine wires to each; 0: all that a GPU has; null: unknown"
    )


class NodeSoftware(Part):
    """The exact set of one group of nodes, as the version lock solved it. None: not on these nodes (or, for `kernel`,
    not pinned). It names the fields of software.SoftwareSet again, because it is a contract with readers of any age.
    """

    driver: str | None
    driver_branch: int | None
    kernel_module: str | None
    fabric_manager: str | None
    nscq: str | None
    nvlsm: bool
    imex: str | None
    persistenced: str | None = None
    cuda: str | None
    container_toolkit: str | None
    container_runtimes: list[str]
    dcgm: str | None
    nccl: str | None
    rdma: str
    rdma_version: str | None
    peer_memory: str
    gds: bool
    kernel: str | None
    slurm: str | None
    kubernetes: str | None = Field(default=None, description="kubelet")
    slurm_packages: str = Field(default="distribution", description="whose Slurm's are: distribution or schedmd")
    packages: dict[str, list[str]] = Field(description="role: package specs in the OS's own syntax; every one is held")


class MigDocument(Part):
    """MIG layout of some GPUs of each node: instances of each profile on each of these GPUs."""

    gpus: list[int]
    profiles: dict[str, int]


class Scratch(Part):
    """Local scratch space."""

    path: str
    devices: list[str] = Field(description="empty: every unused local NVMe disk")
    filesystem: str
