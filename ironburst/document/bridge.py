"""A part of the document: see model.py."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field


class Bridge(BaseModel):
    """The Kubernetes cluster whose pods wait in Slurm's queue, by slurm-bridge. Fields as Scheduler's."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    api_server: str
    ca: str
    kubeconfig: str
    join_token: str
    cluster_dns: str
    cluster_domain: str
    namespace: str
    scheduler_name: str = Field(description="schedulerName of the pods whose jobs these are")
