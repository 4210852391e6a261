"""Which clouds a stack may have beside each other, and whether they can be rented in yet."""

from __future__ import annotations

from ironburst.config.checks.common import Findings, clouds
from ironburst.config.finding import Finding, path_of
from ironburst.config.models import ClusterConfig


def provider(config: ClusterConfig) -> Findings:
    """Each is of another provider, for an instance's id tells whose it is; a launch that never joins would be paid
    for.
    """
    if config.other_clouds and config.cloud is None:
        message = "are beside `cloud`, which is absent: declare the first of them there"
        yield Finding(path_of("other_clouds"), None, "missing", message)
    before = set[str]()
    for at, cloud in clouds(config):
        if cloud.closed:
            message = f"{cloud.provider} can't be rented in yet: {cloud.closed}"
            yield Finding(at("provider"), cloud.provider, "closed", message)
        if cloud.provider in before:
            message = f"{cloud.provider} is declared already, and a stack has one cloud of each provider: put the "
            message += "groups and pools into that one, or make two stacks"
            yield Finding(at("provider"), cloud.provider, "cloud-twice", message)
        before.add(cloud.provider)
