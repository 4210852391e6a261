"""GPU support of a Kubernetes cluster: what is refused, and what is told."""

from types import SimpleNamespace
from typing import get_args

import pytest

from ironburst import catalog
from ironburst.config import load
from ironburst.config.checks.gpu_support import drivers, gpu_support
from ironburst.config.gpu_support_models import ChartName
from tests.unit.kubernetes_stack import on_kubernetes


@pytest.fixture
def value(declared):
    on_kubernetes(declared)
    declared["scheduler"]["admin_kubeconfig"] = "file:/etc/ironburst/admin.kubeconfig"
    return declared


def found(value):
    """{path: (severity, sentence)} but for the warning that every stack with pools gets."""
    findings = gpu_support(load.from_value(value))
    named = {each.path.removeprefix("config.ironburst:cluster."): (each.severity, each.message) for each in findings}
    return {path: said for path, said in named.items() if path != "scheduler.kind"}


def test_slurm_has_none(declared):
    assert list(gpu_support(load.from_value(declared))) == []


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"plugin": "device-plugin", "device_list": "volume-mounts", "mig_strategy": "mixed", "dcgm_exporter": True},
        {"plugin": "gpu-operator", "dra": "compute-domains"},
    ],
)
def test_what_goes_together_is_taken(value, given):
    value["scheduler"]["gpu_support"] = given
    assert found(value) == {}


def test_images_that_may_give_themselves_gpus_are_told(value):
    value["scheduler"]["gpu_support"] = {"plugin": "device-plugin"}
    severity, message = found(value)["scheduler.gpu_support.device_list"]
    assert severity == "warning" and "sees all of its node's" in message


def test_the_network_of_rented_nodes_is_told(value):
    (warning,) = gpu_support(load.from_value(value))
    assert warning.severity == "warning"
    assert all(said in warning.message for said in ("ironburst.io/not-ready", "ironburst.io/rented", "CNI"))
    value["cloud"]["pools"] = []
    assert list(gpu_support(load.from_value(value))) == []


@pytest.mark.parametrize(
    ("given", "path", "sentence"),
    [
        ({"plugin": "device-plugin", "dra": "gpus"}, "dra", "both would hand out the same ones"),
        ({"dra": "gpus", "mig_strategy": "single"}, "mig_strategy", "a claim asks for its MIG instance"),
        ({"rdma_resource": "rdma_shared_device_a"}, "rdma_resource", "write network_operator: yes"),
        ({"sharing": {"by": "mps", "replicas": 4}}, "sharing", "declare plugin, or leave it out"),
        ({"plugin": "gpu-operator", "values": {"dcgm-exporter": {}}}, "values.dcgm-exporter", "that isn't installed"),
    ],
)
def test_what_does_not_go_together(value, given, path, sentence):
    value["cloud"]["pools"] = []
    value["scheduler"]["gpu_support"] = given
    severity, message = found(value)[f"scheduler.gpu_support.{path}"]
    assert severity == "error" and sentence in message


def test_a_rented_node_must_show_its_gpus(value):
    value["scheduler"]["gpu_support"] = {"plugin": "gpu-operator", "dra": "gpus"}
    severity, message = found(value)["scheduler.gpu_support.dra"]
    assert severity == "error" and "only when it shows nvidia.com/gpu" in message


def test_nothing_is_installed_where_pulumi_is_not_let_in(value):
    del value["scheduler"]["admin_kubeconfig"]
    value["scheduler"]["gpu_support"] = {"plugin": "device-plugin"}
    severity, message = found(value)["scheduler.gpu_support"]
    assert severity == "error" and "give the cluster's admin_kubeconfig" in message


def test_mig_instances_that_no_pod_would_get_are_told(value):
    value["cloud"]["pools"][0]["mig"] = [{"profiles": {"1g.10gb": 7}}]
    value["scheduler"]["gpu_support"] = {"plugin": "device-plugin", "device_list": "volume-mounts"}
    severity, message = found(value)["scheduler.gpu_support.mig_strategy"]
    assert severity == "warning" and "these nodes have some: p5;" in message
    value["scheduler"]["gpu_support"]["mig_strategy"] = "mixed"
    assert found(value) == {}


def test_claims_need_a_driver(value):
    value["cloud"]["pools"] = []
    value["scheduler"]["gpu_support"] = {"plugin": "gpu-operator", "dra": "gpus"}
    sets = {
        "hall-a/dgx[01-02]": SimpleNamespace(driver="570.172.08"),
        "group/fixed": SimpleNamespace(driver="580.95.05"),
    }
    (finding,) = drivers(load.from_value(value), SimpleNamespace(sets=sets))
    assert "hall-a/dgx[01-02] (570.172.08)" in finding.message and "group/fixed" not in finding.message
    assert finding.severity == "error"
    value["scheduler"]["gpu_support"]["dra"] = "none"
    assert list(drivers(load.from_value(value), SimpleNamespace(sets=sets))) == []


@pytest.mark.parametrize(
    ("version", "given", "severity", "sentence"),
    [
        ("1.32", {"plugin": "gpu-operator"}, "error", "needs Kubernetes 1.33 or newer"),
        ("1.33.4", {"plugin": "gpu-operator", "dra": "gpus"}, "error", "needs Kubernetes 1.34 or newer"),
        ("1.31", {"plugin": "device-plugin", "dra": "compute-domains"}, "error", "needs Kubernetes 1.32 or newer"),
        ("1.37", {"plugin": "gpu-operator"}, "warning", "up to Kubernetes 1.36, not on 1.37"),
        ("1.36.3", {"network_operator": True}, "warning", "up to Kubernetes 1.35, not on 1.36.3"),
    ],
)
def test_a_chart_and_another_kubernetes(value, version, given, severity, sentence):
    value["cloud"]["pools"] = []
    value["software"]["kubernetes"] = version
    value["scheduler"]["gpu_support"] = given
    got, message = found(value)["software.kubernetes"]
    assert got == severity and sentence in message


def test_the_profiles_version_counts_where_none_is_written(value):
    value["software"].pop("kubernetes")
    value["software"]["profile"] = "inference-2026"
    value["scheduler"]["gpu_support"] = {"network_operator": True}
    assert found(value)["software.kubernetes"][0] == "warning"


def test_only_gpus_of_claims_can_be_tainted(value):
    value["cloud"]["pools"] = []
    value["scheduler"]["gpu_support"] = {"device_taints": True, "dra": "compute-domains"}
    assert "write dra: gpus, or no" in found(value)["scheduler.gpu_support.device_taints"][1]
    value["scheduler"]["gpu_support"]["dra"] = "gpus"
    assert "scheduler.gpu_support.device_taints" not in found(value)


def test_the_clusters_own_namespaces_are_not_ours(value):
    value["scheduler"]["namespace"] = "kube-system"
    assert found(value)["scheduler.namespace"][0] == "error"


def test_every_chart_has_one_locked_version_and_a_place():
    charts = catalog.charts()
    assert set(charts) == {name for names in get_args(ChartName) for name in get_args(names)}
    for chart in charts.values():
        assert chart.version.lstrip("v")[0].isdigit() and chart.source
        assert bool(chart.repository) != chart.chart.startswith("oci://")
    with pytest.raises(catalog.Unknown):
        catalog.chart("gpu-operater")


def test_a_rule_needs_pulumi_in_the_cluster_and_labels(value):
    value["scheduler"]["gate_rule"] = {}
    assert found(value) == {}
    assert load.from_value(value).kubernetes.gate_rule.node_labels == {"ironburst.io/site": "home"}
    del value["scheduler"]["admin_kubeconfig"]
    assert "give the cluster's admin_kubeconfig" in found(value)["scheduler.gate_rule"][1]
    value["scheduler"]["gate_rule"] = {"node_labels": {}}
    with pytest.raises(load.ConfigError, match="node_labels"):
        load.from_value(value)
