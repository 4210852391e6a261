"""What the doctor asks of a project of Google Cloud: a Protocol, and the records that pass through it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class Quota:
    """A metric of Compute Engine's, of the region or of the project."""

    limit: float
    usage: float


@dataclass(frozen=True)
class Reservation:
    """A reservation of machines. `specific`: only who names it runs in it."""

    machine_type: str
    count: int
    in_use: int
    specific: bool
    status: str  # READY, CREATING, ...


@dataclass(frozen=True)
class ImageFacts:
    """An image, or the newest of a family."""

    name: str
    status: str  # READY, PENDING, FAILED
    disk_gb: int
    architecture: str  # x86_64, aarch64; empty: not said


@dataclass(frozen=True)
class Left:
    """What has the cluster's label and may be used by nobody. `used`: by whom, empty: by nobody."""

    kind: str  # disk, address, machine
    name: str
    where: str
    used: str


class Project(Protocol):
    """All methods raise Unasked."""

    def services(self) -> Set[str]:
        """The APIs that are enabled, of those in services.NEEDED."""

    def allowed(self, permissions: Sequence[str]) -> Set[str]:
        """Those of these permissions that the caller has in the project."""

    def quotas(self) -> Mapping[str, Quota]:
        """By metric: the region's, and the project's own."""

    def zones(self) -> Mapping[str, str]:
        """Zones of the region and their status: UP or DOWN."""

    def offered(self, zone: str, machine_type: str) -> bool:
        """Whether the zone has the type."""

    def reservation(self, zone: str, name: str) -> Reservation | None:
        """A reservation, of this project or shared with it; None: there is none of that name."""

    def image(self, reference: str) -> ImageFacts | None:
        """An image, or the newest of a family; None: there is none."""

    def spot_usd(self, machine_type: str) -> float | None:
        """What an hour of spot costs now; None: it isn't sold so."""

    def left(self, cluster: str) -> Sequence[Left]:
        """Disks, addresses and stopped machines with the cluster's label."""
