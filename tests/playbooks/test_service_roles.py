"""Roles of the cluster's services: what needs a drained node, and what they write (containers, file systems, pyxis)."""

import json
import re
import subprocess
import sys
import tomllib

import jinja2
import programs
import pytest
import templated
import yaml
from ansible.errors import AnsibleFilterError
from ansible.parsing.dataloader import DataLoader
from contract import tasks_of
from programs import PLAYBOOKS, load

from ironburst.convergence.inputs import IGNORED
from ironburst.document import of_stack, variables
from tests.unit.kubernetes_stack import BRIDGE

ROLES = [
    "container_runtime",
    "rdma",
    "infiniband_fabric",
    "metrics",
    "logs",
    "scratch",
    "shared_filesystem",
    "data_science",
    "slurm_node",
    "kubernetes_node",
    "cloud_node",
    "slurm_head",
    "slurm_login",
]
mount_unit = load("plugins/filter/mounts.py").mount_unit


DRAIN = {
    "data_sets": ["Packages that bring data sets", "Data sets are there"],
    "scratch": ["Make scratch", "Mount unit of scratch"],
    "shared_filesystem": [
        "Another file system makes room",
        "The shared file system is mounted",
        "Mount unit of the shared file system",
    ],
    "container_runtime": ["Settings of containerd", "Settings of Docker", "Container packages"],
    "rdma": ["RDMA packages", "Kernel modules of InfiniBand at boot", "Install the EFA software"],
    "slurm_node": ["Packages of the node"],
    "kubernetes_node": ["Settings of kubelet", "Packages of the node", "The node runs with its present settings"],
}


@pytest.mark.parametrize("role", DRAIN)
def test_what_would_hurt_a_job_needs_a_drained_node(role):
    classes = {task.raw["name"]: task.classes for task in tasks_of(PLAYBOOKS / "roles" / role / "tasks" / "main.yml")}
    assert {name: classes[name] for name in DRAIN[role]} == {name: ["drain"] for name in DRAIN[role]}


@pytest.mark.parametrize(
    ("path", "unit"),
    [
        ("/scratch", "scratch.mount"),
        ("/srv/data-1", "srv-data\\x2d1.mount"),
        ("/a//b/", "a-b.mount"),
        ("/.x/.y", "\\x2ex-.y.mount"),
        ("/", "-.mount"),
    ],
)
def test_names_of_mount_units(path, unit):
    assert mount_unit(path) == unit


def render(role, template, **values):
    environment = jinja2.Environment(trim_blocks=True, keep_trailing_newline=True, undefined=jinja2.StrictUndefined)
    environment.filters |= {"to_json": json.dumps}
    environment.tests["search"] = lambda text, pattern: re.search(pattern, text) is not None
    defaults = yaml.safe_load((PLAYBOOKS / "roles" / role / "defaults/main.yml").read_text())
    return environment.from_string((PLAYBOOKS / "roles" / role / "templates" / template).read_text()).render(
        defaults | values
    )


@pytest.mark.parametrize(
    ("said", "version", "plugin"),
    [
        ("containerd github.com/containerd/containerd 1.7.24~ds1 1.7.24~ds1-6", 2, "io.containerd.grpc.v1.cri"),
        ("containerd containerd.io v2.1.4 75cb2b7193e4", 3, "io.containerd.cri.v1.runtime"),
        ("", 2, "io.containerd.grpc.v1.cri"),
    ],
)
def test_settings_of_containerd_follow_its_version_and_the_scheduler(said, version, plugin):
    text = render(
        "container_runtime",
        "config.toml.j2",
        container_runtime_containerd={"stdout": said},
        container_runtime_folder="/scratch",
        container_runtime_for_kubelet=False,
        container_runtime_cdi=True,
        container_runtime_nvidia=False,
    )
    config = tomllib.loads(text)
    assert config["version"] == version and config["root"] == "/scratch/containerd"
    assert set(config["plugins"]) == {plugin}
    assert config["plugins"][plugin]["enable_cdi"] is True
    runtime = config["plugins"][plugin]["containerd"]["runtimes"]["runc"]
    assert runtime["options"] == {"SystemdCgroup": True} and runtime["runtime_type"] == "io.containerd.runc.v2"
    values = {"container_runtime_containerd": {"stdout": said}, "container_runtime_folder": ""}
    values |= {
        "container_runtime_for_kubelet": True,
        "container_runtime_cdi": True,
        "container_runtime_nvidia": False,
        "container_runtime_sandbox_image": "registry.example.org/pause:3.10",
    }
    config = tomllib.loads(render("container_runtime", "config.toml.j2", **values))
    assert "disabled_plugins" not in config  # as containerd.io's own file has it: without CRI there is no kubelet
    containerd = config["plugins"][plugin]["containerd"]
    assert containerd["default_runtime_name"] == "nvidia" and containerd["runtimes"]["runc"] == runtime
    options = containerd["runtimes"]["nvidia"]["options"]
    assert options == {"BinaryName": "/usr/bin/nvidia-container-runtime", "SystemdCgroup": True}
    images = config["plugins"].get("io.containerd.cri.v1.images", {}).get("pinned_images", {}).get("sandbox")
    assert "registry.example.org/pause:3.10" in (images, config["plugins"][plugin].get("sandbox_image"))


def test_a_containerd_without_cdi_has_nvidias_runtime_beside_runc():
    values = {
        "container_runtime_containerd": {"stdout": "containerd github.com/containerd/containerd 1.6.20~ds1"},
        "container_runtime_folder": "",
        "container_runtime_for_kubelet": False,
        "container_runtime_cdi": False,
        "container_runtime_nvidia": True,
    }
    cri = tomllib.loads(render("container_runtime", "config.toml.j2", **values))["plugins"]["io.containerd.grpc.v1.cri"]
    assert set(cri) == {"containerd"} and set(cri["containerd"]) == {"runtimes"}
    assert set(cri["containerd"]["runtimes"]) == {"runc", "nvidia"}


THEIRS = {"data-root": "/srv/docker", "runtimes": {"crun": {"path": "/usr/bin/crun"}}, "cdi-spec-dirs": ["/etc/cdi"]}


def test_what_docker_was_told_by_somebody_else_stays():
    merged = programs.load("plugins/filter/merged_json.py").merged_json
    ours = {"live-restore": True, "runtimes": {"nvidia": {"path": "nvidia-container-runtime"}}}
    text = merged(json.dumps(THEIRS), ours, "daemon.json", ["cdi-spec-dirs"])
    assert json.loads(text) == {
        "data-root": "/srv/docker",
        "live-restore": True,
        "runtimes": {"crun": {"path": "/usr/bin/crun"}, "nvidia": {"path": "nvidia-container-runtime"}},
    }
    theirs = json.dumps(json.loads(text))  # in a form of their own: not written anew for that
    assert merged(theirs, ours, "daemon.json") == theirs and json.loads(merged("", ours, "daemon.json")) == ours


@pytest.mark.parametrize("text", ["{", "[]"])
def test_settings_of_docker_that_nobody_can_read_are_not_written_over(text):
    merged = programs.load("plugins/filter/merged_json.py").merged_json
    with pytest.raises(AnsibleFilterError, match=r"/etc/docker/daemon.json can't be read as JSON .*: mend it"):
        merged(text, {}, "/etc/docker/daemon.json")


@pytest.mark.parametrize(
    ("kind", "source", "good"),
    [
        ("nfs", "nas1:/export/home", True),
        ("nfs", "[fd00::5]:/export", True),
        ("nfs", "/export/home", False),
        ("lustre", "10.1.0.5@o2ib,10.1.0.6@o2ib:/scratch", True),
        ("lustre", "mds1:/scratch", False),
        ("beegfs", "beegfs-mgmt.example.org", True),
        ("beegfs", "mgmt:/x", False),
    ],
)
def test_sources_of_shared_file_systems(kind, source, good):
    variables = yaml.safe_load((PLAYBOOKS / "roles/shared_filesystem/vars/main.yml").read_text())
    forms = variables["shared_filesystem_source_form"]
    assert bool(re.match(forms[kind]["pattern"], source)) is good
    assert re.match(forms[kind]["pattern"], forms[kind]["example"])


def test_the_shared_file_system_is_there_before_slurm_and_the_gate():
    text = render(
        "shared_filesystem",
        "shared.mount.j2",
        shared_filesystem_kind="nfs",
        shared_filesystem_what="nas:/x",
        shared_filesystem_path="/shared",
        shared_filesystem_types={"nfs": "nfs"},
        shared_filesystem_options="hard",
    )
    lines = dict(line.split("=", 1) for line in text.splitlines() if "=" in line)
    assert {"slurmd.service", "ironburst-gate.service"} <= set(lines["Before"].split())
    assert (lines["What"], lines["Where"], lines["Type"], lines["Options"]) == ("nas:/x", "/shared", "nfs", "hard")
    defaults = yaml.safe_load((PLAYBOOKS / "roles/shared_filesystem/defaults/main.yml").read_text())[
        "shared_filesystem_default_options"
    ]
    assert set(defaults) == {"nfs", "lustre", "beegfs"} and "hard" in defaults["nfs"].split(",")


@pytest.mark.parametrize(("stack", "extra"), [("lab", ""), ("mixed", "kubernetes"), ("bridged", "kubernetes")])
def test_the_head_s_controller_has_the_extra_that_its_document_needs(stack, extra):
    named = "lab" if stack == "bridged" else stack
    declared = of_stack.document(PLAYBOOKS.parent / "stacks" / f"Pulumi.{named}.yaml").model_dump(mode="json")
    if stack == "bridged":
        declared["scheduler"]["bridge"] = BRIDGE
    head = variables.scheduler_of(declared, "slurm")
    known = variables.of_all(declared) | {"cluster_scheduler": head}
    given = {"slurm_head_controller_wheel": "dist/ironburst-0.2.0-py3-none-any.whl"}
    asked, folder = (
        templated.value("slurm_head", f"slurm_head_controller_{name}", known, given) for name in ("asked", "version")
    )
    wheel, version = "ironburst-0.2.0-py3-none-any.whl", "0.2.0"
    assert [asked, folder] == ([f"{wheel}[{extra}]", f"{version}+{extra}"] if extra else [wheel, version])


def test_pyxis_is_asked_for_only_where_a_node_has_enroot():
    assert "spank" not in render("slurm_head", "plugstack.conf.j2", slurm_head_pyxis=False)
    assert "required spank_pyxis.so runtime_path=/run/pyxis\n" in render(
        "slurm_head", "plugstack.conf.j2", slurm_head_pyxis=True
    )


def test_docker_never_ends_containers_with_its_daemon():
    fixed = yaml.safe_load((PLAYBOOKS / "roles/container_runtime/vars/main.yml").read_text())[
        "container_runtime_docker_fixed"
    ]
    assert fixed["live-restore"] is True and fixed["exec-opts"] == ["native.cgroupdriver=systemd"]


@pytest.mark.parametrize(("running", "status"), [(True, 1), (False, 0)])
def test_a_daemons_settings_are_not_written_under_containers(tmp_path, running, status):
    """The guard as the module `files` runs it."""
    guard = yaml.safe_load((PLAYBOOKS / "roles/container_runtime/vars/main.yml").read_text())["container_runtime_guard"]
    daemons = yaml.safe_load((PLAYBOOKS / "roles/container_runtime/tasks/daemons.yml").read_text())
    guards = [task["files"]["guard"] for task in daemons if "files" in task]
    assert guards == [["sh", "-c", "{{ container_runtime_guard }}"]] * 2
    (tmp_path / "pgrep").write_text(
        f'#!/bin/sh\n[ "$*" = "--exact containerd-shim" ] || exit 9\nexit {0 if running else 1}\n'
    )
    (tmp_path / "pgrep").chmod(0o755)
    command = ["sh", "-c", guard.replace("{{ inventory_hostname }}", "dgx01")]
    done = subprocess.run(command, env={"PATH": f"{tmp_path}:/bin"}, capture_output=True, text=True)
    assert done.returncode == status
    assert ("containers run on dgx01" in done.stderr and "nothing was changed" in done.stderr) is running


REGISTRY = re.compile(r"\b(?:pypi|nvcr|ghcr|quay)\.(?:org|io)\b|\bdocker\.io/")


def test_no_role_names_a_registry():
    for role in ROLES:
        for file in (PLAYBOOKS / "roles" / role).rglob("*"):
            if file.is_file() and file.parent.name not in IGNORED and "efa-installer" not in file.read_text():
                assert not REGISTRY.findall(file.read_text()), file


TOOLKIT = """\
#accept-nvidia-visible-devices-as-volume-mounts = false
#accept-nvidia-visible-devices-envvar-when-unprivileged = true
disable-require = false
supported-driver-capabilities = "compat32,compute,display,graphics,ngx,utility,video"

[nvidia-container-cli]
environment = []
load-kmods = true
"""
"""config.toml of the container toolkit's package, 1.18"""
CONFIGURED = DataLoader().load_from_file(
    str(PLAYBOOKS / "roles/nvidia_container_toolkit/tasks/configure.yml"), trusted_as_template=True
)
MOUNTS, IMAGES = (f"accept-nvidia-visible-devices-{way}" for way in ("as-volume-mounts", "envvar-when-unprivileged"))


@pytest.mark.parametrize("only", [True, False])
@pytest.mark.parametrize("before", [TOOLKIT, TOOLKIT.replace("#", "# "), None])
def test_an_images_word_gives_pods_no_gpus(tmp_path, before, only):
    """nvidia/cuda:*-base has NVIDIA_VISIBLE_DEVICES=all: a pod of it that asks for no GPU saw all of the node's."""
    path = tmp_path / "config.toml"
    if before is not None:
        path.write_text(before)
    (task,) = [each for each in CONFIGURED if "ansible.builtin.lineinfile" in each]
    known = {"nvidia_container_toolkit_config": str(path), "nvidia_container_toolkit_only_asked_for": only}
    for changes in (True, False):
        for item in task["loop"]:
            asked = task["ansible.builtin.lineinfile"]
            asked = templated.expression("{{ asked }}", {**known, "item": item, "asked": asked})
            question = json.dumps({"ANSIBLE_MODULE_ARGS": asked})
            command = [sys.executable, "-m", "ansible.modules.lineinfile"]
            done = subprocess.run(command, input=question, capture_output=True, text=True, timeout=60)
            assert json.loads(done.stdout)["changed"] is changes, done.stderr
    kept = tomllib.loads(before or "")
    assert tomllib.loads(path.read_text()) == {**kept, IMAGES: not only, MOUNTS: True}


@pytest.mark.parametrize(
    ("groups", "scheduler", "only"),
    [
        (["kubernetes_node"], {"gpus_by_mount": True}, True),
        (["kubernetes_node"], {}, False),  # a plugin of the cluster's own may hand them out by the environment
        (["slurm_node"], {"gpus_by_mount": True}, False),
    ],
)
def test_whose_images_are_believed(groups, scheduler, only):
    known = {"group_names": groups, "cluster_scheduler": scheduler}
    assert templated.value("nvidia_container_toolkit", "nvidia_container_toolkit_only_asked_for", known) is only
