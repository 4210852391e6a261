"""Ctrl-C and SIGTERM, for a while in other hands."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def handled(handler: Any) -> Iterator[None]:
    """`handler` (a function, or signal.SIG_IGN) takes SIGINT and SIGTERM inside;
    those from before come back. Main thread only.
    """
    kept = {number: signal.signal(number, handler) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, before in kept.items():
            signal.signal(number, before)
