"""A hall as its rules see it: what stands where, what feeds it, what is cabled to what. None is unknown, never zero."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from dataclasses import dataclass, field

BTU_H_PER_W = 3.412142
"""1 W is 3.412142 BTU/h (international table BTU; NIST SP 811, B.9)"""
CONTINUOUS = 0.8
"""of a breaker's rating, what may be drawn all the time (HW-004: NEC 210.20)"""
UNIT_MM = 44.45
"""height of a rack unit (EIA-310)"""
PHASES = ("L1", "L2", "L3")
SWITCHES = ("leaf", "spine", "core", "ethernet", "management")
FABRIC = ("leaf", "spine", "core")
"""kinds of InfiniBand switches, from the nodes upwards"""

Where = tuple[str | int, ...]
"""keys and positions in the declaration, below the hall"""


@dataclass(frozen=True)
class Circuit:
    """One breaker. `volts`: between two phases; of one phase, at the outlet."""

    name: str
    feed: str
    phases: int
    volts: float
    breaker_a: float
    where: Where = ()

    @property
    def capacity_w(self) -> float:
        """What may be drawn all the time, of all phases together."""
        return CONTINUOUS * self.breaker_a * self.volts * (math.sqrt(3) if self.phases == 3 else 1)

    @property
    def phase_names(self) -> tuple[str, ...]:
        """One phase has no name."""
        return PHASES if self.phases == 3 else ("",)


@dataclass(frozen=True)
class Pdu:
    """A power strip on one circuit; `outlets` None: not counted."""

    name: str
    circuit: str
    outlets: int | None = None
    where: Where = ()


@dataclass(frozen=True)
class Rack:
    """A rack and its limits; None: it has no such limit. `at_m`: x and y on the floor."""

    name: str
    units: int = 42
    depth_mm: float | None = None
    max_weight_kg: float | None = None
    power_kw: float | None = None
    cooling_kw: float | None = None
    cooling: str | None = None
    airflow_cfm: float | None = None
    at_m: tuple[float, float] | None = None
    pdus: tuple[Pdu, ...] = ()
    where: Where = ()


@dataclass(frozen=True)
class Device:
    """A node or a switch. `kind`: gpu, head, login, or one of SWITCHES; `unit`: its lowest rack unit; `hcas`: ports of
    the compute fabric; `ports`, `rail`: a switch's; `cords`: PDU or PDU/phase of each power supply, empty: planned.
    """

    name: str
    kind: str
    rack: str | None = None
    unit: int | None = None
    height: int | None = None
    platform: str | None = None
    vendor: str | None = None
    power_w: float | None = None
    heat_btu_h: float | None = None
    weight_kg: float | None = None
    depth_mm: float | None = None
    airflow_cfm: float | None = None
    cooling: str | None = None
    inlet_min_c: float | None = None
    inlet_max_c: float | None = None
    psus: int | None = None
    psu_w: float | None = None
    psus_needed: int | None = None
    cords: tuple[str, ...] = ()
    gpus: int = 0
    gpu_w: float | None = None
    hcas: int | None = None
    ports: int = 0
    rail: int | None = None
    where: Where = ()

    @property
    def is_switch(self) -> bool:
        """No node."""
        return self.kind in SWITCHES

    @property
    def heat(self) -> float | None:
        """BTU/h: the larger one of what its maker states and what it draws."""
        if self.power_w is None:
            return self.heat_btu_h
        return max(self.heat_btu_h or 0.0, self.power_w * BTU_H_PER_W)


@dataclass(frozen=True)
class End:
    """A port of a device: ib1 of a node, 1 of a switch."""

    device: str
    port: str

    def __str__(self) -> str:
        return f"{self.device}/{self.port}"


@dataclass(frozen=True)
class Cable:
    """One cable."""

    a: End
    b: End
    type: str
    speed: str
    length_m: float
    where: Where = ()


@dataclass(frozen=True)
class CableLimit:
    """How long a type of cable may be at a speed. `exists`: it is made at all; `max_m` None: not known."""

    exists: bool
    max_m: float | None


@dataclass(frozen=True)
class Speed:
    """Of a link. `network`: infiniband or ethernet."""

    network: str
    gb_s: float


SPEEDS = {
    "XDR": Speed("infiniband", 800),
    "NDR": Speed("infiniband", 400),
    "HDR": Speed("infiniband", 200),
    "HDR100": Speed("infiniband", 100),
    "EDR": Speed("infiniband", 100),
    "400GbE": Speed("ethernet", 400),
    "200GbE": Speed("ethernet", 200),
    "100GbE": Speed("ethernet", 100),
    "25GbE": Speed("ethernet", 25),
    "10GbE": Speed("ethernet", 10),
    "1GbE": Speed("ethernet", 1),
}


@dataclass(frozen=True, eq=False)  # itself a key: what is computed of it is computed once
class Hall:
    """All of a hall. `subnet_managers`: what would be master, one entry each (hosts of opensm are one);
    `cable_limits`: by speed and type.
    """

    name: str
    racks: tuple[Rack, ...] = ()
    circuits: tuple[Circuit, ...] = ()
    devices: tuple[Device, ...] = ()
    cables: tuple[Cable, ...] = ()
    cable_limits: Mapping[tuple[str, str], CableLimit] = field(default_factory=dict)
    cooling_kw: float | None = None
    inlet_c: float | None = None
    oversubscription: float = 1.0
    subnet_managers: tuple[str, ...] = ()
    power_on_gap_s: int = 10

    @functools.cached_property
    def device(self) -> Mapping[str, Device]:
        """Devices by name."""
        return {device.name: device for device in self.devices}

    @functools.cached_property
    def rack(self) -> Mapping[str, Rack]:
        """Racks by name."""
        return {rack.name: rack for rack in self.racks}

    @functools.cached_property
    def circuit(self) -> Mapping[str, Circuit]:
        """Circuits by name."""
        return {circuit.name: circuit for circuit in self.circuits}

    @functools.cached_property
    def pdus(self) -> tuple[tuple[Rack, Pdu], ...]:
        """Every PDU, with its rack."""
        return tuple((rack, pdu) for rack in self.racks for pdu in rack.pdus)

    @functools.cached_property
    def in_rack(self) -> Mapping[str, tuple[Device, ...]]:
        """What stands in each rack, from below."""
        found: dict[str, list[Device]] = {rack.name: [] for rack in self.racks}
        for device in self.devices:
            if device.rack in found:
                found[device.rack].append(device)
        return {name: tuple(sorted(devices, key=lambda each: each.unit or 0)) for name, devices in found.items()}


@dataclass(frozen=True)
class Violation:
    """A rule that is broken: which one, where it was declared, what breaks it in words, the numbers, ways out."""

    rule: str
    where: Where
    subject: str
    text: str
    numbers: Mapping[str, float] = field(default_factory=dict)
    ways_out: tuple[str, ...] = ()
    severity: str = "error"

    def __str__(self) -> str:
        return (
            f"{self.subject} {self.text}: {', or '.join(self.ways_out)}"
            if self.ways_out
            else f"{self.subject} {self.text}"
        )
