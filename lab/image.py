"""Images: the software of a baked host as a layer over the base image, in .lab/<prefix>/images/<image id>/."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from lab import rootfs
from lab.box import Box, LabError, run

if TYPE_CHECKING:
    from lab.host import Host

# A baked image carries software, never an identity; these are removed from the baked host's layer
IDENTITY = [
    "etc/hostname",
    "etc/hosts",
    "etc/ssh/ssh_host_*",
    "etc/ironburst/node.env",
    "etc/munge/munge.key",
    "etc/systemd/system.conf.d/10-lab.conf",
    "var/log/journal/*",
    "var/log/*.log",
    "var/log/*/*.log",
    "var/lib/systemd/random-seed",
    "var/lib/dbus/machine-id",
    "var/cache/apt/archives/*.deb",
    "root/.bash_history",
    "root/.ansible",
    "tmp/*",
    "var/tmp/*",
]


def image_dir(box: Box, image: str) -> Path:
    return box.dir / "images" / image


def layers(box: Box, image: str | None) -> list[Path]:
    """Lower layers of a host's disk, uppermost first."""
    found: list[Path] = []
    while image is not None:
        folder = image_dir(box, image)
        if not (folder / "image.json").is_file():
            known = ", ".join(sorted(path.parent.name for path in box.dir.glob("images/*/image.json"))) or "none"
            raise LabError(f"lab {box.prefix!r} has no image {image!r}; it has: {known}")
        found.append(folder / "layer")
        image = json.loads((folder / "image.json").read_text())["parent"]
    return [*found, rootfs.base_image(box.root)]


def bake(host: Host, image: str) -> Path:
    """Stop `host` and make image `image` of its disk, without identity; the host stays, off. Returns images/<image>."""
    target = image_dir(host.box, image)
    if target.exists():
        raise LabError(f"image {image!r} exists already in lab {host.box.prefix!r}")
    spec = host.spec
    host.stop()
    new = target.with_name(f"{image}.new")
    shutil.rmtree(new, ignore_errors=True)
    new.mkdir(parents=True)
    layer = new / "layer"
    run(["cp", "--archive", str(host.dir / "up"), str(layer)])  # keeps whiteouts and the overlay's attributes
    for pattern in IDENTITY:
        for path in layer.glob(pattern):
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
    (layer / "etc").mkdir(exist_ok=True)
    (layer / "etc/machine-id").write_text("")  # empty: a new one at boot
    (new / "image.json").write_text(json.dumps({"id": image, "parent": spec.image, "baked_from": spec.name}))
    new.rename(target)
    return target
