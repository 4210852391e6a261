"""What a person writes of a hall's power, room and cabling (`halls` of ironburst.config.models). All of it may be left
out: what isn't declared isn't checked.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from ironburst.config.software_models import Strict
from ironburst.config.types import Duration, Name, Range

Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Label = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", examples=["PP2-14"])]
Speed = Literal["XDR", "NDR", "HDR", "HDR100", "EDR", "400GbE", "200GbE", "100GbE", "25GbE", "10GbE", "1GbE"]
CableType = Literal["dac", "acc", "aoc", "multimode", "single-mode", "twisted-pair"]
Cooling = Literal["air", "liquid"]


class Circuit(Strict):
    """A circuit of the hall's power: one breaker."""

    name: Label
    feed: Literal["A", "B"] = Field(description="side of the supply; each side must carry everything alone")
    phases: Literal[1, 3] = Field(examples=[3])
    volts: Positive = Field(
        description="between two phases; of a single phase, at the outlet", examples=[415, 208, 230]
    )
    breaker_a: Positive = Field(description="rating of the breaker; 80 % of it may be used all the time")


class Pdu(Strict):
    """A power strip of a rack."""

    name: Label
    circuit: Label = Field(description="one of the hall's circuits")
    outlets: int | None = Field(default=None, gt=0, description="none: not counted")


class Rack(Strict):
    """A rack of a hall."""

    name: Name
    units: int = Field(default=42, gt=0, le=60, description="height of the rack")
    depth_mm: Positive | None = Field(default=None, description="between its rails' front and its door")
    max_weight_kg: Positive | None = Field(default=None, description="what it carries, or the floor below it")
    power_kw: Positive | None = Field(default=None, description="what the site lets it draw")
    cooling_kw: Positive | None = Field(default=None, description="heat that is carried away from it")
    cooling: Cooling | None = None
    airflow_cfm: Positive | None = Field(default=None, description="air that it gets")
    at_m: Annotated[list[float], Field(min_length=2, max_length=2)] | None = Field(
        default=None,
        description="place on the floor, x and y; cables' lengths are held against it",
        examples=[[0, 1.2]],
    )
    pdus: list[Pdu] = Field(default=[], description="none: its power isn't checked")


class Chassis(Strict):
    """What the maker states of a machine. A node has its platform's figures where they are left out; an unknown one
    that is needed for a limit must be given.
    """

    power_w: Positive | None = Field(default=None, description="the most that it draws, or what it is capped to")
    heat_btu_h: Positive | None = Field(default=None, description="none: power_w in BTU/h")
    weight_kg: Positive | None = None
    depth_mm: Positive | None = None
    airflow_cfm: Positive | None = None
    cooling: Cooling | None = None
    inlet_max_c: Positive | None = Field(default=None, description="warmest air that it takes in")
    psus: int | None = Field(default=None, gt=0, description="power supplies")
    psu_w: Positive | None = Field(default=None, description="what one of them gives")
    psus_needed: int | None = Field(default=None, gt=0, description="4 of 4+2: as many must carry it alone")


Cord = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*(/L[123])?$", examples=["a03-a/L1"])]
"""PDU of the rack, and which phase of it."""


class Switches(Strict):
    """One or more equal switches. Lists and ranges give one value a switch, in the order of `names`."""

    names: Range = Field(examples=["leaf[1-8]"])
    kind: Literal["leaf", "spine", "core", "ethernet", "management"] = Field(
        description="leaf, spine and core are InfiniBand's"
    )
    ports: int = Field(gt=0, le=1024)
    rack: Name | None = Field(default=None, description="one of the hall's racks")
    units: list[Annotated[int, Field(gt=0)]] = Field(default=[], description="lowest rack unit of each; with a rack")
    height: int = Field(default=1, gt=0, description="rack units")
    rails: list[Annotated[int, Field(gt=0)]] = Field(
        default=[], description="rail of each leaf: HCA n of every node belongs to a leaf of rail n; none: no rails"
    )
    subnet_manager: bool = Field(default=False, description="a subnet manager runs on the first of them")
    chassis: Chassis = Chassis()
    cords: list[Cord] = Field(default=[], description="as of nodes")


class Cables(Strict):
    """One or more equal cables."""

    ends: Annotated[list[Range], Field(min_length=2, max_length=2)] = Field(
        description="NAME/PORT of both ends, as many values each; HCA n of a node is port ibn, a switch has numbers; "
        "parts of a split port are NUMBER/PART as the switch numbers them, or its own names (swp7s1, Ethernet1/7/1)",
        examples=[["dgx[01-04]/ib1", "leaf1/[1-4]"], ["dgx[01-04]/eth1", "eth1/[1-2]/[0-1]"]],
    )
    type: CableType = Field(description="dac, acc: passive, active copper; aoc: active optical; fibre by its mode")
    speed: Speed
    length_m: Positive


class Breaker(Strict):
    """When what nodes have is one event of the hall, and no longer each node's own."""

    share: float = Field(
        default=0.1,
        gt=0,
        lt=1,
        description="of the hall's GPU nodes: more of them within an hour, and two at least, have it of the hall "
        "(docs/adr/0092)",
    )
    drain_after: Duration = Field(
        default="4h",
        validate_default=True,
        description="nodes that work all the same, as one that is too hot, are drained when it has lasted so long",
    )


class Facilities(Strict):
    """What feeds, cools and joins a hall's machines."""

    breaker: Breaker = Breaker()

    ufm: bool = Field(default=False, description="UFM manages the subnet")
    circuits: list[Circuit] = Field(default=[], description="none: power isn't checked")
    cooling_kw: Positive | None = Field(default=None, description="heat that is carried out of the room")
    inlet_c: float | None = Field(default=None, allow_inf_nan=False, description="temperature of the air at the racks")
    switches: list[Switches] = Field(default=[], description="none: the fabric isn't checked")
    cables: list[Cables] = Field(default=[], description="none: cabling isn't checked")
    nightly_stress: bool = Field(
        default=False, description="`ironburst fabric stress --nightly` measures between its idle nodes"
    )
    oversubscription: float = Field(
        default=1.0,
        ge=1,
        allow_inf_nan=False,
        description="at most so much bandwidth of a leaf's nodes to one of its uplinks",
    )
    power_on_gap: Duration = Field(
        default="10s", validate_default=True, description="between two nodes of a rack that are powered on"
    )
