"""Each role alone, on a fresh host that nothing but a sysadmin has prepared, from a copy of inventory/example-static:
in check mode, for real, and again. No document, no stack; the lab's own settings (inventory/lab) are extra variables.
"""

import json
import os
import re
import shutil
import subprocess

import pytest

from ironburst import roles
from lab import names
from lab.demo.inside import Inside
from lab.hosts import fabric
from lab.hosts.spec import bare_metal
from lab.packages import repository
from tests import sites
from tests.lab.test_roles import INDEX_PORT, serve_index
from tests.playbooks.sample import REPOSITORY

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
    with sites.running(f"t-static-{os.getpid()}") as site:
        key = (repository.repositories(site.box.root) / "lab.asc").read_text()
        by_hand = {"usr/share/keyrings/lab.asc": key}
        for name in ("nv", "debian"):
            for path, text in repository.client_files(name, "/usr/share/keyrings/lab.asc").items():
                by_hand[path.lstrip("/")] = text
        hall = {"head": HOSTS["infiniband_fabric"][1]} | dict(HOSTS.values())
        for name, address in hall.items():
            files = fabric.host_files(name, hall) | by_hand
            site.start_host(bare_metal(name, address, hosts=hall, files=files))
        assert set(site.wait(list(hall), 240).values()) == {"running"}
        serve_index(site)
        yield site


class Static:
    """The copied inventory, and the playbook on it."""

    def __init__(self, site):
        self.site, self.inside = site, Inside(site)
        self.inventory = site.dir / "run" / "static"
        shutil.copytree(REPOSITORY / "inventory" / "example-static", self.inventory)
        lines = []
        for role, (name, address) in HOSTS.items():
            lines += [f"[{'gpu' if name != 'head' else 'heads'}]", f"{name} ansible_host={address}"]
            lines += [line for each in {role, *TRIED.get(role, [])} for line in (f"[{each}]", name)]
        (self.inventory / "hosts.ini").write_text("\n".join(lines) + "\n")
        head = self.inventory / "host_vars" / "head.yml"
        head.write_text(head.read_text().replace("10.1.0.10 head", f"{HOSTS['infiniband_fabric'][1]} head"))

    def play(self, now, *options, ok=True):
        """({host: {ok, changed, failed}}, output). `now`: {role: the roles that its host has now}."""
        for role, (name, _) in HOSTS.items():
            (self.inventory / "host_vars" / name).mkdir(exist_ok=True)
            if name == "head" and (self.inventory / "host_vars" / "head.yml").exists():
                (self.inventory / "host_vars" / "head.yml").rename(self.inventory / "host_vars" / "head" / "site.yml")
            (self.inventory / "host_vars" / name / "now.json").write_text(json.dumps({"roles_now": now.get(role, [])}))
        values = {
            "cluster_scheduler": {"head": "", "head_address": "", "munge_key": "", "shared_filesystem": "/shared"},
            "data_science_index": f"http://{names.HALL_GATEWAY}:{INDEX_PORT}",
            "data_science_pip_arguments": ["--trusted-host", names.HALL_GATEWAY],
            "data_science_requirements": {"jupyter": str(self.site.dir / "run" / "jupyter.txt")},
            "infiniband_fabric_sweep_interval": 2,
        }
        lab = ("-e", "@inventory/lab/group_vars/all/lab.yml", "-e", json.dumps(values))
        command = ("env", "ANSIBLE_NOCOLOR=1", "ansible-playbook", "-i", str(self.inventory), *lab)
        argv = self.inside.argv(*command, "tests/lab/static.yml", *options)
        done = subprocess.run(argv, capture_output=True, text=True, timeout=1200)
        said = done.stdout + done.stderr
        lines = re.findall(r"^([\w-]+)\s+: (ok=.*)$", done.stdout.rpartition("PLAY RECAP")[2], re.MULTILINE)
        recap = {host: {key: int(value) for key, value in re.findall(r"(\w+)=(\d+)", counts)} for host, counts in lines}
        self.site.dir.joinpath("run", "static.log").open("a").write(said)
        assert not ok or done.returncode == 0, said[-8000:]
        return recap, said


@pytest.fixture(scope="module")
def static(site):
    return Static(site)


@pytest.fixture(scope="module")
def runs(static):
    """The recaps of three runs of all roles, after what their hosts have had before: check, real, again."""
    static.play(TRIED)
    own = {role: [role] for role in TRIED}
    return {
        name: static.play(own, *options, ok=False)
        for name, options in (("check", ["--check"]), ("real", []), ("again", []))
    }


def test_every_role_is_tried_here_or_says_where():
    helpers = {"cloud_node", "needs", "packages", "slurm_host"}
    assert {*TRIED, *ELSEWHERE} == {path.name for path in roles.FOLDER.iterdir()} - helpers


def failure(said, host):
    found = re.search(rf"^(?:fatal|failed): \[{host}\].*?(?=^$|^TASK)", said, re.MULTILINE | re.DOTALL)
    return found[0] if found else ""


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
    recap, _ = static.play({"shared_filesystem": ["shared_filesystem"]}, "--check")
    assert recap["shared-filesystem"]["changed"] > 0
