"""ssh to many hosts at once, a program on stdin, one round trip each. What a converge needs beside Ansible."""

from __future__ import annotations

import shlex
import subprocess
import tempfile
import time
from collections.abc import Mapping

from ironburst.convergence.ports import Answer, Connection, RemoteProgram

AT_ONCE = 64  # ssh processes side by side


def ssh(connection: Connection) -> list[str]:
    """The command line up to the host; what follows is for the shell there."""
    words = ["ssh", "-o", "BatchMode=yes", "-o", "ControlMaster=no", "-o", "ControlPath=none", "-T"]
    words += connection.options
    words += ["-o", "ConnectTimeout=10"]  # ssh takes the first of an option: the inventory's own counts
    for flag, value in (("-p", connection.port), ("-i", connection.key), ("-l", connection.user)):
        words += [flag, str(value)] if value else []
    return [*words, connection.address]


def python_command(connection: Connection) -> list[str]:
    """ssh, and a python there that runs what comes on stdin, as root."""
    remote = [*_sudo(connection), "env", "LC_ALL=C", connection.python, "-I", "-S", "-"]
    return [*ssh(connection), shlex.join(remote)]


def shell_prefix(connection: Connection) -> list[str]:
    """ssh for commands as root (the prefix of adapters.slurm.Slurm)."""
    return [*ssh(connection), *_sudo(connection)]


def _sudo(connection: Connection) -> list[str]:
    return ["sudo", "-n"] if connection.become else []


def ask(programs: Mapping[str, RemoteProgram], timeout_s: float = 60.0) -> dict[str, Answer]:
    """Run a program on each host; the answers by name. Ends what it starts."""
    answers: dict[str, Answer] = {}
    names = list(programs)
    for start in range(0, len(names), AT_ONCE):
        answers |= _ask({name: programs[name] for name in names[start : start + AT_ONCE]}, timeout_s)
    return answers


def _ask(programs: Mapping[str, RemoteProgram], timeout_s: float) -> dict[str, Answer]:
    running: dict[str, subprocess.Popen[str]] = {}
    answers: dict[str, Answer] = {}
    try:
        for name, program in programs.items():
            running[name] = _start(program)
        end = time.monotonic() + timeout_s
        for name, process in running.items():
            try:
                output, errors = process.communicate(timeout=max(0.1, end - time.monotonic()))
            except subprocess.TimeoutExpired:
                answers[name] = Answer(error=f"no answer in {timeout_s:g} s")
                continue
            last = errors.strip().splitlines()[-1:] or [f"exit status {process.returncode}"]
            answers[name] = Answer(output, last[0] if process.returncode else None)
    finally:
        for process in running.values():
            if process.poll() is None:
                process.kill()
            process.communicate()
    return answers


def _start(program: RemoteProgram) -> subprocess.Popen[str]:
    with tempfile.TemporaryFile("w+") as text:  # a file, not a pipe: nobody has to feed it
        text.write(program.text)
        text.seek(0)
        return subprocess.Popen(
            python_command(program.connection),
            stdin=text,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
        )
