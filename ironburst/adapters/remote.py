"""ssh to many hosts at once, a program on stdin, one round trip each. What a converge needs beside Ansible."""

from __future__ import annotations

import shlex
import subprocess
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass

AT_ONCE = 64  # ssh processes side by side


@dataclass(frozen=True)
class Connection:
    """How Ansible reaches a host (its own connection variables), so that ssh alone can, too. `options`: words for
    ssh.
    """

    address: str
    user: str | None = None
    port: int | None = None
    key: str | None = None
    options: tuple[str, ...] = ()
    become: bool = False
    python: str = "python3"

    def ssh(self) -> list[str]:
        """The command line up to the host; what follows is for the shell there."""
        words = ["ssh", "-o", "BatchMode=yes", "-o", "ControlMaster=no", "-o", "ControlPath=none", "-T", *self.options]
        words += ["-o", "ConnectTimeout=10"]  # ssh takes the first of an option: the inventory's own counts
        for flag, value in (("-p", self.port), ("-i", self.key), ("-l", self.user)):
            words += [flag, str(value)] if value else []
        return [*words, self.address]

    def python_command(self) -> list[str]:
        """ssh, and a python there that runs what comes on stdin, as root."""
        remote = (["sudo", "-n"] if self.become else []) + ["env", "LC_ALL=C", self.python, "-I", "-S", "-"]
        return [*self.ssh(), shlex.join(remote)]

    def shell_prefix(self) -> list[str]:
        """ssh for commands as root (the prefix of adapters.slurm.Slurm)."""
        return [*self.ssh(), *(["sudo", "-n"] if self.become else [])]


@dataclass(frozen=True)
class Answer:
    """What a host said. `error`: one sentence if it could not be asked, or its program failed; else None."""

    output: str = ""
    error: str | None = None


def ask(programs: Mapping[str, tuple[Connection, str]], timeout_s: float = 60.0) -> dict[str, Answer]:
    """Run a python program on each host: {host: (connection, program)} in, {host: Answer} out. Ends what it starts."""
    answers: dict[str, Answer] = {}
    names = list(programs)
    for start in range(0, len(names), AT_ONCE):
        answers |= _ask({name: programs[name] for name in names[start : start + AT_ONCE]}, timeout_s)
    return answers


def _ask(programs: Mapping[str, tuple[Connection, str]], timeout_s: float) -> dict[str, Answer]:
    running: dict[str, subprocess.Popen[str]] = {}
    answers: dict[str, Answer] = {}
    try:
        for name, (connection, program) in programs.items():
            with tempfile.TemporaryFile("w+") as text:  # a file, not a pipe: nobody has to feed it
                text.write(program)
                text.seek(0)
                running[name] = subprocess.Popen(
                    connection.python_command(),
                    stdin=text,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    text=True,
                    errors="replace",
                )
        end = time.monotonic() + timeout_s
        for name, process in running.items():
            try:
                output, said = process.communicate(timeout=max(0.1, end - time.monotonic()))
            except subprocess.TimeoutExpired:
                answers[name] = Answer(error=f"no answer in {timeout_s:g} s")
                continue
            last = said.strip().splitlines()[-1:] or [f"exit status {process.returncode}"]
            answers[name] = Answer(output, last[0] if process.returncode else None)
    finally:
        for process in running.values():
            if process.poll() is None:
                process.kill()
            process.communicate()
    return answers
