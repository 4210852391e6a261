"""Sent to a GPU node by `ironburst hall cap`: look at its GPUs' power limits, cap them, or give them back.

The work is done by the program of role gpu_power_limit, which comes with the question: it stays on the node while that
is capped, with its unit, so that a boot sets the cap again; where the role is on the node they are its own.

The question: {"program": text, "unit": text, "watts": of each GPU, null: what is declared again; left out: only look,
  "root": "" but in tests}.
The answer: {"gpus": [[limit, least, most, default] in W, null: unknown], "cap": W or null, "declared": W or null} as it
is then, or {"error": sentence}. Python 3.6, root.
"""

import fcntl
import json  # noqa: F401 (sent_program.py reads the question with it)
import os
import subprocess
import sys  # noqa: F401 (likewise)
import time
from typing import Any, Dict, Optional

MARK = "IRONBURST "
LOCK_S = 60  # a look of the gate takes 20 s at most
UNIT = "ironburst-power-limit.service"


class PowerCapHost:
    """The files of one, and what the program can do."""

    def __init__(self, question: Dict[str, Any]) -> None:
        root = question.get("root", "")
        self.question = question
        self.limit, self.cap = (root + "/etc/ironburst/power-" + name for name in ("limit", "cap"))
        self.program = root + "/usr/local/sbin/ironburst-power-limit"
        self.unit = root + "/etc/systemd/system/" + UNIT
        self.lock = root + "/run/ironburst/health.lock"
        self.does = {"__name__": "power_limit"}  # type: Dict[str, Any]
        exec(compile(question["program"], self.program, "exec"), self.does)

    def seen(self) -> Dict[str, Any]:
        """The answer. Raises the program's Failed."""
        watts = self.does["watts"]
        names = ("power.limit", "power.min_limit", "power.max_limit", "power.default_limit")
        gpus = [[watts(fields[name]) for name in names] for _, fields in self.does["seen"]()]
        return {"gpus": gpus, "cap": number(self.cap), "declared": number(self.limit)}

    def hold(self, watts: Optional[float]) -> None:
        """Cap, or give back. Raises the program's Failed, and OSError."""
        os.makedirs(os.path.dirname(self.lock), exist_ok=True)
        with open(self.lock, "w") as lock:  # the gate's: GPUs that differ for a moment would drain the node
            take(lock)
            if watts is not None:
                self.does["refuse"](self.does["seen"](), watts, "the hall's cap")
                for path, text, mode in (
                    (self.program, self.question["program"], 0o755),
                    (self.unit, self.question["unit"], 0o644),
                    (self.cap, "%g\n" % watts, 0o644),
                ):
                    write(path, text, mode)
                run("systemctl", "daemon-reload")
                run("systemctl", "enable", UNIT)
            elif not os.path.exists(self.program):  # never capped
                return
            elif os.path.exists(self.cap):
                os.unlink(self.cap)
            self.does["hold"](self.limit)
            if watts is None and not os.path.exists(self.limit):
                run("systemctl", "disable", UNIT)
                for path in (self.unit, self.program):
                    if os.path.exists(path):
                        os.unlink(path)


def take(lock: Any) -> None:
    """Take the lock; a gate that hangs keeps nobody for ever."""
    end = time.monotonic() + LOCK_S
    while True:
        try:
            return fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            if time.monotonic() > end:
                return None
            time.sleep(0.2)


def number(path: str) -> Optional[float]:
    """What a file says; None: it isn't there."""
    if not os.path.exists(path):
        return None
    with open(path) as file:
        return float(file.read())


def write(path: str, text: str, mode: int) -> None:
    """Replace a file at once."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path + ".part", "w") as file:
        file.write(text)
    os.chmod(path + ".part", mode)
    os.replace(path + ".part", path)


def run(*argv: str) -> None:
    """Raises OSError with what it says."""
    done = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60, check=False)
    if done.returncode:
        raise OSError("%s: %s" % (" ".join(argv), " ".join(done.stdout.decode(errors="replace").split())))


def gather(question: Dict[str, Any]) -> Dict[str, Any]:
    """The answer."""
    node = PowerCapHost(question)
    try:
        if "watts" in question:
            node.hold(question["watts"])
        return node.seen()
    except (node.does["Failed"], OSError, ValueError, subprocess.SubprocessError) as error:
        return {"error": " ".join(str(error).split())}
