"""The rented side of a played trace as the policy sees it. Pure."""

from __future__ import annotations

from typing import NamedTuple

from ironburst.burst import CoolDown, Job, Lease, Node, Pool

# Slurm's states of a rented node: without a lease, booting, behind its drain, taking jobs
OFF, COMING = ("CLOUD", "DRAIN", "IDLE", "POWERED_DOWN"), ("CLOUD", "POWERING_UP")
JOINED, READY = ("CLOUD", "DRAIN", "IDLE"), ("CLOUD", "IDLE")


class RentedView(NamedTuple):
    """What it adds to a snapshot. `jobs`: those that run on leases."""

    pools: tuple[Pool, ...]
    nodes: tuple[Node, ...]
    leases: tuple[Lease, ...] = ()
    cool_downs: tuple[CoolDown, ...] = ()
    jobs: tuple[Job, ...] = ()
