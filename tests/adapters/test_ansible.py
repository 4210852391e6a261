"""The Ansible adapter: a real ansible-playbook is stopped by a signal, and signals work as before afterwards."""

import json
import os
import signal
import sys
import threading
from pathlib import Path

import pytest

from ironburst.adapters import ansible
from ironburst.adapters.ansible import Ansible
from lab.system import wait_for
from tests.playbooks import sample


def running(pid):
    """Whether a process is there and is no zombie (whoever has to reap it may take its time)."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_a_signal_ends_the_run_and_is_not_swallowed(tmp_path, monkeypatch):
    (tmp_path / "playbooks").mkdir()
    waits = (
        "- hosts: all\n  gather_facts: false\n  tasks:\n"
        "    - ansible.builtin.command: sh -c 'echo $$ > {0}/began; exec sleep 600'\n"
    )
    (tmp_path / "playbooks" / "wait.yml").write_text(waits.format(tmp_path))
    here = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable}
    (tmp_path / "hosts.yml").write_text(json.dumps({"all": {"hosts": {"here": here}}}))
    (tmp_path / "ansible.cfg").write_text("")
    monkeypatch.setattr(ansible, "REPOSITORY", tmp_path)
    monkeypatch.setenv("ANSIBLE_HOME", str(tmp_path / "home"))
    began = tmp_path / "began"
    before = signal.getsignal(signal.SIGINT)

    def interrupt():
        wait_for(lambda: began.exists() and began.read_text(), 60, "the task to begin")
        os.kill(os.getpid(), signal.SIGINT)

    sender = threading.Thread(target=interrupt)
    sender.start()
    with pytest.raises(KeyboardInterrupt):
        ansible.Ansible(tmp_path / "hosts.yml", tmp_path / "none.json").play("wait.yml")
    sender.join()
    assert not running(int(began.read_text()))  # neither Ansible's workers nor what a task has started is left
    assert signal.getsignal(signal.SIGINT) is before


def test_a_connection_has_the_reference_of_sudos_password_and_never_the_password(tmp_path, monkeypatch):
    monkeypatch.setenv("OPS_SUDO", "correct horse")
    login = {"ssh": {"user": "ops", "sudo_password": "env:OPS_SUDO"}}
    document = sample.publish(tmp_path / "lab.json", declare=login)
    inventory = tmp_path / "inventory"
    (inventory / "host_vars").mkdir(parents=True)
    (inventory / "stack.yml").write_text("plugin: stack_document\n")
    (inventory / "host_vars" / "dgx02.yml").write_text("ansible_become_method: su\n")
    found = Ansible(inventory, document).connections(["head", "dgx02", "fixed-1"])
    assert {name: (each.user, each.become, each.sudo_password) for name, each in found.items()} == {
        "head": ("ops", True, "env:OPS_SUDO"),
        "fixed-1": ("admin", True, ""),
    }
