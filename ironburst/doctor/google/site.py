"""What the checks read: the declaration, the published document where there is one, and the project."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from ironburst.config.google.models import GoogleCloud, GoogleGroup, GooglePool
from ironburst.config.models import ClusterConfig
from ironburst.doctor import rented
from ironburst.doctor.google.project import Project
from ironburst.document import ClusterDocument

Nodes = GoogleGroup | GooglePool


@dataclass(frozen=True)
class GoogleSite:
    """One declared cluster with nodes in Google Cloud."""

    config: ClusterConfig
    cloud: GoogleCloud
    project: Project
    now: datetime
    document: ClusterDocument | None = None

    @property
    def nodes(self) -> list[tuple[str, Nodes]]:
        """Fixed groups and pools, each with what people call it."""
        return rented.named(self.cloud.groups, self.cloud.pools)
