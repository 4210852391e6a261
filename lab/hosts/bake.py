"""Baking: a host's disk becomes an image, with all that is on it."""

import json
import shutil
from pathlib import Path

from lab.hosts import layers
from lab.hosts.host import Host
from lab.system import LabError, run

# What the lab itself has put on the disk. Nothing else is taken away, as a cloud takes nothing away: what must not be
# in an image is whoever bakes it to remove
OF_THE_LAB = ["etc/hostname", "etc/hosts", "etc/systemd/system.conf.d/10-lab.conf"]


def bake(host: Host, image: str) -> Path:
    """Stop `host` and make image `image` of its disk as it is; the host stays, off. Returns images/<image>."""
    target = layers.image_dir(host.box, image)
    if target.exists():
        raise LabError(f"image {image!r} exists already in lab {host.box.prefix!r}")
    spec = host.spec
    host.stop()
    new = target.with_name(f"{image}.new")
    shutil.rmtree(new, ignore_errors=True)
    new.mkdir(parents=True)
    layer = new / "layer"
    run(["cp", "--archive", str(host.dir / "up"), str(layer)])  # keeps whiteouts and the overlay's attributes
    for name in OF_THE_LAB:
        (layer / name).unlink(missing_ok=True)
    (new / "image.json").write_text(json.dumps({"id": image, "parent": spec.image, "baked_from": spec.name}))
    new.rename(target)
    return target
