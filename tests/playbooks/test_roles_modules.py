"""The modules `files` and `node_state`, run as Ansible runs them, and on copies of hosts' files."""

import json
import os
import subprocess
from pathlib import Path

import pytest
from programs import PLAYBOOKS, command, load

MODULES = PLAYBOOKS / "plugins" / "modules"


def module(name):
    return load(f"plugins/modules/{name}.py")


def run(name, check=False, **arguments):
    """The module's answer, as a process of its own."""
    question = {"ANSIBLE_MODULE_ARGS": arguments | {"_ansible_check_mode": check, "_ansible_diff": True}}
    done = subprocess.run(command(MODULES / f"{name}.py"), input=json.dumps(question), capture_output=True, text=True)
    assert done.stdout, done.stderr
    return json.loads(done.stdout)


@pytest.fixture
def me():
    import grp
    import pwd

    return {"owner": pwd.getpwuid(os.getuid()).pw_name, "group": grp.getgrgid(os.getgid()).gr_name}


def test_files_makes_them_once_and_tells_what_it_would_do(tmp_path, me):
    wanted = [
        {"path": str(tmp_path / "etc"), "state": "directory", **me},
        {"path": str(tmp_path / "etc/a.conf"), "content": "a = 1\n", "mode": "0640", **me},
        {"path": str(tmp_path / "etc/link"), "state": "link", "target": "a.conf", **me},
        {"path": str(tmp_path / "gone"), "state": "absent", **me},
    ]
    (tmp_path / "gone").write_text("old\n")
    told = run("files", check=True, files=wanted)
    assert told["changed"] and [path.name for path in tmp_path.iterdir()] == ["gone"]
    done = run("files", files=wanted)
    assert done["changed_paths"] == told["changed_paths"] == [entry["path"] for entry in wanted]
    file = tmp_path / "etc/a.conf"
    assert file.read_text() == "a = 1\n" and file.stat().st_mode & 0o777 == 0o640
    assert (tmp_path / "etc/link").readlink() == Path("a.conf")
    assert [path.name for path in tmp_path.iterdir()] == ["etc"]
    assert run("files", files=wanted)["changed"] is False


@pytest.mark.parametrize("drift", ["text", "mode", "link", "missing"])
def test_files_repairs(tmp_path, me, drift):
    file, link = tmp_path / "a", tmp_path / "b"
    wanted = [
        {"path": str(file), "content": "right\n", **me},
        {"path": str(link), "state": "link", "target": "a", **me},
    ]
    run("files", files=wanted)
    if drift == "text":
        file.write_text("wrong\n")
    elif drift == "mode":
        file.chmod(0o600)
    elif drift == "link":
        link.unlink()
        link.symlink_to("/elsewhere")
    else:
        file.unlink()
    done = run("files", files=wanted)
    assert done["changed_paths"] == [str(link if drift == "link" else file)]
    if drift == "text":
        assert done["diff"] == [
            {"before_header": str(file), "after_header": str(file), "before": "wrong\n", "after": "right\n"}
        ]
    assert run("files", files=wanted)["changed"] is False
    assert file.read_text() == "right\n" and file.stat().st_mode & 0o777 == 0o644


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ({"path": "folder", "content": "x"}, "is a directory, not a file"),
        ({"path": "folder", "state": "absent"}, "with something in it"),
        ({"path": "x", "content": "y", "owner": "nobody-by-this-name"}, "no user nobody-by-this-name"),
        ({"path": "x"}, "content"),
    ],
)
def test_files_refuses(tmp_path, me, entry, words):
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "inside").touch()
    answer = run("files", files=[me | entry | {"path": str(tmp_path / entry["path"])}])
    assert answer.get("failed") and words in answer["msg"]
    assert (tmp_path / "folder" / "inside").exists() and not (tmp_path / "x").exists()


def test_a_file_that_its_program_refuses_takes_no_place(tmp_path, me):
    path = tmp_path / "a.json"
    entry = {"path": str(path), "validate": ["python3", "-m", "json.tool", "%s", os.devnull], **me}
    assert run("files", files=[entry | {"content": "{}\n"}])["changed"]
    for check in (False, True):
        done = run("files", check=check, files=[entry | {"content": "{\n"}])
        assert bool(done.get("failed")) is not check, "check mode can't ask a program that isn't there yet"
    assert "stays as it was: python3 refuses the new one" in run("files", files=[entry | {"content": "{\n"}])["msg"]
    assert path.read_text() == "{}\n" and [each.name for each in tmp_path.iterdir()] == ["a.json"]


@pytest.mark.parametrize("allowed", [True, False])
def test_a_guard_is_asked_before_the_first_change(tmp_path, me, allowed):
    asked = tmp_path / "asked"
    guard = ["sh", "-c", f"echo x >> {asked}; echo containers run here >&2; exit {0 if allowed else 1}"]
    wanted = [{"path": str(tmp_path / name), "content": "x\n", **me} for name in ("a", "b")]
    answer = run("files", files=wanted, guard=guard)
    assert (tmp_path / "a").exists() is allowed and asked.read_text() == "x\n"
    assert answer.get("failed", False) is not allowed and (allowed or answer["msg"] == "containers run here")
    if allowed:
        assert run("files", files=wanted, guard=guard)["changed"] is False and asked.read_text() == "x\n"
    else:
        assert run("files", check=True, files=wanted, guard=guard)["changed"] is True


GPU, B200 = ("10de", "2330", "030200"), ("10de", "2901", "030200")
SWITCH_A, SWITCH_H = ("10de", "1af1", "068000"), ("10de", "22a3", "068000")


@pytest.mark.parametrize(
    ("pci", "vpd", "proc", "how", "count"),
    [
        ([GPU] * 8 + [SWITCH_H] * 4, [], [], "pci", 4),
        ([GPU] * 8 + [SWITCH_A] * 6, [], [], "pci", 6),
        ([GPU] * 4 + [SWITCH_A], [], [], "none", 0),  # one alone is no board (the count must be above 1)
        ([B200] * 8, [b"x SW_MNG y", b"Bluefield", b"SW_MNG"], [], "sw_mng", 2),
        ([B200] * 8, [b"ConnectX-7"], [], "none", 0),  # FAB-007: 2901 is the GPU, not a switch
        ([GPU] * 8, [], ["0000:c4:00.0"], "proc", 1),
        ([("10de", "1db8", "030200")] * 16, [], [], "gpu", 12),
        ([GPU] * 4, [], [], "none", 0),
        ([], [], [], "none", 0),
    ],
)
def test_switches(pci, vpd, proc, how, count):
    switches = module("node_state").switches(pci, vpd, proc)
    assert (switches["how"], switches["count"]) == (how, count)


def test_switch_ids_are_those_of_the_facts():
    from ironburst.catalog import tables

    folder = Path(tables.__file__).parent / "data"
    lines = (folder / "nvswitch_pci.csv").read_text()
    look = module("node_state")
    assert all(f"10de:{device}" in lines for device in look.SWITCH_IDS) and "2901" not in look.SWITCH_IDS
    assert look.DGX2_GPU in lines and all(device in lines for device in look.RACK_GPUS)


@pytest.mark.parametrize(
    ("command", "step"),
    [
        ("slurmstepd: [17.batch]", "17.batch"),
        ("slurmstepd: [17.extern]", "17.extern"),
        ("/usr/sbin/slurmstepd infinity", None),
        ("sshd", None),
    ],
)
def test_steps(command, step):
    assert load("plugins/module_utils/occupants.py").step_of(command) == step


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ('cdiVersion: 0.5.0\nkind: nvidia.com/gpu\ndevices:\n- name: "0"\n- name: "1"\n- name: all\n', ["0", "1"]),
        (
            '{"kind": "nvidia.com/gpu",\n "devices": [{\n "name": "0:1",\n "x": 1},{\n "name": "MIG-aa",\n "y": 2}]}',
            ["0:1", "MIG-aa"],
        ),
        ("kind: vendor.com/net\ndevices:\n- name: '0'\n", []),
        ("", []),
    ],
)
def test_cdi_devices(text, names):
    assert module("node_state").cdi_devices(text) == names


def test_gpu_rows_take_only_what_is_understood():
    rows = module("node_state").gpu_rows(
        "580.95.05, Enabled, Disabled, 200.00 W, 700.00 W\n580.95.05, Enabled, [N/A], [N/A], [N/A]\n"
        "Failed to initialize NVML\n"
    )
    assert [(row["mig"], row["least_w"], row["most_w"]) for row in rows] == [
        ("Disabled", 200, 700),
        ("[N/A]", None, None),
    ]


def host(tmp_path, files):
    for path, text in files.items():
        target = tmp_path / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
    return module("node_state").Look(root=str(tmp_path))


def test_who_holds_a_gpu(tmp_path):
    names = {"10": "python", "11": "nvidia-persiste", "12": "slurmstepd", "13": "containerd-shim"}
    look = host(
        tmp_path,
        {f"proc/{pid}/comm": f"{name}\n" for pid, name in names.items()} | {"proc/12/cmdline": "slurmstepd: [9.0]\0"},
    )
    for pid in ("10", "11", "13"):
        (tmp_path / f"proc/{pid}/fd").mkdir()
        (tmp_path / f"proc/{pid}/fd/5").symlink_to("/dev/nvidia0" if pid != "13" else "/dev/null")
    assert look.processes() == ([{"pid": 10, "command": "python"}], ["9.0"], 1)


def test_the_module_of_the_running_kernel(tmp_path):
    look = host(
        tmp_path, {"lib/modules/6.12/updates/dkms/nvidia.ko.xz": "", "lib/modules/6.1/updates/dkms/nvidia-uvm.ko": ""}
    )
    assert look.driver_module("6.12") == "/lib/modules/6.12/updates/dkms/nvidia.ko.xz"
    assert look.driver_module("6.1") is None and look.driver_module("5.0") is None


@pytest.mark.parametrize(
    ("boot", "grubby", "kernel"),
    [
        ([], "", "6.1.0-running"),
        (["vmlinuz-6.8.0-9-generic", "vmlinuz-6.8.0-51-generic", "initrd.img-6.9.0"], "", "6.8.0-51-generic"),
        (["vmlinuz-6.12.9+deb13-amd64", "vmlinuz-6.1.0-41-amd64"], "", "6.12.9+deb13-amd64"),
        (
            ["vmlinuz-5.14.0-611.el9.x86_64", "vmlinuz-0-rescue-3f"],
            "/boot/vmlinuz-5.14.0-570.el9.x86_64",
            "5.14.0-570.el9.x86_64",
        ),
        (["vmlinuz-5.14.0-611.el9.x86_64", "vmlinuz-0-rescue-3f"], "", "5.14.0-611.el9.x86_64"),
    ],
)
def test_the_kernel_of_the_next_boot(tmp_path, monkeypatch, boot, grubby, kernel):
    look = host(tmp_path, {f"boot/{name}": "" for name in boot})
    monkeypatch.setattr(look, "run", lambda *argv: (0, f"{grubby}\n") if grubby else (None, "grubby can't be run"))
    assert look.boot_kernel("6.1.0-running") == kernel


@pytest.mark.parametrize(
    ("files", "found"),
    [
        ([], ""),
        (["etc/ironburst/kubelet.yaml"], ""),  # configured, and not joined yet
        (["etc/kubernetes/kubelet.conf"], "adopted"),
        (["etc/kubernetes/kubelet.conf", "etc/ironburst/kubelet.yaml"], ""),  # it has asked for its certificate
        (["var/lib/kubelet/pki/kubelet-client-current.pem", "etc/ironburst/kubelet.yaml"], "own"),
        (["var/lib/kubelet/pki/kubelet-client-current.pem", "etc/kubernetes/kubelet.conf"], "adopted"),
        (["etc/kubernetes/kubelet.conf", "etc/ironburst/kubeadm.yaml"], "own"),  # a head
        (["etc/kubernetes/kubelet.conf", "etc/ironburst/kubeadm.begun.yaml"], ""),  # its init has not come to its end
        (["etc/ironburst/kubeadm.yaml"], ""),  # kubeadm reset
    ],
)
def test_whose_node_of_kubernetes_it_is(tmp_path, files, found):
    assert host(tmp_path, dict.fromkeys(files, "x")).seen()["kubelet"] == found


@pytest.mark.parametrize(
    ("answer", "others", "containers"),
    [
        ((0, ""), "", 0),
        ((0, ""), "-namespace moby", 1),
        ((1, "ironburst-kubelet: pods run here: default/train"), "", 1),
        ((None, "ironburst-kubelet can't be run"), "", 1),
    ],
)
def test_containers_of_daemonsets_alone_are_none(tmp_path, monkeypatch, answer, others, containers):
    pod = "/usr/bin/containerd-shim-runc-v2 -namespace k8s.io -id {}"
    commands = [pod.format(1), pod.format(2), *([f"containerd-shim-runc-v2 {others}"] if others else [])]
    files = {f"proc/{pid}/cmdline": "\0".join(line.split()) for pid, line in enumerate(commands, 7)}
    look = host(tmp_path, files | {f"proc/{pid}/comm": "containerd-shim\n" for pid, _ in enumerate(commands, 7)})
    asked = []
    monkeypatch.setattr(look, "run", lambda *argv: asked.append(argv) or answer)
    assert look.processes()[2] == containers
    assert asked == [("/usr/local/sbin/ironburst-kubelet", "idle")]


@pytest.mark.parametrize(
    ("answer", "users"),
    [((0, "11 12\n"), ["python"]), ((0, "\n"), ["nvidia-device-p", "gpu-feature-dis", "python"]),
     ((1, "ironburst-kubelet: the API server doesn't answer 11"), ["nvidia-device-p", "gpu-feature-dis", "python"])],
)  # fmt: skip
def test_pods_that_keep_no_node_are_no_users_of_the_gpus(tmp_path, monkeypatch, answer, users):
    names = {"11": "nvidia-device-p", "12": "gpu-feature-dis", "13": "python"}
    look = host(tmp_path, {f"proc/{pid}/comm": f"{name}\n" for pid, name in names.items()})
    for pid in names:
        (tmp_path / f"proc/{pid}/fd").mkdir()
        (tmp_path / f"proc/{pid}/fd/3").symlink_to("/dev/nvidia0")
    asked = []
    monkeypatch.setattr(look, "run", lambda *argv: asked.append(argv) or answer)
    assert len(look.processes()[0]) == 3 and asked == []  # no node of a cluster
    host(tmp_path, {"usr/local/sbin/ironburst-kubelet": "x"})
    assert [user["command"] for user in look.processes()[0]] == users
    assert asked == [("/usr/local/sbin/ironburst-kubelet", "services")]


def test_a_whole_look_at_a_host_without_gpus(tmp_path):
    seen = module("node_state").Look(root=str(tmp_path)).seen()
    assert seen["switches"]["how"] == "none" and seen["gpu_ids"] == [] and seen["hugepages"] is None
    assert seen["dkms"] == [] and seen["dkms_error"] and seen["driver_module"] is None and seen["cuda"] == {}
    answer = run("node_state")
    assert answer["changed"] is False and set(answer["ansible_facts"]["node_seen"]) == set(seen)
