"""Action `reboot_idle`: reboot a host that nobody uses, few at once, and none any more after one that didn't come back.

By slots on the control node: `throttle` counts nothing across hosts under the strategy `free`, where each host has its
own copy of an included role's tasks.
"""

from __future__ import annotations

import contextlib
import fcntl
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ansible import constants
from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase

DOCUMENTATION = """
name: reboot_idle
author: ironburst
short_description: reboot a host that nobody uses
options:
  at_once: {description: how many hosts of the play reboot at one time, a number or a share such as 10%, type: str}
  free_for: {description: what the reboot is called in a sentence, type: str}
  may_disturb: {description: what may be disturbed on this host; see module node_state, type: list}
  reboot_timeout: {description: seconds that it may take, type: int}
"""
SPEC = {
    "at_once": {"type": "str", "default": "1"},
    "free_for": {"type": "str", "default": "A reboot"},
    "may_disturb": {"type": "list", "elements": "str", "default": []},
    "reboot_timeout": {"type": "int", "default": 1800},
}
PAUSE_S = 0.5


def places(at_once: str, hosts: int) -> int:
    """How many of `hosts` may reboot at one time: `at_once` is a number or a share in percent; at least one. Raises
    ValueError with one sentence.
    """
    match = re.fullmatch(r"(\d+)(%?)", at_once.strip())
    if not match or (match[2] and int(match[1]) > 100):
        raise ValueError(
            f"base_reboot_at_once is {at_once!r}: write a number of hosts such as 4, or a share such as 10%"
        )
    return max(1, hosts * int(match[1]) // 100 if match[2] else int(match[1]))


@contextlib.contextmanager
def place(folder: Path, count: int) -> Iterator[None]:
    """One of `count` places, once it is free. Its lock ends with this process, however it ends."""
    folder.mkdir(parents=True, exist_ok=True)
    while True:
        for number in range(count):
            with (folder / f"place-{number}").open("w") as file:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    continue
                yield
                return
        time.sleep(PAUSE_S)


class ActionModule(ActionBase):
    """See DOCUMENTATION."""

    _supports_check_mode = True

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """The result of Ansible's own reboot, or why there was none."""
        super().run(tmp, task_vars)
        variables = task_vars or {}
        _, options = self.validate_argument_spec(argument_spec=SPEC)
        if self._task.check_mode:
            return {"changed": True, "rebooted": False, "msg": "it would reboot, unless somebody uses it then"}
        try:
            count = places(options["at_once"], len(variables.get("ansible_play_hosts_all") or [1]))
        except ValueError as error:
            raise AnsibleActionFail(str(error)) from None
        folder = Path(constants.DEFAULT_LOCAL_TMP) / "ironburst-reboots"  # one a run, gone at its end
        with place(folder, count):
            return self._reboot(options, variables, folder / "failed")

    def _reboot(self, options: dict[str, Any], variables: dict[str, Any], failed: Path) -> dict[str, Any]:
        name = variables["inventory_hostname"]
        if failed.exists():
            bad = failed.read_text()
            raise AnsibleActionFail(f"{bad} was rebooted and didn't come back, so {name} isn't: repair {bad} first")
        asked = {key: options[key] for key in ("free_for", "may_disturb")}
        look = self._execute_module(module_name="node_state", module_args=asked, task_vars=variables)
        if look.get("failed"):
            return {
                "changed": False,
                "failed": True,
                "rebooted": False,
                "msg": look.get("msg", "it can't be looked at"),
            }
        result: dict[str, Any] = {"failed": True}
        try:
            result = self._builtin(int(options["reboot_timeout"]), variables)
        finally:
            if result.get("failed"):
                failed.write_text(name)
        return result

    def _builtin(self, timeout: int, variables: dict[str, Any]) -> dict[str, Any]:
        task = self._task.copy()
        task.args = {"msg": "ironburst converge", "reboot_timeout": timeout}
        action = self._shared_loader_obj.action_loader.get(
            "ansible.builtin.reboot",
            task=task,
            connection=self._connection,
            play_context=self._play_context,
            loader=self._loader,
            templar=self._templar,
            shared_loader_obj=self._shared_loader_obj,
        )
        result: dict[str, Any] = action.run(task_vars=variables)
        return result
