"""What a declaration has of Azure."""

from __future__ import annotations

from ironburst.config.azure.models import AzureCloud
from ironburst.config.models import ClusterConfig


def of(config: ClusterConfig) -> AzureCloud | None:
    """Its cloud, where that is Azure."""
    return next((cloud for cloud in config.clouds if isinstance(cloud, AzureCloud)), None)
