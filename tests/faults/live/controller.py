"""The controller's program as its unit starts it in these tests: `ironburst`, with two faults that a file brings about.

{"dies": "Aws.launch, after"}: the process kills itself (SIGKILL) before or after that call, once.
{"clock_s": -3600}: its clock is off by so much. The lab's hosts share the machine's clock, so none of them can be set:
only SystemClock.now is off; what signs AWS's calls, and the host's uptime, is not.
"""

import json
import os
import signal
import sys
from pathlib import Path

from ironburst import cli
from ironburst.adapters.aws.cloud import Aws
from ironburst.adapters.slurm.scheduler import Slurm
from ironburst.controller.ledger import Ledger
from ironburst.controller.loop import SystemClock

PLAN = Path("/var/lib/ironburst/fault.json")
CALLS = {
    Slurm: ("put_permit", "power_up", "resume", "place", "release", "abandon", "remove_permit", "requeue"),
    Aws: ("launch", "terminate"),
    Ledger: ("add_launch", "add_intent", "answer_intent"),
}


def plan():
    try:
        return json.loads(PLAN.read_text())
    except (OSError, ValueError):
        return {}


def dies(point):
    if plan().get("dies") == point:
        PLAN.unlink()
        os.kill(os.getpid(), signal.SIGKILL)


def mortal(owner, name):
    was, point = getattr(owner, name), f"{owner.__name__}.{name}"

    def call(*args, **more):
        dies(f"{point}, before")
        done = was(*args, **more)
        dies(f"{point}, after")
        return done

    setattr(owner, name, call)


def main():
    for owner, names in CALLS.items():
        for name in names:
            mortal(owner, name)
    now = SystemClock.now
    SystemClock.now = lambda clock: now(clock) + plan().get("clock_s", 0.0)
    return cli.main()


if __name__ == "__main__":
    sys.exit(main())
