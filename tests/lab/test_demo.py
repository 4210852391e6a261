"""The demo as a whole: what it must show, two side by side, and what is left when it is killed or stopped at any
moment.
"""

import random
import signal

import pytest

from lab.system import LAB_ROOT
from tests.lab.demos import DEMO_S, clean, demo, leftovers, stop_at, summary
from tests.sites import need_lab

pytestmark = [pytest.mark.lab, pytest.mark.slow]
STEPS = ("1. Set up", "2. Declare", "3. Converge", "4. Burst", "5. Explain", "6. Train", "7. Refuse", "8. Give back")


@pytest.fixture(autouse=True)
def machine():
    need_lab()


def did_the_main_job(prefix, zones=2):
    told = summary(prefix)
    assert told["jobs"]["lost"] == told["jobs"]["run_twice"] == 0
    assert all(told["jobs"][fate]["jobs"] > 0 for fate in ("home", "waited", "rented"))
    assert all(fault["survived"] for fault in told["faults"].values()) and len(told["faults"]) == 2
    assert told["training"]["survived"] and len(told["training"]["starts"]) == 2
    assert told["watched"]["good"], told["watched"]
    assert told["refused"]["survived"] and len(told["refused"]["zones"]) == zones
    assert {host["changed"] for host in told["converge"]["second"].values()} == {0}
    assert len(told["converge"]["second"]) == 4
    assert not any(told["leftovers"].values()) and not leftovers(prefix)
    # one tick, and Slurm's own round of 1 s in which it hands a power_up over
    assert 0 < told["figures"]["rent_to_request_s"] <= told["figures"]["tick_s"] + 1
    assert "<svg" in (LAB_ROOT / prefix / "report" / "index.html").read_text()


def test_two_side_by_side_do_the_main_job():
    with demo("t-demo-a") as (one, one_says), demo("t-demo-b") as (two, two_says):
        assert one.wait(DEMO_S) == 0, one_says.read_text()
        assert two.wait(DEMO_S) == 0, two_says.read_text()
        for prefix in ("t-demo-a", "t-demo-b"):
            did_the_main_job(prefix)


@pytest.mark.parametrize("cloud", ["google", "azure"])
def test_in_another_cloud_it_does_the_same(cloud):
    prefix = f"t-demo-{cloud}"
    with demo(prefix, cloud=cloud) as (process, says):
        assert process.wait(DEMO_S) == 0, says.read_text()
        did_the_main_job(prefix)


def test_in_three_clouds_at_once_it_does_the_same():
    with demo("t-demo-all", cloud="all") as (process, says):
        assert process.wait(2 * DEMO_S) == 0, says.read_text()
        did_the_main_job("t-demo-all", zones=6)
        told = summary("t-demo-all")
        kinds = {lease["type"] for lease in told["leases"]}
        assert kinds == {"Standard_ND96isr_H100_v5", "a3-highgpu-8g"}  # for the first cloud sells nothing


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
    step = STEPS[(0, 1, 2, 3, 5, 1, 6, 3, 7, 0)[number]]
    longest = {"1": 4, "2": 12, "3": 100, "4": 60, "6": 60, "7": 20, "8": 3}[step[0]]
    after_s = random.Random(f"{number}").uniform(0.2, longest)
    prefix = f"t-demo-k{number}"
    with demo(prefix) as (process, output):
        stop_at(step, prefix, process, output, signal.SIGKILL, after_s)
        process.wait(30)
        clean(prefix)
        assert not leftovers(prefix), f"killed {after_s:.1f} s into {step}"
