"""`ironburst health parse`: exit codes and reasons."""

import json
import subprocess
import sys
from pathlib import Path

from tests.unit.health import samples

REPOSITORY = Path(__file__).parents[3]
WHOLE = samples.samples()


def run(*arguments, stdin=""):
    return subprocess.run(
        [sys.executable, "-m", "ironburst.cli", "health", *arguments],
        input=stdin,
        text=True,
        capture_output=True,
        cwd=REPOSITORY,
    )


def test_the_command_says_why():
    good = run("parse", "nvidia-smi", "--json", stdin=WHOLE["nvidia-smi-t4-table"])
    assert good.returncode == 0 and json.loads(good.stdout)["healthy"] is True
    bad = run("parse", "ibstat", stdin=WHOLE["ibstat-h100"].replace("State: Active", "State: Down", 1))
    assert bad.returncode == 3 and "FAILED links: port mlx5_0/1 is Down" in bad.stdout
    assert run("parse", "lspci", stdin="").returncode == 3
    wrong = run("parse", "nvidia-smi", "--gpu-model", "H100", stdin="x")
    assert wrong.returncode == 2 and "no GPU of the catalogue" in wrong.stderr and wrong.stderr.count("\n") == 1
