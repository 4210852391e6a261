"""Helm charts that make a Kubernetes cluster's GPUs usable, each at the one version that is locked."""

import functools
from collections.abc import Mapping
from dataclasses import dataclass, replace

from ironburst.catalog.errors import look_up
from ironburst.catalog.tables import Row, filled, table


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

    def kept_in(self, repository: str) -> "Chart":
        """The same from a repository of one's own, `https://` or `oci://`, which has it under its own name."""
        name = self.chart.rpartition("/")[2]
        if repository.startswith("oci://"):
            return replace(self, chart=f"{repository}/{name}", repository=None)
        return replace(self, chart=name, repository=repository)


@dataclass(frozen=True)
class ChartFacts:
    """What a chart is at its locked version, as far as we count on it. Keys are paths in its values (`gfd.enabled`)."""

    values: Mapping[str, str]  # key: its type (bool, str, list, map)
    tolerates: Mapping[str, frozenset[str]]  # key of a list of tolerations: the taints in the chart's own list
    images: Mapping[str, str]  # key of an image's repository: the chart's own
    crds: Mapping[str, str]  # CustomResourceDefinition that it brings: its versions
    needs: frozenset[str]  # CustomResourceDefinitions of which it makes objects


@functools.cache
def chart_facts(name: str) -> ChartFacts:
    """Of the chart of this name; raises Unknown."""
    version = chart(name).version
    of: dict[str, list[Row]] = {}
    for row in table("chart_facts.csv").rows:
        if (row["chart"], row["version"]) == (name, version):
            of.setdefault(row["fact"], []).append(row)

    def by_name(fact: str) -> dict[str, str]:
        return {row["name"]: row["detail"] for row in of.get(fact, ())}

    keys = {row["name"] for row in of.get("tolerates", ())}
    tolerates = {key: frozenset(row["detail"] for row in of["tolerates"] if row["name"] == key) for key in keys}
    needs = frozenset(by_name("needs"))
    return ChartFacts(by_name("value"), tolerates, by_name("image"), by_name("crd"), needs)


@functools.cache
def charts() -> dict[str, Chart]:
    """All charts by our name of them."""
    return {row["name"]: filled(Chart, row) for row in table("charts.csv").rows}


def chart(name: str) -> Chart:
    """The chart of this name (`gpu-operator`); raises Unknown."""
    return look_up("chart", name, charts())
