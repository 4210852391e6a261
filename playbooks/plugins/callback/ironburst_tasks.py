"""Tells `ironburst converge` what Ansible's events don't say of a task: its tags, and the arguments of one whose output
is hidden.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from ansible.plugins.callback import CallbackBase

DOCUMENTATION = """
name: ironburst_tasks
author: ironburst
type: aggregate
short_description: tags and literal arguments of tasks, for ironburst converge
description:
  - Appends a line of JSON for each task to the file that IRONBURST_TASKS names; does nothing without it. Of the
    arguments it writes those that say where something is (never a value that is a template, never a content).
"""
PLACES = ("path", "dest", "name", "state", "enabled", "groups", "group", "creates")


class CallbackModule(CallbackBase):
    """See DOCUMENTATION."""

    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "aggregate"
    CALLBACK_NAME = "ironburst_tasks"
    CALLBACK_NEEDS_ENABLED = True

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self._path = os.environ.get("IRONBURST_TASKS")
        self._written = set()

    def _write(self, task, handler):
        if not self._path or task._uuid in self._written:
            return
        self._written.add(task._uuid)
        literal = {}
        if task.no_log:
            given = {key: task.args[key] for key in PLACES if key in task.args}
            literal = {key: value for key, value in given.items() if _is_literal(value)}
        line = {"uuid": task._uuid, "tags": [str(tag) for tag in task.tags], "handler": handler, "literal": literal}
        with Path(self._path).open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")

    def v2_playbook_on_task_start(self, task, is_conditional):  # noqa: ARG002 (Ansible gives it by this name)
        """Write a task down."""
        self._write(task, False)

    def v2_playbook_on_handler_task_start(self, task):
        """Write a handler down."""
        self._write(task, True)

    def v2_playbook_on_cleanup_task_start(self, task):
        """Write a task down."""
        self._write(task, False)


def _is_literal(value):
    return isinstance(value, bool | str | list) and "{{" not in str(value)
