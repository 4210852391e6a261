"""The gcp stand-in for its tests: its process."""

from __future__ import annotations

from pathlib import Path

from lab.provider import harness

BIN = Path(__file__).parent / "bin"


class Engine(harness.Engine):
    """Its process, and the calls an engine makes."""

    package, folder = "gcp", BIN
