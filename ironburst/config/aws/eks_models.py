"""What a person writes of a Kubernetes cluster that AWS runs (EKS). Part of scheduler_models.py's declaration."""

from __future__ import annotations

import ipaddress
from typing import Annotated, ClassVar, Self

from pydantic import Field, field_validator, model_validator

from ironburst.config.software_models import Strict
from ironburst.config.types import Network
from ironburst.nodes import naming

KEY = "eks"
"""of a cluster's declaration, below which it is declared that AWS runs it"""
KNOWN = ("control_plane", "api_server", "ca", "join_token", "cluster_dns", "admin_kubeconfig", "controller_user")
"""keys of a cluster that aren't written of one that EKS makes"""
RoleArn = Annotated[str, Field(pattern=r"^arn:aws[a-z-]*:iam::\d{12}:role/[\w+=,.@/-]+$")]


class Eks(Strict):
    """A cluster that Pulumi makes in AWS, whose nodes are fixed groups and burst pools."""

    CALLED: ClassVar = "a cluster of EKS"
    version: str | None = Field(
        default=None,
        pattern=r"^1\.\d+$",
        description="Kubernetes of the control plane; none: that of software.kubernetes",
        examples=["1.36"],
    )
    public_access: list[Network] = Field(
        default=[],
        description="networks that reach its API over the internet, for Pulumi, the controller and people; none: only "
        "who is in the VPC, or linked to it",
        examples=[["203.0.113.0/24"]],
    )
    admins: list[RoleArn] = Field(
        default=[],
        description="IAM roles that are cluster-admin beside whoever runs the first `pulumi up`",
        examples=[["arn:aws:iam::123456789012:role/platform"]],
    )
    service_cidr: Network = Field(
        default="172.20.0.0/16", description="addresses of the cluster's services; it can't be changed later"
    )

    @field_validator("service_cidr")
    @classmethod
    def _as_eks_takes_it(cls, value: str) -> str:
        network = ipaddress.IPv4Network(value)
        if not network.is_private or not 12 <= network.prefixlen <= 24:
            raise ValueError("is not what EKS takes: a private network between a /12 and a /24")
        return value

    @property
    def cluster_dns(self) -> str:
        """Address of the cluster's DNS service: EKS gives it the tenth of the services'."""
        return str(ipaddress.IPv4Network(self.service_cidr).network_address + 10)

    def in_document(self, cluster: str) -> dict[str, str]:
        """Fields of the document's scheduler, but what only AWS knows. `cluster`: the stack's name for it."""
        return {"eks": naming.cluster_object(cluster), "cluster_dns": self.cluster_dns}


class Hosted(Strict):
    """The part of a Kubernetes cluster's declaration that says whether its control plane is the cloud's own."""

    eks: Eks | None = Field(
        default=None,
        description="the cluster is made in AWS, by Pulumi; then api_server, ca, cluster_dns, join_token, "
        "admin_kubeconfig and controller_user are left out. Never tried against a real EKS",
    )

    @model_validator(mode="after")
    def _known_of_eks(self) -> Self:
        wrong = [key for key in KNOWN if self.eks and getattr(self, key) is not None]
        if wrong:
            raise ValueError(
                f"has {', '.join(wrong)} beside eks, which makes the cluster and knows them: leave them out"
            )
        return self

    @property
    def hosted(self) -> Eks | None:
        """Its control plane, where that is the cloud's own."""
        return self.eks
