"""What the lab needs from the machine, checked before anything is touched."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from lab.box import LAB_ROOT, LabError, cgroup_roots

FREE_BYTES = 2 * 10**9
COMMANDS = {  # command: Debian package
    "systemd-nspawn": "systemd-container",
    "mmdebstrap": "mmdebstrap",
    "ip": "iproute2",
    "apt-ftparchive": "apt-utils",
    "ssh": "openssh-client",
    "ssh-keygen": "openssh-client",
    "gpg": "gpg",
    "gpgconf": "gpgconf",
    "gpg-agent": "gpg-agent",
    "unshare": "util-linux",
    "nsenter": "util-linux",
    "setpriv": "util-linux",
    "flock": "util-linux",
    "mount": "mount",
    "dpkg-deb": "dpkg",
    "apt-get": "apt",
    "chroot": "coreutils",
}


def check(root: Path = LAB_ROOT) -> None:
    """LabError with one clear sentence for the first thing that is missing."""
    if os.geteuid() != 0:
        raise LabError(
            "the lab makes namespaces and mounts, which needs root on Linux: run it as root (sudo), or run only the tests without hosts"
        )
    missing = {command: package for command, package in COMMANDS.items() if shutil.which(command) is None}
    if missing:
        raise LabError(
            f"the lab needs {', '.join(sorted(missing))}, not found on this machine: "
            f"apt-get install -y --no-install-recommends {' '.join(sorted(set(missing.values())))}"
        )
    if any(blank in str(root) for blank in " \t\n:,"):
        raise LabError(
            f"the lab's folder {str(root)!r} has a blank, colon or comma in its path, which overlay mounts can't take: move the checkout"
        )
    root.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(root).free
    if free < FREE_BYTES:
        raise LabError(
            f"the lab needs {FREE_BYTES / 1e9:g} GB of free disk at {root}, there are {free / 1e9:.1f} GB: free some, or move the checkout"
        )
    if not cgroup_roots():
        raise LabError("the lab needs a cgroup tree for systemd (v2, or v1 name=systemd), and found none below /sys/fs/cgroup")
    with tempfile.TemporaryDirectory(prefix="check-", dir=root) as scratch:
        for name in ("lower", "upper", "work", "mount"):
            os.mkdir(f"{scratch}/{name}")
        options = f"lowerdir={scratch}/lower,upperdir={scratch}/upper,workdir={scratch}/work"
        attempt = [
            "unshare",
            "--net",
            "--mount",
            "--pid",
            "--fork",
            "mount",
            "-t",
            "overlay",
            "overlay",
            "-o",
            options,
            f"{scratch}/mount",
        ]
        done = subprocess.run(attempt, capture_output=True, text=True)
        if done.returncode:
            raise LabError(
                f"the lab can't make namespaces or mount an overlay at {root} ({done.stderr.strip().splitlines()[-1:]}): "
                "it needs CAP_SYS_ADMIN, and a disk that is not itself an overlay"
            )
