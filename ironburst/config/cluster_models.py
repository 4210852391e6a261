"""What a person writes of any Kubernetes cluster that the controller works in. Part of scheduler_models.py's
declaration, and of bridge_models.py's.
"""

from __future__ import annotations

from pydantic import Field

from ironburst.config.software_models import Strict
from ironburst.config.types import Name, SecretRef


class InCluster(Strict):
    """How the controller gets into a cluster, and what it keeps there."""

    kubeconfig: SecretRef = Field(description="how the controller gets in", examples=["file:/etc/ironburst/kubeconfig"])
    controller_user: str | None = Field(
        default=None,
        min_length=1,
        pattern=r"^[^\s]+$",
        examples=["ironburst"],
        description="user that kubeconfig signs in as, by a certificate or OIDC; none: the ServiceAccount "
        "ironburst-controller, which is made in the namespace",
    )
    cluster_domain: str = Field(default="cluster.local", pattern=r"^[a-z0-9.-]+$", examples=["cluster.local"])
    namespace: Name = Field(default="ironburst-system", description="of what the controller keeps in the cluster")
