"""The table of clouds, by the name that a document and a stack file have under `cloud.provider`; None: no cloud."""

from __future__ import annotations

from ironburst.config.clouds import CLASSES
from ironburst.config.models import ClusterConfig
from ironburst.document import CloudDocument, ClusterDocument
from ironburst.ports import Cloud, Refused
from ironburst.ports.images import Images
from ironburst.wiring.aws import AWS
from ironburst.wiring.azure import AZURE
from ironburst.wiring.google import GOOGLE
from ironburst.wiring.none import NONE
from ironburst.wiring.provider import ImageIds, Provider

_ROWS: dict[str | None, Provider] = {None: NONE, "aws": AWS, "google": GOOGLE, "azure": AZURE}
PROVIDERS = {name: row for name, row in _ROWS.items() if name is None or not CLASSES[name].closed}
"""what can be rented in"""
_NONE = CloudDocument(provider="", region="")
FLAGS = tuple(f"--{name}" for name in PROVIDERS if name)
"""other words for --cloud"""
EXAMPLE = next(row.image_ids for row in PROVIDERS.values() if row.image_ids)
"""how a cloud writes images, for the words of help"""


def declared(config: ClusterConfig) -> Provider:
    """That of a stack file."""
    return PROVIDERS[config.cloud.provider if config.cloud else None]


def image_ids(document: ClusterDocument) -> ImageIds | None:
    """How the cloud of a document writes images; None: it names no cloud."""
    return PROVIDERS[_named(document)].image_ids


def images(document: ClusterDocument) -> Images:
    """Where the images of a document's pools are baked. Raises CloudError."""
    return PROVIDERS[_named(document)].images(document.cloud or _NONE)


def connect(document: ClusterDocument) -> Cloud:
    """The cloud of a document. Raises CloudError."""
    return CloudConnection().follow(document)


class CloudConnection:
    """The cloud that the documents name, connected as long as it stays the same."""

    def __init__(self) -> None:
        self._cloud: Cloud | None = None
        self._connected = _NONE

    def follow(self, document: ClusterDocument) -> Cloud:
        """The cloud of a document, which may be another one than before. Where it names none any more, the one of
        before: what is rented was rented there. Raises CloudError.
        """
        wanted = document.cloud or _NONE
        if self._cloud is None or (document.cloud is not None and wanted != self._connected):
            self._cloud, self._connected = PROVIDERS[_named(document)].api(wanted), wanted
        return self._cloud


def _named(document: ClusterDocument) -> str | None:
    """Its row. Raises CloudError where there is none: the reader of documents knows more clouds than can be used."""
    name = document.cloud.provider if document.cloud else None
    if name not in PROVIDERS:
        raise Refused(f"the document is of the cloud {name!r}, which this ironburst can't rent in yet", "NoRow")
    return name
