#!/usr/bin/python3
"""ironburst-notice: tell the controller that the cloud takes this node's instance back.

Some clouds tell nobody but the instance itself, half a minute before (ironburst_cloud.py beside this file asks). The
node closes itself to jobs, with a reason that names its instance, and the controller finds that where it looks at nodes
anyway. A shutdown that comes first is asked for its reason. In Kubernetes the node is cordoned, and not more.
Python 3.9.
"""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import ironburst_cloud as cloud

ROOT = Path(os.environ.get("IRONBURST_NOTICE_ROOT", "/"))  # another root in tests
PAUSE_S = 1.0  # after an error
TAKEN_BACK = "ironburst: taken back by the cloud"  # as ironburst.controller.notices has it


class Ended(Exception):
    """This program is to end."""


def asked_to_end(*_):
    """The handler of SIGTERM."""
    raise Ended


def wait(etag=""):
    """Why the instance is taken back; empty: this program is to end, and it isn't."""
    while True:
        try:
            why, etag = cloud.notice(etag)
            if why:
                return why
        except (OSError, LookupError, TypeError, ValueError) as error:
            print(f"notice: the metadata service doesn't answer: {error!r}", file=sys.stderr, flush=True)
            etag = ""
            time.sleep(PAUSE_S)
        except Ended:
            return cloud.notice("")[0]


def command(settings, why):
    """What closes the node to jobs."""
    if settings.get("scheduler") == "kubernetes":
        return ["ironburst-kubelet", "cordon"]
    reason = f"{TAKEN_BACK} ({why}): {cloud.instance()[0]}"
    return ["scontrol", "update", f"nodename={settings['node']}", "state=drain", f"reason={reason}"]


def main():
    """The exit status."""
    signal.signal(signal.SIGTERM, asked_to_end)
    settings = json.loads((ROOT / "run/ironburst/dead-man.json").read_text())
    if not settings.get("node"):
        return 0  # nobody's rented node
    try:
        why = wait()
        if not why:
            return 0
    except Ended:
        return 0
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # there is half a minute, and then none
    while True:
        try:
            subprocess.run(command(settings, why), check=True, stdin=subprocess.DEVNULL, timeout=20)
            print(f"notice: {settings['node']} is taken back: {why}", flush=True)
            return 0
        except (OSError, subprocess.SubprocessError) as error:
            print(f"notice: the scheduler doesn't hear it: {error}", file=sys.stderr, flush=True)
            time.sleep(PAUSE_S)


if __name__ == "__main__":
    sys.exit(main())
