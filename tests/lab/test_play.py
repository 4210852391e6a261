"""docs/tutorial/play.md, as a reader plays it: every command of the page, on a lab that a demo kept."""

import json
import os
import re
import shutil
import subprocess
import sys

import pytest

from lab.play.faults import KINDS
from lab.system import CHECKOUT, LAB_ROOT
from tests.lab.demos import clean, leftovers, summary
from tests.sites import need_lab
from tests.tutorials import Shell, tutorial

pytestmark = [pytest.mark.lab, pytest.mark.slow]
PREFIX = "t-play"
# those that the page doesn't play, beside some that it does
MORE = (
    ["no-capacity"],
    ["throttle"],
    ["api-down"],
    ["bmc-hangs", "dgx01"],
    ["link-down", "dgx01"],
    ["gpu-falls", "dgx01"],
    ["gpu-errors", "dgx01"],
    ["power-cut", "dgx02"],
)


def lab(*words):
    """The lab's program."""
    return subprocess.run([sys.executable, "-m", "lab", *words], cwd=CHECKOUT, text=True, capture_output=True)


@pytest.fixture
def shell():
    need_lab()
    paths = os.pathsep.join([os.environ["PATH"], str(CHECKOUT / ".venv" / "bin")])
    env = os.environ | {"LAB_PREFIX": PREFIX, "PATH": paths, "PYTHONPATH": str(CHECKOUT)}
    try:
        yield Shell(CHECKOUT, env, limit_s=2400)
    finally:
        clean(PREFIX)
        shutil.rmtree(LAB_ROOT / PREFIX, ignore_errors=True)  # its report


def test_the_page_is_played_and_nothing_is_left(shell):
    printed = {}
    for block in tutorial("play.md"):
        if "make clean-lab" in block.commands:
            _every_other_fault_is_listed_and_ends()
        said = printed[block.commands] = shell.run(block)
        print(block.commands, said, sep="\n", flush=True)
        if "make demo" in block.commands:
            _kept_and_refuses_a_second(shell)

    def of(words):
        return next(said for commands, said in printed.items() if words in commands)

    assert "waits: predicted to start at home" in of("wait train decided")
    assert "joined: p5-" in of("wait train running") and "spot us-east-1" in of("wait train running")
    assert " interrupted: " in of("spot-notice") and " requeued: " in of("spot-notice")
    assert int(re.search(r"(?m)^\d+$", of("spot-notice")).group()) > 1
    assert "InsufficientInstanceCapacity" in of("no-capacity us-east-1a")
    assert "COMPLETED" in of("wait train done") and "p5-" in of("wait train done")
    assert "serial 2" in of("price --spot") and "(on-demand)" in of("explain dear")
    assert "node dgx02 drain" in of("gpu-falls") and "health: gpus" in of("gpu-falls")
    assert "faults: none" in of("state=resume")
    assert not any(json.loads("{" + of("make clean-lab").partition("{")[2]).values())
    assert not leftovers(PREFIX) and lab("status", PREFIX).returncode == 3
    left = [each.name for each in (LAB_ROOT / PREFIX).iterdir()]
    assert left == ["report"]


def _every_other_fault_is_listed_and_ends():
    assert {words[0] for words in MORE} | {"spot-notice", "terminate"} == set(KINDS)
    for words in MORE:
        injected = lab("fault", "--prefix", PREFIX, *words)
        assert injected.returncode == 0, injected.stderr
    said = json.loads(lab("status", PREFIX, "--json").stdout)
    assert {line.split(":")[0] for line in said["faults"]} == {words[0] for words in MORE}, said["faults"]
    ended = lab("fault", "--prefix", PREFIX, "--clear")
    assert ended.stdout.count("ended: ") == len(said["faults"]), ended.stdout + ended.stderr
    assert lab("fault", "--prefix", PREFIX, "terminate", "fixed-1").returncode == 0
    said = json.loads(lab("status", PREFIX, "--json").stdout)
    assert said["faults"] == [] and {host["state"] for host in said["hosts"]} == {"on"}
    assert "fixed-1" not in {view["node"] for view in said["instances"]}


def _kept_and_refuses_a_second(shell):
    """The demo's summary says so, and another demo ends with a sentence while what runs goes on."""
    told = summary(PREFIX)
    assert told["kept"] and told["good"] and told["leftovers"] is None and told["refused"] is None
    again = subprocess.run(
        [sys.executable, "-m", "lab.demo"], cwd=CHECKOUT, env=shell.env, text=True, capture_output=True
    )
    assert (
        again.returncode == 2 and len(again.stderr.splitlines()) == 1 and "is kept from an earlier demo" in again.stderr
    )
    said = json.loads(lab("status", PREFIX, "--json").stdout)
    assert said["controller"] == "active" and said["faults"] == []
    unknown = lab("shell", "--prefix", PREFIX, "dgx09")
    assert unknown.returncode == 2 and "there are dgx01, dgx02, head, fixed-1" in unknown.stderr
