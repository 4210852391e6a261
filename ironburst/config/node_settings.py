"""What can be written of any nodes, owned, fixed or rented (ironburst.config.models, cloud_models)."""

from __future__ import annotations

import re
from typing import Literal, Self

from pydantic import Field, model_validator

from ironburst.config.software_models import Kernel, Mig, Scratch, SoftwareChoice, Strict, System


class SlurmNode(Strict):
    """What Slurm is given for a node, where it differs from the catalogue (threads off, memory kept back)."""

    cpus: int = Field(gt=0, le=4096, description="CPUs= of the node in slurm.conf")
    memory_mb: int = Field(gt=0, description="RealMemory= of the node in slurm.conf, MiB")
    sockets: int | None = Field(default=None, gt=0, description="Sockets=, as `slurmd -C` says it on the node")
    cores_per_socket: int | None = Field(default=None, gt=0, description="CoresPerSocket=, likewise")
    threads_per_core: int | None = Field(default=None, gt=0, description="ThreadsPerCore=, likewise")
    gpu_cores: list[str] | None = Field(
        default=None,
        description="cores near each GPU, in the GPUs' order, by Slurm's own numbers (Cores= in gres.conf; in "
        "`nvidia-smi topo -m` they are CPUs); none: not said",
        examples=[["0-55", "0-55", "56-111", "56-111"]],
    )

    @model_validator(mode="after")
    def _adds_up(self) -> Self:
        sizes = (self.sockets, self.cores_per_socket, self.threads_per_core)
        if any(sizes) and not all(sizes):
            raise ValueError("needs all of sockets, cores_per_socket and threads_per_core, as `slurmd -C` says them")
        if self.sockets and self.cores_per_socket and self.threads_per_core:
            cores = self.sockets * self.cores_per_socket
            if self.cpus not in (cores, cores * self.threads_per_core):
                raise ValueError(
                    f"has cpus {self.cpus}, and {self.sockets} sockets of {self.cores_per_socket} cores are {cores} "
                    f"cores and {cores * self.threads_per_core} threads: cpus is one of the two"
                )
        for cores_of_one in self.gpu_cores or ():
            if not re.fullmatch(r"\d+(-\d+)?(,\d+(-\d+)?)*", cores_of_one):
                raise ValueError(f"has gpu_cores {cores_of_one!r}: write a list such as 0-27 or 0-13,28-41")
        return self


class NodeSettings(Strict):
    """What can be written of any nodes: owned, fixed or rented.

    A kind of nodes is `class Kind(NodeSettings, _KindAlone)`: pydantic lists the keys of the last base first, and a
    reader of the schema looks for a kind's own keys before these.
    """

    slurm: SlurmNode | None = None
    scheduler: Literal["slurm", "kubernetes"] | None = Field(
        default=None, description="kind of the scheduler whose nodes these are, where two are declared"
    )
    os: System | None = Field(default=None, description="operating system; none: software.os")
    kernel: Kernel | None = Field(
        default=None, description="kernel to pin; none: software.kernel", examples=["6.12.57"]
    )
    software: SoftwareChoice | None = Field(default=None, description="what differs from the cluster's `software` here")
    mig: list[Mig] | None = Field(default=None, description="MIG layout of the GPUs; none: MIG off")
    scratch: Scratch | None = Field(default=None, description="local scratch space; none: none is made")
