"""What the product needs of a cloud: one value a cloud. A row loads its SDK only when it is called."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from ironburst.config.models import ClusterConfig
from ironburst.doctor.finding import Finding
from ironburst.document import ClusterDocument
from ironburst.ports import Cloud
from ironburst.ports.images import Images


@dataclass(frozen=True)
class Looked:
    """What a doctor's checks look at. `settings`: what lies under `config` of the stack file."""

    config: ClusterConfig
    document: ClusterDocument | None
    now: datetime
    settings: Mapping[str, Any]


@dataclass(frozen=True)
class Provider:
    """A cloud, or none. `called`: its name for people; `api` and `images` take the region's name."""

    called: str
    api: Callable[[str], Cloud]
    images: Callable[[str], Images]
    doctor: Callable[[Looked], Iterator[Finding]]
