"""Slurm under SchedMD's names: packages as SchedMD's debian/ makes them, around Debian 13's own daemons (STAND-IN: the
real ones are built by `ironburst packages slurm`). They run where the userland is Debian 13's: debian13, ubuntu2404.

Alike: names, relations, units that are enabled and started by a postinst, no user made. Not alike: what the daemons say
of themselves (slurm-wlm), the plugins' folder, SchedMD's build options; the NSS plugin is empty.

Cached as .lab/cache/schedmd-<hash of the recipe>/ and served as http://10.78.0.1/schedmd/apt/, with its key
schedmd/lab.asc.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

from lab import names
from lab.hosts import cache
from lab.hosts.box import Box
from lab.packages import apt, repository
from lab.system import LAB_ROOT, run

NAME = "schedmd"
VERSION = "24.11.5-1"
# SchedMD's package: Debian's that are in it
PARTS = {
    "slurm-smd": ("slurm-wlm-basic-plugins", "slurm-wlm-mysql-plugin"),
    "slurm-smd-client": ("slurm-client",),
    "slurm-smd-slurmd": ("slurmd",),
    "slurm-smd-slurmctld": ("slurmctld",),
    "slurm-smd-slurmdbd": ("slurmdbd",),
    "slurm-smd-libnss-slurm": (),
}
CONFLICTS = {
    "slurm-smd": "slurm-wlm, slurm-wlm-basic-plugins, slurm-wlm-mysql-plugin",
    "slurm-smd-client": "slurm-client",
    "slurm-smd-slurmd": "slurmd",
    "slurm-smd-slurmctld": "slurmctld",
    "slurm-smd-slurmdbd": "slurmdbd",
}
NOT_SCHEDMDS = ("usr/share/doc", "usr/share/lintian", "etc/init.d", "usr/lib/sysusers.d", "usr/lib/tmpfiles.d")
# Debian's own, and what its maintainer scripts need
NOT_A_LIBRARY = re.compile(r"^(slurm|ucf|adduser|systemd)")
POSTINST = """#!/bin/sh
# As debhelper writes it. STAND-IN of the lab
set -e
[ "$1" = configure ] || exit 0
deb-systemd-helper enable {unit} > /dev/null || true
[ ! -d /run/systemd/system ] || {{ systemctl daemon-reload; deb-systemd-invoke {verb} {unit} > /dev/null || true; }}
"""


def path(root: Path = LAB_ROOT) -> Path:
    """Where the repository lies (or will lie)."""
    code = [cache.code_of(function) for function in (_build, _pack, _relations, apt.index, apt.sign)]
    parts = (VERSION, PARTS, CONFLICTS, NOT_SCHEDMDS, POSTINST)
    return cache.path_of(NAME, root, repository.repo_path(root).name, parts, code)


def folder(root: Path = LAB_ROOT) -> Path:
    """The repository; built now (half a minute) if it isn't there."""
    repository.repositories(root)
    return cache.built("lab.packages.schedmd", root, path(root))


def serve(box: Box) -> dict[str, object]:
    """Put it beside the repositories that the lab serves; its entry of base_apt_repositories."""
    link = box.dir / repository.SERVED / NAME
    if not link.exists():
        link.symlink_to(folder(box.root))
    url = f"{names.REPOSITORY_URL}/{NAME}"
    return {
        "name": NAME,
        "url": f"{url}/apt",
        "suite": "stable",
        "components": ["main"],
        "key_url": f"{url}/lab.asc",
        "key_sha256": cache.sha256(link / "lab.asc"),
    }


# --- building ---------------------------------------------------------------------------------------------------------


def _build(root: Path, target: Path) -> None:
    new = target.with_suffix(".new")
    shutil.rmtree(new, ignore_errors=True)
    pool = new / "apt/pool"
    pool.mkdir(parents=True)
    debian = repository.repositories(root) / "debian/pool"
    with tempfile.TemporaryDirectory(prefix="lab-schedmd-") as scratch:
        for name, parts in PARTS.items():
            _pack(name, [next(debian.glob(f"{part}_*.deb")) for part in parts], Path(scratch), pool)
    apt.index(new / "apt", {"Origin": f"lab-{NAME}", "Label": f"lab-{NAME}"})
    apt.sign(new, ["apt"])
    new.rename(target)


def _pack(name: str, debs: Sequence[Path], scratch: Path, pool: Path) -> None:
    tree = scratch / name
    (tree / "DEBIAN").mkdir(parents=True)
    for deb in debs:
        run(["dpkg-deb", "-x", str(deb), str(tree)])
    for gone in NOT_SCHEDMDS:
        shutil.rmtree(tree / gone, ignore_errors=True)
    for file in [*tree.glob("usr/*bin/*-wlm")]:  # Debian chooses by update-alternatives
        file.rename(file.with_name(file.name.removesuffix("-wlm")))
    if units := sorted(file.name for file in tree.glob("usr/lib/systemd/system/*.service")):
        postinst = tree / "DEBIAN/postinst"
        postinst.write_text(POSTINST.format(unit=" ".join(units), verb="restart"))
        postinst.chmod(0o755)
    control = {
        "Package": name,
        "Version": VERSION,
        "Architecture": "amd64",
        "Maintainer": apt.MAINTAINER,
        "Depends": _relations(name, debs),
        "Conflicts": CONFLICTS.get(name, ""),
        "Description": f"STAND-IN of {name}: Debian's daemons under SchedMD's name",
    }
    (tree / "DEBIAN/control").write_text("".join(f"{key}: {text}\n" for key, text in control.items() if text))
    run(["dpkg-deb", "--root-owner-group", "-Zgzip", "-b", str(tree), str(pool)])


def _relations(name: str, debs: Sequence[Path]) -> str:
    """Debian's libraries, and SchedMD's own relations."""
    given = [word.strip() for deb in debs for word in run(["dpkg-deb", "-f", str(deb), "Depends"]).split(",")]
    libraries = sorted({word for word in given if not NOT_A_LIBRARY.match(word)} - {"munge"})
    own = [] if name in ("slurm-smd", "slurm-smd-libnss-slurm") else [f"slurm-smd (= {VERSION})"]
    return ", ".join([*libraries, *own, *(["munge"] if debs else [])])


if __name__ == "__main__":
    cache.main(path, _build)
