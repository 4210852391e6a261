"""docs/tutorial/lab.md, played: a lab by hand, from `up` to nothing left."""

import json
import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tests.sites import need_lab
from tests.tutorials import Shell, tutorial

ROOT = Path(__file__).parents[2]
PREFIX = "tutorialtest"  # the page's own may be somebody's
pytestmark = pytest.mark.lab


def test_the_lab_by_hand(tmp_path):
    need_lab()
    tools = tmp_path / "bin"
    tools.mkdir()
    for name, words in (("ironburst", "-P -m ironburst.cli"), ("python", "")):
        (tools / name).write_text(f'#!/bin/sh\nexec {sys.executable} {words} "$@"\n')
        (tools / name).chmod(0o755)
    env = dict(os.environ) | {"PATH": f"{tools}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}
    shell, printed = Shell(ROOT, env, limit_s=300), {}
    try:
        for block in tutorial("lab.md"):
            block = replace(block, text=block.text.replace("tutorial", PREFIX))
            printed[block.commands] = shell.run(block)
    finally:
        down = Shell(ROOT, env, limit_s=300)
        down.run(replace(tutorial("lab.md")[0], not_run=None, language="sh", text=f"python -m lab down {PREFIX}\n"))
    ran = [text for command, text in printed.items() if text and "lab" in command]
    assert any("dgx01" in text for text in ran)
    left = down.run(
        replace(tutorial("lab.md")[0], not_run=None, language="sh", text=f"python -m lab leftovers {PREFIX}\n")
    )
    assert not any(json.loads(left).values())
