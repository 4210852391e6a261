"""A Kubernetes cluster that is made here: what is declared of it, what follows, and what is refused."""

import pytest

from ironburst.config import load
from ironburst.config.checks import networks
from ironburst.config.checks.control_plane import control_plane
from ironburst.config.checks.scheduler import scheduler
from ironburst.document import build
from tests.playbooks.sample import POOL_ZONES
from tests.unit.kubernetes_stack import CA, on_both, on_made


def said(value, *checks):
    config = load.from_value(value)
    found = [finding for check in checks or (control_plane, scheduler) for finding in check(config)]
    return [(finding.path.removeprefix("config.ironburst:cluster."), finding.message) for finding in found]


@pytest.fixture
def value(declared):
    on_made(declared)
    return declared


def documented(value):
    observed = build.Observed(
        instances={"fixed-1": build.CloudInstance(id="i-0123456789abcdef0", address="10.90.0.7")},
        pool_zones={"p5": POOL_ZONES, "g5": POOL_ZONES},
    )
    return build.build(load.from_value(value), observed)


def test_how_it_is_reached_follows_from_its_head(value):
    assert said(value) == []
    document = documented(value)
    made = document.scheduler.control_plane
    assert (document.scheduler.api_server, document.scheduler.cluster_dns) == ("https://10.78.0.10:6443", "10.96.0.10")
    assert (made.head, made.head_address, made.pod_cidr) == ("head", "10.78.0.10", "10.244.0.0/16")
    assert (document.scheduler.head, made.cni, made.image_repository) == ("", None, "")  # `head` is Slurm's


def test_its_head_has_the_locked_packages_and_containerd_and_nothing_for_jobs(value):
    head = documented(value).host("head")
    assert head.roles == ["base", "container_runtime", "metrics", "kubernetes_head"]
    packages = head.software.packages
    assert packages["kubernetes_head"] == ["kubeadm=1.36.*", "kubelet=1.36.*", "kubectl=1.36.*", "cri-tools"]
    assert packages["container_runtime"] == ["containerd"] and packages["kubernetes_node"] == []
    assert head.software.slurm is None and head.partition is None


def test_another_name_and_other_networks_are_taken(value):
    value["scheduler"] |= {"api_server": "https://k8s.example.org:6443"}
    value["scheduler"]["control_plane"] |= {"service_cidr": "172.30.0.0/16", "image_repository": "r.example.org:5000/k"}
    document = documented(value)
    its = document.scheduler
    assert (its.api_server, its.cluster_dns) == ("https://k8s.example.org:6443", "172.30.0.10")
    assert its.control_plane.image_repository == "r.example.org:5000/k"
    value["scheduler"]["control_plane"]["cni"] = {"manifest": "/srv/site/cni.yaml", "sha256": "0" * 64}
    assert documented(value).scheduler.control_plane.cni == value["scheduler"]["control_plane"]["cni"]


@pytest.mark.parametrize("key", ["api_server", "ca", "cluster_dns"])
def test_a_cluster_that_is_there_says_how_it_is_reached(value, key):
    value["scheduler"] |= {"api_server": "https://10.78.0.5:6443", "ca": CA, "cluster_dns": "10.96.0.10"}
    del value["scheduler"]["control_plane"]
    value["halls"][0]["nodes"] = [nodes for nodes in value["halls"][0]["nodes"] if nodes.get("role") != "head"]
    assert said(value) == []
    del value["scheduler"][key]
    message = "is needed for a cluster that is there already; to make one, write control_plane or eks"
    assert said(value) == [(f"scheduler.{key}", message)]


@pytest.mark.parametrize(
    ("given", "path", "words"),
    [
        ({"head": "dgx01"}, "control_plane.head", "'dgx01' is not a node with role head; nodes with it: head"),
        ({"pod_cidr": "10.78.0.0/16"}, "control_plane.pod_cidr", "overlaps 10.78.0.0/"),
        ({"service_cidr": "10.244.128.0/20"}, "control_plane.service_cidr", "overlaps 10.244.0.0/16 at "),
        ({"pod_cidr": "10.244.0.0/25"}, "control_plane.pod_cidr", "must be between /8 and /24"),
        ({"service_cidr": "10.96.0.0/11"}, "control_plane.service_cidr", "must be between /12 and /28"),
        ({"service_cidr": "10.96.0.0/29"}, "control_plane.service_cidr", "must be between /12 and /28"),
        ({"pod_cidr": "10.244.0.0/23"}, "control_plane.pod_cidr", "has room for 2 nodes (each takes a /24)"),
    ],
)
def test_what_kubeadm_would_refuse_or_what_would_not_work_is_said_first(value, given, path, words):
    value["scheduler"]["control_plane"] |= given
    found = said(value, control_plane, scheduler, networks.overlaps)
    assert [where for where, message in found if words in message] == [f"scheduler.{path}"], found


def test_networks_of_the_cloud_and_of_the_pods_are_apart(value):
    value["scheduler"]["control_plane"]["pod_cidr"] = value["cloud"]["network"]["cidr"]
    ((path, message),) = said(value, networks.overlaps)
    assert path == "scheduler.control_plane.pod_cidr" and "at config.ironburst:cluster.cloud.network.cidr" in message


def test_rented_nodes_need_the_authority_which_the_head_has_first(value):
    del value["scheduler"]["ca"]
    ((path, message),) = said(value)
    assert path == "scheduler.ca"
    assert message.endswith("converge head first, then write what it has as /etc/kubernetes/pki/ca.crt here")
    value["cloud"]["pools"] = []
    assert said(value) == [] and documented(value).scheduler.ca == ""


def test_the_address_of_dns_is_not_said_twice(value):
    value["scheduler"]["cluster_dns"] = "10.96.0.11"
    assert [path for path, _ in said(value)] == ["scheduler.cluster_dns"]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"cni": {"manifest": "http://example.org/x.yaml", "sha256": "0" * 64}}, "isn't of the form"),
        ({"cni": {"manifest": "https://example.org/x.yaml", "sha256": "abc"}}, "isn't of the form"),
        ({"cni": {"manifest": "https://example.org/x.yaml"}}, "is needed here and absent"),
        ({"image_repository": "https://r.example.org"}, "isn't of the form"),
        ({"pod_cidr": "10.244.0.1/16"}, "is not an IPv4 network"),
    ],
)
def test_bad_values_are_said_at_their_place(value, given, words):
    value["scheduler"]["control_plane"] |= given
    with pytest.raises(load.ConfigError) as raised:
        load.from_value(value)
    (finding,) = raised.value.findings
    assert ".scheduler.control_plane." in finding.path and words in finding.message


def test_a_head_that_nobody_names_is_said(value):
    value["scheduler"] |= {"api_server": "https://10.78.0.5:6443", "cluster_dns": "10.96.0.10"}
    del value["scheduler"]["control_plane"]
    ((path, message),) = said(value)
    assert (
        path.endswith("].role") and "let one of them make a cluster (`control_plane.head` of the scheduler)" in message
    )


def test_beside_slurm_each_has_a_head_of_its_own(declared):
    on_both(declared)
    made = {"control_plane": {"head": "kube"}}
    other = declared["other_schedulers"][0]
    for key in ("api_server", "cluster_dns"):
        del other[key]
    hall = declared["halls"][0]
    head = next(nodes for nodes in hall["nodes"] if nodes.get("role") == "head")
    bmc = head["bmc"] | {"addresses": "http://10.78.8.20"}
    own = {"names": "kube", "addresses": "10.78.0.20", "units": [1], "bmc": bmc, "macs": None, "serials": None}
    hall["racks"].append({"name": "other"})
    hall["nodes"].append({**head, **own, "rack": "other", "scheduler": "kubernetes"})
    other |= made
    assert said(declared) == []
    document = documented(declared)
    assert "slurm_head" in document.host("head").roles and "kubernetes_head" in document.host("kube").roles
    assert document.other_schedulers[0].api_server == "https://10.78.0.20:6443"
    other["control_plane"]["head"] = "head"
    assert "head is Slurm's head, too: each of the two needs a host of its own" in [text for _, text in said(declared)]
