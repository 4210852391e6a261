"""The demo with pods as a whole: what it must show, also when the API server dies on the way, and what is left when it
is killed or stopped.
"""

import signal

import pytest

from lab.kubernetes import binaries
from lab.kubernetes.control_plane import ControlPlane
from lab.system import LAB_ROOT
from tests.lab.demos import DEMO_S, clean, demo, leftovers, stop_at, summary
from tests.sites import need_lab

pytestmark = [
    pytest.mark.lab,
    pytest.mark.slow,
    pytest.mark.skipif(not binaries.built(), reason="the lab's Kubernetes isn't built: make kubernetes"),
]
COMMAND = "lab.demo.kubernetes"
STEPS = ("1. Set up", "2. Declare", "3. Burst", "5. Refuse")


@pytest.fixture(autouse=True)
def machine():
    need_lab()


@pytest.mark.parametrize("option", ["", "--api-dies", "--difficult"])
def test_it_does_the_main_job(option):
    prefix, options = f"t-kd{option[2:5]}", [option] if option else []
    with demo(prefix, COMMAND, *options) as (process, output):
        assert process.wait(DEMO_S) == 0, output.read_text()
        told = summary(prefix)
        assert told["jobs"]["lost"] == told["jobs"]["run_twice"] == 0
        assert all(told["jobs"][fate]["jobs"] > 0 for fate in ("home", "waited", "rented"))
        assert all(fault["survived"] for fault in told["faults"].values()) and len(told["faults"]) >= 2
        assert told["faults"]["spot interruption"]["ran again"]
        assert told["figures"]["gangs_at_home"] and told["figures"]["gangs_rented"]
        assert told["refused"]["survived"] and len(told["refused"]["zones"]) == 2
        assert not any(told["leftovers"].values()) and not leftovers(prefix)
        assert "cloud instances that no lease paid for" in told["leftovers"]
        assert 0 < told["figures"]["rent_to_request_s"] <= told["figures"]["tick_s"] + 1
        tried = {"": set(), "--api-dies": {"the API server is killed"}}
        tried["--difficult"] = {"a difficult API server", "a node is not ready"}
        assert told["faults"].keys() - {"InsufficientInstanceCapacity", "spot interruption"} == tried[option]
        assert "<svg" in (LAB_ROOT / prefix / "report" / "index.html").read_text()


@pytest.mark.parametrize("step", STEPS)
def test_ctrl_c_cleans_up(step):
    prefix = f"t-kdemo-c{step[0]}"
    with demo(prefix, COMMAND) as (process, output):
        stop_at(step, prefix, process, output, signal.SIGINT, 1.0)
        assert process.wait(120) == 130, output.read_text()
        assert not leftovers(prefix) and not ControlPlane(prefix).running()


@pytest.mark.parametrize("step", STEPS)
def test_a_kill_leaves_nothing_after_clean_lab(step):
    prefix = f"t-kdemo-k{step[0]}"
    with demo(prefix, COMMAND) as (process, output):
        stop_at(step, prefix, process, output, signal.SIGKILL, 2.0)
        process.wait(30)
        clean(prefix)
        assert not leftovers(prefix) and not ControlPlane(prefix).running()
