"""The connection ssh_kept and its program on the host, by real playbooks and an `ssh` that runs its commands here.

What may happen to a host in the middle of a run (a reboot empties /run, a process is killed, somebody else has the
folder) is done by tasks of the playbook.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from programs import PLAYBOOKS

from ironburst.adapters import leftovers
from lab.system import wait_for

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="what modules import is kept for root alone")

CONNECTION = f"10.9.9.9 {20000 + os.getpid() % 40000} 10.9.9.1 22"
SSH = """#!/bin/sh
# the last word is the command; what is sent is counted
for word; do last=$word; done
[ -t 0 ] && exec sh -c "$last"  # no module
tee {0}/sent.$$ | sh -c "$last"; code=$?
wc -c < {0}/sent.$$ >> {0}/sizes
exit $code
"""
HERE = {"delegate_to": "localhost", "vars": {"ansible_connection": "local", "ansible_become": False}}
# the module is the parent of the shell, and of whom it was forked is the question
ASK = {"ansible.builtin.command": {"argv": ["sh", "-c", "ps -o ppid= -p $PPID"]}}


class Host:
    """This machine, as a host of a playbook; its modules are kept in a folder of the test."""

    def __init__(self, folder):
        self.folder, self.kept = folder, folder / "kept"
        for name in ("plugins/connection/ssh_kept.py", "files/kept_module.py"):
            (folder / name).parent.mkdir(parents=True)
            text = (PLAYBOOKS / name).read_text()
            (folder / name).write_text(text.replace('"/run/ironburst-modules"', repr(str(self.kept))))
        (folder / "ssh").write_text(SSH.format(folder))
        (folder / "ssh").chmod(0o755)

    def play(self, *tasks, sshd=False, **variables):
        """(results of the tasks, in order; what Ansible wrote to standard error). Above it is a process that ends with
        it, as sshd's does with its connection, or the test itself.
        """
        variables |= {
            "ansible_connection": "ssh_kept",
            "ansible_ssh_executable": str(self.folder / "ssh"),
            "ansible_python_interpreter": "/usr/bin/python3",
        }
        registered = [{**task, "register": f"r{number}"} for number, task in enumerate(tasks)]
        told = {
            "ansible.builtin.copy": {
                "content": "{{ [" + ", ".join(task["register"] for task in registered) + "] | to_json }}",
                "dest": str(self.folder / "results"),
            }
        }
        play = {
            "hosts": "all",
            "gather_facts": False,
            "vars": variables,
            "tasks": [*registered, told | HERE],
        }
        (self.folder / "ansible.cfg").write_text("")
        (self.folder / "play.yml").write_text(json.dumps([play]))
        settings = {
            "ANSIBLE_CONFIG": str(self.folder / "ansible.cfg"),
            "ANSIBLE_CONNECTION_PLUGINS": str(self.folder / "plugins" / "connection"),
            "ANSIBLE_DOC_FRAGMENT_PLUGINS": str(PLAYBOOKS / "plugins" / "doc_fragments"),
            "ANSIBLE_PIPELINING": "1",
            "SSH_CONNECTION": CONNECTION,  # this test is its sshd
            "ANSIBLE_HOME": str(self.folder / "home"),
        }
        command = [Path(sys.executable).with_name("ansible-playbook"), "-i", "node,", self.folder / "play.yml"]
        if sshd:
            command = ["sh", "-c", 'SSH_CONNECTION="$0" "$@"; exit $?', settings.pop("SSH_CONNECTION"), *command]
        done = subprocess.run(command, env=os.environ | settings, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stdout + done.stderr
        return json.loads((self.folder / "results").read_text()), done.stderr

    def sizes(self):
        """Bytes of each program that was sent."""
        return [size for line in (self.folder / "sizes").read_text().split() if (size := int(line))]

    def servers(self):
        return subprocess.run(["pgrep", "-f", f"{self.kept}/"], capture_output=True, text=True).stdout.split()


@pytest.fixture
def host():
    with tempfile.TemporaryDirectory(prefix="kept-") as name:  # short: a socket's path has 107 bytes at most
        host = Host(Path(name))
        yield host
        for pid in host.servers():
            os.kill(int(pid), signal.SIGKILL)


def parent(result):
    return int(result["stdout"])


def test_modules_are_forked_from_one_process_and_sent_once(host):
    results, said = host.play(ASK, ASK, {"ansible.builtin.stat": {"path": "/"}}, ASK)
    assert len({parent(result) for result in (results[0], results[1], results[3])}) == 1 and results[2]["stat"]["isdir"]
    assert [str(parent(results[0]))] == host.servers()
    first, second, stat, third = host.sizes()
    assert first > 100_000 < stat and second < 20_000 > third
    assert "compiled anew" not in said


def test_a_module_has_its_own_environment_folder_and_end(host):
    shell = "ansible.builtin.shell"
    results, _ = host.play(
        ASK,
        {
            shell: "echo $WORD; pwd; umask; wc -c; kill -9 $$",
            "args": {"stdin": "ä" * 200_000, "stdin_add_newline": False},
            "environment": {"WORD": "ü x"},
            "ignore_errors": True,
        },
        {shell: 'echo "<$WORD>"'},
        {shell: "kill -9 $PPID", "ignore_errors": True},
        {"ansible.builtin.command": {"argv": ["no-such-program"]}, "ignore_errors": True},
        ASK,
    )
    mask = os.umask(0o077)
    os.umask(mask)
    word, folder, umask, read = results[1]["stdout"].split("\n")
    assert (word, folder, int(umask, 8), int(read)) == ("ü x", str(Path.cwd()), mask, 400_000)
    assert results[1]["rc"] == -9
    assert results[2]["stdout"] == "<>"
    assert results[3]["failed"] and results[3]["rc"] == 128 + signal.SIGKILL, "of the module itself"
    assert results[4]["failed"] and results[4]["rc"] == 2
    assert parent(results[0]) == parent(results[5])


ENDS = """#!/usr/bin/python3
import atexit, json, sys, threading, time
from ansible.module_utils.basic import AnsibleModule
module = AnsibleModule({"how": {}, "path": {}})
if module.params["how"] == "none":
    print(json.dumps({"changed": False}), end="")
atexit.register(open(module.params["path"], "a").write, "exit handler\\n")
def thread():
    time.sleep(0.2)
    open(module.params["path"], "a").write("thread\\n")
threading.Thread(target=thread).start()
sys.exit({"text": "why", "none": None, "number": 3}[module.params["how"]])
"""


def test_a_module_ends_as_python_ends_it(host):
    """Its threads are waited for, its exit handlers run, and a text is an error."""
    (host.folder / "library").mkdir()
    (host.folder / "library" / "ends.py").write_text(ENDS)
    told = host.folder / "told"
    ends = [{"ends": {"how": how, "path": str(told)}, "ignore_errors": True} for how in ("text", "none", "number")]
    results, _ = host.play(ASK, *ends, ASK)
    assert parent(results[0]) == parent(results[4])
    assert told.read_text().split("\n")[:-1] == ["thread", "exit handler"] * 3
    assert [result.get("rc", 0) for result in results[1:4]] == [1, 0, 3] and "why" in results[1]["module_stderr"]
    assert list(host.kept.glob("*/__pycache__/kept_module.*.pyc")), "it was not compiled anew each time"


def test_what_a_host_loses_in_the_middle_of_a_run_is_brought_again(host):
    results, said = host.play(
        ASK,
        {"ansible.builtin.command": f"rm -r {host.kept}", **HERE},  # as a reboot does, between two modules
        ASK,
        {"ansible.builtin.shell": f"kill -9 $(pgrep -f '{host.folder}/[k]ept/')", **HERE},
        ASK,
        ASK,
    )
    first, rebooted, third, last = (parent(results[number]) for number in (0, 2, 4, 5))
    assert len({first, rebooted, third}) == 3 and third == last
    assert "compiled anew" not in said


def test_a_process_ends_with_its_connection(host):
    host.play(ASK, sshd=True)
    wait_for(lambda: not host.servers(), 20, "the end of the process")  # which would wait for half a minute


def test_a_process_ends_when_nobody_calls(host):
    program = host.folder / "files" / "kept_module.py"
    program.write_text(program.read_text().replace("IDLE_S = 30", "IDLE_S = 0.2"))
    host.play({"ansible.builtin.command": {"argv": ["sleep", "1"]}}, ASK)
    wait_for(lambda: not host.servers(), 10, "the end of the process")
    assert not list(host.kept.glob("*-*"))


def test_files_of_another_release_have_a_folder_of_their_own_and_go_after_a_day(host):
    host.play(ASK)
    (old,) = (path for path in host.kept.iterdir() if path.is_dir())
    (old / "ansible" / "module_utils" / "basic.py").write_text("raise SystemExit('of another release')")
    host.play({"ansible.builtin.ping": {}})  # another module: zip files of the same two seconds may be one and the same
    new = {path for path in host.kept.iterdir() if path.is_dir()} - {old}
    assert len(new) == 1 and old.exists()
    os.utime(old, (0, 0))
    host.play(ASK, {"ansible.builtin.ping": {}})
    assert {path for path in host.kept.iterdir() if path.is_dir()} == new


@pytest.mark.parametrize(
    "fault", ["a file of somebody", "a folder that others may write to", "code that can't be read"]
)
def test_what_can_not_be_kept_runs_as_ansible_runs_it_and_that_is_told_once(host, fault):
    if fault == "a file of somebody":
        host.kept.write_text("")
    elif fault == "a folder that others may write to":
        host.kept.mkdir(mode=0o777)
        host.kept.chmod(0o777)
    else:  # as fapolicyd does with scripts that no package has brought
        program = host.folder / "files" / "kept_module.py"
        program.write_text(
            program.read_text().replace(
                "def use(folder):", "def use(folder):\n    raise PermissionError(1, 'fapolicyd')\n"
            )
        )
    results, said = host.play(ASK, ASK, ASK)
    assert len({parent(result) for result in results}) == 3
    assert said.count("compiled anew") == 1, said
    assert len([size for size in host.sizes() if size < 20_000]) == 0


@pytest.mark.skipif("_socket" in sys.builtin_module_names, reason="this Python looks for it in no folder")
def test_nothing_is_imported_from_a_folder_that_others_may_write_to(tmp_path):
    """The program as it is sent: `_socket` is the first module that it looks for in folders."""
    top, told = tmp_path / "kept", tmp_path / "told"
    (top / "of-somebody" / ".has").mkdir(parents=True)
    (top / "of-somebody" / ".has" / "key").write_text("")
    (top / "of-somebody" / "_socket.py").write_text(f"open({str(told)!r}, 'w')\nraise SystemExit")
    plugin = PLAYBOOKS / "plugins/connection/ssh_kept.py"
    show = f"import runpy; print(runpy.run_path({str(plugin)!r})['PROGRAM'])"
    sent = subprocess.run([sys.executable, "-c", show], capture_output=True, text=True, check=True).stdout
    program = "key = 'key'" + sent.rstrip("\n").replace("/run/ironburst-modules", str(top)) + "{})"
    for mode, found in ((0o777, False), (0o700, os.geteuid() == 0)):
        top.chmod(mode)
        subprocess.run([sys.executable, "-S", "-"], input=program, text=True, capture_output=True)
        assert told.exists() == found


@pytest.mark.parametrize("method", ["sudo", "su"])
def test_another_user_than_root_runs_modules_as_before_without_a_word(host, method):
    """By su Ansible sends a module as a file, by `dd` where there is no sftp."""
    become = {"ansible_become": True, "ansible_become_user": "nobody", "ansible_become_method": method}
    sudo = host.folder / "sudo"  # not on every machine
    sudo.write_text('#!/bin/sh\nshift 2; exec setpriv --reuid=65534 --regid=65534 --clear-groups "$@"\n')
    sudo.chmod(0o755)
    by = {"ansible_become_exe": str(sudo), "ansible_become_flags": ""} if method == "sudo" else {}
    results, said = host.play(ASK, ASK, **(become | {"ansible_become_flags": "-s /bin/sh"} | by))
    assert len({parent(result) for result in results}) == 2 and "compiled anew" not in said


def test_a_cancelled_run_finds_the_process_and_its_modules_by_the_connection(host):
    sleep = f"sleep {10**6 + os.getpid()}"
    host.play({"ansible.builtin.shell": f"setsid {sleep} > /dev/null 2>&1 < /dev/null & echo $!"})
    assert len(host.servers()) == 1
    done = subprocess.run([sys.executable, "-", CONNECTION, "1", "5"], input=leftovers.PROGRAM, text=True, timeout=60)
    assert done.returncode == 0 and host.servers() == []
    assert subprocess.run(["pgrep", "-f", sleep], capture_output=True).stdout == b""


def without_collection(told):
    """Where Ansible says an option comes from, left out."""
    if isinstance(told, dict):
        return {key: without_collection(each) for key, each in told.items() if key != "version_added_collection"}
    return [without_collection(each) for each in told] if isinstance(told, list) else told


def test_ansible_doc_shows_the_options_of_ssh_and_nothing_is_wrong_with_them():
    """Of two fragments that have `pipelining` ssh's own has ansible_ssh_pipelining, too."""
    command = [Path(sys.executable).with_name("ansible-doc"), "--json", "--type", "connection", "ssh_kept", "ssh"]
    settings = {"ANSIBLE_CONFIG": str(PLAYBOOKS.parent / "ansible.cfg")}
    done = subprocess.run(command, env=os.environ | settings, cwd=PLAYBOOKS.parent, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    ours, ssh = (json.loads(done.stdout)[name]["doc"]["options"] for name in ("ssh_kept", "ssh"))
    assert without_collection(ours) == without_collection(ssh)


def test_a_program_that_ansible_makes_otherwise_is_sent_as_it_is(host):
    """Such as with a limit of open files, one of Ansible's settings; a raw command is no module at all."""
    results, _ = host.play(
        {**ASK, "vars": {"ansible_python_module_rlimit_nofile": 512}}, ASK, {"ansible.builtin.raw": "echo raw"}
    )
    assert parent(results[0]) != parent(results[1]) and results[2]["stdout"].strip() == "raw"
