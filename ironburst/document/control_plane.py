"""A part of the document: see model.py."""

from __future__ import annotations

from pydantic import Field

from ironburst.document.part import Part


class ControlPlane(Part):
    """A Kubernetes cluster that kubeadm makes on `head`."""

    head: str
    head_address: str
    pod_cidr: str
    service_cidr: str
    cni: dict[str, str] | None = Field(default=None, description="manifest, sha256; null: a person installs one")
    image_repository: str = Field(default="", description="empty: Kubernetes' own")
