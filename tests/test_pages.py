"""Pages whose commands are run here as they stand on the page, on copies of the example stacks, without a network."""

import os
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from ironburst.burst import decide
from ironburst.controller import policy_view
from ironburst.controller.recorder import Recorder
from ironburst.document import of_stack
from tests.fakes.snapshots import job, snapshot
from tests.packaging.test_first_hour import history
from tests.tutorials import Shell, blocks, tutorial

ROOT = Path(__file__).parents[1]
PROGRAM = '#!/bin/sh\nPYTHONPATH={root} exec {python} -P -m ironburst.cli "$@"\n'
# stands in for Pulumi's CLI: it answers `stack output` with the document of the stack file, cloud ids empty
PULUMI = """#!{python}
import sys; sys.path.insert(0, "{root}")
from pathlib import Path
from ironburst.document import of_stack
assert sys.argv[1:] == ["stack", "output", "cluster", "--json"], sys.argv
print(of_stack.document(Path("stacks/Pulumi.hall1.yaml")).model_dump_json())
"""


@pytest.fixture
def shell(tmp_path):
    """A terminal at the top of a checkout: its stacks and inventories, `ironburst` on PATH, no secrets, no AWS."""
    for folder in ("stacks", "inventory"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    (tmp_path / "bin").mkdir()
    for name, text in (("ironburst", PROGRAM), ("pulumi", PULUMI)):
        path = tmp_path / "bin" / name
        path.write_text(text.format(root=ROOT, python=sys.executable))
        path.chmod(0o755)
    path = f"{tmp_path}/bin:{os.environ['PATH']}"
    env = {"PATH": path, "HOME": str(tmp_path), "IRONBURST_LEDGER": f"{tmp_path}/var/lib/ironburst/ledger.sqlite"}
    return Shell(tmp_path, env, limit_s=300)


def play(shell, found):
    """Every block of a page; paths of a head's lie below the test's folder, and a bound is searched for a second."""
    printed = []
    for block in found:
        text = block.text
        for path in ("/srv/ironburst", "/var/lib/ironburst"):
            text = text.replace(path, f"{shell.env['HOME']}{path}")
        text = text.replace("ironburst simulate ", "ironburst simulate --bound-seconds 1 ")
        printed.append(shell.run(replace(block, text=text)))
    return "".join(printed)


def test_the_first_hall(shell, tmp_path):
    (tmp_path / "srv/ironburst").mkdir(parents=True)
    play(shell, tutorial("first-hall.md"))
    assert sum(line.endswith(": run") for line in shell.seen) == 3
    assert (tmp_path / "stacks/hall1.lock.yaml").is_file() and (tmp_path / "inventory/hall1").is_dir()
    assert (tmp_path / "srv/ironburst/hall1.json").is_file()


def test_trying_the_policy(shell, tmp_path):
    (tmp_path / "jobs.txt").write_text("\n".join(history(420)) + "\n")
    shutil.copy(tmp_path / "stacks/Pulumi.prod.yaml", tmp_path / "stacks/Pulumi.candidate.yaml")
    ticks = Recorder(tmp_path / "var/lib/ironburst/ticks")
    policy = policy_view.policy(of_stack.document(tmp_path / "stacks/Pulumi.prod.yaml"))
    for minutes in range(3):
        shot = replace(snapshot([job(1), job(2)]), now_s=60.0 * minutes)
        ticks.record(policy, shot, decide(shot, policy))
    play(shell, blocks(ROOT / "docs/how-to/try.md"))
    assert sum(line.endswith(": run") for line in shell.seen) == 5
    assert "<svg" in (tmp_path / "simulated/simulation.html").read_text()
    assert "<svg" in (tmp_path / "fitted/fit.html").read_text()
