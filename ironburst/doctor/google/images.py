"""Images of groups and pools: there, ready, of the type's architecture, and no larger than the root disk."""

from __future__ import annotations

from collections.abc import Iterator

from ironburst import catalog
from ironburst.catalog.google.machine_types import machine_type
from ironburst.doctor.checks import CheckResult, State, answered, judged
from ironburst.doctor.google.project import ImageFacts
from ironburst.doctor.google.site import GoogleSite, Nodes
from ironburst.doctor.rented import image_of

CHECK = "images"


def check(site: GoogleSite) -> Iterator[CheckResult]:
    """Of a pool the newest of its family."""
    for who, nodes in site.nodes:
        yield from answered(CHECK, f"image of {who}", _of(site, who, nodes))


def _of(site: GoogleSite, who: str, nodes: Nodes) -> Iterator[CheckResult]:
    reference, another = image_of(site.cloud, site.config.name, who, nodes)
    what, image = f"image of {who}", site.project.image(reference)
    if image is None:
        yield CheckResult(CHECK, what, "fail", f"{reference} isn't there, or isn't shared with this project", another)
        return
    yield from judged(CHECK, what, _wrong(nodes, image, another), f"{image.name}, {image.disk_gb} GB")


def _wrong(nodes: Nodes, image: ImageFacts, another: str) -> Iterator[tuple[State, str, str]]:
    if image.status != "READY":
        yield "fail", f"{image.name} is {image.status}", another
    if image.disk_gb > nodes.root_disk_gb:
        todo = f"write root_disk_gb: {image.disk_gb} or more"
        yield "fail", f"{image.name} needs {image.disk_gb} GB, and root_disk_gb is {nodes.root_disk_gb}", todo
    for kind in catalog.known(nodes.types, machine_type):
        if image.architecture and image.architecture != kind.architecture:
            yield "fail", f"{image.name} is of {image.architecture}, and {kind.name} of {kind.architecture}", another
