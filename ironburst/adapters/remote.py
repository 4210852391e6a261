"""ssh to many hosts at once, a program on stdin, one round trip each. What a converge needs beside Ansible."""

from __future__ import annotations

import os
import shlex
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping
from typing import TextIO, cast

from ironburst.convergence.ports import Answer, Connection, RemoteProgram

AT_ONCE = 64  # ssh processes side by side
Secret = Callable[[str], str]
"""the secret behind a reference"""
# The first line of stdin is sudo's, once: a second try with a wrong password could lock the account. The rest waits in
# a file, for whether sudo asks at all is its own matter
WITH_PASSWORD = (
    "IFS= read -r word; input=$(mktemp) || exit 1; trap 'rm -f \"$input\"' EXIT; trap 'exit 1' HUP INT TERM; "
    'cat > "$input"; '
    """printf '%s\\n' "$word" | sudo -S -p '' sh -c 'exec "$@" < "$0"' "$input" "$@" """
)


def ssh(connection: Connection) -> list[str]:
    """The command line up to the host; what follows is for the shell there."""
    words = ["ssh", "-o", "BatchMode=yes", "-o", "ControlMaster=no", "-o", "ControlPath=none", "-T"]
    words += connection.options
    words += ["-o", "ConnectTimeout=10"]  # ssh takes the first of an option: the inventory's own counts
    for flag, value in (("-p", connection.port), ("-i", connection.key), ("-l", connection.user)):
        words += [flag, str(value)] if value else []
    return [*words, connection.address]


def python_command(connection: Connection) -> list[str]:
    """ssh, and a python there that runs what comes on stdin (behind `first_input`), as root."""
    remote = [*_sudo(connection), "env", "LC_ALL=C", connection.python, "-I", "-S", "-"]
    return [*ssh(connection), shlex.join(remote)]


def shell_prefix(connection: Connection) -> list[str]:
    """ssh for commands as root (the prefix of adapters.slurm.Slurm); stdin begins with `first_input`."""
    words = _sudo(connection)
    return [*ssh(connection), *([shlex.join(words)] if words else [])]


def first_input(connection: Connection, secret: Secret) -> str:
    """What the commands above read before their own input: sudo's password, in a line, where it asks for one."""
    return secret(connection.sudo_password) + "\n" if _asked(connection) else ""


def _asked(connection: Connection) -> bool:
    return bool(connection.become and connection.sudo_password)


def _sudo(connection: Connection) -> list[str]:
    if _asked(connection):
        return ["sh", "-c", WITH_PASSWORD, "sh"]
    return ["sudo", "-n"] if connection.become else []


def ask(
    programs: Mapping[str, RemoteProgram], timeout_s: float = 60.0, *, secret: Secret, at_once: int = AT_ONCE
) -> dict[str, Answer]:
    """Run a program on each host; the answers by name. Ends what it starts. `secret`: what is behind a reference;
    `at_once`: hosts that are asked side by side.
    """
    answers: dict[str, Answer] = {}
    names = list(programs)
    for start in range(0, len(names), at_once):
        answers |= _ask({name: programs[name] for name in names[start : start + at_once]}, timeout_s, secret)
    return answers


def _ask(programs: Mapping[str, RemoteProgram], timeout_s: float, secret: Secret) -> dict[str, Answer]:
    running: dict[str, subprocess.Popen[str]] = {}
    answers: dict[str, Answer] = {}
    try:
        for name, program in programs.items():
            running[name] = _start(program, secret)
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


def _start(program: RemoteProgram, secret: Secret) -> subprocess.Popen[str]:
    with _memory() as text:  # a file, not a pipe: nobody has to feed it
        text.write(first_input(program.connection, secret) + program.text)
        text.seek(0)
        return subprocess.Popen(
            python_command(program.connection),
            stdin=text,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
        )


def _memory() -> TextIO:
    """A file without a name, in memory where the system can: it may hold a password."""
    if hasattr(os, "memfd_create"):
        return os.fdopen(os.memfd_create("program"), "w+")
    return cast("TextIO", tempfile.TemporaryFile("w+"))
