"""An instance of the stand-in, and what stands behind it: nothing, or a machine that does what the cloud does to it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]


@dataclass
class Vm:
    """An instance. `raw`: as the API shows it."""

    raw: Json
    zone: str
    made_s: float
    disks: list[str] = field(default_factory=list)
    console: str = ""
    reservation: str = ""
    preempted: bool = False  # as its metadata says
    maintenance: str = "NONE"

    @property
    def name(self) -> str:
        return self.raw["name"]

    @property
    def model(self) -> str:
        return self.raw["scheduling"].get("provisioningModel", "STANDARD")

    @property
    def machine_type(self) -> str:
        return self.raw["machineType"].rpartition("/")[2]


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
