"""What a declaration has of AWS."""

from __future__ import annotations

from ironburst.config.aws.models import AwsCloud
from ironburst.config.models import ClusterConfig


def of(config: ClusterConfig) -> AwsCloud | None:
    """Its cloud, where that is AWS."""
    return next((cloud for cloud in config.clouds if isinstance(cloud, AwsCloud)), None)
