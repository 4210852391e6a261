"""What is legal and rarely meant in AWS: reported as a warning."""

from __future__ import annotations

import re

from ironburst.config.aws.models import AwsCloud
from ironburst.config.checks.common import Findings, architecture, unroutable
from ironburst.config.finding import Finding, path_of
from ironburst.config.models import ClusterConfig

_ARM = re.compile(r"(a1|[a-z]+\d+g[a-z]*|p6e-gb\d+)\..*")
"""EC2 types with Arm's processors: AWS's Graviton has a g behind the generation, NVIDIA's Grace a gb"""


def doubtful(config: ClusterConfig) -> Findings:
    """All of it."""
    if cloud := config.cloud_by_class(AwsCloud):
        yield from architecture(cloud, _ARM, "; take a type of its architecture")
        yield from _links(cloud)


def _links(cloud: AwsCloud) -> Findings:
    for n, link in enumerate(cloud.network.links):
        if link.kind == "vpn" and link.peer_address and unroutable(link.peer_address):
            here = ("hall_link",) if cloud.network.hall_link else ("hall_links", n)
            message = f"{link.peer_address} is a private address, which AWS's VPN can't reach: write the public one"
            path = path_of("cloud", "network", *here, "peer_address")
            yield Finding(path, link.peer_address, "private", message, "warning")
