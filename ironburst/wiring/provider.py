"""What the product needs of a cloud: one value a cloud. A row loads its SDK only when it is called."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from ironburst.config.models import ClusterConfig
from ironburst.doctor.checks import Check
from ironburst.doctor.declared import DeclaredSite
from ironburst.document import CloudDocument
from ironburst.ports import Cloud
from ironburst.ports.images import Images


@dataclass(frozen=True)
class Rights:
    """For whom policies are written. `account`: as given; None: as `settings` of the stack file say."""

    config: ClusterConfig
    settings: Mapping[str, Any]
    account: str | None


class ImageIds(Protocol):
    """How a cloud writes its images: a module of its adapters. `FORM`: of an id, a regular expression, and in `WORDS`;
    `LISTED_BY`: a command that prints those of a cluster's pools, with its `ARGUMENTS`.
    """

    FORM: str
    WORDS: str
    EXAMPLE: str
    LISTED_BY: str
    ARGUMENTS: str

    def of_pools(self, text: str, /) -> dict[str, str]:
        """Pool -> id, of what that command prints. Raises ValueError."""


@dataclass(frozen=True)
class Provider:
    """A cloud, or none. `called`: its name for people; `api` and `images` take the document's cloud; `instance_ids`: a
    regular expression of its instances' ids.
    """

    called: str
    api: Callable[[CloudDocument], Cloud]
    images: Callable[[CloudDocument], Images]
    doctor: Check[DeclaredSite]
    instance_ids: str
    image_ids: ImageIds | None = None
    rights: Callable[[Rights], dict[str, Any]] | None = None
    """name -> policy of whoever does `up`; raises BadInput"""
