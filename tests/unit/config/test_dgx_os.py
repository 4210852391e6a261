"""Nodes that run DGX OS: the lock names the packages that are there, and no others of the same kind."""

import re

import pytest
import yaml

from ironburst.cli import main
from ironburst.config import lockfile
from ironburst.config.checks import software
from ironburst.config.load import load
from tests.playbooks.sample import REPOSITORY


def stack(folder, system="ubuntu2404", platform="dgx-h100", *, dgx_os=True, **choice):
    data = yaml.safe_load((REPOSITORY / "stacks/Pulumi.staging.yaml").read_text())
    cluster = data["config"]["ironburst:cluster"]
    cluster["software"] |= {
        "os": system,
        "slurm_packages": "schedmd",
        "container_runtime": ["docker", "containerd"],
    } | choice
    node = cluster["halls"][0]["nodes"][1]
    node |= {"platform": platform, "dgx_os": dgx_os, "kernel": "6.8.0-1018"}
    path = folder / "Pulumi.staging.yaml"
    path.write_text(yaml.safe_dump(data))
    return path


def names(path):
    assert main(["lock", str(path)]) == 0
    locked = lockfile.read(lockfile.path_of_lock(path))
    (group,) = (each for each in locked.values() if "dgx01" in each.nodes)
    return {role: [re.sub("=.*", "", spec) for spec in specs] for role, specs in group.software.packages.items()}


@pytest.mark.parametrize(
    ("system", "driver"), [("ubuntu2204", "nvidia-driver-580-server-open"), ("ubuntu2404", "nvidia-driver-580-open")]
)
def test_what_dgx_os_brought_is_what_is_locked(tmp_path, system, driver):
    found = names(stack(tmp_path, system))
    assert found["nvidia_driver"] == [driver]
    assert found["container_runtime"] == ["docker-ce", "containerd.io"]
    assert found["kernel"] == ["linux-image-6.8.0-1018-nvidia", "linux-headers-6.8.0-1018-nvidia"]
    assert found["fabric_manager"] == ["nvidia-fabricmanager", "libnvidia-nscq"]


def test_a_dgx_with_plain_ubuntu_has_ubuntus(tmp_path, capsys):
    path = stack(tmp_path, dgx_os=False)
    found = names(path)
    assert found["nvidia_driver"] == ["nvidia-open"] and found["container_runtime"] == ["docker.io", "containerd"]
    assert found["kernel"][0] == "linux-image-6.8.0-1018-generic"
    stack(tmp_path)
    assert main(["lock", str(path), "--check"]) == 2
    assert names(path)["nvidia_driver"] == ["nvidia-driver-580-open"]


def test_rented_nodes_keep_the_images_own(tmp_path):
    path = stack(tmp_path)
    assert main(["lock", str(path)]) == 0
    locked = lockfile.read(lockfile.path_of_lock(path))
    (pool,) = (each for each in locked.values() if "p5-1" in each.nodes)
    assert "containerd" in pool.software.packages["container_runtime"]


@pytest.mark.parametrize(("system", "platform"), [("debian12", "dgx-h100"), ("ubuntu2404", "hgx-h100")])
def test_only_a_dgx_with_ubuntu_runs_it(tmp_path, system, platform):
    (finding,) = software.dgx_os(load(stack(tmp_path, system, platform)))
    assert finding.path.endswith("dgx_os") and f"this is {platform} with {system}" in finding.message
