"""Import a program of a role by its path."""

import importlib.util
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


def copied_files(objects: dict[str, bytes], prefix: str) -> dict[str, bytes]:
    """What a node's copy of those below a prefix has: no placeholder of a folder is a file."""
    return {
        key.removeprefix(prefix): data
        for key, data in objects.items()
        if key.startswith(prefix) and not key.endswith("/")
    }
