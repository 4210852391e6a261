"""Baking: a host's disk becomes an image, without its identity."""

import json
import shutil
from pathlib import Path

from lab.hosts import layers
from lab.hosts.host import Host
from lab.system import LabError, run

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


def bake(host: Host, image: str) -> Path:
    """Stop `host` and make image `image` of its disk, without identity; the host stays, off. Returns images/<image>."""
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
    for pattern in IDENTITY:
        for path in layer.glob(pattern):
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
    (layer / "etc").mkdir(exist_ok=True)
    (layer / "etc/machine-id").write_text("")  # empty: a new one at boot
    (new / "image.json").write_text(json.dumps({"id": image, "parent": spec.image, "baked_from": spec.name}))
    new.rename(target)
    return target
