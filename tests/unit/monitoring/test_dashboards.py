"""Every panel's expression, asked of a real Prometheus that scrapes our exporters' samples: a panel without data fails.

Our own exporters' samples come from their code. Those of exporters that need hardware which is not here (dcgm-exporter,
node_exporter's InfiniBand) are written in their shape: names, labels and units as dcgm-exporter's README and
node_exporter 1.5's own test output show them.
"""

import json
import re
from pathlib import Path

import pytest

from ironburst.baremetal import telemetry
from ironburst.controller.metrics import Metrics
from ironburst.monitoring.dashboards import SIZES, as_json, dashboards
from lab.system import wait_for
from tests.fakes.world import World
from tests.playbooks.programs import load
from tests.prometheus import exporter, query, running
from tests.unit.baremetal.test_telemetry import FINE, PLACE

CAPTURED = Path(__file__).parents[2] / "playbooks/captured"
BER = {"symbol_ber": 15e-255, "effective_ber": 15e-255, "raw_ber": 2e-8}
SAMPLES = Path(__file__).parent / "samples"
# PromQL's own words that look like names of metrics
WORDS = {"by", "on", "and", "or", "vector", "time", "sum", "avg", "max", "min", "count", "rate", "increase"}
WORDS |= {"avg_over_time", "max_over_time", "last_over_time", "label_replace", "group_left", "topk"}
# What Grafana puts in for its variables
VALUES = {"$__range_s": "60", "$__rate_interval": "1m", "$__range": "1m", "$job": "1234", "$node": "gpu-001"}
# Two alerts fire always, so that the panels which list them have some
RULES = """
groups:
  - name: test
    interval: 1s
    rules:
      - {alert: Page, expr: 'up{node="gpu-001"} == 1', labels: {severity: page}}
      - {alert: Ticket, expr: 'up{node="gpu-001"} == 1', labels: {severity: ticket}}
"""
QUERIES = [
    pytest.param(query, id=f"{board.uid}: {panel.title} {number}")
    for board in dashboards()
    for panel in board.panels
    for number, query in enumerate(panel.queries.values())
]


def metrics(query):
    """The metrics that an expression names."""
    bare = re.sub(r'"[^"]*"|\{[^}]*\}|\[[^\]]*\]|(by|on) \([^)]*\)', " ", query)
    return {word for word in re.findall(r"\b[A-Za-z_]\w*", bare) if word not in WORDS}


def own_samples(folder):
    """What `ironburst hall metrics` and the roles' programs write."""
    fabric = load("roles/infiniband_fabric/files/ironburst-fabric.py")
    cluster = load("roles/metrics/files/ironburst-metrics.py")
    yield telemetry.metrics({"gpu-001": telemetry.Look(FINE, 1.25)}, {"gpu-001": PLACE}, {("dc1", "a03"): 17000.0}, 1.5)
    yield "\n".join(fabric_samples(fabric)) + "\n"
    yield "\n".join(load("roles/metrics/files/ironburst-links.py").samples({("mlx5_0", "1"): BER})) + "\n"
    nodes, jobs = "home|gpu-001|draining|2026-11-27T07:00:00\n", "home|PENDING|Resources\n"
    yield "\n".join(cluster.slurm(nodes, jobs)) + "\n"
    yield controller_samples(folder)


def fabric_samples(fabric):
    """Of the simulated fabric (tests/playbooks/captured), with a link that is down and one that is too slow."""
    links = fabric.parse_links((CAPTURED / "iblinkinfo-named.txt").read_text())
    errors = fabric.parse_errors((CAPTURED / "ibqueryerrors-named.txt").read_text())
    traffic = fabric.parse_traffic((CAPTURED / "ibqueryerrors-counters.txt").read_text(), links)
    key = next(key for key, link in links.items() if link["name"].startswith("MF0;") and link["width"])
    down = {**links, key: {**links[key], "width": 0, "state": "Down/Polling"}}
    settings = {"limits": {"SymbolErrorCounter": 10}, "min_width": 4, "min_lane_gbps": 100}
    return fabric.samples((down, errors, ["0x1"], traffic, 0), [], settings, links)


def controller_samples(folder):
    """What `ironburst run` serves while a rented node has no job any more, and a job without a limit waits."""
    world = World(folder, home=1)
    metrics = Metrics(world.ledger)
    world.fill_home()
    world.slurm.submit(limit_s=600, runs_s=300)

    def idle():
        metrics.ended(world.document, world.tick())
        return "ironburst_lease_without_job_seconds{" in metrics.text

    world.until(lambda: world.ledger.leases())
    world.slurm.submit(limit_s=None)
    world.until(idle)
    return metrics.text


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory):
    folder = tmp_path_factory.mktemp("prometheus")
    (folder / "rules.yml").write_text(RULES)
    hosts = "".join(path.read_text() for path in sorted(SAMPLES.glob("*.prom")))
    with exporter(hosts) as nodes, exporter("".join(own_samples(folder))) as head:
        targets = [
            {"targets": [nodes], "labels": {"node": "gpu-001"}},
            {"targets": [nodes], "labels": {"node": "rented-1", "rented": "true"}},
            {"targets": [head], "labels": {"node": "head"}},
        ]
        # honor_labels: the head's samples name other nodes in their label `node`
        job = {"job_name": "node", "honor_labels": True, "static_configs": targets}
        rules = [str(folder / "rules.yml")]
        config = {"global": {"scrape_interval": "1s"}, "rule_files": rules, "scrape_configs": [job]}
        with running(folder, config) as url:
            # two scrapes, for rates; the alerts come after the second evaluation
            wait_for(lambda: query(url, "min(count_over_time(up[1m])) > 2 and count(ALERTS) > 1"), 60, "samples")
            yield url


@pytest.mark.parametrize("expression", QUERIES)
def test_a_panel_has_data(prometheus, expression):
    for variable, value in VALUES.items():
        expression = expression.replace(variable, value)
    assert query(prometheus, expression)
    for name in metrics(expression):  # `or vector(0)` gives a figure also of a name that nobody exports
        assert query(prometheus, name), f"{name}: no exporter has it"


def test_a_misspelt_name_is_found():
    assert metrics('count(max by (Hostname, gpu) (DCGM_FI_X{a="b"}) > 0.1) or vector(0)') == {"DCGM_FI_X"}
    query = (
        'a_b / on (hall, rack) rate(c_d[$__rate_interval]) and on (node) label_replace(e_f, "x", "$1", "y", "") / 1e9'
    )
    assert metrics(query) == {"a_b", "c_d", "e_f"}


def test_grafana_gets_what_is_declared():
    boards = list(dashboards())
    assert {board.uid for board in boards} == {
        f"ironburst-{name}" for name in ("site", "job", "node", "fabric", "hall", "money")
    }
    for board in boards:
        made = json.loads(as_json(board))
        assert made["uid"] == board.uid and len(made["panels"]) == len(board.panels)
        assert {variable["name"] for variable in made["templating"]["list"]} == {"source", *board.variables}
        for drawn, panel in zip(made["panels"], board.panels, strict=True):
            assert [target["expr"] for target in drawn["targets"]] == list(panel.queries.values())
            assert len({target["refId"] for target in drawn["targets"]}) == len(panel.queries)
            assert drawn["type"] == panel.kind and drawn["gridPos"]["w"] == SIZES[panel.kind][0]
        used = set(
            re.findall(r"\$(\w+)", " ".join(query for panel in board.panels for query in panel.queries.values()))
        )
        assert used - {"__range", "__range_s", "__rate_interval", "1"} == set(board.variables)
