"""What the doctor's checks of a declared cluster read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from ironburst.config.models import ClusterConfig
from ironburst.document import ClusterDocument


@dataclass(frozen=True)
class DeclaredSite:
    """`document`: what is published; None: none is given. `settings`: what lies under `config` of the stack file."""

    config: ClusterConfig
    document: ClusterDocument | None
    now: datetime
    settings: Mapping[str, Any]
