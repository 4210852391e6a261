"""A part of the document: see model.py."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field


class _Part(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class Cni(_Part):
    """The manifest of the pod network."""

    manifest: str = Field(description="https: URL that the head reaches, or a file on the machine that runs Ansible")
    sha256: str


class ControlPlane(_Part):
    """A Kubernetes cluster that kubeadm makes on `head`."""

    head: str
    head_address: str
    pod_cidr: str
    service_cidr: str
    cni: Cni | None = Field(default=None, description="null: a person installs one")
    image_repository: str = Field(default="", description="empty: Kubernetes' own")
