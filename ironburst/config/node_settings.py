"""What can be written of any nodes, owned, fixed or rented (ironburst.config.models, cloud_models)."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from ironburst.config.software_models import Kernel, Mig, Scratch, SoftwareChoice, Strict, System


class SlurmNode(Strict):
    """What Slurm is told of a node, where it differs from the catalogue (threads off, memory kept back)."""

    cpus: int = Field(gt=0, description="CPUs= of the node in slurm.conf")
    memory_mb: int = Field(gt=0, description="RealMemory= of the node in slurm.conf, MiB")


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
