"""What stands behind a stand-in's machine: nothing, or one that does what the cloud does to it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol


class Machine(Protocol):
    """`console`: what it has written to its first serial port, where nothing stands behind it."""

    console: str

    @property
    def name(self) -> str: ...


class Machines:
    """Nothing. Each method returns at once: a world that asks holds its lock."""

    def launch(self, machine: Machine, image: str, /) -> None:
        """Boot it. `image`: name of its boot disk's."""

    def press(self, machine: Machine, /) -> None:
        """Its power button: it is to shut down by itself (ACPI G2)."""

    def off(self, machine: Machine, /) -> None:
        """It is off, and its disk stays."""

    def end(self, machine: Machine, /) -> None:
        """It is gone, and its disk."""

    def bake(self, _machine: Machine, _image: str, ready: Callable[[bool], None], /) -> None:
        """Make image `image` of its disk, and say when that is done, and whether it went well."""
        ready(True)

    def console(self, machine: Machine, /) -> str:
        """What it has written to its first serial port."""
        return machine.console

    def powered_off(self, _machine: Machine, /) -> bool:
        """Whether a running one has powered itself off."""
        return False
