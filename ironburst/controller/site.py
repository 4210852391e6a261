"""What one tick works with: the site as it is declared, and the ways to it."""

from __future__ import annotations

from dataclasses import dataclass

from ironburst.controller.ledger import Ledger
from ironburst.document import ClusterDocument, PoolDocument
from ironburst.ports import Clock, Cloud, CloudError, Instance, Scheduler


@dataclass
class Site:
    """The declaration, the ports, the ledger, and what the cloud said at the tick's start."""

    document: ClusterDocument
    scheduler: Scheduler
    cloud: Cloud
    ledger: Ledger
    clock: Clock
    instances: dict[str, Instance]  # by id

    @property
    def now(self) -> float:
        """Seconds since 1970; it goes on during a tick."""
        return self.clock.now()

    def event(self, kind: str, text: str, *, launch: str = "", lease: str = "", job: int | None = None) -> None:
        """Write down that something happened now. `kind`: one word; `text`: for people."""
        self.ledger.event(kind, text, self.now, launch=launch, lease=lease, job=job)


@dataclass(frozen=True)
class PoolImage:
    """A pool's image, or why there is none."""

    id: str = ""
    obstacle: str = ""


def pool_images(document: ClusterDocument, cloud: Cloud) -> dict[str, PoolImage]:
    """The image of each pool, by pool name."""
    return {pool.name: _image(pool, cloud) for pool in document.pools}


def _image(pool: PoolDocument, cloud: Cloud) -> PoolImage:
    try:
        id = cloud.image_id(pool.image_parameter)
    except CloudError as error:
        return PoolImage(obstacle=f"its image can't be looked up ({error})")
    missing = f"no image: the parameter {pool.image_parameter} doesn't exist; bake one with playbooks/image.yml"
    return PoolImage(id) if id else PoolImage(obstacle=missing)
