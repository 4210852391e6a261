"""A part of the document: see model.py."""

from __future__ import annotations

from pydantic import Field

from ironburst.document.part import Part


class Bridge(Part):
    """The Kubernetes cluster whose pods wait in Slurm's queue, by slurm-bridge. Fields as Scheduler's."""

    api_server: str
    ca: str
    kubeconfig: str
    join_token: str
    cluster_dns: str
    cluster_domain: str
    namespace: str
    scheduler_name: str = Field(description="schedulerName of the pods whose jobs these are")
