"""Helm charts that make a Kubernetes cluster's GPUs usable, each at the one version that is locked."""

import functools
from dataclasses import dataclass

from ironburst.catalog.errors import look_up
from ironburst.catalog.tables import filled, table


@dataclass(frozen=True)
class Chart:
    """One chart. `repository`: None where the chart names its own (oci://). `kubernetes_min` and `kubernetes_max`
    (major.minor): what its vendor supports; None is unknown.
    """

    name: str
    chart: str
    repository: str | None
    version: str
    kubernetes_min: str | None
    kubernetes_max: str | None
    source: str


@functools.cache
def charts() -> dict[str, Chart]:
    """All charts by our name of them."""
    return {row["name"]: filled(Chart, row) for row in table("charts.csv").rows}


def chart(name: str) -> Chart:
    """The chart of this name (`gpu-operator`); raises Unknown."""
    return look_up("chart", name, charts())
