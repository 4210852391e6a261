"""docs/tutorial/lab.md, played: a lab by hand, from `up` to nothing left."""

import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from lab.site import Site
from tests.sites import need_lab
from tests.tutorials import Shell, tutorial

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.lab


def test_the_lab_by_hand(tmp_path):
    need_lab()
    prefix = f"t-hand-{os.getpid()}"  # the page's own may be somebody's
    tools = tmp_path / "bin"
    tools.mkdir()
    for name, words in (("ironburst", "-P -m ironburst.cli"), ("python", "")):
        (tools / name).write_text(f'#!/bin/sh\nexec {sys.executable} {words} "$@"\n')
        (tools / name).chmod(0o755)
    env = dict(os.environ) | {"PATH": f"{tools}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}
    shell, site = Shell(ROOT, env, limit_s=300), Site(prefix)
    found = [replace(block, text=block.text.replace("tutorial", prefix)) for block in tutorial("lab.md")]
    try:
        printed = list(map(shell.run, found))
        left = site.box.leftovers()
    finally:
        site.down()
    assert sum(line.endswith(": run") for line in shell.seen) == 4
    assert any("dgx01" in text for text in printed)
    assert not any(left.values())
