"""Objects for Prometheus' operator: which there are, and what a Prometheus makes of their relabelings and rules."""

import re
import subprocess
from contextlib import ExitStack
from pathlib import Path

import pytest
import yaml

from ironburst.cli import main
from ironburst.monitoring import kubernetes, rules
from lab.system import wait_for
from tests import prometheus
from tests.unit.kubernetes_stack import on_kubernetes, on_made

ROOT = Path(__file__).parents[3]
CONTROLLER = "10.78.0.20:8643"


def written(folder, change, *options):
    """(exit code, objects) of the lab's stack, changed."""
    value = yaml.safe_load((ROOT / "stacks/Pulumi.lab.yaml").read_text())
    value["config"]["ironburst:cluster"].pop("monitoring", None)
    change(value["config"]["ironburst:cluster"])
    file = folder / "Pulumi.x.yaml"
    file.write_text(yaml.safe_dump(value))
    code = main(["monitoring", str(file), "--to", str(folder / "out"), *options])
    made = folder / "out/kubernetes.yml"
    return code, list(yaml.safe_load_all(made.read_text())) if made.exists() else []


def named(objects):
    return {f"{each['kind']}/{each['metadata']['name']}": each for each in objects}


def test_a_stack_of_slurm_alone_has_none(tmp_path):
    assert written(tmp_path, lambda value: None) == (0, [])


@pytest.mark.parametrize("change", [on_kubernetes, on_made])
def test_what_a_cluster_gets(tmp_path, change):
    labels = ["--label", "release=kube-prometheus-stack", "--namespace", "watch"]
    code, objects = written(tmp_path, change, "--controller", CONTROLLER, *labels)
    assert code == 0 and sorted(named(objects)) == [
        "Endpoints/ironburst-controller",
        "PodMonitor/ironburst-dcgm-exporter",
        "PodMonitor/ironburst-gpu-operator",
        "PrometheusRule/ironburst-alerts",
        "ScrapeConfig/ironburst-dcgm",
        "ScrapeConfig/ironburst-node",
        "Service/ironburst-controller",
        "ServiceMonitor/ironburst-controller",
    ]
    assert {each["metadata"]["namespace"] for each in objects} == {"watch"}
    operated = [each for each in objects if each["apiVersion"].startswith("monitoring.coreos.com/")]
    assert all(each["metadata"]["labels"] == {"release": "kube-prometheus-stack"} for each in operated)
    service, monitor = (
        named(objects)["Service/ironburst-controller"],
        named(objects)["ServiceMonitor/ironburst-controller"],
    )
    assert monitor["spec"]["selector"]["matchLabels"] == service["metadata"]["labels"]
    assert named(objects)["Endpoints/ironburst-controller"]["subsets"] == [
        {"addresses": [{"ip": "10.78.0.20"}], "ports": [{"name": "metrics", "port": 8643, "protocol": "TCP"}]}
    ]


def test_of_two_heads_both_controllers_are_the_services():
    two = {**NO_TARGETS, "ironburst": [{"targets": [at]} for at in (CONTROLLER, "10.78.0.9:8643")]}
    endpoints = named(kubernetes.objects(two, "monitoring", {}))["Endpoints/ironburst-controller"]
    assert [each["addresses"] for each in endpoints["subsets"]] == [[{"ip": "10.78.0.20"}], [{"ip": "10.78.0.9"}]]


def test_a_controller_that_no_pod_reaches_is_left_out_and_named(tmp_path, capsys):
    code, objects = written(tmp_path, on_kubernetes)
    assert code == 0 and not [name for name in named(objects) if "controller" in name]
    assert "no pod reaches its loopback: --controller ADDRESS:PORT" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--controller", "head.example.org:8643"], "a cluster's Service wants an IP address"),
        (["--controller", "10.0.0.1:1", "--controller", "10.0.0.2:1"], "the controller runs on 1 host here"),
        (["--label", "release"], "write KEY=VALUE, as release=kube-prometheus-stack"),
    ],
)
def test_bad_input_is_one_sentence(tmp_path, capsys, options, words):
    assert written(tmp_path, on_kubernetes, *options)[0] == 2
    assert words in capsys.readouterr().err


def test_the_rules_are_those_of_every_site_and_promtool_takes_them(tmp_path):
    (rule,) = [each for each in kubernetes.objects(NO_TARGETS, "monitoring", {}) if each["kind"] == "PrometheusRule"]
    assert rule["spec"] == yaml.safe_load(rules.text())
    (tmp_path / "rules.yml").write_text(yaml.safe_dump(rule["spec"]))
    check = [prometheus.program("promtool"), "check", "rules", "--lint-fatal", "rules.yml"]
    assert subprocess.run(check, cwd=tmp_path, capture_output=True).returncode == 0


NO_TARGETS = {"node": [], "dcgm": [], "ironburst": []}
# as dcgm-exporter writes them in Kubernetes: of a GPU that a pod has, and of one that nobody has
EXPORTED = """\
DCGM_FI_DEV_GPU_UTIL{gpu="0",Hostname="n",namespace="team-a",pod="train-0",container="main"} 97
DCGM_FI_DEV_GPU_UTIL{gpu="1",Hostname="n"} 0
"""
# as Prometheus' discovery of pods, with attachMetadata, and the operator itself label a target
NODES = {
    "home": {"__meta_kubernetes_pod_node_name": "dgx01", "__meta_kubernetes_node_label_ironburst_io_site": "home"},
    "rented": {"__meta_kubernetes_pod_node_name": "p5-1", "__meta_kubernetes_node_label_ironburst_io_site": "burst-p5"},
    "eks": {
        "__meta_kubernetes_pod_node_name": "ip-10-90-1-4.ec2.internal",
        "__meta_kubernetes_node_label_ironburst_io_site": "burst-g5",
        "__meta_kubernetes_node_label_ironburst_io_node": "g5-1",
    },
}
OF_THE_OPERATOR = {
    "namespace": "gpu-operator",
    "pod": "nvidia-dcgm-exporter-x2x",
    "container": "e",
    "endpoint": "metrics",
}


def snake(given):
    """The operator's spelling of a relabeling, in Prometheus' own."""
    return {re.sub("[A-Z]", lambda found: f"_{found[0].lower()}", key): value for key, value in given.items()}


def test_what_prometheus_makes_of_the_pods_of_dcgms_exporter(tmp_path):
    (monitor,) = [
        each
        for each in kubernetes.objects(NO_TARGETS, "monitoring", {})
        if each["metadata"]["name"] == "ironburst-gpu-operator"
    ]
    (endpoint,) = monitor["spec"]["podMetricsEndpoints"]
    assert monitor["spec"]["attachMetadata"] == {"node": True}
    with ExitStack() as rooms:
        groups = [
            {"targets": [rooms.enter_context(prometheus.exporter(EXPORTED))], "labels": labels | OF_THE_OPERATOR}
            for labels in NODES.values()
        ]
        job = {
            "job_name": "podMonitor/monitoring/ironburst-gpu-operator/0",
            "honor_labels": endpoint["honorLabels"],
            "static_configs": groups,
            "relabel_configs": [snake(each) for each in endpoint["relabelings"]],
        }
        config = {"global": {"scrape_interval": "1s"}, "scrape_configs": [job]}
        url = rooms.enter_context(prometheus.running(tmp_path, config))
        wait_for(lambda: len(prometheus.query(url, "DCGM_FI_DEV_GPU_UTIL")) == 6, 60, "all series")
        series = [each["metric"] for each in prometheus.query(url, "DCGM_FI_DEV_GPU_UTIL")]
    of = {(each["node"], each["gpu"]): each for each in series}
    assert set(of) == {(node, gpu) for node in ("dgx01", "p5-1", "g5-1") for gpu in "01"}
    assert {node: each.get("rented") for (node, _), each in of.items()} == {
        "dgx01": None,
        "p5-1": "true",
        "g5-1": "true",
    }
    assert {each["job"] for each in series} == {"dcgm"}
    assert {(each.get("namespace"), each.get("pod")) for (_, gpu), each in of.items() if gpu == "0"} == {
        ("team-a", "train-0")
    }
    idle = {key for (_, gpu), each in of.items() if gpu == "1" for key in each}
    assert not idle & {"namespace", "pod", "container", "endpoint"}, "the exporter's own pod computes nothing for ever"
