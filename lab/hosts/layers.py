"""Of what a host's disk is made: a base image, what dresses it as another system, and baked images, whose software is a
layer in .lab/<prefix>/images/<image id>/.
"""

import json
from pathlib import Path

from lab.hosts import dressing, systems
from lab.hosts.box import Box
from lab.system import LabError


def image_dir(box: Box, image: str) -> Path:
    """Where image `image` of a lab lies (or will lie)."""
    return box.dir / "images" / image


def is_image(box: Box, image: str) -> bool:
    """True if the lab has this baked image."""
    return (image_dir(box, image) / "image.json").is_file()


def of_image(box: Box, image: str | None, system: str = systems.USUAL) -> list[Path]:
    """Lower layers of a host's disk, uppermost first (None: no baked one). LabError for an image that isn't there."""
    layers: list[Path] = []
    while image is not None:
        if not is_image(box, image):
            known = ", ".join(sorted(path.parent.name for path in box.dir.glob("images/*/image.json"))) or "none"
            raise LabError(f"lab {box.prefix!r} has no image {image!r}; it has: {known}")
        folder = image_dir(box, image)
        layers.append(folder / "layer")
        image = json.loads((folder / "image.json").read_text())["parent"]
    return [*layers, *dressing.layers(systems.of(system), box.root)]
