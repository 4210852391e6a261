"""python -m lab.kubernetes.instance: what one rented instance does from its boot to its end. A stand-in of
ironburst-join, the gate, kubelet and the device plugin; with the instance's own rights, and told nothing but by its
metadata.

Output is its console. It exits when the machine powers itself off.
"""

import argparse
import importlib.util
import ipaddress
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lab.hosts import hardware
from lab.kubernetes.kubelet import Crashed, Kubelet
from lab.kubernetes.metadata import Metadata
from lab.kubernetes.nodes import NOTE, NodeSpec
from lab.system import CHECKOUT, LabError

# of the adapter (ironburst/adapters/kubernetes/site.py): what a node and the controller have agreed on
NOT_READY, GATE, BEAT = "ironburst.io/not-ready", "ironburst.io/GatePassed", "ironburst.io/beat"
INSTANCE = f"{NOTE}instance"  # annotation: which instance the node is
SWITCH = CHECKOUT / "playbooks/roles/slurm_node/files/ironburst-dead-man.py"
SIZES = {"p5.48xlarge": {"cpu": "192", "memory": "2Ti"}}  # EC2's; others are nodes.SMALL
LOOK_S = 0.5


@dataclass(frozen=True)
class Times:
    """Seconds that things take. Real ones: a boot of minutes, a gate of 30 s, plugins 20 s after kubelet is ready,
    kubelet's restart 10 s, the switch's look once a minute.
    """

    boot: float = 2
    gate: float = 1
    devices: float = 1.5
    restart: float = 2
    switch: float = 5


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
    metadata = Metadata(str(ipaddress.ip_address(given.address)), host, int(port))
    time.sleep(times.boot)
    try:
        kubelet, said = join(metadata, given.disk, given.endpoint)
    except LabError as error:  # ironburst-join-failed.service: last words, and off
        tell(f"ironburst-join: {error}")
        return 0
    time.sleep(times.gate)
    serve(kubelet, said, metadata, times)
    return 0


def tell(text: str) -> None:
    """A line on the console."""
    print(f"{time.strftime('%H:%M:%S')} {text}", flush=True)


def join(metadata: Metadata, disk: Path, endpoint: str) -> tuple[Kubelet, dict[str, Any]]:
    """ironburst-join: who it is, and the token. LabError if it can't find out."""
    said = metadata.user_data()
    try:
        name = said["nodes"][int(metadata.get("meta-data/ami-launch-index"))]
        kubelet = Kubelet(disk, name, said["api_server"])
        kubelet.configure(said["ca"], metadata.secret(said["join_token"], said["region"], endpoint).strip())
    except (KeyError, IndexError) as error:
        raise LabError(f"the user data lacks {error}") from None
    tell(f"this is {name}: joining {said['api_server']}")
    return kubelet, said


def spec_of(said: dict[str, Any], name: str, metadata: Metadata, times: Times) -> NodeSpec:
    """What its kubelet and its device plugins tell of the machine."""
    kind = metadata.get("meta-data/instance-type")
    inside = hardware.instance(kind)
    devices = {"nvidia.com/gpu": inside.gpus, "vpc.amazonaws.com/efa": inside.efa}
    has = SIZES.get(kind, {}) | {key: str(count) for key, count in devices.items() if count}
    return NodeSpec(name, said.get("labels", {}), has, [f"{NOT_READY}:NoSchedule"], devices_after_s=times.devices)


def serve(kubelet: Kubelet, said: dict[str, Any], metadata: Metadata, times: Times) -> None:
    """Kubelet, the gate's word, and the dead man's switch, side by side in one loop; returns at the power-off."""
    switch, node = Switch(said, times.switch), Node(kubelet, said, metadata, times)
    while True:
        try:
            node.step()
        except Crashed as error:
            tell(f"kubelet: {error}; it starts again in {times.restart:g} s")
            node.not_before_s = time.monotonic() + times.restart
        except LabError as error:  # nobody answers: kubelet waits, and tries again
            tell(f"kubelet: {error}")
            node.not_before_s = time.monotonic() + times.restart
        if why := switch.verdict(kubelet if node.registered else None):
            tell(f"ironburst-dead-man: {kubelet.name} powers off: {why}")
            return
        time.sleep(LOOK_S)


class Node:
    """How far kubelet has come, one step at a time."""

    def __init__(self, kubelet: Kubelet, said: dict[str, Any], metadata: Metadata, times: Times):
        self.kubelet, self.said, self.metadata, self.times = kubelet, said, metadata, times
        self.request, self.registered, self.gate_told, self.not_before_s = "", False, False, 0.0

    def step(self) -> None:
        """The next thing to do. Crashed, LabError."""
        if time.monotonic() < self.not_before_s:
            return
        if not self.kubelet.bootstrapped():
            if not self.request:
                self.request = self.kubelet.request()
                tell(f"kubelet: asked for a certificate: {self.request}")
            name, self.request = self.request, ""  # a crash forgets it
            if not self.kubelet.signed(name):
                self.request = name
                return
            tell("kubelet: has its certificate; the token is removed")
        if not self.registered:
            identity = {INSTANCE: self.metadata.get("meta-data/instance-id")}
            self.kubelet.register(spec_of(self.said, self.kubelet.name, self.metadata, self.times), identity)
            self.registered = True
            tell(f"kubelet: registered {self.kubelet.name}")
        if not self.gate_told:
            self.kubelet.condition(GATE, "True", "Passed", "every check of a stand-in's gate: there is no GPU to ask")
            self.gate_told = True
            tell("ironburst-gate: passed, and told")


class Switch:
    """The dead man's switch: the program of the role decides; it hears the heartbeat in the Node's annotation."""

    def __init__(self, said: dict[str, Any], every_s: float):
        self.settings = {key: said[key] for key in ("dead_man_s", "hard_limit_s") if key in said}
        self.every_s, self.known, self.next_s = every_s, None, 0.0
        spec = importlib.util.spec_from_file_location("ironburst_dead_man", SWITCH)
        assert spec and spec.loader
        self.program: Any = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(self.program)

    def verdict(self, kubelet: Kubelet | None) -> str:
        """Why the machine ends now; empty: it stays. `kubelet` None: it hasn't joined."""
        now = time.monotonic()
        if not self.settings.get("dead_man_s") or now < self.next_s:
            return ""
        self.next_s = now + self.every_s
        shown, busy = None, False
        if kubelet:
            try:
                beat = kubelet.look()["metadata"].get("annotations", {}).get(BEAT, "")
                shown, busy = f"Comment={beat}", kubelet.busy()
            except LabError:  # an API server that doesn't answer is no heartbeat
                shown = None
        self.known = self.program.listen(self.known, now, shown)
        return str(self.program.verdict(self.known, now, busy, self.settings))


if __name__ == "__main__":
    sys.exit(main())
