"""Every role keeps the contract of stages and classes, read from its YAML (tests/playbooks/contract.py resolves what is
inherited).
"""

import inspect
import re
from pathlib import Path

import contract
import pytest
import yaml
from contract import CLASSES, PLAYBOOKS, STAGES, tasks_of

from ironburst import catalog
from ironburst.document import build_nodes

ROLES_FOLDER = PLAYBOOKS / "roles"
HELPERS = {"cloud_node", "needs", "packages", "slurm_host"}  # has the stage and the class of whoever includes it
ROLES = sorted(path.name for path in ROLES_FOLDER.iterdir() if path.name not in HELPERS)
# Handlers that a live task may notify: no job notices them. slurmctld and slurmdbd run beside the jobs, slurmd's steps
# survive its restart
HARMLESS = {
    "base": {"Read the time servers"},
    "container_runtime": {"Settings of user namespaces take effect"},
    "slurm_head": {"Reconfigure Slurm"},
    "kubernetes_head": {"Kernel settings of Kubernetes take effect"},  # no jobs run there
    "users": {"Sshd reads its settings"},  # sessions that are open stay
}
# Units that a live task may restart because of what they read, likewise
RESTARTED = {
    "gpu_power_limit": {"ironburst-power-limit"},  # no reset: jobs go on, slower
    "infiniband_fabric": {"ironburst-opensm", "ironburst-fabric.timer"},  # routes stay in the switches
    "metrics": {"prometheus-node-exporter", "nvidia-dcgm-exporter", "ironburst-links.timer", "ironburst-metrics.timer"},
    "logs": {"ironburst-logs", "systemd-journald"},  # who writes into the journal doesn't notice
    "kubernetes_node": {"ironburst-metadata", "ironburst-gate-condition.timer"},  # kubelet only on a drained node
    "prometheus": {"prometheus", "prometheus-alertmanager", "grafana-server"},  # no job asks them
    "users": {"sssd"},  # what it knew is in its cache
    "slurm_node": {"ironburst-metadata", "munge", "slurmd"},  # a restarted slurmd leaves its steps alone
    "slurm_login": {"munge", "sackd", "ironburst-names"},  # commands that run already have their settings
    "kubernetes_head": {"ironburst-control-plane.timer"},
    "slurm_head": {
        "mariadb",
        "munge",
        "slurmdbd",
        "slurmctld",
        "ironburst",
        "ironburst-receive",
        "ironburst-names",
        "postfix",
    },
}


def role_tasks(role):
    return list(tasks_of(ROLES_FOLDER / role / "tasks" / "main.yml"))


@pytest.fixture(params=ROLES)
def role(request):
    return request.param


def test_stages(role):
    tasks = contract.load(ROLES_FOLDER / role / "tasks" / "main.yml")
    imports = [(task["ansible.builtin.import_tasks"], contract.listed(task["tags"])) for task in tasks]
    assert imports == [(f"{stage}.yml", [stage]) for stage in STAGES]


def test_every_changing_task_has_one_class(role):
    wrong = [problem for task in role_tasks(role) for problem in contract.problems(task)]
    assert not wrong, "\n".join(wrong)


def test_live_tasks_notify_only_harmless_handlers(role):
    handlers = {task["name"] for task in contract.load(ROLES_FOLDER / role / "handlers" / "main.yml")}
    told = {task["listen"] for task in contract.load(ROLES_FOLDER / role / "handlers" / "main.yml") if "listen" in task}
    for task in role_tasks(role):
        for name in task.notifies:
            assert name in handlers | told, f"{task.where} notifies {name!r}, which is no handler of {role}"
            if "live" in task.tags:
                assert name in HARMLESS.get(role, set()), (
                    f"{task.where} is live, but nobody has said that {name!r} harms no job"
                )


def units_with_reads(value):
    """Names of the units in a role's YAML that are restarted because of a file."""
    if isinstance(value, dict):
        if value.get("reads") or value.get("state") == "restarted":
            yield value["name"]
        value = list(value.values())
    if isinstance(value, list):
        for inner in value:
            yield from units_with_reads(inner)


def test_live_tasks_restart_only_harmless_units(role):
    variables = ROLES_FOLDER / role / "vars" / "main.yml"
    listed = yaml.safe_load(variables.read_text()) if variables.exists() else {}
    live = [task for task in role_tasks(role) if task.module == "services" and "live" in task.tags]
    restarted = {name for task in live for name in units_with_reads(task.raw)}
    if any("{{" in str(task.arguments["services"])[:4] for task in live):  # units that the role's variables name
        restarted |= set(units_with_reads(listed))
    assert restarted == RESTARTED.get(role, set())


def test_harmless_handlers_exist():
    for role, names in HARMLESS.items():
        listed = contract.load(ROLES_FOLDER / role / "handlers" / "main.yml")
        known = {task["name"] for task in listed} | {task["listen"] for task in listed if "listen" in task}
        assert names <= known, f"{role}: {names - known}"


def test_specs_name_the_document_and_the_defaults_only(role):
    specs = yaml.safe_load((ROLES_FOLDER / role / "meta/argument_specs.yml").read_text())["argument_specs"]
    options = specs["main"]["options"]
    file = ROLES_FOLDER / role / "vars/main.yml"
    fixed = set(yaml.safe_load(file.read_text())) if file.exists() else set()
    assert not fixed & set(options), "what the role fixes can't be asked for"
    assert all(name.startswith(f"{role}_") for name in fixed)
    for name, option in options.items():
        assert option.get("required", False) == (
            name.startswith(("node_", "cluster_")) and not name.startswith(f"{role}_")
        ), name


def texts(value):
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from texts(key)
            yield from texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from texts(inner)
    elif isinstance(value, str):
        yield value


VERSIONED = re.compile(r"""[\w+-](=|-)(\{\{[^}]*(version|software)|\d+\.\d)""")


def test_versions_are_in_the_lock_only(role):
    """No table of versioned packages: neither a name with a version, nor a name that the lock gives one."""
    facts = catalog.software_facts()
    locked = {name for text in texts(facts.package_names) for name in re.findall(r"^[a-z][\w+-]*(?==|-<full>)", text)}
    locked |= set(facts.package_names["container_toolkit"]["packages_same_version"])
    for part in ("defaults", "vars"):
        file = ROLES_FOLDER / role / part / "main.yml"
        values = (yaml.safe_load(file.read_text()) or {}) if file.exists() else {}
        for name, value in values.items():
            for text in texts(value):
                versioned = not text.startswith(("/", "https://")) and VERSIONED.search(text)
                assert not versioned, f"{part}/{name}: {text!r} names a version: take it from node_software.packages"
                if "package" in name:
                    assert text not in locked, (
                        f"{part}/{name}: {text} has its version from the lock: take it from node_software.packages"
                    )


def test_no_daemon_reload_under_containers():
    for task in role_tasks("nvidia_container_toolkit"):
        assert task.module not in ("systemd_service", "shell"), task.where
        assert task.module != "services" or task.arguments["daemon_reload"] == "never", task.where


# ---- the reader itself


def written(folder: Path, text: str) -> list[contract.Task]:
    file = folder / "some" / "tasks" / "main.yml"
    file.parent.mkdir(parents=True)
    file.write_text(text)
    (file.parent / "more.yml").write_text("- name: More\n  copy: {dest: /x, content: y}\n")
    return list(tasks_of(file, roles=folder))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("- name: A\n  copy: {dest: /x, content: y}\n", "neither"),
        ("- name: A\n  copy: {dest: /x, content: y}\n  tags: [live, drain]\n", "['drain', 'live']"),
        ("- name: A\n  command: {cmd: x}\n", "neither"),
        ("- name: A\n  command: {cmd: x}\n  changed_when: false\n  tags: [drain]\n", "only reads"),
        (
            "- name: B\n  tags: [live]\n  block:\n  - name: A\n    copy: {dest: /x, content: y}\n    tags: [drain]\n",
            "['drain', 'live']",
        ),
        ("- name: B\n  block: []\n  rescue:\n  - name: A\n    reboot: {}\n", "neither"),
        ("- name: A\n  import_tasks: more.yml\n", "neither"),
        ("- name: A\n  include_tasks: more.yml\n  tags: [live]\n", "neither"),
        ("- name: A\n  include_tasks: {file: more.yml, apply: {tags: [live]}}\n", "not tagged so itself"),
    ],
)
def test_the_reader_finds(tmp_path, text, words):
    problems = [problem for task in written(tmp_path, text) for problem in contract.problems(task)]
    assert len(problems) == 1 and words in problems[0], problems


@pytest.mark.parametrize(
    "text",
    [
        "- name: A\n  copy: {dest: /x, content: y}\n  tags: [live, install]\n",
        "- name: A\n  command: {cmd: x}\n  changed_when: false\n",
        "- name: B\n  tags: [live]\n  block:\n  - name: A\n    copy: {dest: /x, content: y}\n",
        "- name: A\n  import_tasks: more.yml\n  tags: [drain]\n",
        "- name: A\n  include_tasks: {file: more.yml, apply: {tags: [live]}}\n  tags: [live]\n",
    ],
)
def test_the_reader_accepts(tmp_path, text):
    assert not [problem for task in written(tmp_path, text) for problem in contract.problems(task)]


def test_every_role_is_in_the_site_and_given_by_the_document():
    """A role that `site.yml` or the document doesn't name would never run, and nobody would notice."""
    site = contract.load(PLAYBOOKS / "site.yml")[0]["vars"]["site_roles"]
    image = next(play for play in contract.load(PLAYBOOKS / "image.yml") if play["hosts"] == "image")
    rented = image["vars"]["image_roles"]
    assert sorted(["base", *site]) == ROLES
    assert rented == [role for role in site if role in rented], "in the site's order"
    given = re.findall(r'^        "(\w+)":', inspect.getsource(build_nodes.roles), re.MULTILINE)
    assert sorted(given) == ROLES


def test_the_playbooks_name_the_classes_of_what_they_install():
    for name in ("site.yml", "image.yml"):
        for play in contract.load(PLAYBOOKS / name):
            for task in play.get("tasks", []):
                include = task.get("ansible.builtin.include_role", {})
                if include.get("name") == "packages":
                    applied = include["apply"]["tags"]
                    assert len(set(applied) & set(CLASSES)) == 1 and set(applied) <= set(task["tags"])
