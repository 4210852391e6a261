"""The lookup `template` of the playbooks' own folder, beside Ansible's, in a play with the repository's settings."""

import json
import os
import subprocess
import sys
from pathlib import Path

from programs import PLAYBOOKS

TEXT = "{{ inner }} {{ more | default('') }} {{ site.nodes.append('b') }} {{ template_path | basename }}\n"
PLAY = {
    "hosts": "localhost",
    "gather_facts": False,
    "vars": {
        "ansible_python_interpreter": sys.executable,
        "site": {"nodes": ["a"]},
        "inner": "{{ site.nodes | join(',') }}",
        "name": "text.j2",
    },
    "tasks": [
        {
            "ansible.builtin.set_fact": {
                "texts": [
                    "{{ lookup('" + lookup + "', name" + given + ") }}"
                    for lookup in ("template", "ansible.builtin.template")
                    for given in ("", ", template_vars={'more': inner}")
                ]
            }
        },
        {
            "ansible.builtin.copy": {
                "content": "{{ {'texts': texts, 'nodes': site.nodes, 'inner': inner} | to_json }}",
                "dest": "{{ playbook_dir }}/told",
            }
        },
    ],
}


def test_it_renders_what_ansibles_own_does_and_changes_no_variable(tmp_path):
    (tmp_path / "text.j2").write_text(TEXT)
    (tmp_path / "play.yml").write_text(json.dumps([PLAY]))
    command = [Path(sys.executable).with_name("ansible-playbook"), "-i", "localhost,", "-c", "local"]
    settings = {"ANSIBLE_CONFIG": str(PLAYBOOKS.parent / "ansible.cfg")}
    done = subprocess.run(
        [*command, tmp_path / "play.yml"], env=os.environ | settings, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stdout + done.stderr
    told = json.loads((tmp_path / "told").read_text())
    ours, own = told["texts"][:2], told["texts"][2:]
    assert ours == own == ["a   text.j2\n", "a a  text.j2\n"]
    assert (told["nodes"], told["inner"]) == (["a"], "a")


def test_no_variable_is_copied_for_it():
    """Ansible's own copies all of them, with what they hold."""
    program = """
from ansible.parsing.dataloader import DataLoader
from ansible.plugins.loader import init_plugin_loader, lookup_loader
from ansible.template import Templar
init_plugin_loader()
class Held(list):
    def __deepcopy__(self, memo):
        raise AssertionError("copied")
import sys, tempfile
with tempfile.NamedTemporaryFile("w", suffix=".j2") as file:
    file.write("text")
    file.flush()
    variables = {"ansible_search_path": [], "held": Held()}
    templar = Templar(loader=DataLoader(), variables=variables)
    lookup = lookup_loader.get(sys.argv[1], loader=DataLoader(), templar=templar)
    print(*lookup.run([file.name], variables=variables))
"""
    settings = {"ANSIBLE_CONFIG": str(PLAYBOOKS.parent / "ansible.cfg")}
    done = {
        name: subprocess.run(
            [sys.executable, "-c", program, name], env=os.environ | settings, capture_output=True, text=True
        )
        for name in ("template", "ansible.builtin.template")
    }
    assert done["template"].stdout == "text\n", done["template"].stderr
    assert "AssertionError: copied" in done["ansible.builtin.template"].stderr
