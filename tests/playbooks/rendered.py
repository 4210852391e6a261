"""What Ansible makes of a document: every variable of every role on every host, with the files that they hold as text.

    python tests/playbooks/rendered.py INVENTORY DOCUMENT [TREE]

prints them as JSON, sorted. Two trees (TREE: another checkout) that print the same bytes write the same files. No host
is reached: its facts are made up (FACTS), and what needs another one is an error in the place of its value.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import yaml

REPOSITORY = Path(__file__).resolve().parents[2]
FACTS = {
    "pkg_mgr": "apt",
    "service_mgr": "systemd",
    "distribution": "Ubuntu",
    "distribution_version": "24.04",
    "distribution_major_version": "24",
    "node_seen": {
        "packages": [],
        "kubelet": "",
        "machine": "x86_64",
        "architecture": "x86_64",
        "kernel": "6.8.0-1",
        "boot_kernel": "6.8.0-1",
        "boot_entries": {},
        "nvidia_modules": ["nvidia"],
        "module_versions": {},
        "secure_boot": False,
        "own_key": False,
        "rack_gpus": [],
        "gpus": [],
        "switches": [],
    },
}
LOOKUP = """
from ansible.plugins.lookup import LookupBase

class LookupModule(LookupBase):
    def run(self, terms, variables=None, **kwargs):
        made = {}
        for name in sorted(variables):
            if name.startswith(tuple(terms)):
                try:
                    made[name] = self._templar.template(variables[name])
                except Exception as error:
                    made[name] = "error: " + " ".join(str(error).split())
        return [made]
"""


def rendered(inventory: str, document: Path, tree: Path = REPOSITORY) -> dict[str, dict[str, Any]]:
    """{host: {variable: value}} of the roles' variables, `cluster_` and `node_` apart. Raises CalledProcessError."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _copy(tree, folder)
        out = folder / "out"
        out.mkdir()
        done = subprocess.run(
            [
                str(Path(sys.executable).with_name("ansible-playbook")),
                "-i",
                f"inventory/{inventory}",
                "playbooks/all.yml",
            ],
            cwd=folder,
            env=_environment(document, out),
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(done.stdout[-3000:] + done.stderr[-3000:])
        return {path.stem: json.loads(path.read_text().replace(name, "TREE")) for path in sorted(out.iterdir())}


def _environment(document: Path, out: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("IRONBURST_", "ANSIBLE_"))}
    return kept | {"IRONBURST_DOCUMENT": str(document.resolve()), "RENDERED": str(out), "HOME": str(out.parent)}


def _copy(tree: Path, folder: Path) -> None:
    """The tree's Ansible, and beside it a playbook that templates and changes nothing."""
    for name in ("playbooks", "inventory"):
        shutil.copytree(tree / name, folder / name, symlinks=True)
    shutil.copy(tree / "ansible.cfg", folder)
    (folder / "ironburst").symlink_to(tree / "ironburst")
    (folder / "playbooks/plugins/lookup" / "made.py").write_text(LOOKUP)
    roles = sorted(path.name for path in (folder / "playbooks/roles").iterdir())
    task = {
        "name": "Template",
        "ansible.builtin.set_fact": {"made": "{{ made | default({}) | combine(lookup('made', role_name ~ '_')) }}"},
    }
    for role in roles:
        (folder / "playbooks/roles" / role / "tasks/made.yml").write_text(yaml.safe_dump([task]))
    include = {
        "name": "Roles of the host",
        "ansible.builtin.include_role": {"name": "{{ role }}", "tasks_from": "made", "rolespec_validate": False},
        "loop": f"{{{{ {roles} | select('in', group_names) }}}}",
        "loop_control": {"loop_var": "role"},
    }
    write = {
        "name": "Keep",
        "ansible.builtin.copy": {
            "dest": "{{ lookup('env', 'RENDERED') }}/{{ inventory_hostname }}.json",
            "content": "{{ made | to_json(sort_keys=true) }}",
            "mode": "0600",
        },
    }
    facts = {"name": "Facts", "ansible.builtin.set_fact": {"cacheable": True, **FACTS}}
    play = {"hosts": "all", "connection": "local", "gather_facts": False, "tasks": [facts, include, write]}
    local = {"ansible_connection": "local", "ansible_become": False, "ansible_python_interpreter": sys.executable}
    (folder / "playbooks/all.yml").write_text(yaml.safe_dump([play | {"vars": local}]))


if __name__ == "__main__":
    tree = Path(sys.argv[3]).resolve() if len(sys.argv) > 3 else REPOSITORY
    print(json.dumps(rendered(sys.argv[1], Path(sys.argv[2]), tree), indent=1, sort_keys=True))
