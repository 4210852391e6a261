"""What a person writes of the scheduler: Slurm, or a Kubernetes cluster. Part of models.py's declaration."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag

from ironburst.config.bridge_models import Bridge
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
    bridge: Bridge | None = Field(
        default=None,
        description="the Kubernetes cluster whose pods wait in Slurm's queue, by slurm-bridge; none: no one",
    )

    @property
    def joins_with(self) -> tuple[str, str]:
        """What a rented node joins with: the key of this section that names it, and the reference."""
        return "munge_key", self.munge_key


class GpuSupport(Strict):
    """What makes a cluster's GPUs usable, as Helm releases at the catalogue's versions. Rented nodes count on it: one
    is in service when nvidia.com/gpu is allocatable there.
    """

    plugin: Literal["device-plugin", "gpu-operator", "none"] = Field(
        default="none",
        description="who hands out GPUs: NVIDIA's device plugin with feature discovery, or its GPU operator (without "
        "driver and container toolkit: the hosts have them); none: what the cluster has already",
    )
    mig_strategy: Literal["none", "single", "mixed"] = Field(
        default="none", description="how MIG instances are offered: single as nvidia.com/gpu, mixed by their profiles"
    )
    dra: Literal["none", "compute-domains", "gpus"] = Field(
        default="none",
        description="NVIDIA's driver for dynamic resource allocation: for NVLink domains of several nodes beside a "
        "plugin, or for the GPUs, too, instead of one (DeviceClass gpu.nvidia.com)",
    )
    dcgm_exporter: bool = Field(default=False, description="GPU metrics for Prometheus, from a pod on each GPU node")
    network_operator: bool = Field(default=False, description="NVIDIA's network operator, for RDMA in pods")
    runtime_class: Name = Field(
        default="nvidia",
        description="runtime of the hosts' containerd that gives containers the driver; with device-plugin a "
        "RuntimeClass of this name is made",
    )

    @property
    def anything(self) -> bool:
        """Whether there is something to install."""
        return self.plugin != "none" or self.dra != "none" or self.dcgm_exporter or self.network_operator


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
    admin_kubeconfig: SecretRef | None = Field(
        default=None,
        description="how Pulumi gets in to declare the controller's rights and the GPU support, as cluster-admin; "
        "none: Pulumi declares nothing in the cluster",
        examples=["file:/etc/ironburst/admin.kubeconfig"],
    )
    controller_user: str | None = Field(
        default=None,
        min_length=1,
        pattern=r"^[^\s]+$",
        description="user that kubeconfig signs in as, by a certificate or OIDC; none: the ServiceAccount "
        "ironburst-controller, which is made in the namespace",
    )
    gpu_support: GpuSupport = GpuSupport()
    join_token: SecretRef = Field(
        description="the controller writes the short-lived token there that a rented node joins with; "
        "aws-secretsmanager: alone",
        examples=["aws-secretsmanager:ironburst/prod/join-token"],
    )
    queue: Literal["pods", "kueue"] = Field(
        default="pods",
        description="whose queue is rented for: pods that kube-scheduler calls unschedulable, or workloads that Kueue "
        "(0.15 or newer) holds for an AdmissionCheck of ours, which flavors of the cloud carry",
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
"""of which a stack has one, or one of each kind"""
