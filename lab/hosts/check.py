"""What the lab needs from the machine, checked before anything is touched."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from lab.hosts import cgroups
from lab.system import LAB_ROOT, LabError

FREE_BYTES = 2 * 10**9
# of the Debian packages in packages.sh
COMMANDS = (
    "systemd-nspawn",
    "mmdebstrap",
    "ip",
    "apt-ftparchive",
    "ssh",
    "ssh-keygen",
    "gpg",
    "gpgconf",
    "gpg-agent",
    "unshare",
    "nsenter",
    "setpriv",
    "flock",
    "mount",
    "dpkg-deb",
    "apt-get",
    "chroot",
    "nft",
)


def check(root: Path = LAB_ROOT) -> None:
    """LabError with one clear sentence for the first thing that is missing."""
    if os.geteuid() != 0:
        raise LabError(
            "the lab makes namespaces and mounts, which needs root on Linux: run it as root (sudo), "
            "or run only the tests without hosts"
        )
    if missing := [command for command in COMMANDS if shutil.which(command) is None]:
        raise LabError(
            f"the lab needs {', '.join(missing)}, not found on this machine: install them with `make lab-packages`"
        )
    if any(blank in str(root) for blank in " \t\n:,"):
        raise LabError(
            f"the lab's folder {str(root)!r} has a blank, colon or comma in its path, "
            "which overlay mounts can't take: move the checkout"
        )
    root.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(root).free
    if free < FREE_BYTES:
        needed, there = f"{FREE_BYTES / 1e9:g} GB", f"{free / 1e9:.1f} GB"
        raise LabError(
            f"the lab needs {needed} of free disk at {root}, there are {there}: free some, or move the checkout"
        )
    if not cgroups.roots():
        raise LabError(
            "the lab needs a cgroup tree for systemd (v2, or v1 name=systemd), and found none below /sys/fs/cgroup"
        )
    _try_overlay(root)


def _try_overlay(root: Path) -> None:
    """Mount an overlay in namespaces of its own, as every host needs it; LabError if that is refused."""
    with tempfile.TemporaryDirectory(prefix="check-", dir=root) as scratch:
        for name in ("lower", "upper", "work", "mount"):
            Path(scratch, name).mkdir()
        options = f"lowerdir={scratch}/lower,upperdir={scratch}/upper,workdir={scratch}/work"
        mount = ["mount", "-t", "overlay", "overlay", "-o", options, f"{scratch}/mount"]
        attempt = ["unshare", "--net", "--mount", "--pid", "--fork", *mount]
        done = subprocess.run(attempt, capture_output=True, text=True)
        if done.returncode:
            said = done.stderr.strip().splitlines()[-1:]
            raise LabError(
                f"the lab can't make namespaces or mount an overlay at {root} ({said}): "
                "it needs CAP_SYS_ADMIN, and a disk that is not itself an overlay"
            )
