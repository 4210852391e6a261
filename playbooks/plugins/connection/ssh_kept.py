"""ansible.builtin.ssh, with one difference: what root's modules import is kept on the host for the next one (ADR 122).

Of a module Ansible's pipelining sends a program: a zip file of all that the module imports, and a function that unpacks
it to a temporary folder, where Python compiles it, and removes it after one use. Here playbooks/files/kept_module.py is
sent instead, which keeps all that for the calls that follow, and of a zip file that this run has sent to the host the
name is enough. Where it refuses (another user than root, a host that lets nobody read code from /run), the module runs
as Ansible runs it, and so does what is no such program.
"""

from __future__ import annotations

import hashlib
import re
import runpy
from collections.abc import Mapping
from pathlib import Path

from ansible import constants as C
from ansible.plugins.connection import ssh
from ansible.utils.display import Display

DOCUMENTATION = r"""
name: ssh_kept
short_description: ansible.builtin.ssh that keeps on the host what modules import
description: Takes all that ansible.builtin.ssh takes.
author: ironburst
extends_documentation_fragment: [ssh_options, connection_pipelining] # the first wins
options: {}
"""

KEPT = Path(__file__).resolve().parents[2] / "files" / "kept_module.py"
WORDS = runpy.run_path(str(KEPT), run_name="kept_module")
# Compiled, it is among the files that it keeps, in a folder that nobody but root writes to
PROGRAM = f"""
import os, sys
source, top = {KEPT.read_text()!r}, {WORDS["TOP"]!r}
try:
    if os.lstat(top).st_uid or os.lstat(top).st_mode & 0o77:
        raise ImportError(top)
    folders = [os.path.join(top, name) for name in os.listdir(top)]
    sys.path[:0] = [folder for folder in folders if os.path.exists(os.path.join(folder, ".has", key))][:1]
    from kept_module import main
except (OSError, ImportError):
    kept = dict(__name__="kept_module")
    exec(source, kept)
    main = kept["main"]
main(source, key, """
# Neither it nor what it asks for wants Python's site packages, nor the time that it takes to look for them
INTERPRETER = re.compile(r"""(python[\d.]*)((?:'"'"')*(?: && sleep 0)?')$""")

# what Ansible sends ends with this call, one argument a line
CALL = b'\n\nif __name__ == "__main__":\n    _ansiballz_main(\n'
ARGUMENT = re.compile(rb"^(\w+)=(.*),$", re.MULTILINE)
TAKEN = ("module_fqn", "params", "profile")
NOT_DONE_HERE = {"extensions": b"{}", "rlimit_nofile": b"0"}


class Program:
    """A module's program as Ansible makes it; `arguments` of its call, as Python text."""

    def __init__(self, arguments: Mapping[str, bytes]):
        self._arguments = arguments
        self.key = hashlib.sha256(arguments["zip_data"]).hexdigest()

    def text(self, whole: bool) -> bytes:
        """The program that is sent, with the zip file or without."""
        names = (*TAKEN, "zip_data") if whole else TAKEN
        given = b",".join(name.encode() + b"=" + self._arguments[name] for name in names)
        return f"key = {self.key!r}{PROGRAM}dict(".encode() + given + b"))\n"


def read(program: bytes) -> Program | None:
    """None if Ansible made it otherwise, or wants what is not done here."""
    _, call, said = program.rpartition(CALL)
    arguments = {name.decode(): value for name, value in ARGUMENT.findall(said)} if call else {}
    if not {*TAKEN, "zip_data"} <= arguments.keys():
        return None
    return Program(arguments) if arguments.items() >= NOT_DONE_HERE.items() else None


def refusal(code: int, stderr: bytes) -> str | None:
    """Why a host did not run a module; None if it did."""
    lines = [line for line in stderr.decode(errors="replace").splitlines() if line.startswith(WORDS["SAID"])]
    return lines[-1].removeprefix(WORDS["SAID"]) if code == WORDS["REFUSED"] and lines else None


class Connection(ssh.Connection):
    """See above."""

    def exec_command(self, cmd: str, in_data: bytes | None = None, sudoable: bool = True) -> tuple[int, bytes, bytes]:
        """Run a command, or a module's program."""
        host = self.get_option("host") or self._play_context.remote_addr
        refused = self._mark(f"{host}-refused-{bool(self.become)}")
        # a file that is sent by `dd` may be a module, too, but sudo is for what is run
        program = read(in_data) if in_data and sudoable and not refused.exists() else None
        if program:
            sent = self._mark(f"{host}-{program.key}")
            for whole in (False, True) if sent.exists() else (True,):
                asked = INTERPRETER.sub(r"\1 -S\2", cmd)
                answer = super().exec_command(asked, in_data=program.text(whole), sudoable=sudoable)
                why = refusal(answer[0], answer[2])
                if why is None:
                    sent.touch()
                    return answer
                if why != WORDS["LACKING"]:
                    break
            refused.touch()
            if why != WORDS["NOT_ROOT"]:
                Display().warning(f"{host}: each module is compiled anew: {why}")
        return super().exec_command(cmd, in_data=in_data, sudoable=sudoable)

    def _mark(self, name: str) -> Path:
        """A file that later tasks of this run see, which are other processes."""
        return Path(C.DEFAULT_LOCAL_TMP, name.replace("/", "-"))
