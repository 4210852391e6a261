"""What the roles' variables conclude from the lock and from what a host shows, templated by Ansible itself."""

import fnmatch
import re
from pathlib import Path

import pytest
import templated
import yaml
from sample import lab_document

PLAYBOOKS = Path(__file__).resolve().parents[2] / "playbooks"
KERNEL = "6.12.57+deb13-amd64"
GPUS = [
    {"driver": "580.95.05", "persistence": "Enabled", "mig": "Disabled", "least_w": 200.0, "most_w": 700.0},
] * 8
SEEN = {
    "kernel": KERNEL,
    "boot_kernel": KERNEL,
    "boot_entries": {},
    "secure_boot": False,
    "own_key": False,
    "nvidia_modules": ["nvidia_fs", "nvidia_uvm", "nvidia_drm", "nvidia_modeset", "nvidia"],
    "module_versions": {},
    "kernel_arguments": ["quiet", "iommu=pt"],
    "hugepages": 0,
    "modules": ["nvidia"],
    "gpu_ids": ["2330"] * 8,
    "rack_gpus": False,
    "switches": {"how": "pci", "count": 4, "text": "4 × NVSwitch"},
    "gpu_users": [],
    "slurm_steps": [],
    "containers": 0,
    "gpus": GPUS,
    "driver_error": None,
    "dkms": [f"nvidia/580.95.05, {KERNEL}, x86_64: installed"],
    "dkms_error": None,
    "driver_module": f"/lib/modules/{KERNEL}/updates/dkms/nvidia.ko.xz",
    "boot_driver_module": f"/lib/modules/{KERNEL}/updates/dkms/nvidia.ko.xz",
    "cuda": {"13.0": "13.0"},
    "cdi_devices": [str(number) for number in range(8)],
    "packages": ["nvidia-open|580.95.05-1|installed|hold", "nvidia-fabricmanager|580.95.05-1|installed|hold"],
}


def value(role, name, seen=None, software=None, groups=("base", "nvidia_driver", "fabric_manager"), **changes):
    """Variable `name` of a role on dgx01 of the lab, with changes of what it shows, of its lock, and of other
    variables.
    """
    host = lab_document().host("dgx01").model_dump(mode="json")
    shown = SEEN | (seen or {})
    variables = {f"node_{key}": field for key, field in host.items()} | {
        "inventory_hostname": "dgx01",
        "group_names": list(groups),
        "ansible_facts": {"pkg_mgr": "apt", "kernel": shown["kernel"], "node_seen": shown},
        "packages_lines": shown["packages"],
    }
    variables["node_software"] |= software or {}
    return templated.value(role, name, variables, changes)


NO_SWITCH = {"switches": {"how": "none", "count": 0, "text": "none"}}


@pytest.mark.parametrize(
    ("seen", "software", "words"),
    [
        ({}, {}, None),
        ({}, {"fabric_manager": None}, "has 4 × NVSwitch, but the lock gives it no fabric manager"),
        ({"rack_gpus": True}, {}, "(GB200, GB300), but the lock gives it no IMEX (FAB-006)"),
        (NO_SWITCH, {"fabric_manager": None}, "has fabric manager installed, which it needs not"),
        (NO_SWITCH | {"packages": []}, {"fabric_manager": None}, None),
    ],
)
def test_the_driver_role_compares_lock_and_host(seen, software, words):
    misfits = value("nvidia_driver", "nvidia_driver_misfits", seen, software)
    assert misfits == [] if words is None else len(misfits) == 1 and words in misfits[0], misfits


@pytest.mark.parametrize(
    ("seen", "words"),
    [
        ({}, None),
        (
            {"dkms": ["nvidia/580.95.05, 6.1.0, x86_64: installed"]},
            f"no NVIDIA 580.95.05 modules built for its running kernel {KERNEL}",
        ),
        ({"dkms": [f"nvidia/580.95.05, {KERNEL}, x86_64: built"]}, "(dkms status: nvidia/580.95.05"),
        ({"dkms": [f"nvidia/580.95.050, {KERNEL}, x86_64: installed"]}, "no NVIDIA 580.95.05 modules"),
        ({"dkms": [], "dkms_error": "there is no /var/lib/dkms"}, "there is no /var/lib/dkms"),
        ({"driver_module": None}, f"has no nvidia.ko below /lib/modules/{KERNEL}"),
        ({"gpus": GPUS[:7]}, "shows 7 GPUs in nvidia-smi, declared are 8"),
        ({"gpus": [*GPUS[:7], GPUS[0] | {"persistence": "Disabled"}]}, "without persistence mode"),
        ({"gpus": [GPUS[0] | {"driver": "580.105.08"}] * 8}, "runs driver 580.105.08, declared is 580.95.05"),
        (
            {"gpus": [], "driver_error": "nvidia-smi can't be run"},
            "runs driver none, declared is 580.95.05 (nvidia-smi can't be run)",
        ),
    ],
)
def test_the_driver_is_what_was_declared(seen, words):
    problems = value("nvidia_driver", "nvidia_driver_problems", seen)
    assert problems == [] if words is None else len(problems) == 1 and words in problems[0], problems


NEXT = "6.12.63+deb13-amd64"
NEXT_BUILT = {"boot_kernel": NEXT, "dkms": [f"nvidia/580.95.05, {NEXT}, x86_64: installed"]}


@pytest.mark.parametrize(
    ("seen", "words"),
    [
        ({}, None),
        (NEXT_BUILT | {"driver_module": None}, None),  # for the build host's own kernel there needs to be none
        ({"boot_kernel": NEXT}, f"no NVIDIA 580.95.05 modules built for the kernel that the image boots, {NEXT}"),
        (NEXT_BUILT | {"boot_driver_module": None}, f"has no nvidia.ko below /lib/modules/{NEXT}"),
    ],
)
def test_an_image_has_the_module_of_the_kernel_that_it_will_boot(seen, words):
    problem = value("nvidia_driver", "nvidia_driver_dkms_problem", seen, image_build=True)
    assert problem == "" if words is None else words in problem, problem


def test_a_kernel_that_an_update_brought_has_the_driver_before_it_boots():
    """Headers of the next kernel are the role base's; a converge builds, and says where it can't."""
    without = {"boot_kernel": NEXT, "boot_driver_module": None}
    (problem,) = value("nvidia_driver", "nvidia_driver_problems", without)
    assert problem.startswith(f"would boot kernel {NEXT}, for which there is no NVIDIA module")
    assert value("nvidia_driver", "nvidia_driver_problems", without | {"boot_driver_module": "/lib/x/nvidia.ko"}) == []
    assert f"linux-headers-{NEXT}" in value("base", "base_kernel_packages", without)


@pytest.mark.parametrize(
    "name",
    [
        "linux-image-amd64",
        "linux-image-6.8.0-60-generic",
        "linux-generic",
        "linux-aws",
        "linux-headers-generic",
        "linux-modules-nvidia-580-server-generic",
        "nvidia-open",
        "libnvidia-nscq",
        "sackd",
        "slurmd",
    ],
)
def test_unattended_upgrades_leave_kernel_and_driver_alone(name):
    """As unattended-upgrades reads its list: regular expressions that a name begins with."""
    listed = value("base", "base_upgrades_blacklist")
    assert any(re.match(pattern, name) for pattern in listed)
    assert not any(re.match(pattern, other) for pattern in listed for other in ("openssl", "libc6", "openssh-server"))


@pytest.mark.parametrize(
    "name", ["kernel", "kernel-core", "kernel-devel", "kmod-nvidia-open-dkms", "nvidia-driver-cuda", "slurm"]
)
def test_dnf_automatic_leaves_kernel_and_driver_alone_and_reboots_nothing(name):
    settings = {each["option"]: each["value"] for each in value("base", "base_dnf_automatic_settings")}
    globs = settings["excludepkgs"].split(",")
    assert any(fnmatch.fnmatchcase(name, glob) for glob in globs) and settings["reboot"] == "never"
    assert not any(fnmatch.fnmatchcase(other, glob) for glob in globs for other in ("openssl", "glibc", "systemd"))


@pytest.mark.parametrize(
    ("packages", "replaced"),
    [
        (SEEN["packages"] + ["libnvidia-nscq|580.95.05-1|installed|hold"], False),
        (["nvidia-open|580.65.06-1|installed|hold"], True),
        ([], False),  # a fresh host: nothing is replaced
        (["chrony|4.6|installed|install"], False),
        (["nvidia-open|580.95.05-1|installed|hold", "nvidia-fabricmanager|580.65.06-1|installed|hold"], True),
    ],
)
def test_a_driver_is_replaced_only_where_there_is_another(packages, replaced):
    assert value("nvidia_driver", "nvidia_driver_replaced", {"packages": packages}) is replaced


def test_a_running_driver_of_another_version_is_replaced_whatever_the_packages_say():
    """dnf hosts, whose packages are not listed; or packages that are new already, while the modules are not."""
    older = [GPUS[0] | {"driver": "580.65.06"}] * 8
    assert value("nvidia_driver", "nvidia_driver_replaced", {"packages": None, "gpus": older}) is True
    assert value("nvidia_driver", "nvidia_driver_replaced", {"packages": None}) is False


def test_all_of_the_drivers_version_is_one_transaction():
    packages = value("nvidia_driver", "nvidia_driver_packages")
    assert [spec.partition("=")[0] for spec in packages] == ["nvidia-open", "nvidia-fabricmanager", "libnvidia-nscq"]
    assert value("nvidia_driver", "nvidia_driver_packages", groups=("nvidia_driver",)) == packages[:1]


@pytest.mark.parametrize(
    ("kubelet", "groups", "first"),
    [
        ("own", ("nvidia_driver", "kubernetes_node"), ["kubelet", "nvidia-dcgm-exporter"]),
        ("adopted", ("nvidia_driver", "kubernetes_node"), ["kubelet", "nvidia-dcgm-exporter"]),
        ("", ("nvidia_driver", "kubernetes_node"), ["nvidia-dcgm-exporter", "nvidia-dcgm"]),  # no pod yet
        ("own", ("nvidia_driver", "slurm_node"), ["nvidia-dcgm-exporter", "nvidia-dcgm"]),
    ],
)
def test_kubelet_stops_while_a_nodes_gpus_are_taken_from_its_pods(kubelet, groups, first):
    for role, name in (("nvidia_driver", "nvidia_driver_daemons"), ("mig", "mig_daemons")):
        assert value(role, name, {"kubelet": kubelet}, groups=groups)[:2] == first
        assert value(role, name.replace("daemons", "pods"), {"kubelet": kubelet}, groups=groups) is (
            first[0] == "kubelet"
        )
    third = "active" if first[0] == "kubelet" else "inactive"
    states = {"stdout_lines": ["active", "inactive", third, "inactive", "inactive"], "rc": 3}
    stopped = value("mig", "mig_stopped", {"kubelet": kubelet}, groups=groups, mig_active=states)
    assert stopped == (["kubelet", "nvidia-dcgm"] if first[0] == "kubelet" else ["nvidia-dcgm-exporter"])


def test_the_pods_that_hold_gpus_end_after_kubelet_and_before_the_change():
    for file, change in (
        ("nvidia_driver/tasks/reload", "Load the modules anew"),
        ("mig/tasks/change", "Make the declared"),
    ):
        (block,) = [task for task in yaml.safe_load((PLAYBOOKS / f"roles/{file}.yml").read_text()) if "block" in task]
        names = [task["name"] for task in block["block"]]
        at = [
            next(n for n, name in enumerate(names) if name.startswith(w)) for w in ("Stop the", "End the pods", change)
        ]
        assert at == sorted(at)


@pytest.mark.parametrize(
    ("how", "rack", "nvlsm", "words"),
    [
        ("pci", False, False, ""),
        ("proc", False, False, ""),
        ("gpu", False, False, ""),
        ("sw_mng", False, True, ""),
        ("sw_mng", False, False, "(FAB-005)"),
        ("none", False, False, "shows no NVSwitch"),
        ("pci", True, False, "(FAB-006)"),
    ],
)
def test_fabric_manager_only_where_nvswitch_is_found(how, rack, nvlsm, words):
    seen = {"switches": {"how": how, "count": 4, "text": "x"}, "rack_gpus": rack}
    problem = value("fabric_manager", "fabric_manager_problem", seen, {"nvlsm": nvlsm})
    assert words in problem and bool(problem) is bool(words), problem


@pytest.mark.parametrize(
    ("seen", "software", "changes", "words"),
    [
        ({}, {}, {}, None),
        ({}, {"kernel": "6.12.57"}, {}, None),
        ({}, {"kernel": "6.12.5"}, {}, f"runs kernel {KERNEL}, declared is 6.12.5"),
        ({"kernel_arguments": []}, {}, {}, "lacks the kernel arguments iommu=pt"),
        ({"modules": ["nouveau"]}, {}, {}, "has nouveau loaded"),
        ({"hugepages": 512}, {}, {"base_hugepages": 1024}, "has 512 huge pages, declared are 1024"),
        ({"hugepages": None}, {}, {"base_hugepages": 1024}, "declared are 1024"),
    ],
)
def test_the_kernel_is_what_was_declared(seen, software, changes, words):
    problems = value("base", "base_boot_problems", seen, software, **changes)
    assert problems == [] if words is None else len(problems) == 1 and words in problems[0], problems


def test_headers_of_the_running_kernel_unless_one_is_pinned():
    assert value("base", "base_kernel_packages") == [f"linux-headers-{KERNEL}"]
    assert value("base", "base_kernel_packages", groups=("base", "slurm_head")) == []
    pinned = {"kernel": ["linux-image-amd64=6.12.57-*", "linux-headers-amd64=6.12.57-*"]}
    assert value("base", "base_kernel_packages", software={"packages": pinned}) == pinned["kernel"]


def test_kernel_files_are_made_and_taken_away():
    files = {entry["path"]: entry["state"] for entry in value("base", "base_kernel_files", base_hugepages=8)}
    assert files["/etc/sysctl.d/90-ironburst.conf"] == files["/etc/default/grub.d/90-ironburst.cfg"] == "file"
    text = {entry["path"]: entry.get("content") for entry in value("base", "base_kernel_files", base_hugepages=8)}
    assert text["/etc/sysctl.d/90-ironburst.conf"] == "vm.nr_hugepages = 8\n"
    assert "iommu=pt" in text["/etc/default/grub.d/90-ironburst.cfg"]
    gone = {entry["path"]: entry["state"] for entry in value("base", "base_kernel_files", node_gpu=None)}
    assert [state for path, state in gone.items() if path != "/etc/default/grub.d"] == ["absent"] * 3


def test_a_mig_layout_names_every_gpu():
    layout = value(
        "mig",
        "mig_layout",
        node_mig=[{"gpus": [0, 7], "profiles": {"1g.10gb": 7}}, {"gpus": [1], "profiles": {"3g.40gb": 2}}],
    )
    assert layout == {str(gpu): {} for gpu in range(8)} | {
        "0": {"1g.10gb": 7},
        "7": {"1g.10gb": 7},
        "1": {"3g.40gb": 2},
    }


KEY = {"name": "nv", "url": "http://h/nv", "suite": "stable", "components": ["main"], "key_url": "http://h/key.asc"}


@pytest.mark.parametrize(
    ("declared", "unknown"),
    [
        (KEY, ["http://h/key.asc"]),
        (KEY | {"key_sha256": ""}, ["http://h/key.asc"]),
        (KEY | {"key_sha256": "0" * 63}, ["http://h/key.asc"]),
        (KEY | {"key_sha256": "0" * 64}, []),
    ],
    ids=["none", "empty", "short", "known"],
)
@pytest.mark.parametrize("manager", ["apt", "dnf"])
def test_a_repository_s_key_has_a_checksum(declared, unknown, manager):
    facts = {"pkg_mgr": manager, "kernel": KERNEL, "node_seen": SEEN}
    repositories = {f"base_{manager}_repositories": [declared], "ansible_facts": facts}
    assert value("base", "base_unknown_keys", **repositories) == unknown


def test_dnf_takes_a_key_from_the_checked_file_alone():
    facts = {"pkg_mgr": "dnf", "kernel": KERNEL, "node_seen": SEEN}
    text = (PLAYBOOKS / "roles/base/templates/ironburst.repo.j2").read_text()
    changes = {"base_repository": KEY | {"repo_gpgcheck": True}, "ansible_facts": facts}
    folder = value("base", "base_keys_folder", **changes)
    written = value("base", f"'' }}}}{text}{{{{ ''", base_keys_folder=folder, **changes)
    assert "gpgcheck=1" in written.splitlines() and "repo_gpgcheck=1" in written.splitlines()
    assert "gpgkey=file:///etc/pki/rpm-gpg/ironburst-" in written and "http://h/key.asc" not in written


@pytest.mark.parametrize(
    ("lines", "unheld"),
    [
        (["rdma-core", "slurmd", "infiniband-diags"], ["rdma-core", "infiniband-diags"]),
        (["rdma-core-0:48.0-1.el9.*", "slurm-0:24.11-1.*"], ["rdma-core"]),
        ([], []),
    ],
    ids=["apt", "dnf", "none"],
)
def test_what_the_efa_installer_replaces_is_not_held(lines, unheld):
    software = {"rdma": "efa", "packages": {"rdma": []}}
    found = value("rdma", "rdma_unhold", software=software, rdma_held={"stdout_lines": lines})
    assert sorted(found) == sorted(unheld)


@pytest.mark.parametrize(("checksum", "passes"), [("", False), ("sha256:123", False), ("sha256:" + "0" * 64, True)])
def test_the_efa_installer_is_refused_without_a_checksum(checksum, passes):
    tasks = yaml.safe_load((PLAYBOOKS / "roles/rdma/tasks/preflight.yml").read_text())
    (assertion,) = [
        task["ansible.builtin.assert"]["that"] for task in tasks if "archive can be checked" in task["name"]
    ]
    given = {"rdma_efa": True, "rdma_efa_installer_checksum": checksum}
    assert value("rdma", assertion, software={"packages": {"rdma": []}}, **given) is passes
