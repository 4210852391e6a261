"""A stack whose scheduler is a Kubernetes cluster: what is refused, and where."""

import pytest

from ironburst.config import load
from ironburst.config.checks import control_plane, networks
from ironburst.config.checks.aws import data
from ironburst.config.checks.scheduler import joined_with, scheduler
from tests.unit.kubernetes_stack import on_kubernetes


def said(value, check=scheduler):
    return [
        (finding.path.removeprefix("config.ironburst:cluster."), finding.message) for finding in check(config(value))
    ]


def config(value):
    return load.from_value(value)


@pytest.fixture
def value(declared):
    on_kubernetes(declared)
    return declared


def refusal(value):
    with pytest.raises(load.ConfigError) as raised:
        config(value)
    return [(finding.path, finding.message) for finding in raised.value.findings]


def test_a_cluster_is_declared_in_the_place_of_slurm(value):
    its = config(value).scheduler
    assert (its.kind, its.home_partition, its.namespace) == ("kubernetes", "home", "ironburst-system")
    assert its.joins_with == ("join_token", "aws-secretsmanager:ironburst/lab/join-token")
    assert said(value) == [] and said(value, data.data) == []


@pytest.mark.parametrize(
    ("given", "path", "words"),
    [
        (["dgx01.x", "DGX02"], "halls[0].nodes[0].node_objects", "'DGX02' is no name of a Kubernetes node"),
        (["dgx01.x", "dgx02.x"], None, None),
    ],
)
def test_a_node_object_has_a_name_that_kubernetes_takes(value, given, path, words):
    value["halls"][0]["nodes"][0]["node_objects"] = given
    found = said(value)
    assert ([each[0] for each in found], all(words in each[1] for each in found)) == ([path] if path else [], True)


def test_nodes_of_slurm_have_no_node_objects(declared):
    declared["halls"][0]["nodes"][0]["node_objects"] = "dgx[01-02].x"
    ((path, message),) = said(declared)
    assert path == "halls[0].nodes[0].node_objects" and "these are Slurm's" in message


@pytest.mark.parametrize(
    ("key", "given", "words"),
    [
        ("api_server", "http://10.78.0.5:6443", "isn't of the form"),
        ("api_server", "10.78.0.5", "isn't of the form"),
        ("ca", "-----BEGIN RSA PRIVATE KEY-----", "never a key"),
        ("kubeconfig", "/etc/kubernetes/admin.conf", "not a secret reference"),
        ("cluster_dns", "kube-dns", "not an IPv4 address"),
        ("munge_key", "file:x", "there is no such key"),
        ("namespce", "x", "did you mean 'namespace'"),
    ],
)
def test_bad_values_are_said_at_their_place(value, key, given, words):
    value["scheduler"][key] = given
    ((path, message),) = refusal(value)
    assert path == f"config.ironburst:cluster.scheduler.{key}" and words in message


def test_what_is_missing_is_said_without_the_kind_in_its_path(value):
    del value["scheduler"]["join_token"]
    message = "is needed: rented nodes join with what the controller puts there"
    assert said(value, control_plane.control_plane) == [("scheduler.join_token", message)]


def test_another_scheduler_is_refused_with_those_that_are_known(value):
    value["scheduler"]["kind"] = "pbs"
    ((path, message),) = refusal(value)
    assert path == "config.ironburst:cluster.scheduler" and "allowed are slurm and kubernetes" in message


def test_a_secret_in_the_place_of_a_reference_is_not_repeated(value):
    value["scheduler"]["kubeconfig"] = "apiVersion: v1, token: hunter2"
    ((_, message),) = refusal(value)
    assert "hunter2" not in message


def test_rented_nodes_read_their_token_from_aws(value):
    value["scheduler"]["join_token"] = "file:token"
    ((path, message),) = said(value, joined_with)
    assert path == "scheduler.join_token" and "must be a reference to aws-secretsmanager:" in message


def test_a_cluster_has_no_head_of_ours_and_its_own_rule_of_names(value):
    nodes = value["halls"][0]["nodes"]
    nodes[0]["names"] = "DGX_[01-02]"
    found = said(value)
    assert [path for path, _ in found] == ["halls[0].nodes[0].names"] * 2
    assert "small letters, digits" in found[0][1]
    nodes[0] |= {"names": "dgx[01-02]", "role": "head"}
    assert [path for path, _ in said(value)] == ["halls[0].nodes[0].role"]


@pytest.mark.parametrize(
    ("server", "findings"), [("https://10.78.0.5:6443", 1), ("https://k8s.example.org", 0), ("https://192.0.2.1", 0)]
)
def test_a_hall_with_the_api_server_has_to_be_reached(value, server, findings):
    value["scheduler"]["api_server"] = server
    del value["cloud"]["network"]["hall_link"]
    found = [message for _, message in said(value, networks.head_linked)]
    assert len(found) == findings and all("don't reach the API server 10.78.0.5" in each for each in found)


@pytest.mark.parametrize(
    ("key", "words"),
    [
        ("node-role.kubernetes.io/gpu", "belongs to Kubernetes"),
        ("example.k8s.io/x", "belongs to Kubernetes"),
        ("k8s.io/x", "belongs to Kubernetes"),
        ("not a key", "is no key of a label"),
        ("x/y/z", "is no key of a label"),
    ],
)
def test_labels_that_a_node_may_not_give_itself_are_refused(value, key, words):
    value["cloud"]["pools"][0]["labels"] = {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"}
    assert config(value).cloud.pools[0].labels
    value["cloud"]["pools"][0]["labels"] = {key: "x"}
    ((_, message),) = refusal(value)
    assert words in message
