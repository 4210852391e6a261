"""Tick after tick until asked to stop."""

from __future__ import annotations

import threading
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from ironburst.controller.lock import Lost
from ironburst.controller.tick import Report
from ironburst.document import ClusterDocument, DocumentError
from ironburst.ports import CloudError, SchedulerError, Uptime

_OUT_OF_REACH = (SchedulerError, CloudError, DocumentError)  # the site, not broken: the next tick looks again

_LOOK_S = 0.5  # between two looks for orders

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


class Ticking(Protocol):
    """A Controller, or its Shadow."""

    def tick(self, document: ClusterDocument) -> Report:
        """One tick."""

    @property
    def hurried(self) -> bool | None:
        """Whether the next tick is wanted at once; None: nobody orders anything of it."""

    def tell(self, kind: str, text: str) -> None:
        """An event for as long as the same holds."""


def run(
    controller: Ticking,
    clock: SystemClock,
    read: Callable[[], ClusterDocument],
    told: Callable[[Report | Exception], None],
) -> None:
    """Tick at the document's interval, from tick start to tick start, or sooner where a person's order waits. `told`
    gets each report, or why a tick failed. Nothing that a tick raises ends this: who would give the rented nodes back?
    Only of a ledger that another head may have taken over it raises Lost.
    """
    interval = 10.0
    while not clock.stopped:
        began = time.monotonic()
        try:
            document = read()
            interval = float(document.burst.tick_s)
            told(controller.tick(document))
        except Lost:
            raise
        except Exception as error:
            with suppress(Exception):  # a ledger that takes nothing, or a terminal that is gone: one of both may do
                told(error)
            controller.tell("trouble" if isinstance(error, _OUT_OF_REACH) else "needs_a_person", _what(error))
        left_s = max(interval - (time.monotonic() - began), 0.05)
        step_s = left_s if controller.hurried is None else _LOOK_S
        while left_s > 0 and not clock.wait(min(left_s, step_s)) and not controller.hurried:
            left_s -= step_s


def said(error: Exception) -> str:
    """What went wrong, and what the brake did, for people."""
    return "; ".join((_what(error), *getattr(error, "__notes__", ())))


def _what(error: Exception) -> str:
    if isinstance(error, _OUT_OF_REACH):
        return str(error)
    frames = traceback.extract_tb(error.__traceback__)
    where = f" in {Path(frames[-1].filename).name}, line {frames[-1].lineno}" if frames else ""
    return f"a tick failed: {type(error).__name__}: {error}{where}"
