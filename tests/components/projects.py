"""The unmodified program as a project of the pulumi CLI, in a folder of the test's own."""

import os
import subprocess
from pathlib import Path

from lab.pulumi import binary

ROOT = Path(__file__).parents[2]


def project(folder: Path, stack: str, **more: str):
    """`run(*arguments)` of the CLI on a stack, with an empty state: the finished process. The stack's file is the
    caller's to write, in `stacks` of the folder `project`. `more`: environment.
    """
    here = folder / "project"
    (here / "stacks").mkdir(parents=True)
    for name in ("Pulumi.yaml", "__main__.py", "components", "ironburst", "providers", ".venv"):
        (here / name).symlink_to(ROOT / name)
    environment = {**os.environ, **binary.environment(folder), "PYTHONPATH": str(ROOT), **more}

    def run(*arguments):
        argv = [str(binary.path()), *arguments, "--stack", stack, "--non-interactive"]
        return subprocess.run(argv, cwd=here, env=environment, capture_output=True, text=True, timeout=600)

    return run


def done(process):
    """What it printed. AssertionError with all of it where it failed."""
    assert process.returncode == 0, process.stdout + process.stderr
    return process.stdout
