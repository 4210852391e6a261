"""Import a program of a role by its path."""

import importlib.util
from pathlib import Path

PLAYBOOKS = Path(__file__).resolve().parents[2] / "playbooks"


def load(path: str):
    """The module at `path` below playbooks/."""
    file = PLAYBOOKS / path
    spec = importlib.util.spec_from_file_location(file.stem.replace("-", "_"), file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
