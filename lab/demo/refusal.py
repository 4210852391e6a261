"""Step 8: a gang that the cloud refuses in every zone, while the hall is full. Slurm must answer all the while, and
nothing may stay behind.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from ironburst import document
from ironburst.adapters.slurm.scheduler import Slurm
from ironburst.controller.ledger import Ledger
from ironburst.controller.records import EventRow
from ironburst.document import ClusterDocument
from ironburst.ports import Node
from lab.demo.burst import Head, over
from lab.demo.cloud import room_of
from lab.demo.inside import Boxed, Inside
from lab.system import LabError

ANSWER_S = 1.0  # how late Slurm's slowest answer may be
LIMIT_S = 120
NODES = 2  # of the hall, and of the gang
# held, so that neither Slurm nor the controller looks for a place for it
PROBE = """set -e
before=$(date +%s%N); squeue > /dev/null
between=$(date +%s%N); job=$(sbatch --parsable --hold --output=/dev/null --wrap true)
after=$(date +%s%N); scancel "$job"
echo $((between - before)) $((after - between))"""


@dataclass
class Refusal:
    """What was seen of the gang that nobody could take."""

    zones: frozenset[str]
    """every zone that the declaration allows"""
    refused: frozenset[str] = frozenset()
    """those of which an event says that the cloud had no capacity there"""
    looks_s: list[float] = field(default_factory=list)
    """seconds that the scheduler's answers took, to a user who looks, and to one who submits"""
    submits_s: list[float] = field(default_factory=list)
    rented: int = 0
    """instances that exist afterwards and did not before"""
    asked: tuple[str, str, str] = ("Slurm", "squeue", "sbatch")
    """who, and what the two are called"""
    left: tuple[str, ...] = ()
    """jobs and leases that have not ended, nodes that are not as they were"""

    def good(self) -> bool:
        """Refused everywhere, the scheduler always in time, nothing rented, nothing left."""
        in_time = bool(self.submits_s) and max(self.looks_s + self.submits_s) < ANSWER_S
        return bool(self.zones) and self.refused >= self.zones and in_time and not self.rented and not self.left

    def as_json(self) -> dict[str, Any]:
        return {
            "zones": {zone: zone in self.refused for zone in sorted(self.zones)},
            "answers": len(self.looks_s) + len(self.submits_s),
            f"slowest_{self.asked[1]}_s": round(max(self.looks_s, default=0.0), 3),
            f"slowest_{self.asked[2]}_s": round(max(self.submits_s, default=0.0), 3),
            "rented": self.rented,
            "left": list(self.left),
            "survived": self.good(),
        }

    def text(self) -> str:
        said, (who, look, submit) = self.as_json(), self.asked
        behind = f"; LEFT: {', '.join(self.left)}" if self.left else ""
        return (
            f"a gang of {NODES} in {len(self.zones & self.refused)} of {len(self.zones)} zones; {who}'s slowest of "
            f"{said['answers']} answers: {look} {said[f'slowest_{look}_s']} s, "
            f"{submit} {said[f'slowest_{submit}_s']} s; {self.rented} instances{behind}"
        )


def script(name: str, minutes: int) -> str:
    """A job of all GPUs of two nodes, until it is cancelled."""
    size = f"--nodes={NODES} --ntasks-per-node=1 --gres=gpu:8 --time={minutes}"
    return f"#!/bin/bash\n#SBATCH --job-name={name} {size} --requeue --output=/dev/null\nsleep {minutes * 60}\n"


def refused(events: Iterable[EventRow], codes: Iterable[str]) -> frozenset[str]:
    """The zones of which these events say that the cloud had no capacity there. `codes`: as it says so."""
    said = [event.text for event in events if event.kind == "refused" and any(code in event.text for code in codes)]
    return frozenset(text.split(":")[0].split(" in ")[1] for text in said)


def wrong(nodes: Iterable[Node], rentable: set[str]) -> tuple[str, ...]:
    """Rentable nodes that aren't off for good, and other nodes that are drained or down."""

    def well(node: Node) -> bool:
        return node.launchable if node.name in rentable else not (node.has("DRAIN") or node.has("DOWN"))

    return tuple(f"node {node.name} {'+'.join(node.states)}" for node in nodes if not well(node))


def run(inside: Inside, ledger: Ledger, say: Callable[[str], None]) -> Refusal:
    """Fill the hall, submit the gang, wait for the refusal in every zone, cancel both, wait until all is as before.
    LabError if one of these doesn't come.
    """
    published = document.read(inside.document)
    zones = frozenset(place.zone for pool in published.pools for place in pool.zones)
    result, head = Refusal(zones), Head(inside)
    before, began = instances(inside), time.time()
    codes = [room.no_capacity for room in inside.cloud.rooms]
    sell_nothing(inside, published)
    full = int(head.alice("sbatch --parsable", stdin=script("full-hall", 60)))
    _until(result, head, lambda: head.queue().get(full) == "RUNNING", "job full-hall runs")
    gang = int(head.alice("sbatch --parsable", stdin=script("refused-gang", 2)))
    say(f"job {full} fills the hall; job {gang} is a gang of {NODES}, and no zone has capacity for it")

    def everywhere() -> bool:
        result.refused = refused(ledger.events(began), codes)
        return result.refused >= result.zones

    _until(result, head, everywhere, "the cloud refused the gang in every zone")
    say(f"refused: {', '.join(sorted(result.refused))}")
    head.alice(f"scancel {full} {gang}")
    slurm = Slurm(inside.argv(*inside.head_prefix()))
    rentable = {node for pool in published.pools for node in pool.nodes}

    def quiet() -> bool:
        states = head.queue()
        jobs = tuple(f"job {id}" for id in (full, gang) if not over(states.get(id)))
        leases = tuple(f"lease {lease.node}" for lease in ledger.leases())
        result.left = (*jobs, *leases, *wrong(slurm.observe().nodes, rentable))
        return not result.left

    _until(result, head, quiet, "both jobs and every lease have ended, and every node is as it was")
    result.rented = len(instances(inside) - before)
    say(result.text())
    return result


def sell_nothing(inside: Boxed, published: ClusterDocument) -> None:
    """From now on no zone has capacity."""
    for pool in published.pools:
        for place in pool.zones:
            for market in pool.markets:
                none = {"instance_type": pool.instance_type, "zone": place.zone, "market": market, "count": 0}
                room_of(inside.cloud, pool.instance_type).control(inside, "POST", "/lab/capacity", **none)


def _until(result: Refusal, head: Head, seen: Callable[[], bool], what: str) -> None:
    """Ask Slurm, again and again, as a user does, until something is seen."""
    end = time.monotonic() + LIMIT_S
    while not seen():
        if time.monotonic() > end:
            raise LabError(f"within {LIMIT_S} s it did not come about that {what}: {result.text()}; see controller.log")
        squeue, sbatch = (int(number) / 1e9 for number in head.alice(PROBE).split())
        result.looks_s.append(squeue)
        result.submits_s.append(sbatch)
        time.sleep(0.2)


def instances(inside: Boxed) -> set[str]:
    """Ids of all instances, ended ones too."""
    shown: list[Any] = [room.control(inside, "GET", "/lab/instances") for room in inside.cloud.rooms]
    return {view["instance_id"] for views in shown for view in views}
