"""Which clouds a stack may have beside each other."""

from __future__ import annotations

from ironburst.config.checks.common import Findings, clouds
from ironburst.config.finding import Finding, path_of
from ironburst.config.models import ClusterConfig


def provider(config: ClusterConfig) -> Findings:
    """Each is of another provider, for an instance's id tells whose it is."""
    if config.other_clouds and config.cloud is None:
        message = "are beside `cloud`, which is absent: declare the first of them there"
        yield Finding(path_of("other_clouds"), None, "missing", message)
    before = set[str]()
    for at, cloud in clouds(config):
        if cloud.provider in before:
            message = f"{cloud.provider} is declared already, and a stack has one cloud of each provider: put the "
            message += "groups and pools into that one, or make two stacks"
            yield Finding(at("provider"), cloud.provider, "cloud-twice", message)
        before.add(cloud.provider)
