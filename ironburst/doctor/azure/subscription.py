"""What the doctor asks of a subscription of Azure: a Protocol, and the records that pass through it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class CoreQuota:
    """Of vCPUs: of a family of sizes, of all of a region, or of all spot machines of a region."""

    limit: int
    usage: int


@dataclass(frozen=True)
class SizeFacts:
    """A size as a region offers it to the subscription. `closed`: zone, or empty for the whole region, to why it isn't
    offered there; `family`: as a quota is called; `spot`: None: not said.
    """

    family: str
    vcpus: int
    zones: Set[str]
    closed: Mapping[str, str]
    spot: bool | None


@dataclass(frozen=True)
class ReservationGroup:
    """A group of capacity reservations. `kind`: Targeted, Open or Block; `places`: (size, zone), the zone's number or
    empty, to how many machines; `taken`: those in use.
    """

    kind: str
    places: Mapping[tuple[str, str], int]
    taken: int


@dataclass(frozen=True)
class ImageVersion:
    """An image, or the newest version of one. Empty, or 0: not said."""

    name: str
    state: str  # Succeeded, Creating, ...
    disk_gb: int = 0
    architecture: str = ""  # x86_64, aarch64
    generation: str = ""  # V1, V2


@dataclass(frozen=True)
class Remnant:
    """What is in a launch's group, and may be used by nobody. `used`: by whom, empty: by nobody."""

    kind: str  # disk, interface, machine, group
    name: str
    group: str
    used: str


@dataclass(frozen=True)
class Reaper:
    """The workflow that ends leases. `ran_s`: when it last began (seconds since 1970); None: never."""

    state: str  # Enabled, Disabled, ...
    ran_s: float | None
    ended: str  # Succeeded, Failed, Running, ...; empty: it never ran


class Subscription(Protocol):
    """All methods raise Unasked."""

    def providers(self) -> Mapping[str, str]:
        """Those of providers.NEEDED and their state: Registered, NotRegistered, ..."""

    def allowed(self, group: str, actions: Sequence[str]) -> Set[str]:
        """Those of these actions that the caller may do in a resource group."""

    def quotas(self) -> Mapping[str, CoreQuota]:
        """By name in small letters: a family's, `cores`, `lowprioritycores`."""

    def sizes(self) -> Mapping[str, SizeFacts]:
        """Those of the region, by name in small letters."""

    def reservation(self, group: str) -> ReservationGroup | None:
        """A group of them, by its id; None: there is none."""

    def image(self, reference: str) -> ImageVersion | None:
        """An image of a gallery or of the marketplace; None: there is none, or none that counts."""

    def spot_usd(self, size: str) -> float | None:
        """What an hour of spot costs now; None: it isn't sold so."""

    def left(self, cluster: str) -> Sequence[Remnant]:
        """What the groups of the cluster's launches have."""

    def reaper(self, cluster: str) -> Reaper | None:
        """None: there is none."""
