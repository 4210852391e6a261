"""The step list that a person watches: a live line on a terminal, plain lines elsewhere."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Iterator
from typing import TextIO


class Steps:
    """Steps with elapsed times. `seconds` holds what each took, by its key, in order."""

    def __init__(self, out: TextIO = sys.stdout):
        self.out, self.live = out, out.isatty()
        self.seconds: dict[str, float] = {}
        self._began = time.monotonic()
        self._now: tuple[str, float] | None = None
        self._lock = threading.Lock()
        self._wake = threading.Event()

    @contextlib.contextmanager
    def step(self, key: str, title: str) -> Iterator[None]:
        """Time what is done inside. An exception marks the step as failed and goes on."""
        start = time.monotonic()
        number = len(self.seconds) + 1
        self._now = (f"{number}. {title}", start)
        self._print(f"{number}. {title}")
        drawer = threading.Thread(target=self._draw, daemon=True)
        self._wake.clear()
        if self.live:
            drawer.start()
        mark = "failed after"
        try:
            yield
            mark = "done in"
        finally:
            self.seconds[key] = round(time.monotonic() - start, 1)
            self._now = None
            self._wake.set()
            if self.live:
                drawer.join()
            self._print(f"   {mark} {self.seconds[key]:.1f} s")

    def say(self, text: str) -> None:
        """One fact of the running step, with the time since the demo began."""
        self._print(f"   {time.monotonic() - self._began:6.1f}  {text}")

    def _print(self, line: str) -> None:
        with self._lock:
            clear = "\r\x1b[K" if self.live else ""
            self.out.write(f"{clear}{line}\n")
            self.out.flush()

    def _draw(self) -> None:
        """Keep one live line under the list until the step ends."""
        while not self._wake.wait(0.2):
            if now := self._now:
                with self._lock:
                    self.out.write(f"\r\x1b[K   … {time.monotonic() - now[1]:.0f} s")
                    self.out.flush()
        with self._lock:
            self.out.write("\r\x1b[K")
