"""A stack with Slurm and Kubernetes: whose nodes are whose, what is refused, and the document that it becomes."""

import json

import pytest

from ironburst import document
from ironburst.config import load
from ironburst.config.checks import gpu_support, names, networks, scheduler, shares, software
from ironburst.config.stack import secret_references
from ironburst.controller import policy_view
from ironburst.controller.launch_request import user_data
from ironburst.document import build
from tests.unit.document.test_document import OBSERVED
from tests.unit.kubernetes_stack import on_both

CHECKS = (scheduler.scheduler, scheduler.joined_with, names.duplicates, software.scheduler)
CHECKS += (gpu_support.gpu_support, networks.head_linked)


@pytest.fixture
def value(declared):
    on_both(declared)
    return declared


def said(value, *checks):
    config = load.from_value(value)
    return [
        (finding.path.removeprefix("config.ironburst:cluster."), finding.message)
        for check in checks or CHECKS
        for finding in check(config)
        if finding.severity == "error"
    ]


def built(value):
    zones = OBSERVED.pool_zones | {"g5": OBSERVED.pool_zones["p5"]}
    return build.build(load.from_value(value), OBSERVED.model_copy(update={"pool_zones": zones}))


def nodes_of(value, name):
    return next(nodes for nodes in value["halls"][0]["nodes"] if nodes["names"] == name)


def test_both_are_declared_beside_each_other(value):
    assert said(value) == []
    config = load.from_value(value)
    assert (config.slurm.head, config.kubernetes.home_partition) == ("head", "pods")
    value["other_schedulers"][0]["admin_kubeconfig"] = "file:/nowhere"
    unresolved = [finding.path for finding in secret_references(load.from_value(value))]
    assert "config.ironburst:cluster.other_schedulers[0].admin_kubeconfig" in unresolved


def test_the_other_way_round_is_the_same(value):
    value["scheduler"], value["other_schedulers"] = value["other_schedulers"][0], [value["scheduler"]]
    assert said(value) == []
    said_of = built(value)
    assert said_of.scheduler_of(said_of.pool("p5")).kind == "slurm" and "slurm_head" in said_of.host("head").roles


def test_everything_says_whose_it_is(value):
    del nodes_of(value, "dgx02")["scheduler"]
    del value["cloud"]["pools"][1]["scheduler"]
    expected = "is absent, and this stack has two schedulers: say whose nodes these are, slurm or kubernetes"
    assert said(value, scheduler.scheduler) == [
        ("halls[0].nodes[2].scheduler", expected),
        ("cloud.pools[1].scheduler", expected),
    ]


def test_what_only_one_scheduler_can_have_is_said(declared, value):
    nodes_of(value, "head")["scheduler"] = "kubernetes"
    ((path, message),) = said(value, scheduler.scheduler)
    assert path == "halls[0].nodes[0].scheduler" and "can only be of slurm" in message


def test_one_scheduler_needs_no_word_and_refuses_another(declared):
    assert said(declared, scheduler.scheduler) == []
    declared["cloud"]["pools"][0]["scheduler"] = "kubernetes"
    ((path, message),) = said(declared, scheduler.scheduler)
    assert path == "cloud.pools[0].scheduler" and "can only be of slurm" in message


@pytest.mark.parametrize(
    ("change", "path", "words"),
    [
        (
            lambda v: v["other_schedulers"][0].update(home_partition="home"),
            "other_schedulers[0].home_partition",
            "used",
        ),
        (lambda v: nodes_of(v, "dgx02").update(names="dgx01"), "halls[0].nodes[2].names[0]", "is used already"),
        (
            lambda v: nodes_of(v, "dgx02").update(names="DGX_2"),
            "halls[0].nodes[2].names",
            "no name of a Kubernetes node",
        ),
        (
            lambda v: v["other_schedulers"][0].update(join_token="file:x"),
            "other_schedulers[0].join_token",
            "must be a reference to aws",
        ),
        (lambda v: v["scheduler"].update(munge_key="file:x"), "scheduler.munge_key", "must be a reference to aws"),
        (
            lambda v: v["other_schedulers"][0].update(gpu_support={"dcgm_exporter": True}),
            "other_schedulers[0].gpu_support",
            "let in",
        ),
        (lambda v: v["software"].update(container_runtime="docker"), "software.container_runtime", "no containerd"),
    ],
    ids=["home", "node in both", "name", "token", "key", "gpus", "containers"],
)
def test_what_is_wrong_is_said_at_its_place(value, change, path, words):
    change(value)
    assert [(at, words in message) for at, message in said(value)] == [(path, True)]


def test_two_of_one_kind_are_refused(value):
    value["other_schedulers"] = [dict(value["scheduler"], home_partition="other")]
    assert any(
        path == "other_schedulers[0].kind" and "write Kubernetes's here" in message for path, message in said(value)
    )


def test_a_bad_key_of_the_other_is_said_at_its_place(value):
    value["other_schedulers"][0]["namespce"] = "x"
    with pytest.raises(load.ConfigError) as raised:
        load.from_value(value)
    ((path, message),) = [(finding.path, finding.message) for finding in raised.value.findings]
    assert path == "config.ironburst:cluster.other_schedulers[0].namespce" and "did you mean 'namespace'" in message


def test_shares_are_parts_of_one_schedulers_nodes(value):
    value["shares"] = [{"team": "vision", "guaranteed_gpus": 8}]
    assert ("shares", "two") in [(path, "two" if "has two" in message else "") for path, message in said(value)]
    assert not said(value, shares.shares)


def test_the_document_says_whose_what_is(value):
    it = document.parse(json.loads(built(value).model_dump_json()))
    assert [each.kind for each in it.schedulers] == ["slurm", "kubernetes"]
    its = {host.name: (host.scheduler, host.partition) for host in it.hosts}
    assert its["dgx01"] == ("slurm", "home") and its["dgx02"] == ("kubernetes", "pods")
    assert "slurm_node" in it.host("dgx01").roles and "kubernetes_node" not in it.host("dgx01").roles
    assert "kubernetes_node" in it.host("dgx02").roles and "slurm_node" not in it.host("dgx02").roles
    assert (it.host("dgx01").software.slurm, it.host("dgx01").software.kubernetes is None) == ("24.11", True)
    assert it.host("dgx02").software.slurm is None and it.host("dgx02").software.kubernetes
    assert (it.pool("p5").scheduler, it.pool("g5").scheduler) == ("slurm", "kubernetes")
    policy = policy_view.policy(it)
    assert (policy.home_partition, policy.other_homes) == ("home", ("pods",))
    assert policy_view.policy(it, ["slurm"]).home_partition == "pods"


def test_a_document_of_one_scheduler_is_what_it_was(declared):
    it = build.build(load.from_value(declared), OBSERVED)
    assert (it.other_schedulers, {host.scheduler for host in it.hosts}) == ([], {""})
    assert policy_view.policy(it).other_homes == ()


def test_a_launch_says_what_its_own_scheduler_needs(value):
    it = built(value)
    for name, has, hasnt in (("p5", "munge_key", "join_token"), ("g5", "join_token", "munge_key")):
        pool = it.pool(name)
        words = json.loads(user_data(it, pool, pool.zones[0], (pool.nodes[0],), 900.0))
        assert has in words and hasnt not in words
