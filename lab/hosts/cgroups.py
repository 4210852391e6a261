"""Control groups on this machine: the trees that systemd needs, and the end of a group."""

import os
from pathlib import Path

from lab.system import wait_for

ROOTS = [Path("/sys/fs/cgroup/systemd"), Path("/sys/fs/cgroup/unified"), Path("/sys/fs/cgroup")]


def roots() -> list[Path]:
    """The writable cgroup trees that systemd needs: v1 name=systemd and v2 (hybrid machine), or v2 alone."""
    return [root for root in ROOTS if (root / "cgroup.procs").is_file()]


def counting() -> Path:
    """The tree whose groups count CPU seconds (v2, on every machine of ours). Raises StopIteration."""
    return next(root for root in roots() if (root / "cgroup.controllers").exists())


def kill(group: Path) -> None:
    """SIGKILL to all processes of a group at once; one without the switch (v1), or that is gone, is left alone."""
    switch = group / "cgroup.kill"
    if switch.exists():
        switch.write_text("1")


def remove(group: Path, seconds: float = 10) -> None:
    """Remove an empty group and those below it; waits for the last process, which may still be dying."""

    def gone() -> bool:
        for folder, _, _ in os.walk(group, topdown=False):
            try:
                Path(folder).rmdir()
            except OSError:
                return False
        return not group.exists()

    wait_for(gone, seconds, f"removing the control group {group}")
