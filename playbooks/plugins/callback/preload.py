"""Loads, once in Ansible's own process, what it would else load in each task of each host.

Ansible forks a process for each task on each host. Filters, tests, the connection and the like are loaded when they are
first used, which is in the fork: in every fork anew. Loaded before, they are there in all of them (ADR 122).
"""

from __future__ import annotations

from ansible.module_utils.common import json
from ansible.plugins import loader
from ansible.plugins.callback import CallbackBase
from ansible.template import Templar, trust_as_template

DOCUMENTATION = """
name: preload
author: ironburst
type: aggregate
short_description: plugins are loaded once, not in each task
description:
  - Loads what tasks use before the first one is forked. Changes nothing that they do.
"""
# One filter, one test, and the lookup: Ansible loads all filters with the first, and so on
TEMPLATE = "{{ ['a'] | select('match', 'a') | map('regex_replace', 'a', 'b') | list + [lookup('env', 'HOME')] }}"
PLUGINS = {
    "connection": ("ssh_kept", "local"),
    "shell": ("sh",),
    "become": ("sudo",),
    "lookup": ("template", "file", "secret"),
    "action": (
        "normal",
        "command",
        "assert",
        "set_fact",
        "debug",
        "template",
        "copy",
        "package",
        "gather_facts",
        "validate_argument_spec",
        "role_needs",
    ),
}


class CallbackModule(CallbackBase):
    """See DOCUMENTATION."""

    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "aggregate"
    CALLBACK_NAME = "preload"
    CALLBACK_NEEDS_ENABLED = True

    def v2_playbook_on_start(self, playbook):  # noqa: ARG002 (Ansible gives it by this name)
        """Load all of it."""
        Templar(variables={}).template(trust_as_template(TEMPLATE))
        for direction in json.Direction:
            json.get_module_encoder("legacy", direction)  # how modules are told their arguments, and answer
        for kind, names in PLUGINS.items():
            for name in names:
                getattr(loader, f"{kind}_loader").get(name, class_only=True)
