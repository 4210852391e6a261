"""What is wrong with a well-formed declaration. Pure: each check yields findings with the path in the file, and none
stops at the first. What needs a file or a secret is config/stack.py's.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from datetime import datetime

from ironburst.config.checks import (
    allowances,
    bridge,
    budget,
    control_plane,
    data,
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
from ironburst.config.checks.aws import cloud, identity, network, places, rights, tags
from ironburst.config.checks.aws import data as first_data
from ironburst.config.checks.aws import doubtful as first
from ironburst.config.checks.aws.eks import hosted, support
from ironburst.config.checks.azure import cloud as third
from ironburst.config.checks.azure import network as third_network
from ironburst.config.checks.common import At, Findings, clouds
from ironburst.config.checks.google import cloud as second
from ironburst.config.checks.google import network as second_network
from ironburst.config.clouds import CLASSES
from ironburst.config.finding import Finding, path_of
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
    scheduler.joined_with,
    control_plane.control_plane,
    hosted,
    bridge.bridge,
    bridge.joined_with,
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
    first_data.data,
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

OF_A_DAY: tuple[Callable[[ClusterConfig, datetime], Findings], ...] = (
    allowances.ends,
    cloud.capacity,
    second.capacity,
    third.capacity,
    support,
    identity.authorities,
)
OF_EACH_CLOUD: frozenset[Callable[..., Findings]] = frozenset(
    (
        *(places.names_of_groups, places.region, places.networks, places.once, network.room, network.zones),
        *(network.hall_links, networks.head_linked, scheduler.joined_with, bridge.joined_with),
        *(instance_types.instance_types, second.cloud, second_network.network, data.data, rights.policy_sizes),
        *(rights.boundary, tags.tags, first.doubtful, second.doubtful, cloud.capacity, second.capacity),
        *(third.cloud, third_network.network, third.doubtful, third.capacity, identity.authorities, first_data.data),
    )
)
"""those that look at `cloud` alone: they see each as if it were the only one"""
_KEYS = "|".join({key for each in CLASSES.values() for key in each.model_fields})
_OF_CLOUD = re.compile(rf"(?<![\w.])cloud\b(?=\.(?:{_KEYS})\b)")
"""a key of `cloud`, as messages name it"""


def check(config: ClusterConfig, now: datetime, of_software: Iterable[Finding] = ()) -> list[Finding]:
    """Everything that can be checked without a network. `now` decides whether a capacity block or a certificate is
    over; `of_software`: what software.findings says of the solved versions (`ironburst lock` says that itself).
    """
    findings = [finding for each_check in CHECKS for finding in _of_each(each_check, config)]
    return [*findings, *of_software, *(finding for each in OF_A_DAY for finding in _of_each(each, config, now))]


def _of_each(each_check: Callable[..., Findings], config: ClusterConfig, *now: datetime) -> Iterator[Finding]:
    """Of the whole declaration, or of each of its clouds: then with that one's place in the file."""
    if each_check not in OF_EACH_CLOUD or not config.clouds:
        yield from each_check(config, *now)
        return
    found: list[Finding] = []
    for at, its in clouds(config):
        found += (_moved(finding, at) for finding in each_check(config.in_cloud(its), *now))
    yield from (finding for n, finding in enumerate(found) if finding not in found[:n])  # of a hall each says the same


def _moved(finding: Finding, at: At) -> Finding:
    path, here, there = finding.path, path_of("cloud"), at()
    if here == there:
        return finding
    if path == here or path.startswith((f"{here}.", f"{here}[")):
        path = there + path.removeprefix(here)
    return replace(finding, path=path, message=placed(finding.message, at))


def placed(text: str, at: At) -> str:
    """A sentence about one cloud, with its keys as they are in the file."""
    return _OF_CLOUD.sub(at().removeprefix(f"{path_of()}."), text.replace(path_of("cloud"), at()))
