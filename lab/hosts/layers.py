"""Images: the software of a baked host as a layer over the base image, in .lab/<prefix>/images/<image id>/."""

import json
from pathlib import Path

from lab.hosts import rootfs
from lab.hosts.box import Box
from lab.system import LabError


def image_dir(box: Box, image: str) -> Path:
    """Where image `image` of a lab lies (or will lie)."""
    return box.dir / "images" / image


def is_image(box: Box, image: str) -> bool:
    """True if the lab has this baked image."""
    return (image_dir(box, image) / "image.json").is_file()


def of_image(box: Box, image: str | None) -> list[Path]:
    """Lower layers of a host's disk, uppermost first (None: the base image). LabError for an image that isn't there."""
    layers: list[Path] = []
    while image is not None:
        if not is_image(box, image):
            known = ", ".join(sorted(path.parent.name for path in box.dir.glob("images/*/image.json"))) or "none"
            raise LabError(f"lab {box.prefix!r} has no image {image!r}; it has: {known}")
        folder = image_dir(box, image)
        layers.append(folder / "layer")
        image = json.loads((folder / "image.json").read_text())["parent"]
    return [*layers, rootfs.base_image(box.root)]
