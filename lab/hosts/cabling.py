"""The cables of the simulated fabric: waiting for a port, unplugging a host and plugging it in again."""

from lab.hosts import fabric, hardware
from lab.hosts.host import Host
from lab.system import LabError, wait_for


def wait_active(hosts: list[Host], seconds: float = 20) -> None:
    """Wait until `ibstat` on each host says Active (infiniband-diags must be installed there, and the head be on)."""
    for host in hosts:

        def active(host: Host = host) -> bool:
            return "State: Active" in host.ssh("ibstat", check=False).stdout

        wait_for(active, seconds, f"an Active InfiniBand port on {host.name}", pause=0.2)


def _link(head: Host, host: Host, up: bool) -> None:
    devices = sorted(path.name for path in (host.hardware_dir / "class/infiniband").glob("mlx5_*"))
    if not devices:
        raise LabError(f"host {host.name!r} has no InfiniBand port")
    verb = "Relink" if up else "Unlink"
    head.ssh(f"echo '{verb} \"{host.name}\"[1]' > {fabric.COMMANDS}")
    hardware.set_link(host.hardware_dir, devices[0], up)  # the other source of truth: sysfs


def link_down(head: Host, host: Host) -> None:
    """Unplug the fabric cable of `host` (mlx5_0): in the simulator, and in the host's /sys."""
    _link(head, host, up=False)


def link_up(head: Host, host: Host) -> None:
    """Plug it in again; the port is Active when opensm has swept."""
    _link(head, host, up=True)
