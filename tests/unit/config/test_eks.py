"""A stack whose cluster is EKS: what EKS refuses is said before anything is made, in one sentence each."""

from datetime import UTC, datetime

import pytest

from ironburst.config import load
from ironburst.config.checks import check, control_plane, gpu_support, networks
from ironburst.config.checks.aws import eks
from ironburst.config.checks.scheduler import scheduler
from ironburst.config.software import solved
from ironburst.document.build import CloudInstance, HostedCluster, Observed, build
from tests.unit.kubernetes_stack import on_eks, on_kubernetes

NOW = datetime(2026, 11, 21, tzinfo=UTC)
ROOT = "config.ironburst:cluster."


def config(value):
    return load.from_value(value)


@pytest.fixture
def value(declared):
    on_eks(declared)
    return declared


def said(value, of=eks.hosted):
    return [(each.path.removeprefix(ROOT), each.message) for each in of(config(value)) if each.severity == "error"]


def only(value, of=eks.hosted):
    (found,) = said(value, of)
    return found


def supported(value, now=NOW):
    return [(each.severity, each.message) for each in eks.support(config(value), now)]


def refusal(value):
    with pytest.raises(load.ConfigError) as raised:
        config(value)
    return [(finding.path.removeprefix(ROOT), finding.message) for finding in raised.value.findings]


def test_a_cluster_of_eks_needs_no_hall_and_no_server(value):
    assert [str(each) for each in check(config(value), NOW) if each.severity == "error"] == []
    assert config(value).kubernetes.joins_with is None


@pytest.mark.parametrize("key", ["api_server", "ca", "join_token", "cluster_dns"])
def test_without_eks_a_cluster_says_where_it_is(declared, key):
    on_kubernetes(declared)
    del declared["scheduler"][key]
    ((path, message),) = said(declared, control_plane.control_plane)
    assert path == f"scheduler.{key}" and message.startswith("is needed")


def test_what_aws_makes_is_not_written(value):
    value["scheduler"] |= {"cluster_dns": "10.0.0.10", "admin_kubeconfig": "file:x", "controller_user": "me"}
    ((path, message),) = refusal(value)
    assert path == "scheduler" and message.startswith("has cluster_dns, admin_kubeconfig, controller_user beside eks")


@pytest.mark.parametrize(
    ("key", "given", "words"),
    [
        ("version", "1.36.3", "isn't of the form"),
        ("version", "v1.36", "isn't of the form"),
        ("service_cidr", "8.8.0.0/16", "a private network between a /12 and a /24"),
        ("service_cidr", "10.0.0.0/8", "a private network between a /12 and a /24"),
        ("service_cidr", "172.20.0.0/25", "a private network between a /12 and a /24"),
        ("public_access", ["office"], "not an IPv4 network"),
        ("admins", ["arn:aws:iam::123456789012:user/me"], "isn't of the form"),
        ("nodes", 3, "there is no such key"),
    ],
)
def test_bad_values_are_said_at_their_place(value, key, given, words):
    value["scheduler"]["eks"][key] = given
    ((path, message),) = refusal(value)
    assert path.startswith(f"scheduler.eks.{key}") and words in message


def test_one_zone_is_too_few(value):
    value["cloud"]["network"]["zones"] = ["us-east-1a"]
    assert only(value) == ("cloud.network.zones", "has one zone, and EKS takes subnets of 2 zones at least: add one")
    value["cloud"]["network"] |= {"existing": {"vpc_id": "vpc-0a", "subnets": {"us-east-1a": "subnet-0a"}}}
    assert only(value)[0] == "cloud.network.existing.subnets"


def test_nodes_without_a_way_out_get_no_images(value):
    value["cloud"]["network"]["egress"] = "endpoints"
    path, message = only(value)
    assert path == "cloud.network.egress" and message.endswith("write nat")


@pytest.mark.parametrize(
    ("name", "refused"),
    [
        ("lab-preview", True),
        ("lab-preview-0a1b2c3", True),
        ("ci/lab-preview-0a1b2c3", True),
        ("lab-preview-team", False),
    ],
)
def test_the_role_of_previews_is_no_admin(value, name, refused):
    arn = f"arn:aws:iam::123456789012:role/{name}"
    value["scheduler"]["eks"]["admins"] = [arn]
    assert said(value) == []
    value["cloud"]["ci"] = {"issuer": "gitlab.com", "preview": ["project_path:org/site:ref_type:branch:ref:x"]}
    assert [path for path, message in said(value) if "would be cluster-admin" in message] == (
        ["scheduler.eks.admins"] if refused else []
    )


def test_without_a_cloud_there_is_no_eks(value):
    del value["cloud"]
    path, message = only(value)
    assert path == "scheduler.eks" and "this stack has no cloud" in message


def test_without_a_group_the_clusters_dns_has_no_node(value):
    value["cloud"]["groups"] = []
    path, message = only(value)
    assert path == "scheduler.eks" and message.startswith("has no fixed node")


def test_rented_nodes_join_and_alone_they_are_too_few(value):
    value["cloud"]["pools"] = [{"name": "p5", "instance_type": "p5.48xlarge", "max_nodes": 3, "zones": ["us-east-1a"]}]
    assert said(value) == [] and said(value, gpu_support.gpu_support) == [] and said(value, scheduler) == []
    value["cloud"]["groups"] = []
    assert only(value)[1].startswith("has no fixed node")


def test_nodes_of_a_hall_can_not_join(declared):
    halls = declared["halls"]
    halls[0]["nodes"] = [nodes for nodes in halls[0]["nodes"] if nodes.get("role") != "head"]
    on_eks(declared)
    declared["halls"] = halls
    path, message = only(declared)
    assert path == "halls[0].nodes[0].names" and "nodes of a hall can't" in message


def test_a_stack_of_something_else_needs_a_hall(declared):
    declared["halls"] = []
    assert said(declared) == [
        ("halls", "is needed here and absent; only a cluster of EKS, and a Slurm that isn't managed, need no hall")
    ]


@pytest.mark.parametrize(("version", "right"), [("1.36", True), ("1.39", True), ("1.40", False), ("1.35", False)])
def test_kubelets_are_never_newer_and_three_minor_versions_older_at_most(value, version, right):
    value["scheduler"]["eks"]["version"] = version
    found = said(value)
    assert (
        found == []
        if right
        else (found[0][0] == "scheduler.eks.version" and "kubelets of fixed are 1.36" in found[0][1])
    )


@pytest.mark.parametrize(
    ("version", "severity", "words"),
    [
        ("1.35", None, ""),
        ("1.33", "warning", "in extended support since 2026-07-29, which costs six times as much"),
        ("1.30", "error", "which EKS offers no more; it has 1.31, 1.32"),
        ("1.36", "warning", "newer than the catalogue knows of EKS (1.35)"),
    ],
)
def test_what_eks_offers_is_known_by_date(value, version, severity, words):
    value["scheduler"]["eks"]["version"] = version
    found = supported(value)
    assert (found == []) if severity is None else (found[0][0] == severity and words in found[0][1])


def test_addresses_of_services_overlap_nothing(value):
    value["scheduler"]["eks"]["service_cidr"] = "10.90.16.0/20"
    ((path, message),) = [each for each in said(value, networks.overlaps) if "service" in each[0]]
    assert path == "scheduler.eks.service_cidr" and "overlaps 10.90.0.0/16" in message


def test_charts_need_no_kubeconfig_there(value):
    value["scheduler"]["gpu_support"] = {"plugin": "gpu-operator"}
    assert said(value, gpu_support.gpu_support) == []


def test_the_document_says_what_aws_calls_it(value):
    its = config(value)
    made = HostedCluster(api_server="https://x.eks.amazonaws.com", ca="PEM")
    observed = Observed(instances={"fixed-1": CloudInstance(id="i-0abc", address="10.90.1.4")}, hosted=made)
    document = build(its, observed, solved(its))
    found = document.scheduler
    assert (found.eks, found.api_server, found.ca) == ("ironburst-lab", "https://x.eks.amazonaws.com", "PEM")
    assert (found.cluster_dns, found.join_token) == ("172.20.0.10", "")
    assert document.host("fixed-1").node_object == "i-0abc"
