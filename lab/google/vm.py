"""An instance of the stand-in."""

from __future__ import annotations

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
