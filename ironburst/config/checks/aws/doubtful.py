"""What is legal and rarely meant in AWS: reported as a warning."""

from __future__ import annotations

import re

from ironburst.config.aws.models import AwsCloud
from ironburst.config.checks.common import Findings, unroutable
from ironburst.config.finding import Finding, path_of
from ironburst.config.models import ClusterConfig

_ARM = re.compile(r"(a1|[a-z]+\d+g[a-z]*|p6e-gb\d+)\..*")
"""EC2 types with Arm's processors: AWS's Graviton has a g behind the generation, NVIDIA's Grace a gb"""


def doubtful(config: ClusterConfig) -> Findings:
    """All of it."""
    if cloud := config.cloud_by_class(AwsCloud):
        yield from _build_type(cloud)
        yield from _links(cloud)


def _build_type(cloud: AwsCloud) -> Findings:
    kind = cloud.images.build_type
    for pool in cloud.pools if kind else []:
        if kind and any(bool(_ARM.fullmatch(name)) != bool(_ARM.fullmatch(kind)) for name in pool.types):
            arms = "Arm" if _ARM.fullmatch(kind) else "x86"
            message = f"{kind} is of {arms}, and pool {pool.name} isn't: its image would boot on none of its nodes"
            path = path_of("cloud", "images", "build_type")
            yield Finding(path, kind, "architecture", f"{message}; take a type of its architecture")
            return


def _links(cloud: AwsCloud) -> Findings:
    for n, link in enumerate(cloud.network.links):
        if link.kind == "vpn" and link.peer_address and unroutable(link.peer_address):
            here = ("hall_link",) if cloud.network.hall_link else ("hall_links", n)
            message = f"{link.peer_address} is a private address, which AWS's VPN can't reach: write the public one"
            path = path_of("cloud", "network", *here, "peer_address")
            yield Finding(path, link.peer_address, "private", message, "warning")
