"""The lab's stack with a Kubernetes cluster as its scheduler, or as one of two."""

from __future__ import annotations

import copy

from tests.pki import issue

CA = issue("kubernetes", ca=True).pem
BRIDGE = {
    "api_server": "https://10.78.0.5:6443",
    "ca": CA,
    "kubeconfig": "file:/etc/ironburst/kubeconfig",
    "join_token": "aws-secretsmanager:ironburst/lab/join-token",
    "cluster_dns": "10.96.0.10",
}


def on_kubernetes(value):
    """Changes a decoded stack."""
    value["software"].pop("slurm", None)
    value["software"]["kubernetes"] = "1.36"
    hall = value["halls"][0]
    hall["nodes"] = [nodes for nodes in hall["nodes"] if nodes.get("role") != "head"]
    value.pop("monitoring", None)  # it was the head's
    value["scheduler"] = {
        "kind": "kubernetes",
        "api_server": "https://10.78.0.5:6443",
        "ca": CA,
        "kubeconfig": "file:/etc/ironburst/kubeconfig",
        "join_token": "aws-secretsmanager:ironburst/lab/join-token",
        "cluster_dns": "10.96.0.10",
    }


def on_made(value):
    """Changes a decoded stack: the head makes the cluster."""
    heads = [nodes for nodes in value["halls"][0]["nodes"] if nodes.get("role") == "head"]
    on_kubernetes(value)
    value["halls"][0]["nodes"] += heads
    for key in ("api_server", "cluster_dns"):
        del value["scheduler"][key]
    value["scheduler"]["control_plane"] = {"head": "head"}


def on_eks(value):
    """Changes a decoded stack: no hall, and a cluster of EKS whose nodes are a fixed group."""
    on_kubernetes(value)
    value["halls"] = []
    value["scheduler"] = {"kind": "kubernetes", "kubeconfig": "file:/etc/ironburst/kubeconfig", "eks": {}}
    cloud = value["cloud"]
    cloud["pools"] = []
    cloud["network"]["zones"] = ["us-east-1a", "us-east-1b"]
    cloud["network"].pop("hall_link", None)


def on_both(value):
    """Changes a decoded stack: Slurm has what it had but for dgx02 and pool g5, which are a cluster's."""
    here = copy.deepcopy(value)
    on_kubernetes(here)
    value["other_schedulers"] = [here["scheduler"] | {"home_partition": "pods"}]
    value["software"]["kubernetes"] = "1.36"
    hall = value["halls"][0]
    dgx = next(nodes for nodes in hall["nodes"] if nodes["names"] == "dgx[01-02]")
    first = {"names": "dgx01", "scheduler": "slurm", "addresses": "10.78.0.11"}
    second = {"names": "dgx02", "scheduler": "kubernetes", "addresses": "10.78.0.12"}
    halves = []
    for n, half in enumerate((first, second)):
        bmc = dgx["bmc"] | {"addresses": f"http://10.78.8.1{n + 1}"}
        own = {key: [dgx[key][n]] for key in ("units", "macs", "serials")}
        halves.append(copy.deepcopy(dgx) | half | own | {"bmc": bmc})
    hall["nodes"] = [*(nodes for nodes in hall["nodes"] if nodes is not dgx), *halves]
    cloud = value["cloud"]
    for nodes in (*cloud["groups"], *cloud["pools"]):
        nodes["scheduler"] = "slurm"
    cloud["pools"].append(copy.deepcopy(cloud["pools"][0]) | {"name": "g5", "scheduler": "kubernetes", "max_nodes": 2})
