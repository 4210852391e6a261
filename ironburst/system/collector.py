"""Python's collector of cycles, kept out of work that makes much and throws little away."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def paused() -> Iterator[None]:
    """Nothing is looked through for cycles meanwhile: with 10,000 jobs that was a third of a tick, and found none."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()
