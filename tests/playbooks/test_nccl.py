"""What NCCL is told of the fabric, on hosts and in containers. The rules are NCCL's own (src/misc/param.cc,
src/plugin/net.cc): a line is NAME=VALUE to its end, without quotes; a job's variable counts more; NCCL_NET is the one
network that may be.
"""

import subprocess

import jinja2
import pytest
import templated
from ansible.plugins.filter.core import quote
from programs import PLAYBOOKS
from sample import lab_document

ROLE = PLAYBOOKS / "roles/rdma"
SEEN = """hca mlx5_0
hca mlx5_3
2: eno1    inet 10.0.1.11/24 brd 10.0.1.255 scope global eno1\\       valid_lft forever preferred_lft forever
"""  # the last line as `ip -o -4 address show` prints it


def known(fabric, links, seen="", **changes):
    host = lab_document().host("dgx01").model_dump(mode="json")
    variables = {f"node_{key}": field for key, field in host.items()} | {"inventory_hostname": "dgx01"}
    return variables | {"node_fabric": fabric, "node_fabric_links": links, "rdma_host": {"stdout": seen}} | changes


def nccl(*given, **changes):
    return templated.value("rdma", "rdma_nccl", known(*given, **changes), changes)


def written(template, settings, fabric):
    environment = jinja2.Environment(trim_blocks=True, keep_trailing_newline=True, undefined=jinja2.StrictUndefined)
    environment.filters["quote"] = quote
    text = (ROLE / "templates" / template).read_text()
    return environment.from_string(text).render(rdma_nccl=settings, node_fabric=fabric)


def parsed(text):
    """As NCCL's setEnvFile reads it."""
    lines = [line for line in text.splitlines() if not line.startswith("#") and "=" in line]
    return dict(line.split("=", 1) for line in lines)


def test_infiniband_names_its_network_and_its_compute_devices():
    said = parsed(written("nccl.conf.j2", nccl("infiniband", 2, SEEN), "infiniband"))
    assert said == {"NCCL_NET": "IB", "NCCL_IB_HCA": "=mlx5_0,mlx5_3", "NCCL_SOCKET_IFNAME": "=eno1"}


def test_devices_that_are_not_as_many_as_declared_are_not_guessed():
    said = parsed(written("nccl.conf.j2", nccl("infiniband", 1, SEEN), "infiniband"))
    assert "NCCL_IB_HCA" not in said and said["NCCL_NET"] == "IB"
    named = nccl("infiniband", 1, SEEN, rdma_nccl_hcas=["mlx5_3"])
    assert named["NCCL_IB_HCA"] == "=mlx5_3"


def test_efa_fails_without_its_plugin_and_sets_nothing_that_aws_warns_of():
    said = parsed(written("nccl.conf.j2", nccl("efa", 32), "efa"))
    # aws-ofi-nccl 1.21 still answers to the name of its first versions (nccl_ofi_interface_nvidia.cpp)
    assert said["NCCL_NET"] == "AWS Libfabric" and said["NCCL_SOCKET_IFNAME"].startswith("^lo,docker")
    warned = {"FI_PROVIDER", "FI_EFA_USE_DEVICE_RDMA", "RDMAV_FORK_SAFE", "NCCL_PROTO", "NCCL_DEBUG", "NCCL_IB_HCA"}
    assert not warned & said.keys()


def test_a_site_adds_lines_and_takes_ours_out():
    settings = {"NCCL_IB_TC": 106, "NCCL_NET": None}
    said = parsed(written("nccl.conf.j2", nccl("infiniband", 2, SEEN, rdma_nccl_settings=settings), "infiniband"))
    assert said["NCCL_IB_TC"] == "106" and "NCCL_NET" not in said


@pytest.mark.parametrize(
    ("nodes", "job", "image", "expected"),
    [
        ("2", {}, "", ["NCCL_NET=AWS Libfabric", "FI_EFA_USE_HUGE_PAGE=0"]),
        ("2", {"NCCL_NET": "Socket"}, "", ["FI_EFA_USE_HUGE_PAGE=0"]),  # a job's own word
        ("2", {}, "NCCL_NET=Socket\n", ["NCCL_NET=Socket", "FI_EFA_USE_HUGE_PAGE=0"]),  # the image's
        ("1", {}, "", []),  # an image without the plugin runs on one node
    ],
)
def test_a_container_of_several_nodes_is_told_too(tmp_path, nodes, job, image, expected):
    """By Enroot's contract of hooks: the job's environment, ENROOT_ENVIRON to append to (doc/configuration.md)."""
    environ, hook = tmp_path / "environ", tmp_path / "hook.sh"
    environ.write_text(image)
    (tmp_path / "dev/infiniband").mkdir(parents=True)
    settings = {"NCCL_NET": "AWS Libfabric", "FI_EFA_USE_HUGE_PAGE": 0, "NCCL_IB_HCA": None}
    hook.write_text(written("enroot-fabric.sh.j2", settings, "efa"))
    given = {"PATH": "/usr/bin:/bin", "ENROOT_ENVIRON": str(environ), "ENROOT_ROOTFS": str(tmp_path)}
    subprocess.run(["bash", str(hook)], env=given | job | {"SLURM_JOB_NUM_NODES": nodes}, check=True)
    assert environ.read_text().splitlines() == expected
