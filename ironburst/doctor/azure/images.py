"""Images of groups and pools: there, ready, of the size's architecture, and no larger than the root disk."""

from __future__ import annotations

from collections.abc import Iterator

from ironburst import catalog
from ironburst.catalog.azure.sizes import size
from ironburst.doctor.azure.site import AzureSite, Nodes
from ironburst.doctor.azure.subscription import ImageVersion
from ironburst.doctor.checks import CheckResult, State, answered, judged
from ironburst.doctor.rented import image_of

CHECK = "images"


def check(site: AzureSite) -> Iterator[CheckResult]:
    """Of a pool the newest version that counts."""
    for who, nodes in site.nodes:
        yield from answered(CHECK, f"image of {who}", _of(site, who, nodes))


def _of(site: AzureSite, who: str, nodes: Nodes) -> Iterator[CheckResult]:
    reference, another = image_of(site.cloud, site.config.name, who, nodes)
    what, image = f"image of {who}", site.subscription.image(reference)
    if image is None:
        yield CheckResult(CHECK, what, "fail", f"{reference} isn't there, or has no version that counts", another)
        return
    yield from judged(CHECK, what, _wrong(nodes, image, another), image.name)


def _wrong(nodes: Nodes, image: ImageVersion, another: str) -> Iterator[tuple[State, str, str]]:
    if image.state not in ("Succeeded", "Updating"):
        yield "fail", f"{image.name} is {image.state}", another
    if image.disk_gb > nodes.root_disk_gb:
        todo = f"write root_disk_gb: {image.disk_gb} or more"
        yield "fail", f"{image.name} needs {image.disk_gb} GB, and root_disk_gb is {nodes.root_disk_gb}", todo
    if image.generation == "V1":
        yield "fail", f"{image.name} is of generation 1, and H100 and later sizes boot generation 2 alone", another
    for kind in catalog.known(nodes.types, size):
        if image.architecture and image.architecture != kind.architecture:
            yield "fail", f"{image.name} is of {image.architecture}, and {kind.name} of {kind.architecture}", another
