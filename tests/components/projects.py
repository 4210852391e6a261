"""The unmodified program as a project of the pulumi CLI, in a folder of the test's own."""

import os
import subprocess
from pathlib import Path

import yaml

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


CLOUD_ALONE = """import runpy
import components.cluster
components.cluster.BareMetalNodes = lambda *_, **__: None
runpy.run_path(__file__.replace("__main__", "the_program"), run_name="__main__")
"""


def cloud_project(folder: Path, settings: dict, declaration: dict, **environment: str):
    """The lab's stack in another cloud, without the hall's machines: `run` of `project`, with `run.declare(**changes)`
    of the cloud and `run.folder`. `settings`: of the cloud's plugin.
    """
    run, here = project(folder, "lab", **environment), folder / "project"
    (here / "__main__.py").rename(here / "the_program.py")
    (here / "__main__.py").write_text(CLOUD_ALONE)
    stack = yaml.safe_load((ROOT / "stacks" / "Pulumi.lab.yaml").read_text())
    said = {key: value for key, value in stack["config"].items() if not key.startswith("aws:")}
    said |= settings | {"ironburst:cluster": declaration}

    def declare(**changes):
        declaration["cloud"] |= changes
        (here / "stacks/Pulumi.lab.yaml").write_text(yaml.safe_dump(stack | {"config": said}))

    declare()
    run.declare, run.folder = declare, folder
    return run


def done(process):
    """What it printed. AssertionError with all of it where it failed."""
    assert process.returncode == 0, process.stdout + process.stderr
    return process.stdout
