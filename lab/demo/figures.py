"""How quickly the controller acted, and what the demo took of the machine."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Sequence
from pathlib import Path

from ironburst.controller.ledger import Ledger
from lab.demo.history import History
from lab.hosts.rootfs import base_path
from lab.packages.repository import repo_path


def reaction(ledger: Ledger, history: History, began: float, tick_s: float) -> dict[str, float]:
    """The slowest of each, in seconds: from `rent` decided to the first request, from the last node's join to the start
    of its job.

    Slurm's accounting tells a start in whole seconds. 0.0 where nothing was rented.
    """
    rent_to_request, joined_to_running = [0.0], [0.0]
    runs = {job.id: [run for run in job.runs if run.rented] for job in history.jobs}
    events = ledger.events(began - tick_s)
    for rent in (event for event in events if event.kind == "rent"):
        mine = [event for event in events if event.launch == rent.launch]
        requested = [event.at_s for event in mine if event.kind == "requested"]
        joined = [event.at_s for event in mine if event.kind == "joined"]
        rent_to_request += [min(requested) - rent.at_s] if requested else []
        starts = [
            began + run.start for run in runs.get(rent.job or 0, []) if joined and began + run.start >= min(joined) - 1
        ]
        joined_to_running += [max(0.0, min(starts) - max(joined))] if starts else []
    return {
        "tick_s": tick_s,
        "rent_to_request_s": round(max(rent_to_request), 1),
        "joined_to_running_s": round(max(joined_to_running), 1),
    }


def caches(root: Path) -> tuple[Path, ...]:
    """The images of a lab with hosts."""
    return base_path(root), repo_path(root)


class Usage:
    """Peaks of disk and memory while it runs, sampled every few seconds.

    Disk is what the cached images and this lab's folder hold; memory is what the machine has less than before, whoever
    uses it.
    """

    def __init__(self, folder: Path, images: Sequence[Path]):
        self._images, self._folder = images, folder
        self._disk = self._memory = 0
        self._before = _available()
        self._stop = threading.Event()
        threading.Thread(target=self._watch, daemon=True).start()

    def _watch(self) -> None:
        while not self._stop.wait(3.0):
            self._disk = max(self._disk, _size(self._folder))
            self._memory = max(self._memory, self._before - _available())

    def stop(self) -> dict[str, float]:
        self._stop.set()
        disk = self._disk + sum(map(_size, self._images))
        return {"disk_peak_mb": round(disk / 1e6), "memory_peak_mb": round(self._memory / 1e6)}


def _available() -> int:
    line = next(line for line in Path("/proc/meminfo").read_text().splitlines() if line.startswith("MemAvailable"))
    return int(line.split()[1]) * 1024


def _size(path: Path) -> int:
    """Bytes on disk below `path`. What vanishes meanwhile counts or not."""
    told = subprocess.run(["du", "-sxB1", str(path)], capture_output=True, text=True).stdout.split()
    return int(told[0]) if told else 0
