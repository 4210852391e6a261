"""A queue's messages as they come: a thread waits for them (SQS's long polling asks all of its servers and answers at
once), so that no tick does.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from ironburst.ports import CloudError

LONGEST_S = 20
"""that SQS holds a call"""
FORGOTTEN_S = 120.0  # nobody asked for so long: the controller is gone, or the queue is another one
_AGAIN_S = 5.0  # after an error
_MOST = 2000  # messages that wait here; the others wait in the queue


class Waiting:
    """One queue. `receive(seconds)`: what came within so long; raises CloudError."""

    def __init__(self, receive: Callable[[int], list[dict[str, Any]]]):
        self._receive, self._lock = receive, threading.Condition()
        self._came: list[dict[str, Any]] = []
        self._failed: CloudError | None = None
        self._thread: threading.Thread | None = None
        self._asked = time.monotonic()

    def taken(self) -> list[dict[str, Any]]:
        """What came since the last call, without waiting. Raises the CloudError of the last round if nothing did."""
        with self._lock:
            self._asked = time.monotonic()
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._wait, name="notices", daemon=True)
                self._thread.start()
            came, self._came = self._came, []
            failed, self._failed = self._failed, None
            self._lock.notify()
        if failed and not came:
            raise failed
        return came

    def stop(self) -> None:
        """After the round that runs, nothing more is received."""
        with self._lock:
            self._asked = time.monotonic() - FORGOTTEN_S
            self._lock.notify()

    def _wanted(self) -> bool:
        return time.monotonic() - self._asked < FORGOTTEN_S

    def _wait(self) -> None:
        while True:
            try:
                came, failed = self._receive(LONGEST_S), None
            except CloudError as error:
                came, failed = [], error
            with self._lock:
                self._came += came
                self._failed = failed
                if failed:
                    self._lock.wait(_AGAIN_S)
                while len(self._came) >= _MOST and self._wanted():
                    self._lock.wait(FORGOTTEN_S)
                if not self._wanted():
                    self._thread = None
                    return
