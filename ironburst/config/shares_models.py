"""What a person writes of the teams that share the owned GPUs (`shares` of ironburst.config.models)."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from ironburst.config.software_models import Strict
from ironburst.config.types import Account, Duration, Name, Range

Quantity = Annotated[str, Field(pattern=r"^\d+(\.\d+)?(m|k|[KMGTPE]i?)?$")]
Amounts = dict[str, Quantity]


class LimitRange(Strict):
    """Of each container in the namespace, by resource (cpu, memory, ephemeral-storage)."""

    default_request: Amounts = Field(default={}, description="where a container says no request")
    default: Amounts = Field(default={}, description="where it says no limit")
    max: Amounts = Field(default={}, description="the most that it may say")


class TeamNamespace(Strict):
    """A team's namespace, as `pulumi up` makes it where Pulumi is let into the cluster. It stays when the team's share
    goes: its pods and volumes are the team's.
    """

    groups: list[str] = Field(
        default=[], description="groups of users, as the cluster's authentication names them, that get `role` in it"
    )
    role: Literal["view", "edit", "admin"] = Field(
        default="edit", description="ClusterRole of Kubernetes' own; only admin may change roles in the namespace"
    )
    quota: Amounts = Field(
        default={},
        description="a ResourceQuota beside that of the GPUs, by Kubernetes' names",
        examples=[{"requests.cpu": "1000", "requests.memory": "8Ti", "pods": "500"}],
    )
    limit_range: LimitRange | None = Field(default=None, description="none: containers say their requests themselves")
    time_limit: Duration | None = Field(
        default=None,
        description="for how long money is set aside at first for its pods and workloads that have no limit; none: "
        "nothing is rented for these",
    )
    network: Literal["open", "same-namespace"] = Field(
        default="same-namespace",
        description="a NetworkPolicy: who may connect to its pods. Pods on their host's network are free of it, and "
        "the CNI must know such policies",
    )
    open_to: list[str] = Field(default=[], description="namespaces that may connect, too, as monitoring")
    pod_security: Literal["privileged", "baseline", "restricted"] = Field(
        default="baseline",
        description="Pod Security Standard of its pods; baseline refuses the host's files and network, and the "
        "capability IPC_LOCK",
    )


class Share(Strict):
    """One team's part of the owned GPUs: nodes of its own, and a guaranteed number of those that all share."""

    team: Name
    account: Account | None = Field(
        default=None, description="its Slurm account, or its Kubernetes namespace; none: the team's name"
    )
    guaranteed_gpus: int = Field(
        default=0,
        ge=0,
        description="of the shared nodes: it gets them at any time, others' work over quota ends for it",
    )
    over_quota: bool = Field(
        default=True,
        description="it may use idle shared GPUs beyond its guarantee, until somebody's guarantee needs them",
    )
    weight: int = Field(default=1, ge=1, le=1000, description="its part of what is idle, against the other teams'")
    max_gpus: int | None = Field(
        default=None,
        ge=1,
        description="at once, on shared and rented nodes; its own aren't counted; none: as many as there are",
    )
    nodes: Range | None = Field(default=None, description="owned nodes that are this team's alone; none: it has none")
    namespace: TeamNamespace | None = Field(
        default=None, description="of Kubernetes, with what bounds the team there; none: somebody else makes it"
    )

    @property
    def name(self) -> str:
        """Its Slurm account, or its Kubernetes namespace."""
        return self.account or self.team

    @model_validator(mode="after")
    def _something(self) -> Share:
        if self.max_gpus is not None and self.max_gpus < self.guaranteed_gpus:
            raise ValueError(
                f"has max_gpus {self.max_gpus}, less than guaranteed_gpus, {self.guaranteed_gpus}: "
                "raise max_gpus or lower guaranteed_gpus"
            )
        if not (self.guaranteed_gpus or self.over_quota or self.nodes):
            raise ValueError(
                "gets nothing: it has no guaranteed_gpus, no nodes, and no over_quota; give it one of them, or leave "
                "the team out"
            )
        return self
