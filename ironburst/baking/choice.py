"""What is decided around a bake: the root disk and the price of the build, and which older builds and images go."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from ironburst import catalog
from ironburst.document import ClusterDocument, PoolDocument
from ironburst.ports import CloudError
from ironburst.ports.images import BakeError, Image, Images

ABANDONED_S = 6 * 3600.0  # no bake takes so long: a build that runs powers itself off after 3 hours


def root_of(images: Images, base_image: str, pool: PoolDocument) -> Image:
    """The base image with the root disk that the pool's nodes are to have. Raises BakeError where it can't have it."""
    base = images.image(base_image)
    if base is None or base.state != "available":
        raise BakeError(f"the base image {base_image} is {base.state if base else 'not there'}: give an available one")
    if not base.root_gb:
        raise BakeError(f"the base image {base_image} has no network disk as its root: nothing could be baked on it")
    wanted = pool.root_disk_gb or base.root_gb
    if wanted < base.root_gb:
        raise BakeError(
            f"pool {pool.name} has root_disk_gb {wanted}, and the base image {base_image} needs {base.root_gb}: "
            f"declare {base.root_gb} or more"
        )
    return replace(base, root_gb=wanted)


def superfluous(baked: Sequence[Image], keep: int, kept: set[str]) -> list[str]:
    """The images to retire: all but the `keep` newest, those in `kept` and those that aren't finished."""
    newest = sorted(baked, key=lambda image: (image.made, image.id), reverse=True)
    return [image.id for image in newest[keep:] if image.id not in kept and image.state != "pending"]


def hourly(document: ClusterDocument, pool: PoolDocument, kind: str) -> float | None:
    """USD an hour of an instance type on demand: the document's price (it has the pool's own type), else the
    catalogue's; None if neither knows.
    """
    known = pool.usd_per_hour.get("on-demand") if kind == pool.instance_type else None
    if known is not None:
        return known
    try:
        listed = catalog.price(kind, "on-demand", document.region or "")
    except catalog.Unknown:  # it has GPU types
        return None
    return listed.usd_per_hour if listed else None


def end_abandoned(images: Images, cluster: str, now_s: float, say: Callable[[str], None]) -> list[str]:
    """End the build instances whose bake was killed: a stopped one never ends itself, and its disk costs money.
    Their ids; a failure is reported, and left to the next bake.
    """
    try:
        builds = images.builds(cluster)
        old = [build for build in builds if build.alive and now_s - build.launched_s > ABANDONED_S]
        if old:
            images.end([build.id for build in old])
    except CloudError as error:
        say(f"builds that somebody left could not be looked for and ended ({error})")
        return []
    for build in old:
        hours = (now_s - build.launched_s) / 3600
        say(f"{build.id} ended: a build of pool {build.pool}, {build.state}, that somebody left {hours:.0f} hours ago")
    return [build.id for build in old]
