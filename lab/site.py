"""A whole site: one box, its repositories and its hosts. What the demo, the tests and `python -m lab` use.

site = Site("lab")
site.up()                                   # head, dgx01, dgx02 as bare hosts
site.ssh("dgx01", "lspci -d 10de:")
site.start_host(cloud("i-0123456789abcdef0", "10.90.0.7", "p5.48xlarge"))
site.down()
"""

import subprocess
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from lab import names
from lab.hosts import fabric, rootfs
from lab.hosts.bake import bake
from lab.hosts.box import Box
from lab.hosts.check import check
from lab.hosts.host import Host, all_hosts
from lab.hosts.spec import HostSpec, bare_metal
from lab.packages import repository
from lab.system import LAB_ROOT


class Site:
    """The lab `prefix`. Making the object starts nothing; it works from outside and from inside the box."""

    def __init__(self, prefix: str, root: Path = LAB_ROOT):
        self.box = Box(prefix, root)
        self.prefix = prefix
        self.dir = self.box.dir

    # --- life --------------------------------------------------------------------------------------------------

    def up(
        self,
        start: Iterable[str] = tuple(names.ADDRESSES),
        tied: bool = False,
        hall: Mapping[str, str] = names.ADDRESSES,
    ) -> None:
        """Build what is missing in the cache, make the box, serve the repositories, define all bare-metal hosts, and
        start `start`.

        `hall`: {name: address} of the bare-metal hosts (lab.hall has bigger ones).

        Returns when the started hosts answer by ssh. With `tied` the lab dies with this process (call from its main
        thread). LabError if the lab is up already, or if the machine lacks something.
        """
        check(self.box.root)
        self.prepare()
        self.box.up(tied=tied)
        try:
            repository.serve(self.box)
            for name, address in hall.items():
                files = fabric.host_files(name, hall)
                self.host(name).define(bare_metal(name, address, hosts=dict(hall), files=files))
            for name in start:
                self.host(name).start()
            self.wait(start)
        except BaseException:
            self.box.down()
            raise

    def prepare(self) -> None:
        """Build the base image and the repositories if they aren't in the cache (a minute, once for all labs)."""
        rootfs.base_image(self.box.root)
        repository.repositories(self.box.root)

    def down(self) -> None:
        """End everything; remove all but the folder `report`."""
        self.box.down()

    def status(self) -> dict[str, Any]:
        """{"prefix", "up", "hosts": [{name, kind, address, state}]}"""
        up = self.box.is_up()
        hosts = [
            {"name": host.name, "kind": host.spec.kind, "address": host.spec.address, "state": host.state()}
            for host in (self.hosts() if up else [])
        ]
        return {"prefix": self.prefix, "up": up, "hosts": hosts}

    # --- hosts -------------------------------------------------------------------------------------------------

    def hosts(self) -> list[Host]:
        """All defined hosts, by name."""
        return all_hosts(self.box)

    def host(self, name: str) -> Host:
        """The host of this name, whether it exists or not."""
        return Host(self.box, name)

    def start_host(self, spec: HostSpec) -> Host:
        """Define and start a host (of `bare_metal(...)` or `cloud(...)`); returns when it is on, not yet
        booted.
        """
        machine = self.host(spec.name)
        machine.start(spec)
        return machine

    def destroy_host(self, name: str) -> None:
        """Power off and forget a host and its disk; one that doesn't exist is fine."""
        self.host(name).destroy()

    def wait(self, hosts: Iterable[str], seconds: float = 60) -> dict[str, str]:
        """Wait until these hosts answer by ssh and have started: {name: "running" or "degraded"}."""
        chosen = list(hosts)
        if not chosen:
            return {}
        with ThreadPoolExecutor(len(chosen)) as pool:
            return dict(zip(chosen, pool.map(lambda name: self.host(name).wait(seconds), chosen), strict=True))

    def ssh(self, name: str, command: str | Sequence[str], **options: Any) -> subprocess.CompletedProcess[str]:
        """Run a command on a host as root; see Host.ssh."""
        return self.host(name).ssh(command, **options)

    # --- images and daemons ------------------------------------------------------------------------------------

    def bake_image(self, name: str, image: str) -> Path:
        """Stop host `name` and make an image of its disk, without identity; the host stays, off."""
        return bake(self.host(name), image)

    def spawn(self, argv: Sequence[str], log_name: str, env: Mapping[str, str] | None = None) -> int:
        """Start a daemon in the box, which dies with it; output goes to .lab/<prefix>/log/<log_name>.log. Returns its
        pid in the box.
        """
        return self.box.spawn(argv, self.log(log_name), env)

    def log(self, log_name: str) -> Path:
        """Where a daemon's output goes."""
        return self.dir / "log" / f"{log_name}.log"

    def run(self, argv: Sequence[str], **options: Any) -> subprocess.CompletedProcess[str]:
        """Run a client (ansible-playbook, curl, pytest) in the lab's network; options as for subprocess.run."""
        return subprocess.run([*self.box.net_prefix(), *argv], **options)
