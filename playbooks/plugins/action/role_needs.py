"""Action `role_needs`: what a role needs is there before anything of it is evaluated. It fails with one sentence where
the inventory lacks a variable, and looks at the host where nobody has yet. Changes nothing.
"""

from __future__ import annotations

import sys
from pathlib import Path

from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase
from ansible.vars.clean import namespace_facts

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))  # ansible's own process does not know the repository
from ironburst import roles

DOCUMENTATION = """
name: role_needs
author: ironburst
short_description: what a role needs of its inventory and its host
description:
  - Fails where a required option of the role's argument spec isn't given, or lacks a key that the role reads. Ansible's
    own validation comes later, and evaluates every default first.
  - Gathers the facts that the role reads (distribution, package manager, service manager; C(node_seen)), where the play
    hasn't.
  - Validates all of the role's arguments, as Ansible itself does, but in this task instead of one more (I(arguments)).
options:
  role: {description: name of the role, type: str, required: true}
  look:
    description: at the host where nobody has yet (missing), though somebody has (again), or not at all (never)
    type: str
    choices: [missing, again, never]
  arguments: {description: whether all of them are validated, type: bool, default: false}
"""
SPEC = {
    "role": {"type": "str", "required": True},
    "look": {"type": "str", "choices": ["missing", "again", "never"], "default": "missing"},
    "arguments": {"type": "bool", "default": False},
}
SUBSET = ["!all", "!min", "distribution", "pkg_mgr", "service_mgr"]
OF_THE_SITE = (
    " What begins with cluster_ is the whole site's: `ironburst document STACK_FILE` writes it for nodes of your own, "
    "without Pulumi."
)


class ActionModule(ActionBase):
    """See DOCUMENTATION."""

    _supports_check_mode = True

    def run(self, tmp=None, task_vars=None):
        """The facts; AnsibleActionFail with one sentence."""
        result = super().run(tmp, task_vars)
        _, given = self.validate_argument_spec(SPEC)
        role, look, known = given["role"], given["look"], task_vars.get("ansible_facts", {})
        main = self._entry_point() == "main"
        if main:
            self._ask(role, task_vars)
        if look == "never":
            return result | {"changed": False}
        text, facts = roles.text(role), {}
        if not known.get("pkg_mgr") and (main or "ansible_facts" in text):
            facts |= self._facts("ansible.legacy.setup", {"gather_subset": SUBSET}, task_vars)
        if look == "again" or ("node_seen" not in known and "node_seen" in text):
            facts |= self._facts("node_state", {}, task_vars)
        if main and given["arguments"]:
            result |= self._validated(
                role, task_vars | {"ansible_facts": known | namespace_facts(facts)["ansible_facts"]}
            )
        return result | {"changed": False, "ansible_facts": facts}

    def _entry_point(self):
        """Of the role that depends on this task's: only `main` has a spec for what all of its parts need."""
        role = self._task._role
        parents = role._parents if role else []
        return parents[0]._from_files.get("tasks", "main") if parents else "main"

    def _ask(self, role, task_vars):
        needs = roles.needs(role)
        values = {need.name: task_vars[need.name] for need in needs if need.name in task_vars}
        values |= self._templar.template(
            {need.name: values[need.name] for need in needs if need.keys and need.name in values}
        )
        if values.get(roles.KEEPER) in task_vars["hostvars"]:
            values[roles.KEEPER] = task_vars["hostvars"][values[roles.KEEPER]]
        lacking = [told for need in needs for told in need.lacking(values)]
        if lacking:
            raise AnsibleActionFail(
                f"The role {role} needs what {task_vars['inventory_hostname']} is not given: {'; '.join(lacking)}. "
                "Write it in the inventory: inventory/example-static shows how, "
                f"playbooks/roles/{role}/README.md has all variables."
                + (OF_THE_SITE if any(told.startswith("cluster_") for told in lacking) else "")
            )

    def _validated(self, role, task_vars):
        """What Ansible's own task of the role says of its arguments."""
        context = {"type": "role", "name": role, "argument_spec_name": "main", "path": str(roles.FOLDER / role)}
        task = self._task.copy()
        task.args = {"argument_spec": roles.spec(role).get("options", {}), "validate_args_context": context}
        action = self._shared_loader_obj.action_loader.get(
            "ansible.builtin.validate_argument_spec",
            task=task,
            connection=self._connection,
            play_context=self._play_context,
            loader=self._loader,
            templar=self._templar.copy_with_new_env(available_variables=task_vars),
            shared_loader_obj=self._shared_loader_obj,
        )
        return action.run(task_vars=task_vars)

    def _facts(self, module, arguments, task_vars):
        done = self._execute_module(module_name=module, module_args=arguments, task_vars=task_vars)
        if done.get("failed"):
            raise AnsibleActionFail(f"{module} failed: {done.get('msg')}", result=done)
        return done["ansible_facts"]
