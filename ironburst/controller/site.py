"""What one tick works with: the site as it is declared, and the ways to it."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from ironburst.burst import Halt
from ironburst.controller import records
from ironburst.controller.ledger import Ledger
from ironburst.document import ClusterDocument, PoolDocument
from ironburst.ports import Clock, Cloud, CloudError, Instance, Scheduler
from ironburst.ports.karpenter import Karpenter


class Told:
    """Reports that still hold: each is made once, not at every tick."""

    def __init__(self) -> None:
        self._before: set[str] = set()
        self._now: set[str] = set()

    def is_new(self, text: str) -> bool:
        """Whether it was reported neither in the last tick nor in this one."""
        new = text not in self._before and text not in self._now
        self._now.add(text)
        return new

    def tick_ended(self) -> None:
        """What wasn't reported again is over: it would be news."""
        self._before, self._now = self._now, set()


@dataclass
class Site:
    """The declaration, the ports, the ledger, and what the cloud answered at the tick's start."""

    document: ClusterDocument
    scheduler: Scheduler
    cloud: Cloud
    ledger: Ledger
    clock: Clock
    instances: dict[str, Instance]  # by id; of those that aren't here nothing is concluded but by asking for their ids
    told: Told = field(default_factory=Told)
    late_s: float = math.inf  # the tick's interval is used up then: what can wait is for the next one
    karpenter: Karpenter | None = None  # None: there is no way to it
    asked: bool = False  # the cloud was asked for instances in this tick
    # nodes that were powered up for a launch that the cloud refused, until the next decision; it outlives the tick
    spare: set[str] = field(default_factory=set)
    halt: Halt | None = None  # by a person
    # clouds that don't list their instances, by provider: nothing new is rented there without seeing them
    silent: dict[str, Halt] = field(default_factory=dict)
    stop_s: float = records.STOP_S  # so long a job has to leave a node that ends

    @property
    def now(self) -> float:
        """Seconds since 1970; it goes on during a tick."""
        return self.clock.now()

    def event(self, kind: str, text: str, *, launch: str = "", lease: str = "", job: int | None = None) -> None:
        """Write down that something happened now. `kind`: one word; `text`: for people."""
        self.ledger.event(kind, text, self.now, launch=launch, lease=lease, job=job)

    def tell(self, kind: str, text: str, *, launch: str = "", lease: str = "") -> None:
        """An event for as long as the same holds, however many ticks that is."""
        if self.told.is_new(text):
            self.event(kind, text, launch=launch, lease=lease)

    @property
    def unlisted(self) -> Halt | None:
        """Why no cloud of the document lists its instances; None: one does."""
        known = [self.silent.get(cloud.provider) for cloud in self.document.clouds] or [*self.silent.values()]
        return known[0] if known and None not in known else None

    def silent_of(self, pool: str) -> Halt | None:
        """Why the cloud of a pool doesn't list its instances; None: it does. One that isn't declared any more may be of
        any.
        """
        declared = self.document.pool(pool)
        return self.silent.get(declared.provider) if declared else next(iter(self.silent.values()), None)

    @property
    def late(self) -> bool:
        """The tick's interval is used up."""
        return self.now >= self.late_s


@dataclass(frozen=True)
class PoolImage:
    """A pool's image, or why there is none."""

    id: str = ""
    obstacle: str = ""


def pool_images(site: Site, known: dict[str, str]) -> dict[str, PoolImage]:
    """The image of each pool, by pool name. `known`: by parameter, what was found last; it counts while a parameter
    can't be looked up, and isn't looked up while nothing is rented.
    """
    return {pool.name: _image(site, pool, known) for pool in site.document.pools}


def _image(site: Site, pool: PoolDocument, known: dict[str, str]) -> PoolImage:
    parameter, before = pool.image, PoolImage(known.get(pool.image, ""))
    if site.silent_of(pool.name) and before.id:
        return before
    try:
        id = site.cloud.image_id(parameter)
    except CloudError as error:
        if before.id:
            site.tell("trouble", f"the image of pool {pool.name} can't be looked up, {before.id} counts on: {error}")
        return before if before.id else PoolImage(obstacle=f"its image can't be looked up ({error})")
    known[parameter] = id or ""
    missing = f"no image: the parameter {parameter} doesn't exist; bake one with playbooks/image.yml"
    return PoolImage(id) if id else PoolImage(obstacle=missing)
