"""No path that may reboot a host, stop a service or take a module away is unknown or unguarded: the list of
tests/playbooks/disturbing.py against the roles.
"""

import re
from pathlib import Path

import contract
import pytest
import yaml
from contract import PLAYBOOKS
from disturbing import PATHS, REPLACEMENTS

ROLES = PLAYBOOKS / "roles"
# What commands do that somebody may notice
WORDS = re.compile(
    r"\b(reboot|poweroff|shutdown|kexec|rmmod|modprobe\b.*(-r\b|--remove)|nvidia_driver_command|openibd|umount|wipefs|mkfs"
    r"|kubeadm', 'upgrade|kubeadm', 'reset|drain'|ironburst-mig|ironburst-scratch apply|ironburst-kubelet free"
    r"|efa_installer\.sh|gpu-reset|telinit|isolate)"
    r"|systemctl'?,? '?(stop|restart|kill|reload|try-restart|reload-or-restart|isolate)"
)
READ_ONLY = re.compile(r"--check\b|\bplan\b|is-active|is-enabled")
PACKAGES = ("apt", "dnf", "dnf5", "yum", "package")


def text_of(arguments) -> str:
    """The words of a command, however they are given."""
    if isinstance(arguments, dict):
        given = arguments.get("argv", arguments.get("cmd", arguments.get("_raw_params", "")))
        return " ".join(map(str, given)) if isinstance(given, list) else str(given)
    return str(arguments)


def restarts(entry) -> bool:
    """Whether a unit of the module `services`, as written, may be stopped or restarted."""
    return isinstance(entry, dict) and (
        bool(entry.get("reads")) or any(word in str(entry.get("state", "")) for word in ("restarted", "stopped"))
    )


def disturbs(module: str, arguments, raw: dict, variables: dict) -> bool:
    """Whether a task may reboot, stop, restart, unload or unmount something."""
    if module in ("reboot", "reboot_idle", "mount", "modprobe", *PACKAGES):
        return True
    if module in ("systemd_service", "systemd", "service"):
        return any(word in str(arguments.get("state", "")) for word in ("restarted", "stopped", "reloaded"))
    if module == "services":
        units = arguments["services"]
        if isinstance(units, str):  # named by variables of the task or the role
            told = {**variables, **raw.get("vars", {})}
            units = [entry for name in re.findall(r"\w+", units) for entry in deep(name, told)]
        return any(restarts(entry) for entry in units)
    if module in contract.COMMANDS and raw.get("changed_when") is not False:
        text = text_of(arguments)
        return bool(WORDS.search(text)) and not READ_ONLY.search(text)
    return False


def deep(name: str, variables: dict, seen: frozenset = frozenset()) -> list:
    """All that a variable may hold: through the variables that it names."""
    value = variables.get(name) if name not in seen else None
    if isinstance(value, str):
        return [entry for inner in re.findall(r"\w+", value) for entry in deep(inner, variables, seen | {name})]
    return value if isinstance(value, list) else [value] if isinstance(value, dict) else []


def flat(tasks: list, place: str):
    """(where, task) of every task of a file, through its blocks."""
    for number, task in enumerate(tasks, 1):
        where = f"{place}{task.get('name', number)}"
        if "block" in task:
            for part in ("block", "rescue", "always"):
                yield from flat(task.get(part) or [], where + "/")
        else:
            yield where, task


def variables_of(role: Path) -> dict:
    """Defaults and variables of a role."""
    files = [role / part / "main.yml" for part in ("defaults", "vars")]
    return {
        key: value for file in files if file.exists() for key, value in (yaml.safe_load(file.read_text()) or {}).items()
    }


def all_tasks():
    """(where, task, role's variables) of every task of the playbooks, in the order of each file."""
    for role in sorted(ROLES.iterdir()):
        variables = variables_of(role)
        for part in ("tasks", "handlers"):
            for file in sorted((role / part).glob("*.yml")):
                for where, task in flat(contract.load(file), f"{file.relative_to(ROLES)}:"):
                    yield where, task, variables
    for file in sorted([*PLAYBOOKS.glob("*.yml"), *PLAYBOOKS.glob("tasks/*.yml")]):
        plays = contract.load(file)
        lists = [play.get(part) or [] for play in plays for part in ("pre_tasks", "tasks", "post_tasks", "handlers")]
        for tasks in lists or [plays]:
            for where, task in flat(tasks, f"{file.name}:"):
                yield where, task, {}


TASKS = list(all_tasks())


def found() -> dict[str, dict]:
    """{where: task} of all paths."""
    return {
        where: task for where, task, variables in TASKS if disturbs(*contract.module_of(task, where), task, variables)
    }


def test_every_path_is_known():
    paths = found()
    assert sorted(set(paths) - set(PATHS)) == [], "say in tests/playbooks/disturbing.py what stands before these"
    assert sorted(set(PATHS) - set(paths)) == [], "these are no paths any more"
    assert len(PATHS) >= 40


def look_of(task: dict) -> dict:
    module, arguments = contract.module_of(task, "")
    return arguments if module == "node_state" and arguments and arguments.get("free_for") else {}


@pytest.mark.parametrize("where", [where for where, (how, _) in PATHS.items() if how in ("own", "before")])
def test_a_look_stands_right_before(where):
    """In the task itself; or before it in its file, with the declared exceptions, and asked in every real run."""
    task = found()[where]
    how, _ = PATHS[where]
    if how == "own":
        module, arguments = contract.module_of(task, where)
        assert module in ("services", "reboot_idle") and arguments["free_for"]
        assert "may_disturb" in arguments
        return
    file = where.partition(":")[0]
    names = [name for name, _, _ in TASKS if name.partition(":")[0] == file]
    before = [each for name, each, _ in TASKS if name in names[: names.index(where)]]
    looks = [each for each in before if look_of(each)]
    assert looks and look_of(looks[-1])["may_disturb"]
    conditions = contract.listed(looks[-1].get("when"))
    allowed = (*contract.listed(task.get("when")), "check_mode", "image_build", "skip_tags")
    assert all(any(word in condition for word in allowed) for condition in conditions), conditions


@pytest.mark.parametrize("where", [where for where, (how, _) in PATHS.items() if how in ("harmless", "asked")])
def test_what_needs_no_look_has_a_reason(where):
    assert PATHS[where][1]


def test_a_replacement_of_packages_is_looked_at():
    tasks = {where: task for where, task, _ in TASKS}
    for file, name in REPLACEMENTS:
        assert look_of(tasks[f"{file}:{name}"]), name


def test_no_reboot_but_by_the_one_action():
    assert not [where for where, task, _ in TASKS if contract.module_of(task, where)[0] == "reboot"]


def test_a_restarted_slurmd_leaves_its_steps():
    text = (ROLES / "slurm_node/templates/slurmd.service.j2").read_text()
    assert "\nKillMode=process\n" in text


@pytest.mark.parametrize(
    "task",
    [
        {"ansible.builtin.reboot": {}},
        {"ansible.builtin.command": {"argv": ["systemctl", "restart", "nvidia-fabricmanager"]}},
        {"ansible.builtin.command": {"argv": "{{ ['systemctl', 'stop'] + x }}"}},
        {"ansible.builtin.command": {"cmd": "rmmod nvidia"}},
        {"ansible.builtin.shell": {"cmd": "modprobe -r nvidia"}},
        {"ansible.builtin.shell": "shutdown -r now"},
        {"ansible.builtin.systemd_service": {"name": "x", "state": "restarted"}},
        {"services": {"services": [{"name": "x", "state": "started", "reads": ["/x"]}]}},
        {"services": {"services": "{{ some_units | list }}"}},
        {"ansible.posix.mount": {"path": "/x", "state": "unmounted"}},
        {"ansible.builtin.apt": {"name": "x"}},
    ],
)
def test_the_reader_finds(task):
    variables = {"some_units": "{{ [one] }}", "one": {"name": "x", "state": "restarted"}}
    assert disturbs(*contract.module_of(task, "x"), task, variables)


@pytest.mark.parametrize(
    "task",
    [
        {"ansible.builtin.command": {"argv": ["systemctl", "is-active", "x"]}},
        {"ansible.builtin.command": {"cmd": "/usr/local/sbin/ironburst-mig --check"}},
        {"services": {"services": [{"name": "x", "state": "started", "enabled": True}]}},
        {"ansible.builtin.systemd_service": {"name": "x", "state": "started"}},
        {"ansible.builtin.command": {"cmd": "dkms autoinstall"}},
    ],
)
def test_the_reader_lets_pass(task):
    assert not disturbs(*contract.module_of(task, "x"), task, {})
