"""Images of groups and pools: there, ready, of the type's architecture, and no larger than the root disk."""

from __future__ import annotations

from collections.abc import Iterator

from ironburst import catalog
from ironburst.catalog.google.machine_types import machine_type
from ironburst.config.google.models import GoogleGroup
from ironburst.doctor.checks import CheckResult, State, answered
from ironburst.doctor.google.project import ImageFacts
from ironburst.doctor.google.site import GoogleSite, Nodes

CHECK = "images"


def check(site: GoogleSite) -> Iterator[CheckResult]:
    """Of a pool the newest of its family."""
    for who, nodes in site.nodes:
        yield from answered(CHECK, f"image of {who}", _of(site, who, nodes))


def _of(site: GoogleSite, who: str, nodes: Nodes) -> Iterator[CheckResult]:
    fixed = isinstance(nodes, GoogleGroup)
    reference = nodes.image if isinstance(nodes, GoogleGroup) else site.cloud.image_place(site.config.name, nodes.name)
    another = f"declare another at {who}" if fixed else f"bake one: ironburst image {nodes.name}"
    what, image = f"image of {who}", site.project.image(reference)
    if image is None:
        yield CheckResult(CHECK, what, "fail", f"{reference} isn't there, or isn't shared with this project", another)
        return
    wrong = list(_wrong(nodes, image, another))
    for state, seen, todo in wrong:
        yield CheckResult(CHECK, what, state, seen, todo)
    if not wrong:
        yield CheckResult(CHECK, what, "ok", f"{image.name}, {image.disk_gb} GB")


def _wrong(nodes: Nodes, image: ImageFacts, another: str) -> Iterator[tuple[State, str, str]]:
    if image.status != "READY":
        yield "fail", f"{image.name} is {image.status}", another
    if image.disk_gb > nodes.root_disk_gb:
        todo = f"write root_disk_gb: {image.disk_gb} or more"
        yield "fail", f"{image.name} needs {image.disk_gb} GB, and root_disk_gb is {nodes.root_disk_gb}", todo
    for name in nodes.types:
        try:
            arch = machine_type(name).architecture
        except catalog.Unknown:
            continue
        if image.architecture and image.architecture != arch:
            yield "fail", f"{image.name} is of {image.architecture}, and {name} of {arch}", another
