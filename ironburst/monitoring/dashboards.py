"""Grafana's dashboards of dashboards.yaml as the JSON that Grafana provisions or imports, by Grafana's own SDK."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from importlib import resources
from typing import Any

import yaml

# Width (Grafana has 24 columns) and height of a panel
SIZES = {"stat": (4, 4), "timeseries": (12, 8), "table": (24, 8)}


@dataclass(frozen=True)
class DashboardPanel:
    """`unit`: Grafana's id of one; `queries`: legend -> PromQL, with Grafana's variables."""

    kind: str
    title: str
    unit: str
    queries: dict[str, str]


@dataclass(frozen=True)
class Dashboard:
    """`variables`: name -> the label_values() that gives its values."""

    uid: str
    title: str
    variables: dict[str, str]
    panels: tuple[DashboardPanel, ...]


def dashboards() -> Iterator[Dashboard]:
    """All of them, in their order."""
    rows = yaml.safe_load(resources.files(__package__).joinpath("dashboards.yaml").read_text(encoding="utf-8"))
    for uid, row in rows.items():
        yield Dashboard(uid, row["title"], row.get("variables", {}), tuple(map(_panel, row["panels"])))


def _panel(row: dict[str, Any]) -> DashboardPanel:
    kind = next(kind for kind in SIZES if kind in row)
    return DashboardPanel(kind, row[kind], row["unit"], row.get("queries") or {"": row["query"]})


def as_json(board: Dashboard) -> str:
    """For a Grafana of 11.6 or later. Raises ImportError without the extra `monitoring`."""
    from grafana_foundation_sdk.builders import dashboard, prometheus, stat, table, timeseries
    from grafana_foundation_sdk.cog.encoder import JSONEncoder
    from grafana_foundation_sdk.models.dashboard import DataSourceRef, VariableRefresh

    source = DataSourceRef("prometheus", "${source}")
    kinds: dict[str, Any] = {"stat": stat.Panel, "timeseries": timeseries.Panel, "table": table.Panel}
    made = dashboard.Dashboard(board.title).uid(board.uid).tags(["ironburst"]).refresh("30s").time("now-6h", "now")
    made.readonly().with_variable(dashboard.DatasourceVariable("source").label("Prometheus").type("prometheus"))
    for name, query in board.variables.items():
        variable = dashboard.QueryVariable(name).datasource(source).query(query)
        made.with_variable(variable.refresh(VariableRefresh.ON_TIME_RANGE_CHANGED))
    for panel in board.panels:
        width, height = SIZES[panel.kind]
        drawn = kinds[panel.kind]().title(panel.title).unit(panel.unit).datasource(source).span(width).height(height)
        for number, (legend, query) in enumerate(panel.queries.items()):
            asked = prometheus.Dataquery().ref_id(chr(ord("A") + number)).expr(query).legend_format(legend)
            drawn.with_target(asked.instant() if panel.kind == "table" else asked)
        made.with_panel(drawn)
    return JSONEncoder(sort_keys=True, indent=1).encode(made.build()) + "\n"
