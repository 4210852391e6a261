"""What a converge watches: from task results, from meta/watch.yml; and what it refuses to call watched."""

import re
from pathlib import Path

import pytest
import yaml

from ironburst.convergence import watch

ROOT = Path(__file__).parents[3]
ROLES = ROOT / "playbooks" / "roles"


def of(action, arguments, **result):
    return watch.of_task(
        f"ansible.builtin.{action}", [{"invocation": {"module_args": arguments}, **result}], {}, where="role: task"
    )


@pytest.mark.parametrize(
    ("action", "arguments", "expected"),
    [
        ("copy", {"dest": "/etc/a", "mode": "0644"}, {"files": {"/etc/a": "tree"}}),
        ("copy", {"dest": "/etc/d/", "_original_basename": "a.conf"}, {"files": {"/etc/d/a.conf": "tree"}}),
        ("file", {"path": "/srv/x", "state": "directory", "recurse": True}, {"files": {"/srv/x": "tree"}}),
        ("lineinfile", {"path": "/etc/fstab", "line": "x"}, {"files": {"/etc/fstab": "content"}}),
        ("apt", {"name": ["slurmd=24.11.*", "munge"]}, {"packages": ["munge", "slurmd"]}),
        ("dnf", {"name": ["nvidia-open-580.95.05"]}, {"packages": ["nvidia-open-580.95.05"]}),
        (
            "systemd_service",
            {"name": "slurmd", "state": "started", "enabled": True},
            {"services": {"slurmd.service": ["active", "enabled"]}},
        ),
        ("systemd_service", {"name": "x.path", "enabled": True, "state": None}, {"services": {"x.path": ["enabled"]}}),
        ("systemd_service", {"daemon_reload": True}, {}),
        (
            "services",
            {
                "services": [
                    {"name": "slurmd", "state": "started", "enabled": None, "masked": False, "reads": ["/x"]},
                    {"name": "opensm.service", "state": "stopped", "enabled": None, "masked": True, "reads": []},
                ]
            },
            {"services": {"opensm.service": ["active", "enabled"], "slurmd.service": ["active"]}},
        ),
        ("user", {"name": "alice", "groups": ["gpu"]}, {"users": ["alice"], "groups": ["gpu"]}),
        ("command", {"creates": "/opt/done", "_raw_params": "x"}, {"files": {"/opt/done": "exists"}}),
        ("command", {"_raw_params": "x"}, {}),
        (
            "sysctl",
            {"name": "vm.max_map_count"},
            {"sysctls": ["vm.max_map_count"], "files": {"/etc/sysctl.conf": "content"}},
        ),
        (
            "modprobe",
            {"name": "ib_umad", "persistent": "present"},
            {"modules": ["ib_umad"], "files": {"/etc/modules-load.d/ib_umad.conf": "content"}},
        ),
        ("mount", {"path": "/shared"}, {"mounts": ["/shared"], "files": {"/etc/fstab": "content"}}),
        ("yum_repository", {"name": "nv"}, {"files": {"/etc/yum.repos.d/nv.repo": "content"}}),
        (
            "files",
            {"files": [{"path": "/etc/a", "content": "x"}, {"path": "/etc/d", "state": "directory"}]},
            {"files": {"/etc/a": "content", "/etc/d": "content"}},
        ),
        ("node_state", {}, {}),
        ("assert", {}, {}),
    ],
)
def test_a_task_says_what_it_manages(action, arguments, expected):
    assert of(action, arguments) == watch.merge(expected)


def test_a_hidden_task_is_watched_by_where_it_writes_not_by_what():
    hidden = {"censored": "the output has been hidden", "changed": True}
    assert watch.of_task("copy", [hidden], {"dest": "/etc/munge/munge.key"}, where="x") == {
        "files": {"/etc/munge/munge.key": "tree"}
    }
    with pytest.raises(watch.Unwatchable, match="slurm_node: Key: its result names no path"):
        watch.of_task("copy", [hidden], {}, where="slurm_node: Key")


def test_an_unknown_module_is_never_watched():
    with pytest.raises(watch.Unwatchable, match=r"nobody can say what the module community\.x\.strange manages"):
        watch.of_task("community.x.strange", [{"changed": True}], {}, where="role: task")


def test_skipped_items_of_a_loop_manage_nothing():
    results = [{"skipped": True}, {"invocation": {"module_args": {"dest": "/etc/b"}}}]
    assert watch.of_task("copy", results, {}, where="x") == {"files": {"/etc/b": "tree"}}


def test_a_role_may_say_it_itself_in_terms_of_its_variables():
    said = {"msg": {"ironburst_watch": {"commands": [["mount", "/x"]], "services": ["slurmd"]}}}
    watched = watch.of_task("ansible.builtin.debug", [said], {}, where="x")
    assert watched == {"services": {"slurmd.service": ["active", "enabled"]}, "commands": [["mount", "/x"]]}
    assert watch.of_task("debug", [{"msg": "hello"}], {}, where="x") == {}


def test_merging_keeps_the_stronger_way_and_everything_once():
    merged = watch.merge(
        {"files": {"/a": "exists"}, "packages": ["x", "x"]}, {"files": {"/a": "content"}, "packages": ["x"]}
    )
    assert merged == {"files": {"/a": "content"}, "packages": ["x"]}


def test_facts_of_a_watch_can_be_taken_out_again():
    watched = watch.merge(
        {
            "files": {"/a": "content", "/b": "exists"},
            "packages": ["p"],
            "commands": [["x", "y"]],
            "services": {"s.service": ["active"]},
        }
    )
    assert watch.fact_names(watched) == ["file /a", "file /b", "package p", "service s.service", "command x y"]
    assert watch.without(watched, watch.fact_names(watched)) == {
        "files": {},
        "packages": [],
        "services": {},
        "commands": [],
    }
    assert watch.without(watched, []) == watched


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"files": []}, "has no mapping `watch`"),
        ({"watch": {"fils": []}}, "watches 'fils', which is not known"),
        ({"watch": {"commands": ["sysctl -n x"]}}, "list of words"),
    ],
)
def test_a_wrong_watch_file_is_one_sentence(given, words):
    with pytest.raises(ValueError, match=words):
        watch.of_role(given, "meta/watch.yml")


def test_the_lock_s_packages_are_watched():
    lock = {"packages": {"cuda": ["cuda-toolkit-13-0=13.0.*"], "rdma": []}}
    assert watch.of_software(lock) == {"packages": ["cuda-toolkit-13-0"]}
    assert watch.of_software(None) == {}


# ---- the repository's own roles


def tasks(path):
    def walk(entries):
        for entry in entries or []:
            inner = [key for key in ("block", "rescue", "always") if key in entry]
            for key in inner:
                yield from walk(entry[key])
            if not inner:
                yield entry

    return list(walk(yaml.safe_load(path.read_text())))


def module_of(task):
    folders = [ROLES.parent / "plugins" / kind for kind in ("modules", "action")]
    own = {path.stem for folder in folders for path in folder.glob("*.py")}
    return next(
        (key for key in task if key in own or re.fullmatch(r"(ansible\.(builtin|posix)|community\.\w+)\.\w+", key)),
        None,
    )


FILES = sorted(path for folder in ("tasks", "handlers") for path in ROLES.glob(f"*/{folder}/*.yml"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROLES)))
def test_every_module_of_the_roles_can_be_watched(path):
    named = (path.parents[1] / "meta" / "watch.yml").exists()
    for task in tasks(path):
        module = watch.module_name(module_of(task) or "")
        assert module in watch.MODULES or module in watch.READ_ONLY or named, (
            f"{task.get('name')}: name it in meta/watch.yml"
        )
        if task.get("no_log") and module in watch.MODULES:
            where = [str(task[module_of(task)].get(key, "")) for key in ("dest", "path", "name")]
            literal = any(text and "{{" not in text for text in where)
            assert literal or named, (
                f"{task.get('name')}: its output is hidden, so its path must be literal, or be named in meta/watch.yml"
            )


@pytest.mark.parametrize(
    "folder", sorted(path.parent.parent for path in ROLES.glob("*/meta/watch.yml")), ids=lambda path: path.name
)
def test_the_watch_files_can_be_read(folder):
    assert watch.read_role(folder)
