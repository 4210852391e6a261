"""The rented side of a played trace as the policy sees it. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from ironburst.burst import CoolDown, Job, Lease, Node, Pool

# Slurm's states of a rented node: without a lease, booting, behind its drain, taking jobs
OFF, COMING = ("CLOUD", "DRAIN", "IDLE", "POWERED_DOWN"), ("CLOUD", "POWERING_UP")
JOINED, READY = ("CLOUD", "DRAIN", "IDLE"), ("CLOUD", "IDLE")


class JobsOn(dict[str, list[Job]]):
    """The jobs on each node. A list is never changed: what was made of it is known by it."""

    def begin(self, parts: Iterable[Job]) -> None:
        """The parts of a job begin on their nodes."""
        for part in parts:
            for node in part.on:
                self[node] = [*self.get(node, ()), part]

    def end(self, parts: Iterable[Job]) -> None:
        """They have ended there."""
        for part in parts:
            for node in part.on:
                self[node] = [other for other in self[node] if other is not part]
                if not self[node]:
                    del self[node]


class RentedView(NamedTuple):
    """What it adds to a snapshot. `offered`: the pools as they are declared; `nodes`: theirs, in their order, by name;
    `launchable`: names of those that nobody rents; `jobs`: those that run on leases; `jobs_on`: by node.
    """

    pools: tuple[Pool, ...]
    offered: tuple[Pool, ...]
    nodes: Mapping[str, Node]
    launchable: frozenset[str]
    leases: tuple[Lease, ...] = ()
    cool_downs: tuple[CoolDown, ...] = ()
    jobs: tuple[Job, ...] = ()
    jobs_on: Mapping[str, list[Job]] = MappingProxyType({})
