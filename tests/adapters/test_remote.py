"""ssh to many hosts with a stand-in for ssh on PATH; Ansible's connection variables as an ssh command; cleaning up by
environment.
"""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ironburst.adapters import leftovers
from ironburst.adapters.ansible import Tasks, connection_of, event_of
from ironburst.adapters.remote import ask, first_input, python_command, shell_prefix
from ironburst.adapters.slurm.scheduler import Slurm
from ironburst.convergence.ports import Answer, Connection, RemoteProgram, TaskEvent
from lab.system import wait_for

SSH = """#!/bin/sh
# stand-in: runs here what stands behind the host, its words joined by spaces as ssh joins them
while case $1 in n1|n2|bad|dark1|slow1) false;; esac; do shift; done
case $1 in dark*) echo "ssh: connect to host $1: No route to host" >&2; exit 255;; slow*) exec sleep 60;; esac
shift
exec sh -c "$*"
"""


@pytest.fixture
def ssh(tmp_path, monkeypatch):
    (tmp_path / "ssh").write_text(SSH)
    (tmp_path / "ssh").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")


def test_all_hosts_are_asked_and_each_answers_for_itself(ssh):
    programs = {name: RemoteProgram(Connection(name), f"print({name!r} * 2)") for name in ("n1", "n2", "dark1")}
    programs["bad"] = RemoteProgram(Connection("bad"), "raise SystemExit('no such thing')")
    answers = ask(programs, secret=str)
    assert answers["n1"] == Answer("n1n1\n") and answers["n2"] == Answer("n2n2\n")
    assert "No route to host" in answers["dark1"].error and answers["bad"].error == "no such thing"


def test_a_host_that_does_not_answer_in_time_is_ended(ssh):
    begun = time.monotonic()
    programs = {"slow1": "", "n1": "print(1)"}
    answers = ask(
        {name: RemoteProgram(Connection(name), text) for name, text in programs.items()}, timeout_s=1.0, secret=str
    )
    assert answers["slow1"].error == "no answer in 1 s" and answers["n1"].output == "1\n"
    assert time.monotonic() - begun < 20


def test_a_big_answer_and_a_big_program_pass(ssh):
    program = f"x = {'y' * 200_000!r}\nprint(x)"
    assert len(ask({"n1": RemoteProgram(Connection("n1"), program)}, secret=str)["n1"].output) == 200_001


def test_what_ansible_says_of_a_host_becomes_a_command_line():
    told = {
        "connection": "ssh",
        "address": "10.0.0.1",
        "user": "ops",
        "port": 2222,
        "key": "/k",
        "options": " -o StrictHostKeyChecking=no ",
        "become": True,
        "python": "/usr/libexec/platform-python",
    }
    command = python_command(connection_of(told))
    assert command[0] == "ssh" and command[-2] == "10.0.0.1" and "StrictHostKeyChecking=no" in command
    assert command[command.index("-p") + 1] == "2222" and command[command.index("-l") + 1] == "ops"
    assert command[-1] == "sudo -n env LC_ALL=C /usr/libexec/platform-python -I -S -"
    assert connection_of(told | {"connection": "local"}) is None


SUDO = """#!/bin/sh
# stand-in: reads a password for each of three tries, as sudo -S does, unless this user needs none
[ "$1" = -n ] && { shift; [ -n "$NOPASSWD" ] || { echo "sudo: a password is required" >&2; exit 1; }; exec "$@"; }
[ "$1 $2" = "-S -p" ] || exit 64
shift 3
for try in 1 2 3; do
  [ -n "$NOPASSWD" ] && break
  echo try >> "$SUDO_LOG"
  IFS= read -r word || { echo "sudo: no password was provided" >&2; exit 1; }
  [ "$word" = 'a "b$c' ] && break
  echo "Sorry, try again." >&2
done
[ -n "$NOPASSWD" ] || [ "$word" = 'a "b$c' ] || exit 1
exec "$@"
"""


@pytest.fixture
def sudo(ssh, tmp_path, monkeypatch):
    """How often a password was tried."""
    (tmp_path / "sudo").write_text(SUDO)
    (tmp_path / "sudo").chmod(0o755)
    monkeypatch.setenv("SUDO_LOG", str(tmp_path / "tries"))
    monkeypatch.setenv("TMPDIR", str(tmp_path / "left"))
    (tmp_path / "left").mkdir()
    return lambda: (tmp_path / "tries").read_text().count("try") if (tmp_path / "tries").exists() else 0


@pytest.mark.parametrize("needs_none", [False, True])
def test_sudo_gets_its_password_and_the_program_the_rest(sudo, tmp_path, monkeypatch, needs_none):
    monkeypatch.setenv("NOPASSWD", "1" if needs_none else "")
    ops = Connection("n1", become=True, sudo_password="env:OPS")
    answers = ask({"n1": RemoteProgram(ops, "print('in', 'a')" + " " * 200_000)}, secret={"env:OPS": 'a "b$c'}.get)
    assert answers["n1"] == Answer("in a\n") and sudo() == (0 if needs_none else 1)
    slurm = Slurm(shell_prefix(ops), first=first_input(ops, {"env:OPS": 'a "b$c'}.get))
    assert slurm._run("cat", "-", stdin="update\n").stdout == "update\n"
    assert slurm._run("sh", "-c", "exit 7").returncode == 7
    assert list((tmp_path / "left").iterdir()) == []


def test_a_wrong_password_is_tried_once(sudo):
    ops = Connection("n1", become=True, sudo_password="env:OPS")
    answers = ask({"n1": RemoteProgram(ops, "print(1)\n" * 9)}, secret=lambda _: "wrong")
    assert "no password was provided" in answers["n1"].error and sudo() == 2  # the second one finds nothing to try


def test_another_way_to_root_is_none_of_ssh_alone():
    told = {"connection": "ssh", "address": "10.0.0.1", "become": True, "sudo_password": "env:OPS"}
    assert connection_of(told).sudo_password == "env:OPS"
    assert connection_of(told | {"become_other": "True"}) is None


def test_events_carry_tags_and_places_from_the_callback(tmp_path):
    path = tmp_path / "tasks"
    path.write_text(
        '{"uuid": "u1", "tags": ["drain"], "handler": false, "literal": {"dest": "/etc/munge/munge.key"}}\n{"uuid": "u'
    )
    data = {
        "event": "runner_on_ok",
        "event_data": {
            "host": "n1",
            "role": "r",
            "task": "Key",
            "task_uuid": "u1",
            "resolved_action": "ansible.builtin.copy",
            "res": {"changed": True, "censored": "x"},
        },
    }
    event = event_of(data, Tasks(path))
    assert event.tags == {"drain"} and event.literal == {"dest": "/etc/munge/munge.key"} and event.changed
    assert event.action == "ansible.builtin.copy" and event.results == [event.result]


def test_items_of_a_loop_are_results_of_their_own():
    loop = [{"ansible_loop_var": "item", "changed": False}, {"ansible_loop_var": "item", "changed": True}]
    assert TaskEvent("n1", None, "t", "ok", {"results": loop}).results == loop
    package_lists = {"results": ["apt's own list"]}
    assert TaskEvent("n1", None, "t", "ok", package_lists).results == [package_lists]


def test_processes_of_a_run_are_found_by_its_folder_and_ended(tmp_path):
    environment = {**os.environ, "IRONBURST_CONTROL_PATH_DIR": str(tmp_path)}
    mine = subprocess.Popen(["sleep", "600"], env=environment, start_new_session=True)
    foreign = subprocess.Popen(["sleep", "600"], env={**os.environ, "IRONBURST_CONTROL_PATH_DIR": "/elsewhere"})
    try:
        assert leftovers.of_run(tmp_path) == [mine.pid]
        leftovers.end_here(tmp_path)
        assert mine.wait(10) == -signal.SIGKILL and foreign.poll() is None
    finally:
        mine.kill()
        foreign.kill()
        mine.wait()
        foreign.wait()


def test_the_hosts_program_ends_what_its_connection_has_started_and_nothing_else():
    here, elsewhere = ({**os.environ, "SSH_CONNECTION": f"10.0.0.9 {port} 10.0.0.1 22"} for port in (5555, 6666))
    script = "trap '' TERM; setsid sleep 600 & sleep 600 & echo ready; wait"
    task = subprocess.Popen(["sh", "-c", script], env=here, stdout=subprocess.PIPE, text=True, start_new_session=True)
    bystander = subprocess.Popen(["sleep", "600"], env=elsewhere, start_new_session=True)
    try:
        assert task.stdout.readline() == "ready\n"
        argv = [sys.executable, "-", here["SSH_CONNECTION"], "5", "1"]
        assert subprocess.run(argv, input=leftovers.PROGRAM, text=True, env=here, timeout=30).returncode == 0
        assert task.wait(10) < 0 and bystander.poll() is None
        wait_for(lambda: not _with(here["SSH_CONNECTION"]), 10, "the sessions of their own to end")
    finally:
        for process in (task, bystander):
            process.kill()
            process.wait()


def _with(connection):
    pids = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            alive = (entry / "stat").read_bytes().rpartition(b")")[2].split()[0] != b"Z"
            if alive and f"SSH_CONNECTION={connection}".encode() in (entry / "environ").read_bytes().split(b"\0"):
                pids.append(entry.name)
        except OSError:
            continue
    return pids
