"""Versions of Kubernetes that AWS runs (EKS), and for how long."""

import functools
from dataclasses import dataclass
from datetime import date

from ironburst.catalog.tables import table


@dataclass(frozen=True)
class EksVersion:
    """After `standard_until` it costs more; after `extended_until` AWS upgrades the cluster by itself."""

    standard_until: date
    extended_until: date


@functools.cache
def eks_versions() -> dict[str, EksVersion]:
    """By minor version, the oldest first; those that were there when the data was read."""
    return {
        row["version"]: EksVersion(date.fromisoformat(row["standard_until"]), date.fromisoformat(row["extended_until"]))
        for row in table("aws_eks_versions.csv").rows
    }
