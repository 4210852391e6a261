"""Beside what runs: nodes and a Slurm that somebody else manages, halls without BMCs and racks."""

import copy
from datetime import UTC, datetime

import pytest
import yaml

from ironburst.baremetal.declared import node_inputs
from ironburst.config import load
from ironburst.config.checks import check
from ironburst.convergence.model import SelectionError, select
from ironburst.document import parse, variables
from ironburst.document.build import Observed, build

NOW = datetime(2026, 11, 21, tzinfo=UTC)
BESIDE = """
name: beside
software: {driver: 580.95.05, slurm: "24.11", os: ubuntu2404}
halls:
  - name: hall-a
    cidr: 10.20.0.0/22
    nodes:
      - {names: "DGX_[1-4]", platform: dgx-h100, managed: false, slurm: {cpus: 112, memory_mb: 2000000}}
cloud:
  region: us-east-1
  network: {cidr: 10.21.0.0/16, zones: [us-east-1a]}
  pools: [{name: p5, instance_type: p5.48xlarge, max_nodes: 2, zones: [us-east-1a]}]
budget: {usd_per_month: 5000, notify: [platform@example.org]}
scheduler: {managed: false, head: 10.20.0.10, munge_key: "aws-secretsmanager:beside/munge-key"}
burst: {wait_target: 20m, folders: [/shared]}
"""


@pytest.fixture
def value():
    return yaml.safe_load(BESIDE)


def findings(value):
    try:
        return check(load.from_value(value), NOW)
    except load.ConfigError as error:
        return error.findings


def document(value):
    zones = {"p5": [{"zone": "us-east-1a", "place": {"subnet_id": "s", "launch_template_id": "lt"}}]}
    return build(load.from_value(value), Observed(pool_zones=zones))


def test_it_is_valid_without_bmcs_racks_macs_and_serials(value):
    assert findings(value) == []


def test_its_nodes_are_in_the_document_and_nowhere_else(value):
    made = document(value)
    assert [host.name for host in made.hosts] == ["DGX_1", "DGX_2", "DGX_3", "DGX_4"]
    assert all(host.gpu.count == 8 and host.partition == "home" and host.roles == [] for host in made.hosts)
    assert made.managed_hosts == [] and made.scheduler.head_address == "10.20.0.10" and not made.scheduler.managed
    assert select(made, None) == []
    with pytest.raises(SelectionError, match="names 'DGX_1'"):
        select(made, "DGX_1")
    decoded = made.model_dump(mode="json")
    assert variables.keeper(decoded) is None and parse(decoded) == made


CASES = {
    "managed nodes of a Slurm that isn't": (("halls", 0, "nodes", 0, "managed"), True, "write managed: false"),
    "a BMC of nodes that aren't managed": (
        ("halls", 0, "nodes", 0, "bmc"),
        {"addresses": "https://10.0.0.[1-4]", "username": "a", "password": "env:A"},
        "nobody asks it: leave it out",
    ),
    "units without a rack": (("halls", 0, "nodes", 0, "units"), [1, 9, 17, 25], "are of no rack"),
    "users": (("users",), {}, "which isn't managed: leave it out"),
    "shares": (("shares",), [{"team": "a"}], "which isn't managed: leave them out"),
    "a name that Slurm doesn't take": (("halls", 0, "nodes", 0, "names"), ["a b", "c", "d", "e"], "no host name"),
}


@pytest.mark.parametrize("case", CASES)
def test_what_does_not_go_together(value, case):
    (*way, last), given, words = CASES[case]
    place = value
    for key in way:
        place = place[key]
    place[last] = given
    assert [each for each in findings(value) if words in each.message and each.severity == "error"]


def test_an_unmanaged_node_of_a_managed_slurm_is_told_of(value, declared):
    mixed = copy.deepcopy(declared)
    nodes = mixed["halls"][0]["nodes"]
    nodes[1]["managed"] = False
    del nodes[1]["bmc"], nodes[1]["rack"], nodes[1]["units"]
    assert findings(mixed) == []
    del nodes[1]["addresses"]
    assert [each.path for each in findings(mixed)] == ["config.ironburst:cluster.halls[0].nodes[1].addresses"]


def test_pulumi_makes_no_resource_of_a_node_without_a_bmc(declared):
    nodes = declared["halls"][0]["nodes"]
    del nodes[1]["bmc"]
    assert findings(declared) == []
    config = load.from_value(declared)
    assert [len(node_inputs(each)) for each in config.halls[0].nodes] == [1, 0]
