"""How long what a stack makes in IAM is, in the characters that IAM counts, with the longest names that AWS gives.

The limits are of https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_iam-quotas.html (read 2026-11-28). That of
trust policies can be raised to 8,192, the others can't.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ironburst.catalog.aws.regions import regions
from ironburst.config.aws import policies, roles
from ironburst.config.aws.models import AwsCloud
from ironburst.config.models import ClusterConfig
from ironburst.nodes.naming import logical

INLINE = 10_240
"""of all inline policies of a role together"""
MANAGED = 6_144
TRUST = 2_048
_SUFFIX = "-0a1b2c3"
"""as Pulumi's provider makes names unique"""
_ANCHOR = "trust-anchor/01234567-89ab-cdef-0123-456789abcdef"


@dataclass(frozen=True)
class Sized:
    """`role`: label of its logical name; `kind`: inline, managed or trust; `key`: below `cloud`, what makes it long."""

    role: str
    kind: str
    size: int
    key: tuple[str | int, ...] = ()

    @property
    def most(self) -> int:
        """What IAM takes."""
        return {"inline": INLINE, "managed": MANAGED, "trust": TRUST}[self.kind]


def size(document: Mapping[str, Any]) -> int:
    """IAM counts no white space; that inside of values is counted here."""
    return len(json.dumps(document, separators=(",", ":")))


def where(cloud: AwsCloud) -> policies.Scope:
    """The stack's ARNs, of any account: all numbers have twelve digits."""
    known = regions().get(cloud.region)
    return policies.Scope(known.partition if known else "aws", cloud.region, "123456789012")


def of(config: ClusterConfig, cloud: AwsCloud) -> Iterator[Sized]:
    """All that have something declared in them; the others are as long everywhere."""
    scope, nodes = where(cloud), roles.of_nodes(config, cloud)

    roles_are = f"role{cloud.iam.path or '/'}"
    passed = [
        scope.arn("iam", f"{roles_are}{logical(config.name, label)}{_SUFFIX}", region="") for label in nodes.passed
    ]
    queue = scope.arn("sqs", f"{logical(config.name, 'interruptions')}{_SUFFIX}")
    launching = roles.launching(config, cloud, scope, [queue], passed) if cloud.pools else {}
    yield Sized("controller", "inline", size(policies.ending(scope, config.name)) + size(launching), ("pools",))
    for role in nodes.roles:
        declared = [name for name, label in nodes.label_of.items() if label == role.label]
        key = _nodes(cloud, declared[0]) if role.data else ()
        yield Sized(role.label, "inline", size(policies.node(scope, role.joins_with, role.data)), key)
    yield Sized("baking", "managed", size(policies.baking(scope, config.name)))
    if cloud.controller:
        anchor = scope.arn("rolesanywhere", _ANCHOR)
        trust = policies.assumed_with_certificate(anchor, cloud.controller.common_name)
        yield Sized("controller", "trust", size(trust), ("controller", "common_name"))
    if ci := cloud.ci:
        trust = policies.assumed_by_ci(scope, ci.issuer, ci.audience, ci.preview)
        yield Sized("preview", "trust", size(trust), ("ci", "preview"))
        yield Sized("preview", "inline", size(policies.previewing(scope, roles.buckets(cloud))), ("data",))


def _nodes(cloud: AwsCloud, name: str) -> tuple[str | int, ...]:
    """The key of a group's or pool's data."""
    keys: dict[str, tuple[str | int, ...]] = {group.name: ("groups", n, "data") for n, group in enumerate(cloud.groups)}
    keys |= {pool.name: ("pools", n, "data") for n, pool in enumerate(cloud.pools)}
    return keys[name]
