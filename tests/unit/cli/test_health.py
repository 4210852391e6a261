"""`ironburst health parse`: exit codes and reasons."""

import json
import os
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


def test_an_output_that_nobody_knows_ends_with_the_line_to_report():
    """Also of a name that the locale can't write."""
    line = "GPU 0: NVIDIA \u6f22 1 (UUID: none)"
    said = subprocess.run(
        [sys.executable, "-m", "ironburst.cli", "health", "parse", "nvidia-smi"],
        input=line.encode(),
        capture_output=True,
        cwd=REPOSITORY,
        env={**os.environ, "PYTHONIOENCODING": "ascii", "LC_ALL": "C"},
    )
    assert said.returncode == 3 and said.stderr == b""
    report = said.stdout.decode("ascii").splitlines()[-1]
    assert report.startswith("to report, if the machine is sound: ironburst ") and "\\u6f22" in report
    assert "to report" not in run("parse", "nvidia-smi", stdin=WHOLE["nvidia-smi-t4-table"]).stdout


def test_explain_shows_what_each_line_was_understood_as():
    said = run("parse", "nvidia-smi", "--explain", stdin=WHOLE["nvidia-smi-b200-q-x"]).stdout
    assert "<power_smoothing>Insufficient Permissions</power_smoothing>    <- not judged" in said
    assert "    <- remapped_rows.failure: held against: No" in said and said.endswith("nvidia-smi: healthy\n")


def test_the_command_says_why():
    good = run("parse", "nvidia-smi", "--json", stdin=WHOLE["nvidia-smi-t4-table"])
    assert good.returncode == 0 and json.loads(good.stdout)["healthy"] is True
    bad = run("parse", "ibstat", stdin=WHOLE["ibstat-h100"].replace("State: Active", "State: Down", 1))
    assert bad.returncode == 3 and "FAILED links: port mlx5_0/1 is Down" in bad.stdout
    assert run("parse", "lspci", stdin="").returncode == 3
    wrong = run("parse", "nvidia-smi", "--gpu-model", "H100", stdin="x")
    assert wrong.returncode == 2 and "no GPU of the catalogue" in wrong.stderr and wrong.stderr.count("\n") == 1
