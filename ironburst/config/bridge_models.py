"""What a person writes where slurm-bridge makes Slurm the queue of a Kubernetes cluster, too. Part of
scheduler_models.py's Slurm; its keys are those of a cluster, and mean the same.
"""

from __future__ import annotations

from pydantic import Field

from ironburst.config.cluster_models import InCluster
from ironburst.config.types import Address, Certificates, SecretRef
from ironburst.system import secrets


class Bridge(InCluster):
    """A Kubernetes cluster whose pods wait in Slurm's queue, by SchedMD's slurm-bridge: rented nodes join both. Never
    run with a real slurm-bridge.
    """

    api_server: str = Field(
        pattern=r"^https://[^/\s]+$",
        description="as nodes and the controller reach it",
        examples=["https://10.0.0.5:6443"],
    )
    ca: Certificates = Field(
        description="certificate of the cluster's authority, PEM; kubeadm has it as /etc/kubernetes/pki/ca.crt"
    )
    admin_kubeconfig: SecretRef | None = Field(
        default=None,
        description="how Pulumi gets in to declare the controller's rights, as cluster-admin; none: Pulumi declares "
        "nothing in the cluster",
        examples=["file:/etc/ironburst/admin.kubeconfig"],
    )
    join_token: SecretRef = Field(
        description="the controller writes the short-lived token there that a rented node joins the cluster with; "
        f"{secrets.STORED} alone",
        examples=[secrets.in_store("ironburst/prod/join-token")],
    )
    cluster_dns: Address = Field(description="address of the cluster's DNS service", examples=["10.96.0.10"])
    scheduler_name: str = Field(
        default="slurm-bridge-scheduler",
        pattern=r"^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$",
        examples=["slurm-bridge-scheduler"],
        description="schedulerConfig.schedulerName of slurm-bridge's Helm chart: of whose pods the jobs are",
    )
