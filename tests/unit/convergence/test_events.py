"""What a run's events become: changes, what needs a drain, what is watched, the gate; and plain Ansible's own rolling
playbook.
"""

from pathlib import Path

import pytest
import yaml

from ironburst.convergence.events import Listener
from ironburst.convergence.ports import TaskEvent

ROOT = Path(__file__).parents[3]


def event(changed=False, **fields):
    result = {"changed": changed, **fields.pop("result", {})}
    defaults = {"host": "n1", "role": "r", "task": "t", "status": "ok", "action": "ansible.builtin.copy"}
    return TaskEvent(**defaults | fields, result=result)


def heard(*events, covered=()):
    listener = Listener("site", lambda line: None, lambda role: role in covered)
    for task_event in events:
        listener(task_event)
    return listener.hosts["n1"]


def command(**fields):
    result = {"invocation": {"module_args": {"_raw_params": "x"}}}
    return event(action="ansible.builtin.command", result=result, **fields)


@pytest.mark.parametrize(
    ("fields", "due"),
    [
        ({"changed": True}, True),
        ({"changed": False}, False),
        ({"status": "failed"}, True),
        ({"status": "skipped", "result": {"msg": "Command would have run if not in check mode"}}, True),
        ({"status": "skipped", "result": {"msg": "remote module (x) does not support check mode"}}, True),
        ({"status": "skipped", "result": {"skip_reason": "Conditional result was False"}}, False),
    ],
)
def test_a_drain_task_that_changes_or_that_check_mode_cannot_judge_needs_a_drain(fields, due):
    assert heard(event(tags=frozenset({"drain"}), **fields)).drain == (["r: t"] if due else [])
    assert heard(event(tags=frozenset({"live"}), **fields)).drain == []


def test_a_command_that_changed_something_must_be_covered_by_its_role():
    assert "nothing watches" in heard(command(changed=True)).unwatched[0]
    assert heard(command(changed=True), covered=("r",)).unwatched == []
    assert heard(command(changed=False)).unwatched == heard(command(changed=True, handler=True)).unwatched == []


def test_an_unknown_module_makes_the_host_unwatchable_unless_its_role_names_what_it_manages():
    strange = event(action="community.x.strange", changed=True)
    assert len(heard(strange).unwatched) == 1 and heard(strange, covered=("r",)).unwatched == []


def test_a_failed_gate_is_told():
    assert heard(event(status="failed", role="node_health")).gate_failed
    assert not heard(event(status="failed")).gate_failed


def test_the_rolling_playbook_of_plain_ansible_reads_its_roles_from_site():
    (site, *_), (control_plane, upgrade) = (
        yaml.safe_load((ROOT / "playbooks" / f"{name}.yml").read_text()) for name in ("site", "upgrade")
    )
    assert (control_plane["hosts"], upgrade["hosts"]) == ("kubernetes_head", "slurm_node:kubernetes_node")
    assert "node_health" in site["vars"]["site_roles"] and "/site.yml" in upgrade["vars"]["upgrade_roles"]
    assert upgrade["serial"] == "{{ upgrade_share | default(1) }}" and upgrade["max_fail_percentage"] == 0
    assert upgrade["any_errors_fatal"] and control_plane["any_errors_fatal"]
    names = [task["name"] for part in ("pre_tasks", "tasks", "post_tasks") for task in upgrade[part]]
    assert (
        names.index("Drain the node")
        < names.index("Wait until nothing of a job is on it")
        < names.index("What every host has")
    )
    slurm, kubernetes = upgrade["post_tasks"]
    # what a role's defaults say of the name is not known here
    (drain,) = (task for task in upgrade["pre_tasks"] if "cluster_node" in task)
    assert {drain["cluster_node"]["node"], kubernetes["cluster_node"]["node"]} == {
        "{{ node_object or inventory_hostname }}"
    }
    assert slurm["ansible.builtin.command"]["argv"][-1] == "state=resume"
    assert kubernetes["cluster_node"]["state"] == "in_service"
