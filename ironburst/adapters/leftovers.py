"""Ends what a cancelled Ansible leaves: its processes on this machine, and what its tasks have started on the hosts.

On a host sshd gives every process of a connection the variable SSH_CONNECTION; all of one run share one connection a
host (ControlMaster). So a program that is sent through that same connection finds them by its own variable, also those
in other sessions. On this machine every process of a run has the path of the run's folder in its environment.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path

# a package manager that is at work may end its transaction: a killed one leaves packages half installed
PACKAGES_S = 120
ENDED_S = 5

# Python 3.6 on EL 8; its argument is the value of SSH_CONNECTION, for sudo drops the variable
PROGRAM = r"""
import os, signal, sys, time
MARK = b"SSH_CONNECTION=" + os.fsencode(sys.argv[1])
LOCKS = ("/var/lib/dpkg/lock-frontend", "/var/lib/dpkg/lock", "/var/lib/rpm/.rpm.lock",
         "/usr/lib/sysimage/rpm/.rpm.lock")
def table():
    parents, marked = {}, set()
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open("/proc/%s/stat" % name, "rb") as handle:
                fields = handle.read().rpartition(b")")[2].split()
            if fields[0] == b"Z":
                continue
            parents[int(name)] = int(fields[1])
            with open("/proc/%s/environ" % name, "rb") as handle:
                if MARK in handle.read().split(b"\0"):
                    marked.add(int(name))
        except OSError:
            continue
    return parents, marked
def found():
    parents, marked = table()
    mine, pid = set(), os.getpid()
    while pid > 1:
        mine.add(pid)
        pid = parents.get(pid, 0)
    def below(pid, tops):
        while pid > 1:
            if pid in tops:
                return True
            pid = parents.get(pid, 0)
        return False
    return [pid for pid in parents if pid not in mine and not below(pid, {os.getpid()}) and below(pid, marked - mine)]
def installing(pids):
    for pid in pids:
        try:
            for entry in os.listdir("/proc/%d/fd" % pid):
                if os.readlink("/proc/%d/fd/%s" % (pid, entry)) in LOCKS:
                    return True
        except OSError:
            continue
    return False
def gone(seconds):
    end = time.time() + seconds
    while found() and time.time() < end:
        time.sleep(0.05)
    return not found()
first = found()
end = time.time() + float(sys.argv[2])
while installing(found()) and time.time() < end:
    time.sleep(0.1)
for number in (signal.SIGTERM, signal.SIGKILL):
    for pid in found():
        try:
            os.kill(pid, number)
        except OSError:
            pass
    if gone(float(sys.argv[3])):
        break
sys.exit(1 if found() else 0)
"""


def _program_through(socket: Path) -> subprocess.Popen[str]:
    """PROGRAM's interpreter on the host behind a control socket; it reads the program from its standard input."""
    shell = (
        'if [ "$(id -u)" = 0 ]; then root=; else root="sudo -n"; fi; '
        f'exec $root python3 - "$SSH_CONNECTION" {PACKAGES_S} {ENDED_S}'
    )
    options = [f"ControlPath={socket}", "ControlMaster=no", "BatchMode=yes"]
    return subprocess.Popen(
        ["ssh", *(word for option in options for word in ("-o", option)), "-T", "none", shell],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )


def end_on_hosts(folder: Path) -> list[str]:
    """End what runs on the hosts behind the ssh control sockets below `folder`;
    returns the sockets where something may be left.
    """
    running = {socket.name: _program_through(socket) for socket in (folder.glob("*") if folder.is_dir() else ())}
    left = []
    for name, process in running.items():
        try:
            process.communicate(PROGRAM, timeout=PACKAGES_S + 3 * ENDED_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
        if process.returncode:
            left.append(name)
    return left


def close_connections(folder: Path) -> None:
    """End the ssh processes that keep connections open below `folder`."""
    for socket in folder.glob("*") if folder.is_dir() else ():
        command = ["ssh", "-o", f"ControlPath={socket}", "-O", "exit", "none"]
        subprocess.run(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=os.environ, timeout=10, check=False
        )


def of_run(folder: Path) -> list[int]:
    """Processes of this machine with `folder` in their environment, but not this one;
    the ssh masters of the run are not among them.
    """
    mark, pids = os.fsencode(str(folder)), []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if int(entry.name) == os.getpid() or mark not in (entry / "environ").read_bytes():
                continue
            state = (entry / "stat").read_bytes().rpartition(b")")[2].split()[0]
            if b"[mux]" in (entry / "cmdline").read_bytes() or state == b"Z":
                continue
            pids.append(int(entry.name))
        except OSError:
            continue
    return pids


def end_here(folder: Path) -> None:
    """End the processes of of_run: what ansible-runner leaves of a run
    (Ansible's workers are sessions of their own).
    """
    end = time.monotonic() + ENDED_S
    while (pids := of_run(folder)) and time.monotonic() < end:
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.02)
