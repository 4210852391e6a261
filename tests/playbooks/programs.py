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


def load(path: str):
    """The module at `path` below playbooks/."""
    file = PLAYBOOKS / path
    spec = importlib.util.spec_from_file_location(file.stem.replace("-", "_"), file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
