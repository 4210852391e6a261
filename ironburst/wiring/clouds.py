"""The table of clouds, by the name that a document and a stack file have under `cloud.provider`; None: no cloud."""

from __future__ import annotations

from dataclasses import dataclass

from ironburst import catalog
from ironburst.adapters.several_clouds import Part, SeveralClouds
from ironburst.config import checks
from ironburst.config.checks.common import At
from ironburst.config.checks.common import clouds as of_config
from ironburst.config.clouds import DEFAULT
from ironburst.config.finding import path_of
from ironburst.config.models import ClusterConfig
from ironburst.document import CloudDocument, ClusterDocument
from ironburst.ports import Cloud, CloudError, Refused
from ironburst.ports.images import Images
from ironburst.wiring.aws import AWS
from ironburst.wiring.azure import AZURE
from ironburst.wiring.google import GOOGLE
from ironburst.wiring.none import NONE
from ironburst.wiring.provider import ImageIds, Provider

PROVIDERS: dict[str | None, Provider] = {None: NONE, "aws": AWS, "google": GOOGLE, "azure": AZURE}
"""what can be rented in"""
_NONE = CloudDocument(provider="", region="")
FLAGS = tuple(f"--{name}" for name in PROVIDERS if name)
"""other words for --cloud"""
EXAMPLE = next(row.image_ids for row in PROVIDERS.values() if row.image_ids)
"""how a cloud writes images, for the words of help"""


@dataclass(frozen=True)
class StackCloud:
    """A cloud of a stack file, or none. `config`: the declaration as this cloud has it; `whose`: its name, where it is
    one of several, else empty; `at`: its place in the file.
    """

    provider: Provider
    config: ClusterConfig
    whose: str
    at: At

    def placed(self, text: str) -> str:
        """A sentence about this cloud, with its keys as they are in the file."""
        return checks.placed(text, self.at)


def declared(config: ClusterConfig) -> list[StackCloud]:
    """Those of a stack file; one row, where there is none."""
    if not config.clouds:
        return [StackCloud(PROVIDERS[None], config, "", path_of)]
    return [
        StackCloud(PROVIDERS[cloud.provider], config.in_cloud(cloud), cloud.provider if config.other_clouds else "", at)
        for at, cloud in of_config(config)
    ]


def image_ids(document: ClusterDocument) -> ImageIds | None:
    """How the first cloud of a document writes images; None: it names no cloud."""
    return _row(document.cloud).image_ids


def images(document: ClusterDocument) -> Images:
    """Where the images of its first cloud's pools are baked. Raises CloudError."""
    return _row(document.cloud).images(document.cloud or _NONE)


def connect(document: ClusterDocument) -> Cloud:
    """The cloud of a document, or all of them as one. Raises CloudError."""
    return CloudConnection().follow(document)


class CloudConnection:
    """The clouds that the documents name, connected as long as they stay the same."""

    def __init__(self) -> None:
        self._none: Cloud = PROVIDERS[None].api(_NONE)
        self._several: SeveralClouds | None = None
        self._parts: dict[str, tuple[CloudDocument, Cloud | CloudError]] = {}

    def follow(self, document: ClusterDocument) -> Cloud:
        """The cloud of a document, or all of them as one. One that it names no more stays, for what is rented was
        rented there. Raises CloudError, where there is one alone.
        """
        for wanted in document.clouds:
            before, cloud = self._parts.get(wanted.provider, (None, None))
            if cloud is None or isinstance(cloud, CloudError) or not _same(before, wanted):
                self._parts[wanted.provider] = wanted, _connected(wanted)
        named = {cloud.provider for cloud in document.clouds}
        self._parts = {
            name: its for name, its in self._parts.items() if name in named or not isinstance(its[1], CloudError)
        }
        if len(self._parts) < 2:
            alone = next((cloud for _, cloud in self._parts.values()), self._none)
            if isinstance(alone, CloudError):
                raise alone
            return alone
        parts = {name: Part(cloud, PROVIDERS[name].instance_ids) for name, (_, cloud) in self._parts.items()}
        if self._several is None:
            self._several = SeveralClouds(parts, _whose(document), DEFAULT)
        self._several.declare(parts, _whose(document))
        return self._several


def _same(before: CloudDocument | None, now: CloudDocument) -> bool:
    return before is not None and (before.region, before.account) == (now.region, now.account)


def _connected(wanted: CloudDocument) -> Cloud | CloudError:
    """Where it can't be reached, why not: that keeps no other. Raises CloudError where it has no row."""
    row = _row(wanted)
    try:
        return row.api(wanted)
    except CloudError as error:
        return error


def _whose(document: ClusterDocument) -> dict[str, str]:
    """The provider of what pools name: images, queues, instance types."""
    named = {
        name: pool.provider for pool in document.pools for name in (pool.image, pool.notices, *pool.prices) if name
    }
    others = [pool.instance_type for pool in document.karpenter if pool.instance_type not in named]
    return named | {name: catalog.instance_type(name).provider for name in others}


def _row(cloud: CloudDocument | None) -> Provider:
    """Raises CloudError where there is none: a document may be another ironburst's."""
    name = cloud.provider if cloud else None
    if name not in PROVIDERS:
        raise Refused(f"the document is of the cloud {name!r}, which this ironburst can't rent in", "NoRow")
    return PROVIDERS[name]
