"""What a person at a terminal sees while a verb works: what it does, and for how long already."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

AFTER_S = 2.0
"""what takes less is done before anybody wonders"""
EVERY_S = 0.5
_CLEAR = "\r\033[K"


@contextmanager
def told(what: str) -> Iterator[None]:
    """One line on a terminal's stderr while the body works, gone with its end; none in pipes. The body prints
    nothing.
    """
    if not sys.stderr.isatty():
        yield
        return
    stream, began, over = sys.stderr, time.monotonic(), threading.Event()

    def tell() -> None:
        wait_s = AFTER_S
        while not over.wait(wait_s):
            print(f"{_CLEAR}{what} ... {time.monotonic() - began:.0f} s", end="", file=stream, flush=True)
            wait_s = EVERY_S

    teller = threading.Thread(target=tell, daemon=True)
    teller.start()
    try:
        yield
    finally:
        over.set()
        teller.join()
        if time.monotonic() - began >= AFTER_S:
            print(_CLEAR, end="", file=stream, flush=True)
