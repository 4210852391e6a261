"""What a declaration has of Google Cloud."""

from __future__ import annotations

from ironburst.config.google.models import GoogleCloud
from ironburst.config.models import ClusterConfig


def of(config: ClusterConfig) -> GoogleCloud | None:
    """Its cloud, where that is Google Cloud."""
    return next((cloud for cloud in config.clouds if isinstance(cloud, GoogleCloud)), None)
