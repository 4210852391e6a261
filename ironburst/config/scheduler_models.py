"""What a person writes of the scheduler: Slurm, or a Kubernetes cluster. Part of models.py's declaration."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag

from ironburst.config.software_models import Strict
from ironburst.config.types import Address, Certificates, Name, SecretRef

SHARED = "mounted on every node; the gate checks it"


class Slurm(Strict):
    """Slurm, as the owned nodes have it."""

    kind: Literal["slurm"] = "slurm"
    head: str = Field(description="name of the bare-metal node with slurmctld")
    home_partition: Name = Field(default="home", description="Slurm partition of the owned nodes, where users submit")
    munge_key: SecretRef = Field(
        description="one key for owned and rented nodes; rented ones can only read aws-secretsmanager:"
    )
    shared_filesystem: str = Field(default="/shared", pattern=r"^/", description=SHARED)

    @property
    def joins_with(self) -> tuple[str, str]:
        """What a rented node joins with: the key of this section that names it, and the reference."""
        return "munge_key", self.munge_key


class Kubernetes(Strict):
    """A Kubernetes cluster that is there already: rented nodes join it, and its own scheduler starts the pods."""

    kind: Literal["kubernetes"]
    api_server: str = Field(
        pattern=r"^https://[^/\s]+$",
        description="as nodes and the controller reach it",
        examples=["https://10.0.0.5:6443"],
    )
    ca: Certificates = Field(
        description="certificate of the cluster's authority, PEM; kubeadm has it as /etc/kubernetes/pki/ca.crt"
    )
    kubeconfig: SecretRef = Field(description="how the controller gets in", examples=["file:/etc/ironburst/kubeconfig"])
    join_token: SecretRef = Field(
        description="the controller writes the short-lived token there that a rented node joins with; "
        "aws-secretsmanager: alone",
        examples=["aws-secretsmanager:ironburst/prod/join-token"],
    )
    cluster_dns: Address = Field(description="address of the cluster's DNS service", examples=["10.96.0.10"])
    cluster_domain: str = Field(default="cluster.local", pattern=r"^[a-z0-9.-]+$")
    namespace: Name = Field(default="ironburst-system", description="of what the controller keeps in the cluster")
    home_partition: Name = Field(default="home", description="what the nodes that the cluster has are called as one")
    account_label: str = Field(default="", description="label of a pod that names who pays; none: its namespace does")
    shared_filesystem: str | None = Field(default=None, pattern=r"^/", description=SHARED + "; none: there is none")

    @property
    def joins_with(self) -> tuple[str, str]:
        """What a rented node joins with: the key of this section that names it, and the reference."""
        return "join_token", self.join_token


def _kind(value: Any) -> str:
    """Slurm where nothing is said."""
    return value.get("kind", "slurm") if isinstance(value, dict) else getattr(value, "kind", "slurm")


Scheduler = Annotated[
    Annotated[Slurm, Tag("slurm")] | Annotated[Kubernetes, Tag("kubernetes")],
    Discriminator(
        _kind,
        custom_error_type="scheduler_kind",
        custom_error_message="has a kind that isn't known; allowed are slurm and kubernetes",
    ),
]
"""of which one stack has one"""
