"""Hosts: real systemd machines (systemd-nspawn), bare metal and cloud instances alike, with their own disk, network and
hardware.

All methods work from outside and from inside the box (a BMC, a cloud API): from outside they enter it first.
"""

import fcntl
import hashlib
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from lab import fabric, hardware, image, names, rootfs
from lab.box import Box, LabError, cgroup_roots, locked, remove_cgroup, run, wait_for
from lab.hardware import Hardware

SSH_OPTIONS = [
    "-o",
    "StrictHostKeyChecking=no",
    "-o",
    "UserKnownHostsFile=/dev/null",
    "-o",
    "LogLevel=ERROR",
    "-o",
    "ConnectTimeout=2",
    "-o",
    "BatchMode=yes",
]
SUPERVISOR = Path(__file__).with_name("nspawn.sh")


@dataclass(frozen=True)
class HostSpec:
    """All that identifies a host. It is stored when the host is defined or first started; `destroy` forgets it."""

    name: str  # bare metal: head, dgx01; cloud: the instance id
    address: str  # IPv4, in 10.78.0.0/16 (bare metal) or 10.90.0.0/16 (cloud)
    kind: str  # "bare_metal" or "cloud"
    hostname: str
    mac: str
    serial: str
    uuid: str
    gateway: str
    hardware: Hardware
    prefix_length: int = 16
    image: str | None = None  # id of a baked image (images/<id>), None: the base image
    shared: bool = True  # /shared is bound in (stand-in for NFS); False for fault tests
    environment: dict[str, str] = field(default_factory=dict)  # systemd's DefaultEnvironment
    hosts: dict[str, str] = field(
        default_factory=dict
    )  # {name: address} for /etc/hosts: the lab's stand-in for the hall's DNS
    # {path without leading /: text} put on the disk at every start; "#!..." is executable, "-> target" a symbolic link
    files: dict[str, str] = field(default_factory=dict)

    def to_json(self) -> str:
        return json.dumps(asdict(self), indent=1)

    @classmethod
    def from_json(cls, text: str) -> "HostSpec":
        values = json.loads(text)
        return cls(**(values | {"hardware": Hardware(**values["hardware"])}))


def bare_metal(name: str, address: str | None = None, **changes) -> HostSpec:
    """Spec of a bare-metal host with the published identity of its name; `changes` override fields of HostSpec."""
    address = address or names.ADDRESSES.get(name)
    if address is None:
        raise LabError(
            f"bare-metal host {name!r} has no known address: give one in 10.78.0.0/16, or use one of {', '.join(names.ADDRESSES)}"
        )
    values = dict(
        name=name,
        address=address,
        kind="bare_metal",
        hostname=name,
        mac=names.mac_of(name),
        serial=names.serial_of(name),
        uuid=names.uuid_of(name),
        gateway=names.HALL_GATEWAY,
        hardware=hardware.bare_metal(name),
        hosts=names.ADDRESSES,
        files=fabric.host_files(name, names.ADDRESSES),
    )
    return HostSpec(**(values | changes))


def cloud(instance_id: str, address: str, instance_type: str, image: str | None = None, **changes) -> HostSpec:
    """Spec of a cloud instance: hostname ip-A-B-C-D, knows no other host, and gets the AWS endpoint in systemd's
    environment.
    """
    values = dict(
        name=instance_id,
        address=address,
        kind="cloud",
        hostname=names.cloud_hostname(address),
        mac=names.mac_of(instance_id),
        serial=names.serial_of(instance_id),
        uuid=names.uuid_of(instance_id),
        gateway=names.VPC_GATEWAY,
        hardware=hardware.instance(instance_type),
        image=image,
        environment={"AWS_ENDPOINT_URL": names.AWS_ENDPOINT},
    )
    return HostSpec(**(values | changes))


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
            raise LabError(
                f"lab {self.box.prefix!r} has no host {self.name!r}; it has: "
                f"{', '.join(host.name for host in all_hosts(self.box)) or 'none'}"
            ) from None

    @property
    def hardware_dir(self) -> Path:
        """Folder for the fault functions of lab.hardware (exists once the host was started)."""
        return self.dir / "hw"

    def state(self) -> str:
        """ "on" from the moment `start` returns until the host is off for good; also through its own reboots. "off"
        otherwise.
        """
        try:
            handle = open(self.dir / "power")
        except FileNotFoundError:
            return "off"
        with handle:
            try:
                fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)  # the supervisor holds it exclusively
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
        self._in_box("start")

    def stop(self) -> None:
        """Clean shutdown, at most 15 s, then the plug is pulled. Returns when it is off; the disk stays."""
        self._in_box("stop")

    def off(self) -> None:
        """Pull the plug. Returns when it is off; the disk stays."""
        self._in_box("off")

    def destroy(self) -> None:
        """Power off and wipe: disk and spec are gone. A host that doesn't exist is fine."""
        self._in_box("destroy")

    def wipe(self) -> None:
        """Power off and empty the disk: the next start boots the image of the spec as if for the first time (a
        reinstall).
        """
        self._in_box("wipe")

    # --- talking to it -----------------------------------------------------------------------------------------

    def ssh_argv(self, *command: str) -> list[str]:
        """Command line that runs `command` on the host as root; usable from where Box.net_prefix works."""
        return [
            *self.box.net_prefix(),
            "ssh",
            "-i",
            str(rootfs.ssh_key(self.box.root)),
            *SSH_OPTIONS,
            f"root@{self.spec.address}",
            *command,
        ]

    def ssh(
        self, command: str | Sequence[str], *, check: bool = True, timeout: float = 60, stdin: str = ""
    ) -> subprocess.CompletedProcess:
        """Run a shell command (str) or an argv as root; LabError if it fails and `check`."""
        line = command if isinstance(command, str) else shlex.join(command)
        done = subprocess.run(self.ssh_argv(line), input=stdin, text=True, capture_output=True, timeout=timeout)
        if check and done.returncode:
            last = (done.stderr.strip() or done.stdout.strip() or "no message").splitlines()[-1]
            raise LabError(f"{self.name}: {line!r} failed with exit code {done.returncode}: {last}")
        return done

    def wait(self, seconds: float = 30) -> str:
        """Wait until sshd answers and systemd has settled; returns systemd's state, "running" or "degraded"."""

        def settled() -> str:
            left = max(1.0, end - time.monotonic())
            try:
                return self.ssh("systemctl is-system-running --wait", check=False, timeout=left).stdout.strip()
            except subprocess.TimeoutExpired:
                return ""

        end = time.monotonic() + seconds
        console = self.dir / "console.log"
        return wait_for(settled, seconds, f"host {self.name} (see {console})", pause=0.05)

    # --- below: inside the box ---------------------------------------------------------------------------------

    def _lock(self):
        return locked(self.box.dir / "run" / f"{self.name}.lock")

    def _store(self, spec: HostSpec) -> None:
        path = self.dir / "spec.json"
        if spec.name != self.name:
            raise LabError(f"spec of {spec.name!r} given to host {self.name!r}")
        if path.exists() and (old := HostSpec.from_json(path.read_text())) != spec:
            changed = [key for key in asdict(spec) if asdict(spec)[key] != asdict(old)[key]]
            raise LabError(f"host {self.name!r} exists with another {', '.join(changed)}: destroy it first")
        for other in all_hosts(self.box):
            if other.name != self.name and other.spec.address == spec.address:
                raise LabError(
                    f"address {spec.address} of host {self.name!r} is taken by {other.name!r}: choose another"
                )
        image.layers(self.box, spec.image)  # says so if the image is missing
        self.dir.mkdir(parents=True, exist_ok=True)
        temporary = path.with_suffix(".new")
        temporary.write_text(spec.to_json())
        temporary.rename(path)

    def _in_box(self, verb: str) -> None:
        if self.box.inside():
            with self._lock():
                getattr(self, f"_{verb}")()
        else:
            self.box.call("lab.host", verb, self.name)

    def _start(self) -> None:
        if self.state() == "on":
            return
        spec = self.spec
        self._end()
        self._mount(spec)
        self._write_files(spec)
        hardware.write(self.hardware_dir, spec.hardware, spec.name, spec.serial, spec.uuid, spec.address)
        self._connect(spec)
        (self.dir / "started").unlink(missing_ok=True)
        shared = str(self.box.dir / "shared") if spec.shared else "-"
        self.box.spawn(
            [
                "sh",
                str(SUPERVISOR),
                str(self.dir),
                self.name,
                spec.uuid,
                self.box.cgroup(self.name),
                shared,
                " ".join(map(str, cgroup_roots())),
            ],
            self.dir / "console.log",
        )
        wait_for(
            (self.dir / "started").exists, 10, f"power-on of {self.name} (see {self.dir / 'console.log'})", pause=0.005
        )

    def _mount(self, spec: HostSpec) -> None:
        mount = self.dir / "mnt"
        for folder in ("up", "work", "mnt"):
            (self.dir / folder).mkdir(exist_ok=True)
        if not os.path.ismount(mount):
            # volatile: never wait for the machine's disk, as a lab doesn't outlive a crash of the machine. The mark
            # that this leaves would refuse a second mount
            shutil.rmtree(self.dir / "work/work/incompat", ignore_errors=True)
            options = {
                "lowerdir": ":".join(map(str, image.layers(self.box, spec.image))),
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
        files = {
            "etc/hostname": f"{spec.hostname}\n",
            "etc/hosts": "# written by the lab at every start\n"
            + "".join(f"{address} {name}\n" for name, address in hosts.items()),
        } | spec.files
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
        run(
            ["ip", "-batch", "-"],
            stdin=f"link add {veth} type veth peer name eth0 netns {self.name}\n"
            f"link set {veth} alias {self.box.cgroup(self.name)}\nlink set {veth} master br0 up\n",
        )
        run(
            ["ip", "-netns", self.name, "-batch", "-"],
            stdin=f"link set lo up\nlink set eth0 address {spec.mac} up\n"
            f"address add {spec.address}/{spec.prefix_length} dev eth0\nroute add default via {spec.gateway}\n",
        )

    def _veth(self) -> str:
        return "v" + hashlib.sha256(self.name.encode()).hexdigest()[:8]  # interface names have at most 15 characters

    def _end(self) -> None:
        """Kill what is left in the host and remove its groups: one that was killed once also kills what joins it
        later.
        """
        self._kill()
        for root in cgroup_roots():
            remove_cgroup(root / self.box.cgroup(self.name))

    def _kill(self) -> None:
        """SIGKILL to everything in the host at once."""
        for root in cgroup_roots():
            kill = root / self.box.cgroup(self.name) / "cgroup.kill"
            if kill.exists():
                kill.write_text("1")

    def _stop(self) -> None:
        try:
            os.kill(
                int((self.dir / "nspawn.pid").read_text()), signal.SIGTERM
            )  # nspawn asks the host's systemd to power off
        except (OSError, ValueError):
            pass
        else:
            try:
                wait_for(lambda: self.state() == "off", 15, "clean stop")
            except LabError:
                pass  # as with a real machine: then the plug
        self._off()

    def _off(self) -> None:
        def dead() -> bool:
            self._kill()  # again: a host that is just being started enters its group a moment later
            return self.state() == "off"

        wait_for(dead, 10, f"power-off of {self.name}")
        self._end()
        mount = self.dir / "mnt"
        if os.path.ismount(mount):
            wait_for(
                lambda: subprocess.run(["umount", str(mount)], capture_output=True).returncode == 0,
                10,
                f"unmounting the disk of {self.name}",
            )
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
            with open(self.box.dir / "log" / f"{self.name}.log", "w") as log:
                argv = [
                    "journalctl",
                    f"--directory={journal}",
                    "--no-pager",
                    "--quiet",
                    "--lines=1000",
                    "--output=short-precise",
                ]
                subprocess.run(argv, stdout=log, stderr=subprocess.STDOUT)


def all_hosts(box: Box) -> list[Host]:
    """The hosts of a box that exist (were started and not destroyed), by name."""
    return [Host(box, path.parent.name) for path in sorted((box.dir / "hosts").glob("*/spec.json"))]


def _main(prefix: str, root: str, verb: str, name: str) -> None:
    Host(Box(prefix, Path(root)), name)._in_box(verb)


if __name__ == "__main__":
    try:
        _main(*sys.argv[1:])
    except LabError as error:
        sys.exit(str(error))
