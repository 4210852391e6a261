"""The box: a lab's own network, mount and process namespaces, in which everything of one lab lives.

Killing the box's init makes the kernel end every host and daemon of the lab and drop its mounts and network namespaces.
What is left then (empty cgroup folders, files below .lab/<prefix>/) is removed by `Box.down`.
"""

import contextlib
import ctypes
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from lab import names
from lab.hosts import cgroups
from lab.system import CHECKOUT, LAB_ROOT, LabError, locked, run, wait_for

MARK = Path("/run/lab-box")  # exists only in a box (its /run is private): says which box a process is in
KEPT = "report"  # the folder of a lab that `down` keeps
APART = "kubernetes"  # a folder that isn't the box's: lab.kubernetes makes it, beside a box or without one
NEW_NAMESPACES = ["--net", "--mount", "--pid", "--fork", "--kill-child=KILL", "--propagation", "private"]
CLONE_NEWNET = 0x40000000
SPAWN = 'log=$1; shift; setsid "$@" < /dev/null >> "$log" 2>&1 & echo $!'
# forward between hall and VPC (the "VPN"); both are on one bridge, so tell nobody of a shorter way
IPV4_SETTINGS = {
    "ip_forward": 1,
    "conf/all/send_redirects": 0,
    "conf/br0/send_redirects": 0,
    "conf/default/send_redirects": 0,
}
INOTIFY_INSTANCES = Path("/proc/sys/fs/inotify/max_user_instances")  # the setting is the whole machine's
ENOUGH_INSTANCES = 4096  # the kernel's 128 are too few for ten hosts


class Box:
    """The namespaces of the lab `prefix`. Its folder is .lab/<prefix>/ ; nothing is started by making the object.

    Every method works from outside and from inside the box (a process started with `enter_prefix` or `spawn`).
    """

    def __init__(self, prefix: str, root: Path = LAB_ROOT):
        if not re.fullmatch(r"[a-z][a-z0-9-]{0,30}", prefix) or prefix in ("cache", "locks"):
            allowed = "use a lower-case letter, then letters, digits or dashes (not 'cache' or 'locks')"
            raise LabError(f"lab prefix {prefix!r}: {allowed}")
        self.prefix = prefix
        self.root = Path(root).resolve()
        self.dir = self.root / prefix
        self._starter: subprocess.Popen[bytes] | None = None

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
        """True while the box's init lives."""
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

    @contextlib.contextmanager
    def network(self) -> Iterator[None]:
        """Meanwhile the calling thread, and those that it starts, are in the lab's network; for all else they are where
        they were.
        """
        with Path("/proc/thread-self/ns/net").open() as before, Path(f"/proc/{self.pid()}/ns/net").open() as its:
            enter_network(its.fileno())
            try:
                yield
            finally:
                enter_network(before.fileno())

    def enter_prefix(self) -> list[str]:
        """Command prefix that runs a command wholly in the box. Its working directory becomes /: pass absolute
        paths.
        """
        if self.inside():
            return []
        enter = ["nsenter", "--net", "--mount", "--pid", "--target", str(self.pid()), "--"]
        return [*enter, "env", *(f"{key}={value}" for key, value in self._environment().items())]

    def _environment(self) -> dict[str, str]:
        """What tells the lab's processes from others (LAB_BOX), and lets them import the lab."""
        return {"LAB_BOX": str(self.dir), "PYTHONPATH": str(CHECKOUT)}

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
        command = [*self.enter_prefix(), "sh", "-c", SPAWN, "spawn", str(log), *map(str, argv)]
        return int(run(command, env=os.environ | dict(env or {})))

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
            self._make_folders()
            self._start(tied)

    def _make_folders(self) -> None:
        for folder in ("hosts", "images", "log", "run", KEPT):
            (self.dir / folder).mkdir(parents=True, exist_ok=True)
        shared = self.dir / "shared" / "alice"
        shared.mkdir(parents=True)
        os.chown(shared, 1500, 1500)

    def _start(self, tied: bool) -> None:
        argv = ["unshare", *NEW_NAMESPACES, sys.executable, "-m", "lab.hosts.box", str(self.dir)]
        if tied:  # the signal follows the thread that forks: hence "from the main thread"
            argv = ["setpriv", "--pdeathsig", "KILL", *argv]
        log = self.dir / "log" / "box.log"
        with log.open("w") as output:
            starter = self._starter = subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
                cwd=CHECKOUT,
                env=os.environ | self._environment(),
            )
        what = f"starting the box of lab {self.prefix!r}"
        try:
            wait_for(lambda: self._find_pid() or starter.poll(), 10, what)
        finally:
            if self._find_pid() is None:
                starter.kill()
        if self._find_pid() is None:
            last = (log.read_text().strip().splitlines() or ["no message"])[-1]
            raise LabError(f"the box of lab {self.prefix!r} did not start: {last}")

    def down(self) -> None:
        """End everything of this lab and remove what it left, except the folder `report`. Nothing to do is fine."""
        with locked(self.root / "locks" / f"{self.prefix}.lock", remove=True):
            if (pid := self._find_pid()) is not None:
                os.kill(pid, signal.SIGKILL)
                proc = Path(f"/proc/{pid}")
                wait_for(lambda: not proc.exists(), 20, f"the end of lab {self.prefix!r} (process {pid})")
            if self._starter is not None:
                self._starter.wait(timeout=10)
                self._starter = None
            self._tidy()

    def cgroup(self, host: str) -> str:
        """Name of a host's control group in each of `cgroups.roots()`."""
        return f"lab-{self.prefix}.{host}"

    def _cgroups(self) -> list[Path]:
        return [path for root in cgroups.roots() for path in root.glob(self.cgroup("*"))]

    def _mounts(self) -> list[str]:
        """Mount points of this lab in the caller's mount namespace (none, unless something went wrong), innermost
        first.
        """
        points = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
        return [point for point in reversed(points) if point.startswith(f"{self.dir}/")]

    def _tidy(self) -> None:
        for group in self._cgroups():
            cgroups.kill(group)
        for group in self._cgroups():
            cgroups.remove(group)
        for point in self._mounts():
            run(["umount", "--lazy", point])
        for path in self.dir.iterdir() if self.dir.is_dir() else []:
            if path.name not in (KEPT, APART):
                shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
        with contextlib.suppress(OSError):
            (self.dir / KEPT).rmdir()  # only if empty
            self.dir.rmdir()

    def leftovers(self) -> dict[str, int]:
        """What exists of this lab now, counted by kind; all zero after `down`."""
        processes = self._processes()
        networks = set(processes) - {Path("/proc/self/ns/net").readlink(), None}
        here = self.net_prefix() if self.is_up() else []
        links = json.loads(run([*here, "ip", "-json", "link", "show", "type", "veth"]) or "[]")
        folders = [path for path in self.dir.iterdir() if path.name != KEPT] if self.dir.is_dir() else []
        return {
            "processes": len(processes),
            "mounts": len(self._mounts()),
            "network_namespaces": len(networks),
            "cgroups": len(self._cgroups()),
            "veths": sum(link.get("ifalias", "").startswith(self.cgroup("")) for link in links),
            "folders": len(folders),
        }

    def _processes(self) -> list[Path | None]:
        """The network namespace of each process of this lab but the caller (None: it ended while we looked)."""
        mine, group = f"LAB_BOX={self.dir}".encode(), f"/{self.cgroup('')}"
        networks: list[Path | None] = []
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit() or int(entry.name) == os.getpid():
                continue
            try:
                if (
                    mine not in (entry / "environ").read_bytes().split(b"\0")
                    and group not in (entry / "cgroup").read_text()
                ):
                    continue
            except OSError:
                continue  # ended while we looked
            try:
                networks.append((entry / "ns" / "net").readlink())
            except OSError:
                networks.append(None)
        return networks


def enter_network(descriptor: int) -> None:
    """This thread's, from now on: sockets stay where they were made. Raises LabError."""
    libc = ctypes.CDLL(None, use_errno=True)  # os.setns came with Python 3.12
    if libc.setns(descriptor, CLONE_NEWNET):
        raise LabError(f"the lab's network can't be entered: {os.strerror(ctypes.get_errno())}")


def _bridge() -> list[str]:
    """Lines for `ip -batch` that make the bridge, with the lab's own addresses in the hall and in the VPC."""
    addresses = [
        f"{names.HALL_GATEWAY}/16",
        f"{names.BMC_GATEWAY}/24",
        f"{names.VPC_GATEWAY}/16",
        f"{names.METADATA_ADDRESS}/32",
        f"{names.WIRE_SERVER}/32",
        *(f"{address}/24" for address in names.BMC_ADDRESSES.values()),
    ]
    return [
        "link set lo up",
        # an address of its own, or it changes with the hosts, who don't notice until they ask anew
        f"link add br0 address {names.mac_of('gateway')} type bridge forward_delay 0",
        *(f"address add {address} dev br0" for address in addresses),
        "link set br0 up",
    ]


def _init(folder: Path) -> None:
    """Process 1 of a box: make the bridge, say that the box is there, then reap orphans for ever."""
    outer = str(Path("/proc/self").readlink())  # /proc is still the machine's, so this is our pid as seen from outside
    # not /proc/self in a new proc: that one counts in the box
    run(["mount", "-t", "proc", "proc", "/proc"])
    # private: names of network namespaces, nspawn's locks
    run(["mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", "/run"])
    Path("/run/netns").mkdir()
    MARK.write_text(str(folder))
    run(["ip", "-batch", "-"], stdin="\n".join(_bridge()) + "\n")
    for key, value in IPV4_SETTINGS.items():
        Path(f"/proc/sys/net/ipv4/{key}").write_text(f"{value}\n")
    if int(INOTIFY_INSTANCES.read_text()) < ENOUGH_INSTANCES:
        INOTIFY_INSTANCES.write_text(f"{ENOUGH_INSTANCES}\n")
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
