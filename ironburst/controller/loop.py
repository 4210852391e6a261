"""Tick after tick until told to stop."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

from ironburst.controller.lock import LockedError
from ironburst.controller.tick import Controller, Report
from ironburst.document import ClusterDocument, DocumentError
from ironburst.ports import CloudError, SchedulerError, Uptime

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


class SystemClock:
    """A Clock (ironburst.ports). `stop` ends every wait."""

    def __init__(self) -> None:
        self._stop = threading.Event()

    def now(self) -> float:
        """Seconds since 1970."""
        return time.time()

    def uptime(self) -> Uptime:
        """Of this host since its boot, time asleep included."""
        try:
            return Uptime(BOOT_ID.read_text().strip(), time.clock_gettime(time.CLOCK_BOOTTIME))
        except (OSError, AttributeError):  # no Linux
            return Uptime("", time.monotonic())

    def wait(self, seconds: float) -> bool:
        """True: `stop` was called."""
        return self._stop.wait(seconds)

    def stop(self) -> None:
        """End every wait, now and later."""
        self._stop.set()

    @property
    def stopped(self) -> bool:
        """Whether `stop` was called."""
        return self._stop.is_set()


def run(
    controller: Controller,
    clock: SystemClock,
    read: Callable[[], ClusterDocument],
    told: Callable[[Report | Exception], None],
) -> None:
    """Tick at the document's interval, from tick start to tick start.
    `told` gets each report, or why a tick saw nothing.
    """
    interval = 10.0
    while not clock.stopped:
        began = time.monotonic()
        try:
            document = read()
            interval = float(document.burst.tick_s)
            told(controller.tick(document))
        except (SchedulerError, CloudError, DocumentError) as error:  # the site is out of reach, not broken: look again
            controller.ledger.event("trouble", str(error), clock.now())
            told(error)
        except LockedError as error:  # another controller holds the site: not ours to write down
            told(error)
        clock.wait(max(interval - (time.monotonic() - began), 0.05))
