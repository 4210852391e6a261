"""The versions that a stack names are of its own scheduler, and a node of Kubernetes has containerd."""

import pytest

from ironburst.config import load
from ironburst.config.checks import software
from ironburst.config.software import groups, wish

KUBERNETES = {
    "kind": "kubernetes",
    "api_server": "https://10.78.0.5:6443",
    "ca": "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n",
    "kubeconfig": "file:/etc/ironburst/kubeconfig",
    "join_token": "aws-secretsmanager:ironburst/lab/join-token",
    "cluster_dns": "10.96.0.10",
}


def config_of(declared, of_software, on_kubernetes=True):
    del declared["software"]["slurm"]
    declared["software"] |= of_software
    if on_kubernetes:
        declared["scheduler"] = KUBERNETES
    return load.from_value(declared)


def test_each_scheduler_takes_its_own_version_of_a_profile(declared):
    for kubernetes, expected in ((False, ("slurm", "24.11", None)), (True, ("kubernetes", None, "1.36"))):
        stack = {**declared, "software": dict(declared["software"])}
        config = config_of(stack, {"profile": "inference-2026"}, kubernetes)
        asked = wish(config, None, None, config.scheduler.kind)
        assert (asked.scheduler, asked.slurm, asked.kubernetes) == expected


def test_a_declared_version_wins_over_the_profiles(declared):
    config = config_of(declared, {"profile": "inference-2026", "kubernetes": "1.35.7"})
    assert {group.wish.kubernetes for group in groups(config)} == {"1.35.7"}
    assert not list(software.scheduler(config))


@pytest.mark.parametrize(
    ("kubernetes", "given", "sentence"),
    [
        (True, {"slurm": "24.11"}, "is for a stack whose scheduler is Slurm, and this one's is Kubernetes"),
        (False, {"kubernetes": "1.36"}, "is for a stack whose scheduler is Kubernetes, and this one's is Slurm"),
    ],
)
def test_a_version_of_the_other_scheduler_is_refused(declared, kubernetes, given, sentence):
    (finding,) = software.scheduler(config_of(declared, given, kubernetes))
    assert finding.path.endswith(f"software.{next(iter(given))}") and sentence in finding.message
    assert finding.severity == "error"


def test_kubelet_needs_containerd_wherever_runtimes_are_named(declared):
    """Slurm's nodes may do without."""
    declared["software"]["container_runtime"] = "apptainer"
    declared["cloud"]["pools"][0]["software"] = {"container_runtime": ["docker", "containerd"]}
    declared["cloud"]["groups"][0]["software"] = {"container_runtime": ["docker"]}
    config = config_of(declared, {})
    found = {finding.path.split(":")[-1]: finding.value for finding in software.scheduler(config)}
    assert list(found.values()) == [["apptainer"], ["docker"]]
    assert [path.rpartition("software")[0].rstrip(".") for path in found][1].endswith("cloud.groups[0]")
    with_slurm = load.from_value(declared | {"scheduler": {"head": "head", "munge_key": "env:KEY"}})
    assert not list(software.scheduler(with_slurm))


def test_a_profile_that_is_not_there_is_somebody_elses_finding(declared):
    assert not list(software.scheduler(config_of(declared, {"profile": "inference-2062"})))
