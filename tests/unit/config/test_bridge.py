"""slurm-bridge: what is declared, what is refused, and the document that it becomes."""

import json

import pytest

from ironburst import document
from ironburst.config import load
from ironburst.config.checks import bridge, check, scheduler, software
from ironburst.config.software import groups
from ironburst.config.stack import secret_references
from ironburst.controller.launch_request import user_data
from ironburst.document import build, variables
from tests.unit.document.test_document import OBSERVED
from tests.unit.kubernetes_stack import BRIDGE


@pytest.fixture
def value(declared):
    declared["scheduler"]["bridge"] = dict(BRIDGE)
    declared["software"] |= {"slurm": "25.11", "kubernetes": "1.35"}
    return declared


def said(value, *checks):
    config = load.from_value(value)
    return [
        (finding.path.removeprefix("config.ironburst:cluster."), finding.message)
        for each in checks or (bridge.bridge, bridge.joined_with, scheduler.scheduler, software.scheduler)
        for finding in each(config)
    ]


def test_a_cluster_is_declared_with_its_slurm(value):
    assert said(value) == []
    config = load.from_value(value)
    assert (config.bridge.namespace, config.bridge.scheduler_name) == ("ironburst-system", "slurm-bridge-scheduler")
    del value["scheduler"]["bridge"], value["software"]["kubernetes"]
    assert load.from_value(value).bridge is None and said(value) == []


def test_what_needs_it_knows_of_it():
    assert bridge.bridge in check.__globals__["CHECKS"]


@pytest.mark.parametrize(
    ("change", "path", "words"),
    [
        ({"slurm": "25.05"}, "software.slurm", "is 25.05, and slurm-bridge needs Slurm 25.11 or newer"),
        ({"slurm": None}, "software.slurm", "is absent, and slurm-bridge needs both schedulers' versions"),
        ({"kubernetes": None}, "software.kubernetes", "write kubernetes: '1.34' or newer"),
        ({"kubernetes": "1.33.4"}, "software.kubernetes", "is 1.33.4, and slurm-bridge needs Kubernetes 1.34 or newer"),
        ({"container_runtime": ["docker"]}, "software.container_runtime", "has no containerd"),
    ],
)
def test_old_or_missing_versions_are_refused_in_one_sentence(value, change, path, words):
    value["software"] |= change
    value["software"] = {key: given for key, given in value["software"].items() if given is not None}
    ((where, message),) = said(value, bridge.bridge)
    assert where == path and words in message


def test_a_token_that_a_rented_node_cant_read_is_refused(value):
    value["scheduler"]["bridge"]["join_token"] = "file:/etc/token"
    ((path, message),) = said(value)
    assert path == "scheduler.bridge.join_token" and "must be a reference to aws-secretsmanager:" in message
    value["cloud"]["pools"] = []
    assert said(value, bridge.joined_with) == []


def test_a_second_queue_beside_it_is_refused(value):
    value["other_schedulers"] = [BRIDGE | {"kind": "kubernetes", "home_partition": "pods"}]
    found = dict(said(value, bridge.bridge))
    assert "other_schedulers declares a second queue: leave one out" in found["scheduler.bridge"]


def test_shares_beside_it_are_refused(value):
    value["shares"] = [{"team": "vision", "guaranteed_gpus": 4}]
    ((path, message),) = said(value, bridge.bridge)
    assert path == "scheduler.bridge" and "shares exclude each other" in message


@pytest.mark.parametrize(
    ("key", "given", "words"),
    [
        ("api_server", "10.78.0.5", "isn't of the form"),
        ("ca", "-----BEGIN RSA PRIVATE KEY-----", "never a key"),
        ("kubeconfig", "/etc/kubernetes/admin.conf", "not a secret reference"),
        ("cluster_dns", "kube-dns", "not an IPv4 address"),
        ("scheduler_name", "Slurm Bridge", "isn't of the form"),
        ("namespce", "x", "did you mean 'namespace'"),
    ],
)
def test_bad_values_are_said_at_their_place(value, key, given, words):
    value["scheduler"]["bridge"][key] = given
    with pytest.raises(load.ConfigError) as raised:
        load.from_value(value)
    ((path, message),) = [(finding.path, finding.message) for finding in raised.value.findings]
    assert path == f"config.ironburst:cluster.scheduler.bridge.{key}" and words in message


def test_rented_nodes_alone_get_both_versions(value):
    wishes = {group.name: group.wish for group in groups(load.from_value(value))}
    assert {name for name, wish in wishes.items() if wish.kubernetes} == {"pool/p5"}, list(wishes)
    assert {wish.slurm for wish in wishes.values()} == {"25.11"}


def test_a_reference_that_does_not_resolve_is_told(value):
    value["scheduler"]["bridge"]["join_token"] = "file:/nowhere"
    paths = [finding.path for finding in secret_references(load.from_value(value))]
    assert "config.ironburst:cluster.scheduler.bridge.join_token" in paths


def test_the_document_says_it_to_readers_who_know_it(value):
    its = build.build(load.from_value(value), OBSERVED)
    assert document.parse(its.model_dump(mode="json")) == its
    assert its.scheduler.bridge.api_server == "https://10.78.0.5:6443"
    assert {"slurm_node", "kubernetes_node"} <= set(its.pool("p5").roles)
    assert "kubernetes_node" not in its.host("dgx01").roles and "kubernetes_node" not in its.host("head").roles
    assert its.pool("p5").software.kubernetes == "1.35" and its.host("dgx01").software.kubernetes is None


def test_hosts_find_the_cluster_where_one_of_kubernetes_has_it(value):
    said_of = build.build(load.from_value(value), OBSERVED).model_dump(mode="json")
    its = variables.of_all(said_of)
    assert (
        its["cluster_scheduler"]["cluster_dns"] == BRIDGE["cluster_dns"] and its["cluster_scheduler"]["head"] == "head"
    )
    assert its["cluster_schedulers"] == [its["cluster_scheduler"]] and its["cluster_scheduler"]["kind"] == "slurm"
    (host,) = [each for each in said_of["hosts"] if each["name"] == "head"]
    assert "cluster_scheduler" not in variables.of_host(said_of, host), "there is only one"
    del value["scheduler"]["bridge"], value["software"]["kubernetes"]
    plain = build.build(load.from_value(value), OBSERVED).model_dump(mode="json")
    assert variables.of_all(plain)["cluster_scheduler"] == plain["scheduler"]


def test_a_launch_says_what_its_nodes_join_on_both_sides(value):
    its = build.build(load.from_value(value), OBSERVED)
    pool = its.pool("p5")
    told = json.loads(user_data(its, pool, pool.zones[0], ("p5-1",), 45.0))
    assert told["scheduler"] == "slurm-bridge" and told["conf_server"] == its.scheduler.head_address
    assert told["join_token"] == BRIDGE["join_token"] and told["labels"]["ironburst.io/site"] == pool.partition
    del value["scheduler"]["bridge"], value["software"]["kubernetes"]
    plain = build.build(load.from_value(value), OBSERVED)
    assert "scheduler" not in json.loads(user_data(plain, pool, pool.zones[0], ("p5-1",), 45.0))
