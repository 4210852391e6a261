"""The nodes of halls with their gates: what the programs of role node_health do to Slurm, without running them.

tests/playbooks/test_health_programs.py holds `after` against the real ironburst-health.
"""

from __future__ import annotations

from ironburst.document import ClusterDocument, HallDocument, parse
from ironburst.health import shared
from ironburst.health.findings import Finding
from tests.fakes.slurm import FakeNode, FakeSlurm

TEXT = {
    "throttle": "gpu_health: GPU 3: its clocks are held down by hardware thermal slowdown",
    "mounts": "mounts: not mounted: /shared",
    "fabric": "fabric: 7 of 8 infiniband links are active; mlx5_3/1 is 1: DOWN",
    "time": "time: the clock is not synchronised",
    "xid": "xid: Xid 79 at 7200 s: GPU has fallen off the bus",
}
EVERY_S = 300.0  # slurm_head_health_interval


def findings(wrong):
    """Of a gate, for these keys of TEXT."""
    said = [(*TEXT[each].partition(": "), each if each in shared.CAUSES else "") for each in wrong]
    return [Finding(check, False, text, (), cause) for check, _, text, cause in said] or [
        Finding("driver", True, "580")
    ]


def after(drained: bool, reason: str, wrong, told: str, now_s: float) -> tuple[bool, str, str]:
    """(drained, reason, /run/ironburst/tolerated) when ironburst-health has run."""
    own = shared.read(reason) if drained else None
    if own and own.until is not None:
        told = f"{own.until} {','.join(own.causes)}"
    found = shared.tolerate(findings(wrong), shared.tolerated(told, now_s))
    failed = [f"{finding.check}: {finding.text}" for finding in found if not finding.passed]
    causes = ",".join(shared.causes(found))
    new = f"health: {f'[{causes}] ' if causes else ''}{failed[0]}" if failed else ""
    if not drained:
        return bool(failed), new, told
    if own is None or (own.ready and not failed):
        return True, reason, told
    return True, new or f"health: [{','.join(own.causes)}] ready: {own.text}", told


class Gates:
    """`wrong`: by node, what its gate finds."""

    def __init__(self, slurm: FakeSlurm, halls: dict[str, list[str]]):
        self.slurm, self.halls = slurm, halls
        self.wrong: dict[str, set[str]] = {}
        self.told: dict[str, str] = {}
        self.looked_s = slurm.clock.now()
        for name in [name for names in halls.values() for name in names]:
            slurm.nodes.setdefault(name, FakeNode(name, ("home",), {"IDLE"}))

    def document(self, document: ClusterDocument, **hall) -> ClusterDocument:
        """With these halls."""
        host = {"kind": "bare_metal", "role": "gpu", "address": "10.0.0.1", "partition": "home", "roles": []}
        host |= {"gpu": {"model": "H100 SXM5 80GB", "count": 8}, "fabric": "none", "fabric_links": 0, "slurm": None}
        hosts = [{**host, "name": name, "hall": hall} for hall, names in self.halls.items() for name in names]
        halls = {name: HallDocument(**hall).model_dump() for name in self.halls}
        return parse({**document.model_dump(mode="json"), "hosts": hosts, "halls": halls})

    def fail(self, names, *wrong):
        """From now on; nothing: they are well."""
        for name in names:
            self.wrong[name] = set(wrong)

    def look(self, *names):
        """Each of these nodes' health check; none: all, if it is time."""
        now_s = self.slurm.clock.now()
        if not names and now_s - self.looked_s < EVERY_S:
            return
        self.looked_s = now_s if not names else self.looked_s
        for name in names or [name for of_hall in self.halls.values() for name in of_hall]:
            node, wrong = self.slurm.nodes[name], sorted(self.wrong.get(name, ()))
            was = "DRAIN" in node.states, node.reason
            drained, reason, self.told[name] = after(*was, wrong, self.told.get(name, ""), now_s)
            if (drained, reason) != was and drained:
                self.slurm.drain([name], reason)
