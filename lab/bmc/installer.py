"""What an install medium does to a machine of the lab: it runs the medium's own guard, and then makes the disk anew.

A stand-in for the distribution's installer. The guard and the last program of the medium are real and run by a real
shell; the machine's /sys and /dev are folders, a disk is a file there, and its EFI partition is a folder beside it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

# A partition is a folder; what isn't one can't be mounted
MOUNT = {
    "mount": '#!/bin/sh\n[ -d "$5" ] && cp -r "$5/." "$6/"\n',
    "umount": '#!/bin/sh\nrm -rf "$1"/*\n',
    "modprobe": "#!/bin/sh\n",
}
DISK, ESP = "nvme0n1", "nvme0n1p1"


class Result(NamedTuple):
    """What became of a start from the medium: installed, already (it was), or refused, and what the guard said."""

    outcome: str
    said: str


def machine_folder(folder: Path, serial: str, disk: str) -> None:
    """Make the folders of a machine with one disk, which is empty. There already: only its serial number is written."""
    links = folder / "dev/disk/by-id"
    (folder / "sys/class/dmi/id").mkdir(parents=True, exist_ok=True)
    (folder / "sys/class/dmi/id/product_serial").write_text(f"{serial}\n")
    links.mkdir(parents=True, exist_ok=True)
    (folder / "dev" / DISK).touch()
    block = folder / "sys/class/block" / DISK
    block.mkdir(parents=True, exist_ok=True)
    (block / "size").write_text("4096\n")
    (folder / "bin").mkdir(exist_ok=True)
    for name, text in MOUNT.items():
        (folder / "bin" / name).write_text(text)
        (folder / "bin" / name).chmod(0o755)
    for link in links.iterdir():
        link.unlink()
    (links / f"nvme-LAB_{disk}").symlink_to(folder / "dev" / DISK)


def esp(folder: Path) -> Path:
    """The EFI system partition of the machine's disk, as a folder."""
    return folder / "dev" / ESP


def start(folder: Path, medium: Path, write: Callable[[], Path]) -> Result:
    """Start the machine from a medium (a folder). `write` makes the disk's system anew and returns its root."""
    path = f"{folder / 'bin'}:{os.environ.get('PATH', '/usr/bin:/bin')}"
    env = {"PATH": path, "TMPDIR": str(folder)}
    env |= {"IRONBURST_SYS": str(folder / "sys"), "IRONBURST_DEV": str(folder / "dev")}
    guard = medium / "ironburst/guard.sh"
    asked = subprocess.run(["sh", str(guard)], env=env, text=True, capture_output=True, timeout=60)
    if asked.returncode:
        return Result("already" if asked.returncode == 10 else "refused", asked.stderr.strip())
    shutil.rmtree(esp(folder), ignore_errors=True)
    root = write()
    finish = ["sh", str(medium / "ironburst/finish.sh"), str(root)]
    subprocess.run(finish, env=env, check=True, capture_output=True, timeout=60)
    shutil.copytree(root / "boot/efi", esp(folder))
    return Result("installed", asked.stdout.strip())
