"""python -m lab.kubernetes.instance: what one rented instance does from its boot to its end.

Its programs are those of its image, as the roles install them: ironburst-join, ironburst-kubelet, ironburst-dead-man.
Stand-ins: systemd, kubelet and the device plugin, which are this process, and what the gate finds. It has the
instance's own rights, and is told nothing but by its metadata. Output is its console; it exits when the machine powers
itself off.
"""

import argparse
import json
import os
import subprocess
import sys
import time
import urllib.request
from dataclasses import dataclass
from pathlib import Path

from lab.hosts import hardware
from lab.kubernetes.kubelet import Crashed, Kubelet
from lab.kubernetes.nodes import NOTE, NodeSpec
from lab.kubernetes.relay import Relay
from lab.system import CHECKOUT, LabError

NOT_READY = "ironburst.io/not-ready"  # what kubelet registers with; the controller takes it away
INSTANCE = f"{NOTE}instance"  # annotation: which instance the node is
ROLES = CHECKOUT / "playbooks/roles"
PROGRAMS = {
    "ironburst_cloud.py": ROLES / "cloud_node/files/aws/ironburst_cloud.py",
    "ironburst-join": ROLES / "cloud_node/files/ironburst-join.py",
    "ironburst-dead-man": ROLES / "cloud_node/files/ironburst-dead-man.py",
    "ironburst-kubelet": ROLES / "kubernetes_node/files/ironburst-kubelet.py",
}
SBIN, LOG = "usr/local/sbin", "var/log/journal"
FINDING = {"text": "a stand-in: this machine has no GPU to ask", "passed": True}
# Of the machine's root, $MACHINE. systemctl is-failed has status 0 for a unit that failed
STUBS = {
    "ironburst-gate": f"echo '{json.dumps({'passed': True, 'findings': [FINDING]})}'",
    "systemctl": 'case "$1" in\npoweroff) touch "$MACHINE/run/off" ;;\n'
    'is-failed) test -e "$MACHINE/run/failed/$2" ;;\n*) exit 1 ;;\nesac',
    "journalctl": f'for each; do case "$each" in _SYSTEMD_UNIT=*) cat "$MACHINE/{LOG}/${{each#*=}}" ;; esac; done',
}
SIZES = {"p5.48xlarge": {"cpu": "192", "memory": "2Ti"}}  # EC2's; others are nodes.SMALL
GATE_WAIT_S = 60
LOOK_S = 0.5


@dataclass(frozen=True)
class Times:
    """Seconds that things take, and between two runs of the gate and of the dead man's switch. Real ones: a boot of
    minutes, device plugins 20 s after kubelet is ready, a restart of kubelet after 10 s, the gate every 5 minutes, the
    switch every minute, two minutes in which a node must find its token.
    """

    boot: float = 2
    devices: float = 1.5
    restart: float = 2
    gate: float = 20
    switch: float = 10
    deadline: float = 120


class Machine:
    """Its disk, and how programs run there."""

    def __init__(self, disk: Path, endpoint: str, metadata: str, times: Times):
        self.disk, self.metadata = disk, metadata
        self.off = disk / "run/off"
        self.env = {
            "PATH": f"{disk / SBIN}:/usr/sbin:/usr/bin:/sbin:/bin",
            "MACHINE": str(disk),
            "AWS_EC2_METADATA_SERVICE_ENDPOINT": metadata,
            "AWS_ENDPOINT_URL": endpoint,
            "IRONBURST_JOIN_ROOT": str(disk),
            "IRONBURST_JOIN_DEADLINE": str(times.deadline),
            "IRONBURST_DEAD_MAN_ROOT": str(disk),
            "IRONBURST_DEAD_MAN_CONSOLE": os.devnull,  # standard output is the console
            "IRONBURST_KUBELET_ROOT": str(disk),
            "IRONBURST_KUBELET_GATE": str(disk / SBIN / "ironburst-gate"),
        }

    def image(self) -> None:
        """What its image brings."""
        for folder in (SBIN, LOG, "run/failed", "etc/ironburst"):
            (self.disk / folder).mkdir(parents=True, exist_ok=True)
        (self.disk / "etc/ironburst/kubelet.yaml").touch()
        files = {
            name: path.read_text().replace("#!/usr/bin/python3", f"#!{sys.executable}", 1)
            for name, path in PROGRAMS.items()
        }
        for name, text in (files | {name: f"#!/bin/sh\n{text}\n" for name, text in STUBS.items()}).items():
            (self.disk / SBIN / name).write_text(text)
            (self.disk / SBIN / name).chmod(0o755)

    def start(self, unit: str, *argv: str) -> subprocess.Popen[bytes]:
        """A program as the unit of this name; its output goes to the unit's journal."""
        with (self.disk / LOG / f"{unit}.service").open("ab") as journal:
            command = [str(self.disk / SBIN / argv[0]), *argv[1:]]
            return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=journal, stderr=journal, env=self.env)

    def run(self, unit: str, *argv: str) -> bool:
        """The same to its end; whether it did what it should."""
        well = self.start(unit, *argv).wait() == 0
        if not well:
            (self.disk / f"run/failed/{unit}.service").touch()
        return well

    def said(self, unit: str) -> str:
        """A unit's last line."""
        return ((self.disk / LOG / f"{unit}.service").read_text().strip().splitlines() or [""])[-1]

    def ask(self, path: str) -> str:
        """The metadata service. LabError."""
        token_s = {"X-aws-ec2-metadata-token-ttl-seconds": "60"}
        try:
            wanted = urllib.request.Request(f"{self.metadata}/latest/api/token", headers=token_s, method="PUT")
            token = urllib.request.urlopen(wanted, timeout=5).read().decode()
            wanted = urllib.request.Request(
                f"{self.metadata}/latest/{path}", headers={"X-aws-ec2-metadata-token": token}
            )
            return str(urllib.request.urlopen(wanted, timeout=5).read().decode())
        except OSError as error:
            raise LabError(f"the metadata service: {error}") from None


def main(argv: list[str] | None = None) -> int:
    """Exit code 0: it has powered itself off."""
    parser = argparse.ArgumentParser(prog="python -m lab.kubernetes.instance", description=__doc__)
    parser.add_argument("--address", required=True, help="its own, that of the primary interface")
    parser.add_argument("--disk", type=Path, required=True, help="folder of its files")
    parser.add_argument("--metadata", required=True, metavar="HOST:PORT", help="of the metadata service")
    parser.add_argument("--endpoint", required=True, help="URL of the AWS API")
    for name, default in vars(Times()).items():
        parser.add_argument(f"--{name}-s", type=float, default=default)
    given = parser.parse_args(argv)
    times = Times(**{name: getattr(given, f"{name}_s") for name in vars(Times())})
    host, _, port = given.metadata.rpartition(":")
    machine = Machine(given.disk, given.endpoint, Relay(given.address, (host, int(port))).url, times)
    machine.image()
    time.sleep(times.boot)
    if machine.run("ironburst-join", "ironburst-join"):
        tell(machine.said("ironburst-join"))
        serve(machine, times)
    else:  # ironburst-join-failed.service
        machine.run("ironburst-join-failed", "ironburst-dead-man", "--failed")
        tell(machine.said("ironburst-join-failed"))
    return 0


def tell(text: str) -> None:
    """A line on the console."""
    print(f"{time.strftime('%H:%M:%S')} {text}", flush=True)


def settings_of(path: Path) -> dict[str, str]:
    """An environment file."""
    return dict(line.partition("=")[::2] for line in path.read_text().splitlines())


class Node:
    """Kubelet, and what systemd starts beside it, one step at a time."""

    def __init__(self, machine: Machine, times: Times):
        self.machine, self.times = machine, times
        self.settings = settings_of(machine.disk / "etc/ironburst/node.env")
        self.kubelet = Kubelet(machine.disk, self.settings["IRONBURST_NODE"])
        self.request, self.registered, self.not_before_s = "", False, 0.0

    def spec(self) -> NodeSpec:
        """What kubelet and device plugins tell of the machine."""
        kind = self.machine.ask("meta-data/instance-type")
        inside = hardware.instance(kind)
        devices = {"nvidia.com/gpu": inside.gpus, "vpc.amazonaws.com/efa": inside.efa}
        has = SIZES.get(kind, {}) | {key: str(count) for key, count in devices.items() if count}
        labels = [label for label in self.settings["IRONBURST_NODE_LABELS"].split(",") if label]
        given = dict(label.partition("=")[::2] for label in labels)
        taints, address = [f"{NOT_READY}:NoSchedule"], self.machine.ask("meta-data/local-ipv4")
        return NodeSpec(self.kubelet.name, given, has, taints, devices_after_s=self.times.devices, address=address)

    def step(self) -> None:
        """The next thing to do."""
        if self.registered or time.monotonic() < self.not_before_s:
            return
        try:
            self._step()
        except LabError as error:  # one that crashes is started again; one without an answer waits
            again = "; it starts again" if isinstance(error, Crashed) else ""
            tell(f"kubelet: {error}{again}")
            self.request, self.not_before_s = "", time.monotonic() + self.times.restart

    def _step(self) -> None:
        if not self.kubelet.bootstrapped():
            if not self.request:
                self.request = self.kubelet.request()
                tell(f"kubelet: asked for a certificate: {self.request}")
            if not self.kubelet.signed(self.request):
                return
            tell("kubelet: has its certificate")
        self.kubelet.register(self.spec(), {INSTANCE: self.machine.ask("meta-data/instance-id")})
        self.registered = True
        tell(f"kubelet: registered {self.kubelet.name}")


class Timer:
    """A program that systemd runs again some seconds after its end. What it says anew is told."""

    def __init__(self, machine: Machine, unit: str, argv: list[str], pause_s: float):
        self.machine, self.unit, self.argv, self.pause_s = machine, unit, argv, pause_s
        self.running: subprocess.Popen[bytes] | None = None
        self.next_s, self.said = 0.0, ""

    def step(self) -> None:
        """Start it, if it is time to."""
        if self.running is None and time.monotonic() >= self.next_s:
            self.running = self.machine.start(self.unit, *self.argv)
        elif self.running is not None and self.running.poll() is not None:
            self.running, self.next_s = None, time.monotonic() + self.pause_s
            if (said := self.machine.said(self.unit)) not in ("", self.said):
                self.said = said
                tell(f"{self.unit}: {said}")


def serve(machine: Machine, times: Times) -> None:
    """Until the machine powers itself off."""
    gate = ["ironburst-kubelet", "gate", "--wait", str(GATE_WAIT_S)]
    node = Node(machine, times)
    switch = Timer(machine, "ironburst-dead-man", ["ironburst-dead-man"], times.switch)
    beside = [Timer(machine, "ironburst-gate-condition", gate, times.gate), switch]
    while not (machine.off.exists() and switch.running is None):  # its last words are told
        node.step()
        for each in beside:
            each.step()
        time.sleep(LOOK_S)


if __name__ == "__main__":
    sys.exit(main())
