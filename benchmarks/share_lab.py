"""The lab's Slurm with teams' shares, for benchmarks.share_table: the role slurm_head makes accounts and QOS."""

from __future__ import annotations

import math
import os
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from typing import Protocol

from ironburst import document
from ironburst.adapters.slurm.scheduler import Slurm
from ironburst.burst import Job
from ironburst.config import load
from ironburst.document import build
from ironburst.document.aws import AwsPlace
from ironburst.shares import TeamShare
from ironburst.shares.observed import quotas_now
from lab import hall
from lab.demo.inside import Inside
from lab.site import Site
from lab.system import CHECKOUT, LabError

NODES = 2
SUBMIT_S = 0.4  # a job, at most
CLOUD = {"fixed-1": build.CloudInstance(id="i-0123456789abcdef0", address="10.90.0.7")}


class Task(Protocol):
    """What is submitted (benchmarks.share_table)."""

    at_s: float
    account: str
    gpus: int
    seconds: int


@contextmanager
def converged(shares: Sequence[TeamShare], prefix: str | None = None) -> Iterator[Inside]:
    """The lab `prefix`, which is up and converged; or one of its own: the head and two nodes, and alice is in all
    teams.
    """
    if prefix:
        yield Inside(Site(prefix))
        return
    site, machines = Site(f"bench-{os.getpid()}"), hall.addresses(NODES)
    try:
        site.up(start=machines, tied=True, hall=machines)
        inside = Inside(site)
        _publish(inside, shares)
        inside.run(inside.ironburst("converge", "--document", str(inside.document), "--inventory", "inventory/lab"))
        for share in shares:
            site.ssh("head", f"sacctmgr -i add user alice account={share.account}")
        yield inside
    finally:
        site.down()


def _publish(inside: Inside, shares: Sequence[TeamShare]) -> None:
    key = inside.site.dir / "run" / "munge.key"
    key.write_bytes(b"b" * 64)
    zones = [document.PoolZone(zone="us-east-1a", place=AwsPlace(subnet_id="subnet-1", launch_template_id="lt-1"))]
    seen = build.Observed(instances=CLOUD, pool_zones={"p5": zones})
    built = hall.grown(build.build(load.load(CHECKOUT / "stacks" / "Pulumi.lab.yaml"), seen), NODES)
    names = {"guaranteed": "guaranteed_gpus", "most": "max_gpus"}
    changes = {
        "scheduler": built.scheduler.model_copy(update={"munge_key": f"file:{key}"}),
        "pools": [],
        "shares": [
            document.Share.model_validate({names.get(name, name): value for name, value in asdict(share).items()})
            for share in shares
        ],
    }
    document.publish(built.model_copy(update=changes), inside.document)


class InSlurm:
    """The lab's Slurm, as its users and the controller use it."""

    def __init__(self, inside: Inside, shares: Sequence[TeamShare]):
        self.head, self.shares = inside.site.host("head"), shares
        self.slurm = Slurm(inside.argv(*inside.head_prefix()))

    def begin(self, tasks: Sequence[Task]) -> None:
        """By the account alone, before the workload begins: each may begin at its time. Returns when it begins."""
        sbatch = "runuser -u alice -- sbatch --quiet -c 1 --time=5"
        zero = math.ceil(time.time() + SUBMIT_S * len(tasks))
        lines = [
            f"{sbatch} -A {task.account} --gres=gpu:{task.gpus} --wrap 'sleep {task.seconds}' "
            f"--begin=now+$(({zero + round(task.at_s)} - $(date +%s)))"
            for task in tasks
        ]
        self.head.ssh("cd /shared/alice && " + " && ".join(lines))
        left_s = zero - time.time()
        if left_s < 0:
            raise LabError(f"{len(tasks)} jobs took {-left_s:.0f} s too long to submit: this machine is too busy")
        time.sleep(left_s)

    def control(self, _: float) -> Mapping[str, int]:
        """As the controller's tick does."""
        seen = self.slurm.observe()
        self.slurm.limit(self.shares, *quotas_now(self.shares, "home", seen.nodes, seen.jobs, seen.shares))
        return in_use(seen.jobs)


def in_use(jobs: Iterable[Job]) -> Mapping[str, int]:
    """{account: GPUs}"""
    found: Counter[str] = Counter()
    for job in jobs:
        found[job.account] += job.nodes * job.each.gpus if job.state == "RUNNING" else 0
    return found
