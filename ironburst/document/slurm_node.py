"""Part of model.py: what only Slurm gets."""

from __future__ import annotations

from pydantic import Field

from ironburst.document.part import Part


class SlurmNode(Part):
    """What Slurm gets for a node: CPUs=, RealMemory= (MiB) and, where they are known, its sockets, cores and threads.
    With only threads Slurm counts each core as a socket: right for what a job gets, not for where.
    """

    cpus: int
    memory_mb: int
    sockets: int | None = None
    cores_per_socket: int | None = None
    threads_per_core: int | None = None
    gpu_cores: list[str] = Field(default=[], description="cores near each GPU, as gres.conf has them; empty: unknown")


class SlurmMail(Part):
    """Where the head's mail goes."""

    relay: str = Field(description="host or host:port")
    sender: str


class SecondHead(Part):
    """Where Slurm and the controller go on when the head dies."""

    head: str
    address: str
    state: str = Field(description="folder that both heads see")
    ledger: str = Field(description="URL of PostgreSQL, without a password")
    ledger_password: str = Field(default="", description="a reference; empty: none is asked for")
    accounting: str = Field(
        default="", description="URL of MariaDB, without a password; empty: accounting is on the first head alone"
    )
    accounting_password: str = Field(default="", description="a reference; empty: none is asked for")
