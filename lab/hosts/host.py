"""Hosts: real systemd machines (systemd-nspawn), bare metal and cloud instances alike, with their own disk, network and
hardware.

All methods work from outside and from inside the box (a BMC, a cloud API): from outside they enter it first.
"""

import contextlib
import fcntl
import hashlib
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path

from lab.hosts import cgroups, hardware, layers, rootfs, stock, systems
from lab.hosts.box import Box
from lab.hosts.spec import HostSpec
from lab.system import LabError, locked, run, wait_for

SSH_SETTINGS = (
    "StrictHostKeyChecking=no",
    "UserKnownHostsFile=/dev/null",
    "LogLevel=ERROR",
    "ConnectTimeout=2",
    "BatchMode=yes",
)
SSH_OPTIONS = [word for setting in SSH_SETTINGS for word in ("-o", setting)]
# Into the namespaces of the host's systemd: the child of nspawn that is process 1 of its own. 255: the host is off.
# The shell stays outside, and what it starts is inside: a shutdown stops and kills all that is inside, and nsenter,
# which would stop with its child, would never reap it, so that the shutdown would not end
ENTER = """
nspawn=$(cat "$1/nspawn.pid" 2>/dev/null) || exit 255
children=$(cat "/proc/$nspawn/task/$nspawn/children" 2>/dev/null) || exit 255
for child in $children; do
    [ "$(awk '/^NSpid/ { print $NF }' "/proc/$child/status")" != 1 ] || leader=$child
done
[ -n "${leader-}" ] || exit 255
exec nsenter --no-fork --target "$leader" --mount --uts --ipc --net --pid --cgroup --root --wd -- \\
    env -i HOME=/root USER=root LANG=C.UTF-8 PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \\
    sh -c "cd /root; $2
exit \\$?"
"""
STOP_S = 15  # a clean shutdown has this long, then the plug is pulled
JOURNAL_OPTIONS = ("--no-pager", "--quiet", "--lines=1000", "--output=short-precise")
SUPERVISOR = Path(__file__).with_name("nspawn.sh")


class Host:
    """One host of a box, by name. Making the object does nothing; `start` needs a spec at the first time."""

    def __init__(self, box: Box, name: str):
        self.box = box
        self.name = name
        self.dir = box.dir / "hosts" / name

    # --- what it is --------------------------------------------------------------------------------------------

    @property
    def spec(self) -> HostSpec:
        """The stored spec; LabError for a host that was never defined (or was destroyed)."""
        try:
            return HostSpec.from_json((self.dir / "spec.json").read_text())
        except (FileNotFoundError, NotADirectoryError):
            known = ", ".join(host.name for host in all_hosts(self.box)) or "none"
            raise LabError(f"lab {self.box.prefix!r} has no host {self.name!r}; it has: {known}") from None

    @property
    def hardware_dir(self) -> Path:
        """Folder for the fault functions of lab.hosts.hardware (exists once the host was started)."""
        return self.dir / "hw"

    def console(self) -> str:
        """What it has written to its console: what systemd says, then its serial port."""
        files = (self.dir / "console.log", self.dir / "serial")
        return "".join(file.read_text(errors="replace") for file in files if file.exists())

    def in_console(self, text: str) -> None:
        """Add a line to what it has written to its console."""
        with (self.dir / "console.log").open("a") as console:
            console.write(f"{text}\n")

    def state(self) -> str:
        """Either "on" or "off". It is on from the moment `start` returns until it is off for good, also through its own
        reboots.
        """
        try:
            with (self.dir / "power").open() as handle:
                fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)  # the supervisor has it exclusively
        except FileNotFoundError:
            return "off"
        except BlockingIOError:
            return "on"
        return "off"

    def define(self, spec: HostSpec) -> None:
        """Make the host known, powered off (a machine that stands in its rack). The same spec again is fine."""
        with locked(self.box.dir / "run" / "hosts.lock"):  # one at a time: two new hosts must not take one address
            self._store(spec)

    # --- power -------------------------------------------------------------------------------------------------

    def start(self, spec: HostSpec | None = None) -> None:
        """Power on; returns when the host's systemd is starting (see `wait`). On already: nothing happens.

        `spec` is needed for a host that isn't defined yet, and must not differ later. Writes the hardware anew, so
        faults are repaired.
        """
        if spec is not None:
            self.define(spec)
        self.in_box("start")

    def stop(self) -> None:
        """Clean shutdown, at most 15 s, then the plug is pulled. Returns when it is off; the disk stays."""
        self.in_box("stop")

    def press(self) -> None:
        """Its power button: a clean shutdown begins; returns at once."""
        self.in_box("press")

    def off(self) -> None:
        """Pull the plug. Returns when it is off; the disk stays."""
        self.in_box("off")

    def destroy(self) -> None:
        """Power off and wipe: disk and spec are gone. A host that doesn't exist is fine."""
        self.in_box("destroy")

    def wipe(self) -> None:
        """Power off and empty the disk: the next start boots the image of the spec as if for the first time (a
        reinstall).
        """
        self.in_box("wipe")

    # --- talking to it -----------------------------------------------------------------------------------------

    def ssh_argv(self, *command: str, tied: bool = False) -> list[str]:
        """Command line that runs `command` on the host as root; usable from where Box.net_prefix works. `tied`: the
        client ends with the box, as a shell that somebody forgot must.

        An instance has no root login: the lab goes in as its hypervisor does, not by ssh.
        """
        if self.spec.kind == "cloud":
            inside = [*self.box.enter_prefix(), "sh", "-c", ENTER, "enter", str(self.dir)]
            return [*inside, shlex.join(command) if len(command) > 1 else "".join(command)]
        client = ["ssh", "-i", str(rootfs.ssh_key(self.box.root)), *SSH_OPTIONS]
        prefix = self.box.enter_prefix() if tied else self.box.net_prefix()
        return [*prefix, *client, f"root@{self.spec.address}", *command]

    def ssh(
        self, command: str | Sequence[str], *, check: bool = True, timeout: float = 60, stdin: str = ""
    ) -> subprocess.CompletedProcess[str]:
        """Run a shell command (str) or an argv as root; LabError if it fails and `check`."""
        line = command if isinstance(command, str) else shlex.join(command)
        done = subprocess.run(self.ssh_argv(line), input=stdin, text=True, capture_output=True, timeout=timeout)
        if check and done.returncode:
            last = (done.stderr.strip() or done.stdout.strip() or "no message").splitlines()[-1]
            raise LabError(f"{self.name}: {line!r} failed with exit code {done.returncode}: {last}")
        return done

    def wait(self, seconds: float = 30) -> str:
        """Wait until sshd answers and systemd has finished starting; returns its state, "running" or "degraded"."""

        def started() -> str:
            left = max(1.0, end - time.monotonic())
            try:
                said = self.ssh("systemctl is-system-running --wait", check=False, timeout=left).stdout.strip()
                return said if said in ("running", "degraded") else ""
            except subprocess.TimeoutExpired:
                return ""

        end = time.monotonic() + seconds
        console = self.dir / "console.log"
        return wait_for(started, seconds, f"host {self.name} (see {console})", pause=0.05)

    # --- below: inside the box ---------------------------------------------------------------------------------

    def _store(self, spec: HostSpec) -> None:
        path = self.dir / "spec.json"
        if spec.name != self.name:
            raise LabError(f"spec of {spec.name!r} given to host {self.name!r}")
        if path.exists() and (old := HostSpec.from_json(path.read_text())) != spec:
            changed = [key for key in asdict(spec) if asdict(spec)[key] != asdict(old)[key]]
            raise LabError(f"host {self.name!r} exists with another {', '.join(changed)}: destroy it first")
        for host in all_hosts(self.box):
            if host.name != self.name and host.spec.address == spec.address:
                raise LabError(
                    f"address {spec.address} of host {self.name!r} is taken by {host.name!r}: choose another"
                )
        layers.of_image(self.box, spec.image, spec.system)  # says so if the image is missing
        self.dir.mkdir(parents=True, exist_ok=True)
        temporary = path.with_suffix(".new")
        temporary.write_text(spec.to_json())
        temporary.rename(path)

    def in_box(self, verb: str) -> None:
        """Do one of VERBS in the box, one at a time for this host; from outside, a process that enters it does."""
        if self.box.inside():
            with locked(self.box.dir / "run" / f"{self.name}.lock"):
                VERBS[verb](self)
        else:
            self.box.call("lab.hosts.host", verb, self.name)

    def _start(self) -> None:
        if self.state() == "on":
            return
        spec = self.spec
        self._end()
        self._mount(spec)
        if spec.kind == "cloud" and spec.image is None:
            stock.dress(self.dir / "mnt", systems.of(spec.system).user)
        self._write_files(spec)
        hardware.write(self.hardware_dir, spec.hardware, spec.name, spec.serial, spec.uuid, spec.address)
        self._connect(spec)
        (self.dir / "started").unlink(missing_ok=True)
        shared = str(self.box.dir / "shared") if spec.shared else "-"
        groups = " ".join(map(str, cgroups.roots()))
        supervisor = ["sh", str(SUPERVISOR), str(self.dir), self.name, spec.uuid, self.box.cgroup(self.name)]
        console = self.dir / "console.log"
        self.box.spawn([*supervisor, shared, groups], console)
        wait_for((self.dir / "started").exists, 10, f"power-on of {self.name} (see {console})", pause=0.005)

    def _mount(self, spec: HostSpec) -> None:
        mount = self.dir / "mnt"
        for folder in ("up", "work", "mnt"):
            (self.dir / folder).mkdir(exist_ok=True)
        if not os.path.ismount(mount):
            # volatile: never wait for the machine's disk, as a lab doesn't outlive a crash of the machine. The mark
            # that this leaves would refuse a second mount
            shutil.rmtree(self.dir / "work/work/incompat", ignore_errors=True)
            options = {
                "lowerdir": ":".join(map(str, layers.of_image(self.box, spec.image, spec.system))),
                "upperdir": self.dir / "up",
                "workdir": self.dir / "work",
                "index": "off",
                "metacopy": "off",
                "redirect_dir": "off",
            }
            text = ",".join([*(f"{key}={value}" for key, value in options.items()), "volatile"])
            run(["mount", "-t", "overlay", "overlay", "-o", text, str(mount)])

    def _write_files(self, spec: HostSpec) -> None:
        """What a machine's installer, or the cloud at first boot, would write: name, hosts, environment."""
        hosts = {"localhost": "127.0.0.1", spec.hostname: spec.address} | spec.hosts
        lines = "".join(f"{address} {name}\n" for name, address in hosts.items())
        files = {
            "etc/hostname": f"{spec.hostname}\n",
            "etc/hosts": f"# written by the lab at every start\n{lines}",
            **spec.files,
        }
        if spec.environment:
            settings = " ".join(f"{key}={value}" for key, value in spec.environment.items())
            files["etc/systemd/system.conf.d/10-lab.conf"] = f"[Manager]\nDefaultEnvironment={settings}\n"
        for name, text in files.items():
            path = self.dir / "mnt" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            if text.startswith("->"):  # a symbolic link: "-> target"
                path.unlink(missing_ok=True)
                path.symlink_to(text[2:].strip())
                continue
            path.write_text(text)
            path.chmod(0o755 if text.startswith("#!") else 0o644)

    def _connect(self, spec: HostSpec) -> None:
        """Give the host its network namespace and a veth to the bridge, under the published MAC."""
        if Path("/run/netns", self.name).exists():
            return
        run(["ip", "netns", "add", self.name])
        veth = self._veth()
        outside = [
            f"link add {veth} type veth peer name eth0 netns {self.name}",
            f"link set {veth} alias {self.box.cgroup(self.name)}",
            f"link set {veth} master br0 up",
        ]
        inside = [
            "link set lo up",
            f"link set eth0 address {spec.mac} up",
            f"address add {spec.address}/{spec.prefix_length} dev eth0",
            f"route add default via {spec.gateway}",
        ]
        for number in range(1, spec.hardware.gvnics + 1):  # to nowhere: what is asked of them is that they are up
            inside += [f"link add eth{number} type veth peer name far{number}", f"link set eth{number} up"]
            inside += [f"link set far{number} up"]
        run(["ip", "-batch", "-"], stdin="\n".join(outside) + "\n")
        run(["ip", "-netns", self.name, "-batch", "-"], stdin="\n".join(inside) + "\n")

    def _veth(self) -> str:
        return "v" + hashlib.sha256(self.name.encode()).hexdigest()[:8]  # interface names have at most 15 characters

    def _end(self) -> None:
        """Kill what is left in the host and remove its groups: one that was killed once also kills what joins it
        later.
        """
        self._kill()
        for group in self._cgroups():
            cgroups.remove(group)

    def _kill(self) -> None:
        """SIGKILL to everything in the host at once."""
        for group in self._cgroups():
            cgroups.kill(group)

    def _cgroups(self) -> list[Path]:
        return [root / self.box.cgroup(self.name) for root in cgroups.roots()]

    def _press(self) -> bool:
        try:  # nspawn asks the host's systemd to power off
            os.kill(int((self.dir / "nspawn.pid").read_text()), signal.SIGTERM)
        except (OSError, ValueError):
            return False
        return True

    def _stop(self) -> None:
        if self._press():
            with contextlib.suppress(LabError):  # as with a real machine: then the plug
                wait_for(lambda: self.state() == "off", STOP_S, "clean stop")
        self._off()

    def _off(self) -> None:
        def dead() -> bool:
            self._kill()  # again: a host that is just being started enters its group a moment later
            return self.state() == "off"

        wait_for(dead, 10, f"power-off of {self.name}")
        self._end()
        mount = self.dir / "mnt"
        if os.path.ismount(mount):

            def unmounted() -> bool:
                return subprocess.run(["umount", str(mount)], capture_output=True).returncode == 0

            wait_for(unmounted, 10, f"unmounting the disk of {self.name}")
        subprocess.run(["ip", "link", "del", self._veth()], capture_output=True)  # gone already: fine
        if Path("/run/netns", self.name).exists():
            run(["ip", "netns", "del", self.name])
        (self.dir / "nspawn.pid").unlink(missing_ok=True)

    def _wipe(self) -> None:
        self._off()
        for folder in ("up", "work", "mnt"):
            shutil.rmtree(self.dir / folder, ignore_errors=True)

    def _destroy(self) -> None:
        self._off()
        self._keep_journal()
        (self.dir / "spec.json").unlink(missing_ok=True)
        shutil.rmtree(self.dir, ignore_errors=True)

    def _keep_journal(self) -> None:
        """The end of its journal outlives it, in the lab's logs: why a rented node never joined."""
        journal = self.dir / "up/var/log/journal"
        if journal.is_dir():
            with (self.box.dir / "log" / f"{self.name}.log").open("w") as log:
                argv = ["journalctl", f"--directory={journal}", *JOURNAL_OPTIONS]
                subprocess.run(argv, stdout=log, stderr=subprocess.STDOUT)


VERBS: dict[str, Callable[[Host], object]] = {
    "start": Host._start,
    "stop": Host._stop,
    "press": Host._press,
    "off": Host._off,
    "wipe": Host._wipe,
    "destroy": Host._destroy,
}


def all_hosts(box: Box) -> list[Host]:
    """The hosts of a box that exist (were started and not destroyed), by name."""
    return [Host(box, path.parent.name) for path in sorted((box.dir / "hosts").glob("*/spec.json"))]


def _main(prefix: str, root: str, verb: str, name: str) -> None:
    Host(Box(prefix, Path(root)), name).in_box(verb)


if __name__ == "__main__":
    try:
        _main(*sys.argv[1:])
    except LabError as error:
        sys.exit(str(error))
