"""Import a program of a role by its path."""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import ansible.module_utils

PLAYBOOKS = Path(__file__).resolve().parents[2] / "playbooks"
UTILS = str(PLAYBOOKS / "plugins" / "module_utils")  # Ansible sends them with its modules
ansible.module_utils.__path__.append(UTILS)
AS_A_PROGRAM = f"""import runpy, sys
import ansible.module_utils
ansible.module_utils.__path__.append({UTILS!r})
runpy.run_path(sys.argv.pop(1), run_name="__main__")"""


def command(path: Path) -> list[str]:
    """The command that runs a module as Ansible does."""
    return [sys.executable, "-c", AS_A_PROGRAM, str(path)]


def load(path: str, cloud: str = "aws"):
    """The module at `path` below playbooks/. `cloud`: whose module lies beside it on the node."""
    file = PLAYBOOKS / path
    for beside in (file.parent / cloud).glob("ironburst_*.py"):
        sys.modules[beside.stem] = _module(beside)
    return _module(file)


def _module(file: Path):
    spec = importlib.util.spec_from_file_location(file.stem.replace("-", "_"), file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def notice_program(folder: Path, node: str, cloud: Path) -> tuple[subprocess.Popen, Path]:
    """The program as its unit starts it, and the file with what it tells Slurm. `cloud`: where its module is."""
    tools, calls = folder / "bin", folder / "calls"
    tools.mkdir()
    (tools / "scontrol").write_text(f'#!/bin/sh\necho "$*" >> {calls}\n')
    (tools / "scontrol").chmod(0o755)
    (folder / "run/ironburst").mkdir(parents=True)
    (folder / "run/ironburst/dead-man.json").write_text(json.dumps({"node": node, "scheduler": "slurm"}))
    path = os.pathsep.join((str(cloud), *sys.path))
    environment = {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}", "PYTHONPATH": path}
    program = [sys.executable, str(PLAYBOOKS / "roles/cloud_node/files/ironburst-notice.py")]
    return subprocess.Popen(program, env=environment, stdout=subprocess.PIPE, text=True), calls


def copied_files(objects: dict[str, bytes], prefix: str) -> dict[str, bytes]:
    """What a node's copy of those below a prefix has: no placeholder of a folder is a file."""
    return {
        key.removeprefix(prefix): data
        for key, data in objects.items()
        if key.startswith(prefix) and not key.endswith("/")
    }
