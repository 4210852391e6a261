"""Pools that Karpenter launches: what is refused, and the document that they become."""

import copy

import pytest

from ironburst import document
from ironburst.config import load
from ironburst.config.checks.budget import ceilings_and_prices
from ironburst.config.checks.karpenter import karpenter
from ironburst.document import build
from tests.unit.document.test_document import OBSERVED
from tests.unit.kubernetes_stack import on_both

POOL = {"name": "wide", "instance_type": "g6e.12xlarge", "max_nodes": 4, "node_class": "gpu"}


@pytest.fixture
def value(declared):
    """Slurm with its pools, and a cluster whose pods Karpenter launches for."""
    on_both(declared)
    declared["cloud"]["pools"] = [pool for pool in declared["cloud"]["pools"] if pool["scheduler"] == "slurm"]
    declared["other_schedulers"][0]["admin_kubeconfig"] = "file:/etc/ironburst/admin.kubeconfig"
    declared["cloud"]["karpenter"] = [copy.deepcopy(POOL)]
    return declared


def said(value):
    findings = karpenter(load.from_value(value))
    return [(each.path.removeprefix("config.ironburst:cluster."), each.message) for each in findings]


def test_it_stands_beside_slurms_own_pools(value):
    assert said(value) == []


def of(**changes):
    return lambda value: value["cloud"]["karpenter"][0].update(changes)


def slurm_alone(value):
    value["other_schedulers"] = []
    for nodes in (*value["halls"][0]["nodes"], *value["cloud"]["groups"], *value["cloud"]["pools"]):
        nodes.pop("scheduler", None)


def no_admin(value):
    del value["other_schedulers"][0]["admin_kubeconfig"]


def no_budget(value):
    del value["budget"]


def an_own_pool(value):
    first = value["cloud"]["pools"][0]
    value["cloud"]["pools"].append(copy.deepcopy(first) | {"name": "g5", "scheduler": "kubernetes"})


@pytest.mark.parametrize(
    ("change", "path", "sentence"),
    [
        (slurm_alone, "cloud.karpenter", "this stack has none: add a scheduler of kind kubernetes"),
        (no_admin, "cloud.karpenter", "needs the scheduler's admin_kubeconfig"),
        (no_budget, "budget", "is needed where Karpenter launches"),
        (an_own_pool, "cloud.pools[", "g5 is rented by ironburst and cloud.karpenter by Karpenter"),
        (of(name="p5"), "cloud.karpenter[0].name", "'p5' is the name of another pool or group, too"),
        (of(idle="10s"), "cloud.karpenter[0].idle", "is less than 5m, faster than limits follow"),
        (of(account="nobody"), "cloud.karpenter[0].account", "'nobody' has no ceiling in budget.accounts"),
        (of(instance_type="g6e.1xlarge"), "cloud.karpenter[0].instance_type", "g6e.1xlarge"),
        (of(instance_type="trn1.2xlarge"), "cloud.karpenter[0].instance_type", "has no NVIDIA GPU"),
    ],
)
def test_what_does_not_fit_is_one_sentence(value, change, path, sentence):
    change(value)
    ((where, message),) = said(value)
    assert where.startswith(path) and sentence in message


def test_a_price_that_nobody_knows_is_asked_for(value):
    value["cloud"] |= {"region": "eu-central-1", "pools": [], "price": {}}
    (said_once,) = [each for each in ceilings_and_prices(load.from_value(value)) if each.rule == "no-price"]
    assert said_once.path.endswith("cloud.price") and said_once.message.startswith(
        "the catalogue has no price of g6e.12xlarge in eu-central-1; write USD per hour of one instance under cloud: "
        "`price: {g6e.12xlarge: {on_demand: USD}}`"
    )
    value["cloud"]["price"] = {"g6e.12xlarge": {"on_demand": 13.0}}
    assert [each for each in ceilings_and_prices(load.from_value(value)) if each.rule == "no-price"] == []


def test_the_document_says_what_a_limit_is_in_dollars(value):
    value["budget"]["accounts"] = {"vision": 100.0}
    value["cloud"]["karpenter"][0] |= {"account": "vision", "max_run": "2h"}
    value["cloud"]["price"] = {"g6e.12xlarge": {"on_demand": 13.0}}
    built = build.build(load.from_value(value), OBSERVED)
    (pool,) = built.karpenter
    assert (pool.node_pool, pool.gpus, pool.cpus) == (f"ironburst-{built.cluster}-wide", 4, 48)
    assert (pool.usd_per_hour, pool.max_nodes, pool.max_run_s, pool.account) == (13.0, 4, 7200, "vision")
    assert document.parse(built.model_dump(mode="json")) == built


def test_without_karpenter_the_document_is_what_it_was(value):
    value["cloud"]["karpenter"] = []
    built = build.build(load.from_value(value), OBSERVED)
    assert built.karpenter == []
