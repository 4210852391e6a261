"""Whether a cloud can be rented in yet."""

from __future__ import annotations

from ironburst.config.checks.common import Findings
from ironburst.config.finding import Finding, path_of
from ironburst.config.models import ClusterConfig


def provider(config: ClusterConfig) -> Findings:
    """A launch that never joins would be paid for."""
    if config.cloud and config.cloud.closed:
        message = f"{config.cloud.provider} can't be rented in yet: {config.cloud.closed}"
        yield Finding(path_of("cloud", "provider"), config.cloud.provider, "closed", message)
