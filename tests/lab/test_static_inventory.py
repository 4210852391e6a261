"""Each role alone, on a fresh host that nothing but a sysadmin has prepared, from a copy of inventory/example-static:
in check mode, for real, and again. No document, no stack; the lab's own settings (inventory/lab) are extra variables.
"""

import os

import pytest

from ironburst import roles
from lab import names
from lab.hosts import fabric
from lab.hosts.spec import bare_metal
from tests import sites
from tests.lab.static_inventory import Static, failure, repositories_by_hand
from tests.lab.test_roles import INDEX_PORT, serve_index

pytestmark = [pytest.mark.lab, pytest.mark.slow]
DRIVER = ["nvidia_driver"]
GATE = ["nvidia_driver", "fabric_manager", "dcgm", "rdma", "node_health"]
# role: what the host has had before, from the same inventory, because the role is about it
TRIED = {
    "base": [],
    "cuda": [],
    "container_runtime": [],
    "data_science": [],
    "dcgm": DRIVER,
    "fabric_manager": DRIVER,
    "gpu_power_limit": DRIVER,
    "host_names": [],
    "infiniband_fabric": [],
    "metrics": [],
    "mig": DRIVER,
    "node_health": GATE[:-1],
    "nvidia_container_toolkit": DRIVER,
    "nvidia_driver": [],
    "rdma": [],
    "users": [],
}
# Why the lab runs the others not so
ELSEWHERE = {
    "data_sets": "a node in the cloud: tests/lab/test_rented_node.py",
    "imex": "GB200 trays, which the lab has none of",
    "kubernetes_head": "a control plane: tests/lab/test_kubernetes_head.py",
    "kubernetes_node": "a control plane: tests/lab/test_kubernetes_node.py",
    "nvlsm": "NVLink5 boards, which the lab has none of",
    "scratch": "no NVMe device: tests/lab/test_scratch_devices.py",
    "logs": "needs a log centre: tests/lab/test_logs.py",
    "shared_filesystem": "the machine's kernel has no NFS: in check mode below",
    "slurm_head": "needs the document: tests/lab/test_hall_document.py",
    "slurm_login": "needs a head: tests/lab/test_hall_document.py",
    "slurm_node": "needs a head: tests/lab/test_hall_document.py",
}
HOSTS = {
    role: ("head" if role == "infiniband_fabric" else role.replace("_", "-"), f"10.78.0.{20 + number}")
    for number, role in enumerate([*TRIED, "shared_filesystem"])
}


@pytest.fixture(scope="module")
def site():
    with sites.running(f"t-static-{os.getpid()}", hall={}) as site:
        hall = dict(HOSTS.values())
        for name, address in hall.items():
            files = fabric.host_files(name, hall)
            files |= repositories_by_hand(site) if name != "base" else {}  # that role writes them
            site.start_host(bare_metal(name, address, hosts=hall, files=files))
        assert set(site.wait(list(hall), 240).values()) == {"running"}
        serve_index(site)
        yield site


@pytest.fixture(scope="module")
def static(site):
    groups = {role: ["gpu", role, *TRIED.get(role, [])] for role in HOSTS} | {
        "infiniband_fabric": ["infiniband_fabric"]
    }
    hosts = {name: (address, groups[role]) for role, (name, address) in HOSTS.items()}
    static = Static(site, hosts, {"10.1.0.10": HOSTS["infiniband_fabric"][1]})
    static.offer("mig", "node_mig")
    static.offer("gpu-power-limit", "node_gpu_power_limit_w")
    return static


@pytest.fixture(scope="module")
def runs(site, static):
    """{run: (recap, output)} of three runs of all roles, after what their hosts have had before."""
    values = {
        "data_science_index": f"http://{names.HALL_GATEWAY}:{INDEX_PORT}",
        "data_science_pip_arguments": ["--trusted-host", names.HALL_GATEWAY],
        "data_science_requirements": {"jupyter": str(site.dir / "run" / "jupyter.txt")},
        "infiniband_fabric_sweep_interval": 2,
    }
    static.roles({HOSTS[role][0]: before for role, before in TRIED.items()}, **values)
    own = {HOSTS[role][0]: [role] for role in TRIED}
    check = static.roles(own, "--check", ok=False, **values)
    return {"check": check, **{run: static.roles(own, ok=False, **values) for run in ("real", "again")}}


def test_every_role_is_tried_here_or_says_where():
    helpers = {"cloud_node", "needs", "packages", "slurm_host"}
    assert {*TRIED, *ELSEWHERE} == {path.name for path in roles.FOLDER.iterdir()} - helpers


@pytest.mark.parametrize("role", TRIED)
def test_check_mode_on_a_host_that_has_nothing_of_it(runs, role):
    recap, said = runs["check"]
    assert recap[HOSTS[role][0]]["failed"] == 0, failure(said, HOSTS[role][0])
    assert recap[HOSTS[role][0]]["changed"] > 0, "it is fresh, so there is something to do"


@pytest.mark.parametrize("role", TRIED)
def test_for_real(runs, role):
    recap, said = runs["real"]
    assert recap[HOSTS[role][0]]["failed"] == 0, failure(said, HOSTS[role][0])


@pytest.mark.parametrize("role", TRIED)
def test_again_changes_nothing(runs, role):
    recap, said = runs["again"]
    assert (recap[HOSTS[role][0]]["failed"], recap[HOSTS[role][0]]["changed"]) == (0, 0), said[-3000:]


def test_what_the_machine_cannot_mount_is_planned(static, runs):
    recap, _ = static.roles({"shared-filesystem": ["shared_filesystem"]}, "--check")
    assert recap["shared-filesystem"]["changed"] > 0
