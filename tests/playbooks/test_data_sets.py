"""What the role of data sets makes of the document, and that slurmd waits for it."""

import pytest
import templated
from programs import load

CLUSTER = {
    "imagenet": {"kind": "s3", "source": "training/imagenet", "path": "/data/imagenet"},
    "genomes": {"kind": "lustre", "source": "fs-0a.fsx.us-east-1.amazonaws.com@tcp:/abcd", "path": "/genomes"},
}


def value(role, name, **variables):
    """A variable of a role, as Ansible makes it."""
    return templated.value(role, name, {}, variables)


def test_a_host_has_the_declared_sets_of_its_own():
    got = value("data_sets", "data_sets_here", cluster_data=CLUSTER, node_data=["c4", "genomes"])
    assert got == {"genomes": CLUSTER["genomes"]}


@pytest.mark.parametrize(
    ("names", "os", "packages"),
    [
        (["imagenet"], "debian13", ["python3-boto3"]),
        (["genomes"], "ubuntu2404", ["lustre-client-modules-aws"]),
        (["imagenet", "genomes"], "rhel9", ["python3-boto3", "kmod-lustre-client", "lustre-client"]),
        (["genomes"], "debian12", ["lustre-client-modules-dkms", "lustre-client-utils"]),
        (["c4"], "debian13", []),
    ],
)
def test_packages_are_those_of_its_sources(names, os, packages):
    asked = {"cluster_data": CLUSTER, "node_data": names, "node_os": os}
    assert value("data_sets", "data_sets_packages", **asked) == packages


@pytest.mark.parametrize("rented", [True, False])
@pytest.mark.parametrize("groups", [["base", "data_sets"], ["base"]])
def test_slurmd_starts_only_when_the_data_is_there(groups, rented):
    facts = {"group_names": groups, "node_kind": "cloud", "slurm_node_rented": rented}
    assert ("ironburst-data.service" in value("slurm_node", "slurm_node_needs", **facts)) == ("data_sets" in groups)


def test_the_last_words_of_a_node_look_at_all_that_slurmd_and_kubelet_need():
    facts = {"group_names": ["data_sets"], "node_kind": "cloud", "slurm_node_rented": True}
    needed = {unit.replace(".service", "") for unit in value("slurm_node", "slurm_node_needs", **facts)}
    facts = {"group_names": ["data_sets"], "node_kind": "cloud", "kubernetes_node_rented": True}
    of_kubelet = {unit.replace(".service", "") for unit in value("kubernetes_node", "kubernetes_node_needs", **facts)}
    wanted = {*needed, "slurmd", *of_kubelet, "kubelet", "containerd"}
    assert wanted == set(load("roles/cloud_node/files/ironburst-dead-man.py").UNITS)
