"""What a declaration has of Google Cloud."""

from __future__ import annotations

from ironburst.config.google.models import GoogleCloud
from ironburst.config.models import ClusterConfig


def of(config: ClusterConfig) -> GoogleCloud | None:
    """Its cloud, where that is Google Cloud."""
    return config.cloud if isinstance(config.cloud, GoogleCloud) else None
