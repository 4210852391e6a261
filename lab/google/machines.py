"""What stands behind the instances of the stand-in: nothing, or machines that do what the cloud does to them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lab.google.world import Vm


class Machines:
    """Nothing. Each method returns at once: a world that asks holds its lock."""

    def launch(self, vm: Vm, image: str, /) -> None:
        """Boot the machine of an instance. `image`: name of its boot disk's."""

    def press(self, vm: Vm) -> None:
        """Its power button: it is to shut down by itself (ACPI G2)."""

    def off(self, vm: Vm) -> None:
        """It is off, and its disk stays."""

    def end(self, vm: Vm) -> None:
        """It is gone, and its disk."""

    def bake(self, _vm: Vm, _image: str, ready: Callable[[bool], None], /) -> None:
        """Make image `image` of its disk, and say when that is done, and whether it went well."""
        ready(True)

    def console(self, vm: Vm) -> str:
        """What it has written to its first serial port."""
        return vm.console

    def powered_off(self, _vm: Vm, /) -> bool:
        """Whether a running one has powered itself off."""
        return False
