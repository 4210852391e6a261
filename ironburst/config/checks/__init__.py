"""What is wrong with a well-formed declaration. Pure: each check yields findings with the path in the file, and none
stops at the first. What needs a file or a secret is config/stack.py's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime

from ironburst.config.checks import (
    allowances,
    bridge,
    budget,
    control_plane,
    doubtful,
    energy,
    firmware,
    gpu_support,
    gpus,
    halls,
    install,
    instance_types,
    karpenter,
    metal,
    monitoring,
    names,
    networks,
    provider,
    scheduler,
    shares,
    software,
    users,
)
from ironburst.config.checks.aws import cloud, data, identity, network, places, rights, tags
from ironburst.config.checks.aws import doubtful as first
from ironburst.config.checks.aws.eks import hosted, support
from ironburst.config.checks.azure import cloud as third
from ironburst.config.checks.azure import network as third_network
from ironburst.config.checks.common import Findings
from ironburst.config.checks.google import cloud as second
from ironburst.config.checks.google import network as second_network
from ironburst.config.finding import Finding
from ironburst.config.models import ClusterConfig

CHECKS: tuple[Callable[[ClusterConfig], Findings], ...] = (
    metal.one_value_a_node,
    places.host_names,
    places.names_of_groups,
    places.region,
    places.networks,
    places.once,
    names.duplicates,
    metal.rack_units,
    provider.provider,
    networks.overlaps,
    network.room,
    metal.addresses,
    metal.certificates,
    install.install,
    firmware.firmware,
    install.bios,
    scheduler.scheduler,
    control_plane.control_plane,
    hosted,
    bridge.bridge,
    gpu_support.gpu_support,
    metal.platforms,
    metal.memory,
    metal.power_limits,
    monitoring.server,
    halls.cables,
    halls.switches,
    halls.rules_of_halls,
    instance_types.instance_types,
    gpus.memory,
    gpus.untyped,
    network.zones,
    network.hall_links,
    networks.head_linked,
    second.cloud,
    second_network.network,
    third.cloud,
    third_network.network,
    data.data,
    rights.policy_sizes,
    rights.boundary,
    tags.tags,
    budget.ceilings_and_prices,
    budget.likely,
    doubtful.doubtful,
    first.doubtful,
    second.doubtful,
    third.doubtful,
    karpenter.karpenter,
    software.scheduler,
    software.dgx_os,
    software.mig,
    software.fabrics,
    shares.shares,
    users.users,
    energy.energy,
    monitoring.receiver,
)


def check(config: ClusterConfig, now: datetime, of_software: Iterable[Finding] = ()) -> list[Finding]:
    """Everything that can be checked without a network. `now` decides whether a capacity block or a certificate is
    over; `of_software`: what software.findings says of the solved versions (`ironburst lock` says that itself).
    """
    findings = [finding for each_check in CHECKS for finding in each_check(config)]
    of_a_day = (allowances.ends, cloud.capacity, second.capacity, third.capacity, support, identity.authorities)
    return [*findings, *of_software, *(finding for each in of_a_day for finding in each(config, now))]
