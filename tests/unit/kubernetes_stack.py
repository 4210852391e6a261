"""The lab's stack with a Kubernetes cluster as its scheduler."""

from __future__ import annotations

from tests.pki import issue

CA = issue("kubernetes", ca=True).pem


def on_kubernetes(value):
    """Changes a decoded stack."""
    value["software"].pop("slurm", None)
    value["software"]["kubernetes"] = "1.36"
    hall = value["halls"][0]
    hall["nodes"] = [nodes for nodes in hall["nodes"] if nodes.get("role") != "head"]
    value["scheduler"] = {
        "kind": "kubernetes",
        "api_server": "https://10.78.0.5:6443",
        "ca": CA,
        "kubeconfig": "file:/etc/ironburst/kubeconfig",
        "join_token": "aws-secretsmanager:ironburst/lab/join-token",
        "cluster_dns": "10.96.0.10",
    }
