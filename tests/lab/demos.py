"""Demos as processes, for the tests of them as a whole."""

import json
import os
import shutil
import signal
import subprocess
import sys
from contextlib import contextmanager

import pytest

from lab.hosts.box import Box
from lab.system import CHECKOUT, LAB_ROOT, wait_for

DEMO_S = 1200


@contextmanager
def demo(prefix, *command, cloud="aws"):
    """A demo that runs, and its output's path. The lab is down afterwards. `command`: another one than lab.demo."""
    output = LAB_ROOT / f"{prefix}.out"
    with output.open("w") as file:
        process = subprocess.Popen(
            [sys.executable, "-m", *(command or ("lab.demo",))],
            cwd=CHECKOUT,
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=file,
            start_new_session=True,
            env=os.environ | {"LAB_PREFIX": prefix, "CLOUD": cloud},
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


def stop_at(step, prefix, process, output, sig, after_s):
    """Send `sig` some seconds after the step began."""
    wait_for(
        lambda: step in output.read_text() or process.poll() is not None, DEMO_S, f"{prefix}: step {step}", pause=0.1
    )
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(after_s)
    os.killpg(process.pid, sig)
