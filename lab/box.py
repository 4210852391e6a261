"""The box: a lab's own network, mount and process namespaces, in which everything of one lab lives.

Killing the box's init makes the kernel end every host and daemon of the lab and drop its mounts and network namespaces.
What is left then (empty cgroup folders, files below .lab/<prefix>/) is removed by `Box.down`.
"""

import contextlib
import fcntl
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from lab import names

REPO = Path(__file__).resolve().parents[1]
LAB_ROOT = REPO / ".lab"
MARK = Path("/run/lab-box")  # exists only in a box (its /run is private): says which box a process is in
CGROUP_ROOTS = [Path("/sys/fs/cgroup/systemd"), Path("/sys/fs/cgroup/unified"), Path("/sys/fs/cgroup")]
KEPT = "report"  # the folder of a lab that `down` keeps


class LabError(Exception):
    """One sentence for the person at the keyboard: what failed, where, and what to do."""


def run(argv: Sequence[str], *, stdin: str | None = None, **kwargs) -> str:
    """Run a command to its end and return its output; LabError with its last error line if it fails."""
    done = subprocess.run(argv, input=stdin, text=True, capture_output=True, **kwargs)
    if done.returncode:
        lines = (done.stderr or done.stdout).strip().splitlines() or ["no message"]
        raise LabError(f"{' '.join(argv[:4])} ... failed with exit code {done.returncode}: {lines[-1]}")
    return done.stdout


def wait_for(condition, seconds: float, what: str, pause: float = 0.02):
    """Poll `condition` until it returns something true, which is returned; LabError after `seconds`."""
    end = time.monotonic() + seconds
    while not (value := condition()):
        if time.monotonic() > end:
            raise LabError(f"{what}: not within {seconds:g} s")
        time.sleep(pause)
    return value


@contextlib.contextmanager
def locked(path: Path, remove: bool = False) -> Iterator[None]:
    """Hold an exclusive lock on `path` (created if absent), also against other threads and processes; `remove` it at
    the end.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    while True:
        with open(path, "w") as handle:
            fcntl.flock(handle, fcntl.LOCK_EX)
            try:
                if not os.path.samestat(os.stat(path), os.fstat(handle.fileno())):
                    continue
            except FileNotFoundError:
                continue  # its last holder removed it meanwhile
            try:
                yield
            finally:
                if remove:
                    path.unlink()
            return


def cgroup_roots() -> list[Path]:
    """The writable cgroup trees that systemd needs: v1 name=systemd and v2 (hybrid machine), or v2 alone."""
    return [root for root in CGROUP_ROOTS if (root / "cgroup.procs").is_file()]


def remove_cgroup(path: Path, seconds: float = 10) -> None:
    """Remove an empty cgroup and those below it; waits for the last process, which may still be dying."""

    def gone() -> bool:
        for folder, _, _ in os.walk(path, topdown=False):
            try:
                os.rmdir(folder)
            except OSError:
                return False
        return not path.exists()

    wait_for(gone, seconds, f"removing the control group {path}")


class Box:
    """The namespaces of the lab `prefix`. Its folder is .lab/<prefix>/ ; nothing is started by making the object.

    Every method works from outside and from inside the box (a process started with `enter_prefix` or `spawn`).
    """

    def __init__(self, prefix: str, root: Path = LAB_ROOT):
        if not re.fullmatch(r"[a-z][a-z0-9-]{0,30}", prefix) or prefix in ("cache", "locks"):
            raise LabError(
                f"lab prefix {prefix!r}: use a lower-case letter, then letters, digits or dashes (not 'cache' or 'locks')"
            )
        self.prefix = prefix
        self.root = Path(root).resolve()
        self.dir = self.root / prefix
        self._starter: subprocess.Popen | None = None

    # --- state -------------------------------------------------------------------------------------------------

    def inside(self) -> bool:
        """True if the calling process is in this box."""
        try:
            return MARK.read_text() == str(self.dir)
        except OSError:
            return False

    def pid(self) -> int:
        """Process id of the box's init, as the machine sees it; LabError if the lab is not up."""
        if self.inside():
            return 1
        if (pid := self._find_pid()) is None:
            raise LabError(f"lab {self.prefix!r} is not up: start it with 'python -m lab up {self.prefix}'")
        return pid

    def is_up(self) -> bool:
        return self.inside() or self._find_pid() is not None

    def _find_pid(self) -> int | None:
        try:
            pid = int((self.dir / "box.pid").read_text())
            environ = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
        except (OSError, ValueError):
            return None
        return pid if f"LAB_BOX={self.dir}".encode() in environ else None  # else the pid was used again by a stranger

    # --- entering ----------------------------------------------------------------------------------------------

    def net_prefix(self) -> list[str]:
        """Command prefix that runs a client (ssh, ansible, curl, pytest) in the lab's network; files and pids stay the
        machine's.
        """
        return [] if self.inside() else ["nsenter", f"--net=/proc/{self.pid()}/ns/net", "--"]

    def enter_prefix(self) -> list[str]:
        """Command prefix that runs a command wholly in the box. Its working directory becomes /: pass absolute
        paths.
        """
        if self.inside():
            return []
        return [
            "nsenter",
            "--net",
            "--mount",
            "--pid",
            "--target",
            str(self.pid()),
            "--",
            "env",
            f"LAB_BOX={self.dir}",
            f"PYTHONPATH={REPO}",
        ]

    def call(self, module: str, *arguments: str, timeout: float = 120) -> str:
        """Run `python -m module prefix root arguments...` in the box and return its output (LabError: its error
        line).
        """
        argv = [*self.enter_prefix(), sys.executable, "-m", module, self.prefix, str(self.root), *arguments]
        done = subprocess.run(argv, text=True, capture_output=True, timeout=timeout, stdin=subprocess.DEVNULL)
        if done.returncode:
            raise LabError((done.stderr.strip().splitlines() or [f"{module} failed without a message"])[-1])
        return done.stdout

    def spawn(self, argv: Sequence[str], log: Path, env: Mapping[str, str] | None = None) -> int:
        """Start a daemon in the box; it dies with the box. Output is appended to `log`. Returns its pid *in the
        box*.
        """
        log.parent.mkdir(parents=True, exist_ok=True)
        script = 'log=$1; shift; setsid "$@" < /dev/null >> "$log" 2>&1 & echo $!'
        return int(
            run(
                [*self.enter_prefix(), "sh", "-c", script, "spawn", str(log), *map(str, argv)],
                env=os.environ | dict(env or {}),
            )
        )

    def kill(self, pid: int, sig: int = signal.SIGTERM) -> None:
        """Signal a process by its pid in the box (as `spawn` returned it); one that is gone already is fine."""
        subprocess.run([*self.enter_prefix(), "kill", f"-{int(sig)}", str(pid)], capture_output=True)

    def alive(self, pid: int) -> bool:
        """True while the process with this pid in the box lives."""
        return subprocess.run([*self.enter_prefix(), "kill", "-0", str(pid)], capture_output=True).returncode == 0

    # --- up and down -------------------------------------------------------------------------------------------

    def up(self, tied: bool = False) -> None:
        """Make the namespaces and the bridge. With `tied` the box dies with this process (call it from the main
        thread).

        LabError if this lab is up already. Tidies first what an earlier crash left.
        """
        with locked(self.root / "locks" / f"{self.prefix}.lock"):
            if (pid := self._find_pid()) is not None:
                raise LabError(
                    f"lab {self.prefix!r} is already up (init is process {pid}): use another prefix, "
                    f"or end it with 'python -m lab down {self.prefix}'"
                )
            self._tidy()
            self.dir.mkdir(parents=True, exist_ok=True)
            for folder in ("hosts", "images", "log", "run", KEPT):
                (self.dir / folder).mkdir(exist_ok=True)
            shared = self.dir / "shared" / "alice"
            shared.mkdir(parents=True)
            os.chown(shared, 1500, 1500)
            argv = [
                "unshare",
                "--net",
                "--mount",
                "--pid",
                "--fork",
                "--kill-child=KILL",
                "--propagation",
                "private",
                sys.executable,
                "-m",
                "lab.box",
                str(self.dir),
            ]
            if tied:  # the signal follows the thread that forks: hence "from the main thread"
                argv = ["setpriv", "--pdeathsig", "KILL", *argv]
            log = self.dir / "log" / "box.log"
            with open(log, "w") as output:
                self._starter = subprocess.Popen(
                    argv,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    start_new_session=True,
                    cwd=REPO,
                    env=os.environ | {"LAB_BOX": str(self.dir), "PYTHONPATH": str(REPO)},
                )
            try:
                wait_for(
                    lambda: self._find_pid() or self._starter.poll(), 10, f"starting the box of lab {self.prefix!r}"
                )
            finally:
                if self._find_pid() is None:
                    self._starter.kill()
            if self._find_pid() is None:
                last = (log.read_text().strip().splitlines() or ["no message"])[-1]
                raise LabError(f"the box of lab {self.prefix!r} did not start: {last}")

    def down(self) -> None:
        """End everything of this lab and remove what it left, except the folder `report`. Nothing to do is fine."""
        with locked(self.root / "locks" / f"{self.prefix}.lock", remove=True):
            if (pid := self._find_pid()) is not None:
                os.kill(pid, signal.SIGKILL)
                wait_for(
                    lambda: not Path(f"/proc/{pid}").exists(), 20, f"the end of lab {self.prefix!r} (process {pid})"
                )
            if self._starter is not None:
                self._starter.wait(timeout=10)
                self._starter = None
            self._tidy()

    def cgroup(self, host: str) -> str:
        """Name of a host's control group in each of `cgroup_roots()`."""
        return f"lab-{self.prefix}.{host}"

    def _cgroups(self) -> list[Path]:
        return [path for root in cgroup_roots() for path in root.glob(self.cgroup("*"))]

    def _mounts(self) -> list[str]:
        """Mount points of this lab in the caller's mount namespace (none, unless something went wrong), innermost
        first.
        """
        points = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
        return [point for point in reversed(points) if point.startswith(f"{self.dir}/")]

    def _tidy(self) -> None:
        for path in self._cgroups():
            kill = path / "cgroup.kill"
            if kill.exists():
                kill.write_text("1")
        for path in self._cgroups():
            remove_cgroup(path)
        for point in self._mounts():
            run(["umount", "--lazy", point])
        for path in self.dir.iterdir() if self.dir.is_dir() else []:
            if path.name != KEPT:
                shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
        with contextlib.suppress(OSError):
            (self.dir / KEPT).rmdir()  # only if empty
            self.dir.rmdir()

    def leftovers(self) -> dict[str, int]:
        """What exists of this lab now, counted by kind; all zero after `down`."""
        mine = f"LAB_BOX={self.dir}".encode()
        group = f"/{self.cgroup('')}"
        processes, networks = 0, set()
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit() or int(entry.name) == os.getpid():
                continue
            try:
                if mine in (entry / "environ").read_bytes().split(b"\0") or group in (entry / "cgroup").read_text():
                    processes += 1
                    networks.add(os.readlink(entry / "ns" / "net"))
            except OSError:
                continue  # ended while we looked
        networks.discard(os.readlink("/proc/self/ns/net"))
        links = json.loads(
            run([*(self.net_prefix() if self.is_up() else []), "ip", "-json", "link", "show", "type", "veth"]) or "[]"
        )
        folders = [path for path in self.dir.iterdir() if path.name != KEPT] if self.dir.is_dir() else []
        return {
            "processes": processes,
            "mounts": len(self._mounts()),
            "network_namespaces": len(networks),
            "cgroups": len(self._cgroups()),
            "veths": sum(link.get("ifalias", "").startswith(f"lab-{self.prefix}.") for link in links),
            "folders": len(folders),
        }


def _init(folder: Path) -> None:
    """Process 1 of a box: make the bridge, say that the box is there, then reap orphans for ever."""
    outer = os.readlink("/proc/self")  # /proc is still the machine's, so this is our pid as seen from outside
    # not /proc/self in a new proc: that one counts in the box
    run(["mount", "-t", "proc", "proc", "/proc"])
    run(
        ["mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", "/run"]
    )  # private: names of network namespaces, nspawn's locks
    Path("/run/netns").mkdir()
    MARK.write_text(str(folder))
    addresses = [
        f"{names.HALL_GATEWAY}/16",
        f"{names.BMC_GATEWAY}/24",
        f"{names.VPC_GATEWAY}/16",
        f"{names.METADATA_ADDRESS}/32",
    ]
    addresses += [f"{address}/24" for address in names.BMC_ADDRESSES.values()]
    commands = [
        "link set lo up",
        "link add br0 type bridge forward_delay 0",
        *(f"address add {a} dev br0" for a in addresses),
        "link set br0 up",
    ]
    run(["ip", "-batch", "-"], stdin="\n".join(commands) + "\n")
    # forward between hall and VPC (the "VPN"); both are on one bridge, so tell nobody of a shorter way
    for key, value in {
        "ip_forward": 1,
        "conf/all/send_redirects": 0,
        "conf/br0/send_redirects": 0,
        "conf/default/send_redirects": 0,
    }.items():
        Path(f"/proc/sys/net/ipv4/{key}").write_text(f"{value}\n")
    instances = Path(
        "/proc/sys/fs/inotify/max_user_instances"
    )  # 128 is too few for ten hosts; the setting is the whole machine's
    if int(instances.read_text()) < 4096:
        instances.write_text("4096\n")
    temporary = folder / "box.pid.new"
    temporary.write_text(outer)
    temporary.rename(folder / "box.pid")
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
    while True:
        signal.sigwait({signal.SIGCHLD})
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass


if __name__ == "__main__":
    _init(Path(sys.argv[1]))
