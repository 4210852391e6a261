"""What a role needs is told before anything of it is evaluated: roles on somebody's own inventory, who has read no
document.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from contract import PLAYBOOKS
from sample import lab_document

from ironburst import roles
from ironburst.document import variables

HELPERS = {"cloud_node", "needs", "packages", "slurm_host"}
ROLES = sorted(path.name for path in roles.FOLDER.iterdir() if path.name not in HELPERS)
ASKING = [role for role in ROLES if roles.needs(role)]  # metrics asks nothing


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """{role: what ansible-playbook says of it} on an inventory as a sysadmin's first one: a host, a group, no variable.
    One host a role, all on this machine: nothing of a role may run, so this changes nothing.
    """
    folder = tmp_path_factory.mktemp("static")
    inventory = folder / "hosts"
    inventory.write_text("".join(f"[{role}]\nhost-{role} ansible_connection=local\n" for role in ASKING))
    playbook = folder / "play.yml"
    role = "{{ group_names | first }}"
    include = {"name": "The role of this host", "ansible.builtin.include_role": {"name": role}}
    playbook.write_text(yaml.safe_dump([{"hosts": "all", "gather_facts": False, "tasks": [include]}]))
    program = Path(sys.executable).parent / "ansible-playbook"
    environment = os.environ | {"ANSIBLE_CONFIG": str(PLAYBOOKS.parent / "ansible.cfg"), "ANSIBLE_NOCOLOR": "1"}
    command = [program, "--check", "-i", inventory, playbook]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 2, done.stdout + done.stderr
    found = re.findall(r"^fatal: \[host-(\w+)\]: FAILED! => (.*?)(?=^fatal|^$)", done.stdout, re.MULTILINE | re.DOTALL)
    return {role: " ".join(text.split()).replace("''", "'") for role, text in found}


@pytest.mark.parametrize("role", ASKING)
def test_without_variables_each_role_says_which_it_needs_and_what_they_are(told, role):
    assert f"The role {role} needs what host-{role} is not given: " in told[role]
    for name, option in roles.spec(role)["options"].items():
        if option.get("required"):
            assert re.search(rf"\b{name} \({option['type']}\b", told[role]), name
            assert " ".join(option["description"].split()).rstrip(".") in told[role]
    assert "undefined" not in told[role]
    assert f"playbooks/roles/{role}/README.md" in told[role]


@pytest.mark.parametrize("ours", [False, True])
def test_arguments_are_validated_in_the_same_task_as_ansible_does_in_its_own(tmp_path, ours):
    """site.yml asks for it (docs/adr/0122): a task less for each role on each host."""
    include = {"name": "metrics", "rolespec_validate": not ours}
    given = {"metrics_node_port": "abc", "needs_arguments": ours}
    task = {"name": "The role", "ansible.builtin.include_role": include, "vars": given}
    play = tmp_path / "play.yml"
    play.write_text(yaml.safe_dump([{"hosts": "all", "gather_facts": False, "tasks": [task]}]))
    python = "ansible_python_interpreter=/usr/bin/python3"
    (tmp_path / "hosts").write_text(f"here ansible_connection=local {python} node_gpu={{}}\n")
    program = Path(sys.executable).parent / "ansible-playbook"
    environment = os.environ | {"ANSIBLE_CONFIG": str(PLAYBOOKS.parent / "ansible.cfg"), "ANSIBLE_NOCOLOR": "1"}
    command = [program, "--check", "-i", tmp_path / "hosts", play]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 2 and ("Validating arguments" in done.stdout) != ours
    said = "Validation of arguments failed:\nargument 'metrics_node_port' is of type str and we were unable to convert"
    assert said in done.stdout + done.stderr


def test_roles_of_site_yml_are_validated_once():
    (play, *_) = yaml.safe_load((PLAYBOOKS / "site.yml").read_text())
    (task,) = [each for each in play["tasks"] if each["name"] == "Roles of this host"]
    assert (
        task["ansible.builtin.include_role"]["rolespec_validate"] is False and task["vars"]["needs_arguments"] is True
    )


@pytest.mark.parametrize("role", ["slurm_head", "users", "host_names"])
def test_what_is_of_the_whole_site_comes_from_a_document(told, role):
    assert "`ironburst document STACK_FILE` writes it" in told[role]


@pytest.mark.parametrize("role", ROLES)
def test_what_a_role_reads_of_host_and_site_its_spec_asks_for(role):
    """Else its absence is an error of some template. `| default(...)` is an answer, too."""
    pattern = roles.READ % (r"(?P<name>(?:node|cluster)_\w+)", r"(?:\.[\w.]+)?")
    read = {match["name"] for match in re.finditer(pattern, roles.text(role))}
    asked = {name for need in roles.needs(role) for name in (need.name, *need.keys)} | {*roles.spec(role)["options"]}
    others = {path.name for path in roles.FOLDER.iterdir()} | {"node_state"}  # roles, a module
    assert {name for name in read - asked - others if not name.startswith(f"{role}_")} == set()


@pytest.mark.parametrize("role", ROLES)
def test_every_role_asks_first(role):
    dependencies = yaml.safe_load((roles.FOLDER / role / "meta" / "main.yml").read_text())["dependencies"]
    assert [(each["role"], each["needs_of"]) for each in dependencies] == [("needs", role)]


def test_a_document_lacks_nothing():
    document = lab_document().model_dump(mode="json")
    of_all, others = variables.of_all(document), variables.of_others(document)
    keeper = variables.of_keeper(document)
    looked_at = 0
    for host in document["hosts"]:
        given = of_all | variables.of_host(document, host) | others[host["name"]]
        given |= keeper if host["name"] == given["cluster_keeper"] else {}
        for role in host["roles"]:
            lacking = [told for need in roles.needs(role) for told in need.lacking(given | {"cluster_keeper": keeper})]
            assert not lacking, (host["name"], role)
            looked_at += 1
    assert looked_at > 20


def test_half_of_a_variable_is_told_by_its_key():
    software = {"driver": "580.95.05", "fabric_manager": None, "packages": {}}
    lacking = [told for need in roles.needs("nvidia_driver") for told in need.lacking({"node_software": software})]
    assert lacking[0] == "node_software.imex" and lacking[1].startswith("node_gpu (dict, with count: ")


# ---- inventory/example-static: what a sysadmin copies


@pytest.fixture(scope="module")
def example(tmp_path_factory):
    """({host: variables}, {role: its hosts}) of the inventory, as Ansible reads it, with what it has as comments."""
    folder = tmp_path_factory.mktemp("inventory") / "mine"
    shutil.copytree(PLAYBOOKS.parent / "inventory" / "example-static", folder)
    offered = folder / "group_vars" / "gpu.yml"
    offered.write_text(re.sub(r"^# (?=node_\w+: )", "", offered.read_text(), flags=re.MULTILINE))
    program = Path(sys.executable).parent / "ansible-inventory"
    environment = os.environ | {"ANSIBLE_CONFIG": str(PLAYBOOKS.parent / "ansible.cfg")}
    command = [program, "-i", folder, "--list"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=True)
    assert "WARNING" not in done.stderr
    listed = json.loads(done.stdout)
    members = {name: set(group.get("hosts", [])) for name, group in listed.items() if name != "_meta"}
    for name, group in listed.items():
        members.setdefault(name, set()).update(*(members[child] for child in group.get("children", [])))
    return listed["_meta"]["hostvars"], {name: hosts for name, hosts in members.items() if name in ROLES}


# Written by hand for one host: what the lock would say. The others are of hardware that the example doesn't have, of a
# cloud, or need every host of the site
OF_DOCUMENTS = {"data_sets", "imex", "kubernetes_head", "kubernetes_node", "nvlsm", "prometheus", "slurm_head"}


@pytest.mark.parametrize("role", sorted({*ROLES} - OF_DOCUMENTS))
def test_the_example_has_what_the_role_needs(example, role):
    variables_of, members = example
    hosts = members.get(role) or {"gpu01"}
    for host in hosts:
        given = variables_of[host] | {"cluster_keeper": variables_of[variables_of[host]["cluster_keeper"]]}
        assert [told for need in roles.needs(role) for told in need.lacking(given)] == []


def test_the_example_has_groups_of_roles_alone_and_says_which_are_left_out(example):
    text = (PLAYBOOKS.parent / "inventory" / "example-static" / "hosts.ini").read_text()
    more = set(re.search(r"^; More, whose variables .*: (.*)$", text, re.MULTILINE)[1].split(", "))
    assert {*example[1]} | more == {*ROLES} - OF_DOCUMENTS and not {*example[1]} & more
    assert set(re.findall(r"^\[(\w+):children\]", text, re.MULTILINE)) == {*example[1]}


def test_the_examples_software_is_what_the_lock_says(example):
    locked = lab_document().host("dgx01").software.model_dump(mode="json")
    login = yaml.safe_load((PLAYBOOKS.parent / "ironburst/catalog/data/software.yaml").read_text())["slurm_packages"]
    of_login = login["distribution"]["debian_family"]["slurm_login"]
    locked["packages"]["slurm_login"] = [spec.replace("<slurm>", "24.11") for spec in of_login]
    given = example[0]["gpu01"]["node_software"]
    assert {key: value for key, value in given.items() if key != "packages"}.items() <= locked.items()
    assert given["packages"].items() <= locked["packages"].items()
