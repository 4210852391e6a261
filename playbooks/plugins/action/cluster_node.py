"""Action `cluster_node`: a Kubernetes node out of service, once nothing of a workload is on it, and back into service.
On the control node, with the controller's kubeconfig, by what `ironburst converge` does it with.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from types import SimpleNamespace

from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase
from ansible.utils.display import Display

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))  # ansible's own process does not know the repository
from ironburst.convergence.drains import Drains, is_ours
from ironburst.convergence.model import Options
from ironburst.document import Scheduler
from ironburst.ports.service import SchedulerError
from ironburst.wiring.schedulers import home_nodes

DOCUMENTATION = """
name: cluster_node
author: ironburst
short_description: a Kubernetes node out of service and back
options:
  node: {description: name of its Node object, type: str, required: true}
  cluster: {description: name of the cluster in the document, type: str, required: true}
  scheduler: {description: the document's part of it, type: dict, required: true}
  regions: {description: "of clouds, whose stores of secrets are asked there, by provider", type: dict}
  state:
    description:
      - drained, waits until no pod of a workload is there; in_service, lifts our own cordon and no one else's
      - unused, fails where one is there, and changes nothing
    type: str
    choices: [drained, in_service, unused]
    required: true
  reason: {description: what people read of the drain, type: str}
  new: {description: it may be unknown to the cluster, which then runs nothing on it, type: bool}
  timeout: {description: seconds that its pods may take; then it takes pods again, type: int}
  poll: {description: seconds between two looks, type: float}
"""
UNLISTED = "the cluster does not list it, so nobody says whether pods run on it: is it the right one?"
SPEC = {
    "node": {"type": "str", "required": True},
    "cluster": {"type": "str", "required": True},
    "scheduler": {"type": "dict", "required": True},
    "regions": {"type": "dict", "default": {}},
    "state": {"type": "str", "choices": ["drained", "in_service", "unused"], "required": True},
    "reason": {"type": "str", "default": "playbooks/upgrade.yml"},
    "new": {"type": "bool", "default": False},
    "timeout": {"type": "int", "default": 86400},
    "poll": {"type": "float", "default": 5.0},
}


class ActionModule(ActionBase):
    """See DOCUMENTATION."""

    _supports_check_mode = True

    def run(self, tmp=None, task_vars=None):
        """The result; AnsibleActionFail with one sentence."""
        super().run(tmp, task_vars)
        _, given = self.validate_argument_spec(SPEC)
        service = None
        try:
            declared = Scheduler.model_validate(given["scheduler"])
            service = home_nodes(given["cluster"], declared, given["regions"])
            change = {"drained": drained, "in_service": in_service, "unused": unused}[given["state"]]
            return {"changed": change(service, given, self._task.check_mode)}
        except SchedulerError as error:
            raise AnsibleActionFail(f"{given['node']}: {error}") from None
        finally:
            if service:
                service.close()


def drained(service, given, check):
    """Whether the node had to be drained. One that is in no cluster yet runs nothing."""
    name, timeout = given["node"], given["timeout"]
    seen = service.occupancy()
    if name not in seen:
        if given["new"]:
            return False
        raise SchedulerError(UNLISTED)
    if check:
        return not seen[name].drained
    tools = SimpleNamespace(clock=time.time, pause=time.sleep, say=Display().display)
    drains = Drains(service, tools, Options(drain_timeout=timeout, poll=given["poll"]))
    drains.take([name], seen, given["reason"])
    if drains.wait([name]):
        drains.give_back([name])
        raise SchedulerError(
            f"its pods did not end in {timeout} s, it takes pods again: upgrade it later, or give a longer upgrade_wait"
        )
    return not seen[name].drained


def in_service(service, given, check):
    """Whether the cordon was ours, and is lifted."""
    ours = is_ours(service.occupancy().get(given["node"]))
    if ours and not check:
        service.resume([given["node"]])
    return ours


def unused(service, given, _check):
    """False: it changes nothing."""
    node = service.occupancy().get(given["node"])
    if node is None and not given["new"]:
        raise SchedulerError(UNLISTED)
    if node and node.jobs:
        raise SchedulerError(f"{', '.join(node.jobs)} run on it: drain it, or leave it out with --limit")
    return False
