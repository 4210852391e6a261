"""The apt repositories of one system: NVIDIA's (`nv`) and the distribution's own packages of the driver (`own`), as
stubs; and for hosts with Debian 12's userland the real packages of it that the roles need (`debian`).

Cached as .lab/cache/<system>apt-<hash of the recipe>/ and .lab/cache/bookwormapt-<hash>/, served beside the others, as
http://10.78.0.1/<system>/nv/ and .../lab.asc (the key).
"""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import astuple
from pathlib import Path

from lab import names
from lab.hosts import cache, rootfs, systems
from lab.hosts.box import Box
from lab.packages import apt, driver_debs
from lab.packages.repository import SERVED, mirror
from lab.system import LAB_ROOT

# What the roles install of the distribution, on each of Debian 12's userland
PACKAGES = [
    *("chrony", "containerd", "runc", "docker.io", "iptables", "gnupg", "gpgv", "curl", "acl"),
    *("rdma-core", "infiniband-diags", "perftest", "numactl"),
    *("munge", "mariadb-server", "mariadb-client", "python3-pymysql", "rsync", "nftables", "python3-boto3"),
]
# What a Release file says of whose it is
ORIGINS = {"nv": "NVIDIA", "debian": "Debian"}


def path(root: Path, name: str) -> Path:
    """Where the repositories of a system, or of a suite of Debian, lie (or will lie)."""
    code = [cache.code_of(function) for function in (_build, mirror, *apt.STEPS)]
    if name not in systems.SYSTEMS:
        return cache.path_of(f"{name}apt", root, rootfs.base_path(root, name).name, PACKAGES, code)
    stubs = [astuple(each) for of in (driver_debs.vendor, driver_debs.distribution) for each in of(name)]
    return cache.path_of(f"{name}apt", root, stubs, code)


def repository(name: str, root: Path = LAB_ROOT) -> Path:
    """Folder of the repositories of a system or a suite; built now if it isn't there. Several callers at once build it
    once.
    """
    return cache.built("lab.packages.apt_repository", root, path(root, name), name)


def serve(box: Box, name: str) -> list[dict[str, object]]:
    """Put a system's repositories beside those that the lab serves: them, as base_apt_repositories has them."""
    suite = systems.of(name).suite
    for folder in {name, suite} - {rootfs.SUITE}:
        link = box.dir / SERVED / folder
        if not link.exists():
            link.symlink_to(repository(folder, box.root))
    archive = "debian" if suite == rootfs.SUITE else f"{suite}/debian"
    return [_served(box, path) for path in (f"{name}/nv", f"{name}/own", archive)]


def _served(box: Box, path: str) -> dict[str, object]:
    folder = path.rpartition("/")[0]
    return {
        "name": path.replace("/", "-"),
        "url": f"{names.REPOSITORY_URL}/{path}",
        "suite": "stable",
        "components": ["main"],
        "key_url": f"{names.REPOSITORY_URL}/{folder}/lab.asc".replace("//lab", "/lab"),
        "key_sha256": cache.sha256(box.dir / SERVED / folder / "lab.asc"),
    }


# --- building: runs in its own mount namespace ------------------------------------------------------------------------


def _build(root: Path, target: Path, name: str) -> None:
    new = target.with_suffix(".new")
    shutil.rmtree(new, ignore_errors=True)
    if name in systems.SYSTEMS:
        parts = {"nv": driver_debs.vendor(name), "own": driver_debs.distribution(name)}
    else:
        parts = {"debian": []}
    for part, packages in parts.items():
        (new / part / "pool").mkdir(parents=True)
        with tempfile.TemporaryDirectory(prefix="lab-repo-") as scratch:
            for package in packages:
                apt.pack(package, Path(scratch), new / part / "pool")
    if "debian" in parts:
        mirror(root, new / "debian/pool", name, PACKAGES)
    for part in parts:
        origin = ORIGINS.get(part) or ("Ubuntu" if name.startswith("ubuntu") else "Debian")
        apt.index(new / part, {"Origin": origin, "Label": "NVIDIA CUDA" if part == "nv" else origin})
    apt.sign(new, list(parts))
    new.rename(target)


if __name__ == "__main__":
    cache.main(path, _build)
