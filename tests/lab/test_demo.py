"""The demo as a whole: what it must show, two side by side, and what is left when it is killed or stopped at any
moment.
"""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
from contextlib import contextmanager

import pytest

from lab.hosts.box import Box
from lab.system import CHECKOUT, LAB_ROOT, wait_for
from tests.sites import need_lab

pytestmark = [pytest.mark.lab, pytest.mark.slow]
DEMO_S = 1200
STEPS = ("1. Set up", "2. Declare", "3. Converge", "4. Burst", "5. Explain", "6. Refuse", "7. Give back")


@pytest.fixture(autouse=True)
def machine():
    need_lab()


@contextmanager
def demo(prefix):
    """A demo that runs, and its output's path. The lab is down afterwards."""
    output = LAB_ROOT / f"{prefix}.out"
    with output.open("w") as file:
        process = subprocess.Popen(
            [sys.executable, "-m", "lab.demo"],
            cwd=CHECKOUT,
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=file,
            start_new_session=True,
            env=os.environ | {"LAB_PREFIX": prefix, "ENGINE": "embedded"},
        )
    try:
        yield process, output
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        clean(prefix)
        shutil.rmtree(LAB_ROOT / prefix, ignore_errors=True)  # its report
        output.unlink()


def clean(prefix):
    subprocess.run(
        ["make", "-s", "clean-lab", f"LAB_PREFIX={prefix}"], cwd=CHECKOUT, check=True, stdout=subprocess.DEVNULL
    )


def leftovers(prefix):
    return {kind: count for kind, count in Box(prefix).leftovers().items() if count}


def summary(prefix):
    return json.loads((LAB_ROOT / prefix / "report" / "summary.json").read_text())


def test_two_side_by_side_do_the_main_job():
    with demo("t-demo-a") as (one, one_says), demo("t-demo-b") as (two, two_says):
        assert one.wait(DEMO_S) == 0, one_says.read_text()
        assert two.wait(DEMO_S) == 0, two_says.read_text()
        for prefix in ("t-demo-a", "t-demo-b"):
            told = summary(prefix)
            assert told["jobs"]["lost"] == told["jobs"]["run_twice"] == 0
            assert all(told["jobs"][fate]["jobs"] > 0 for fate in ("home", "waited", "rented"))
            assert all(fault["survived"] for fault in told["faults"].values()) and len(told["faults"]) == 2
            assert told["refused"]["survived"] and len(told["refused"]["zones"]) == 2
            assert {host["changed"] for host in told["converge"]["second"].values()} == {0}
            assert len(told["converge"]["second"]) == 4
            assert not any(told["leftovers"].values()) and not leftovers(prefix)
            # one tick, and Slurm's own round of 1 s in which it hands a power_up over
            assert 0 < told["figures"]["rent_to_request_s"] <= told["figures"]["tick_s"] + 1
            assert "<svg" in (LAB_ROOT / prefix / "report" / "index.html").read_text()


def stop_at(step, prefix, process, output, sig, after_s):
    """Send `sig` some seconds after the step began."""
    wait_for(
        lambda: step in output.read_text() or process.poll() is not None, DEMO_S, f"{prefix}: step {step}", pause=0.1
    )
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(after_s)
    os.killpg(process.pid, sig)


@pytest.mark.parametrize("step", STEPS[:4])
def test_ctrl_c_cleans_up(step):
    prefix = f"t-demo-c{step[0]}"
    with demo(prefix) as (process, output):
        stop_at(step, prefix, process, output, signal.SIGINT, 1.0)
        assert process.wait(120) == 130, output.read_text()
        assert not leftovers(prefix)


@pytest.mark.parametrize("number", range(10))
def test_a_kill_leaves_nothing_after_clean_lab(number):
    """At ten random moments: in the longest steps more often."""
    step = STEPS[(0, 1, 2, 3, 2, 1, 5, 3, 6, 0)[number]]
    longest = {"1": 4, "2": 12, "3": 100, "4": 60, "6": 20, "7": 3}[step[0]]
    after_s = random.Random(f"{number}").uniform(0.2, longest)
    prefix = f"t-demo-k{number}"
    with demo(prefix) as (process, output):
        stop_at(step, prefix, process, output, signal.SIGKILL, after_s)
        process.wait(30)
        clean(prefix)
        assert not leftovers(prefix), f"killed {after_s:.1f} s into {step}"
