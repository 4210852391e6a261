"""The cloud's stock image, as its distribution's own is: nobody logs in as root, its user (Debian's: `admin`) has sudo
and no key yet, no host keys, no user of the hall, and cloud-init (a stand-in) for the first boot. The lab's base image
is the hall's, as its installer left it: this takes away from it what a stock image doesn't have.
"""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

PROGRAM = Path(__file__).with_name("cloud_init.py")
MARK = "etc/cloud/build.info"
SETTINGS = "etc/cloud/cloud.cfg"
UID = 1000
GONE_USER = "alice"
UNIT = """[Unit]
Description=cloud-init of a stock image (the lab's stand-in)
Before=ssh.service multi-user.target
[Service]
Type=oneshot
RemainAfterExit=yes
# as the kernel of a cloud's image is told (console=ttyS0)
ExecStartPre=/usr/bin/ln --symbolic --force ttyS0 /dev/console
ExecStart=/usr/bin/cloud-init init
[Install]
WantedBy=multi-user.target
"""


def _accounts(user: str) -> dict[str, str]:
    """The user's line in each file."""
    return {
        "etc/passwd": f"{user}:x:{UID}:{UID}:{user.title()}:/home/{user}:/bin/bash\n",
        "etc/shadow": f"{user}:!:20000:0:99999:7:::\n",
        "etc/group": f"{user}:x:{UID}:\n",
        "etc/gshadow": f"{user}:!::\n",
    }


def dress(root: Path, user: str) -> None:
    """Make the disk at `root`, of the base image, that of the stock image at which `user` logs in. Done already:
    nothing happens.
    """
    if (root / MARK).exists():
        return
    for path in [*(root / "etc/ssh").glob("ssh_host_*"), root / "root/.ssh", root / "home" / GONE_USER]:
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    for name, line in _accounts(user).items():
        _edit(root / name, line)
    for name in ("etc/subuid", "etc/subgid"):
        if (root / name).exists():
            _edit(root / name, "")
    home = root / "home" / user
    home.mkdir(mode=0o755, parents=True)
    os.chown(home, UID, UID)
    _write(root / "etc/sudoers.d/90-cloud-init-users", f"{user} ALL=(ALL) NOPASSWD:ALL\n", 0o440)
    # YAML, of which JSON is a part
    _write(root / SETTINGS, json.dumps({"system_info": {"default_user": {"name": user}}}) + "\n", 0o644)
    _write(root / "usr/bin/cloud-init", PROGRAM.read_text(), 0o755)
    _write(root / "etc/systemd/system/cloud-init.service", UNIT, 0o644)
    wanted = root / "etc/systemd/system/multi-user.target.wants/cloud-init.service"
    wanted.parent.mkdir(parents=True, exist_ok=True)
    wanted.symlink_to("/etc/systemd/system/cloud-init.service")
    _write(root / MARK, "the lab's stock image\n", 0o644)


def _edit(path: Path, line: str) -> None:
    """Without the hall's user, and with one more line; mode and owner stay."""
    lines = [each for each in path.read_text().splitlines(True) if not each.startswith(f"{GONE_USER}:")]
    path.write_text("".join(lines) + line)


def _write(path: Path, text: str, mode: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(mode)
