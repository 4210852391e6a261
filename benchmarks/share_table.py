"""The same lines of config in Slurm and in Kubernetes: which shares are reached? python -m benchmarks.share_table

One workload of three teams on two nodes of eight GPUs, in real time: in the lab's Slurm (real slurmctld on lab hosts;
root), in the lab's Kubernetes (real API server and scheduler, kwok's nodes), and by the rules alone. In the middle of
it the team with the largest guarantee submits nothing; then it comes back. What each team may have now is written to
both schedulers every few seconds, as a controller would. Printed: each team's part of the GPU-seconds in each third.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from benchmarks.shares_kubernetes import apply, pod_of
from ironburst.adapters.slurm import Slurm
from ironburst.shares import Job, Share, kubernetes, quotas
from ironburst.shares.observed import quotas_now
from ironburst.shares.placing import schedule
from ironburst.shares.quota import capacity
from lab.demo.inside import Inside
from lab.kubernetes.access import Refused
from lab.kubernetes.control_plane import ControlPlane
from lab.kubernetes.nodes import NodeSpec
from lab.kubernetes.stages import NOTE
from lab.site import Site
from lab.system import wait_for

SHARES = (Share("vision", 8, weight=2), Share("nlp", 4), Share("free", 0))
NODES = {"dgx01": 8, "dgx02": 8}
LENGTH_S = 240
AWAY_S = (80, 150)  # vision submits nothing
DEMAND = {"vision": 11, "nlp": 9, "free": 6}  # GPUs that each team's jobs would fill
CONTROL_S = 2.0
Json = dict[str, Any]


@dataclass(frozen=True)
class Task:
    """One job of the workload."""

    id: int
    at_s: float
    account: str
    gpus: int
    seconds: int

    def job(self, over: bool = False) -> Job:
        """As the arithmetic has it."""
        return Job(self.id, self.account, 1, self.gpus, self.at_s, over=over)


class Place(Protocol):
    """Where the workload is played."""

    def begin(self, tasks: Sequence[Task]) -> None:
        """The workload begins now."""

    def control(self, now_s: float, /) -> Mapping[str, int]:
        """Write the quotas anew; {account: GPUs in use now}. `now_s`: since the workload began."""


def workload(seed: int = 1) -> list[Task]:
    """Jobs of 2 and 4 GPUs and 15 to 30 s."""
    dice, found = random.Random(seed), list[Task]()
    for account, gpus in DEMAND.items():
        at = 0.0
        while at < LENGTH_S:
            size, seconds = dice.choice([2, 4]), dice.randint(15, 30)
            if not (account == "vision" and AWAY_S[0] <= at < AWAY_S[1]):
                found.append(Task(len(found), at, account, size, seconds))
            at += size * seconds / gpus
    return sorted(found, key=lambda task: task.at_s)


def play(place: Place, tasks: Sequence[Task]) -> list[dict[str, float]]:
    """{account: part of the GPU-seconds} of each third."""
    place.begin(tasks)
    begun = time.monotonic()
    used = [dict.fromkeys(DEMAND, 0.0) for _ in range(3)]
    last = 0.0
    while (now := time.monotonic() - begun) < LENGTH_S:
        running = place.control(now)
        for account, gpus in running.items():
            used[_third(now)][account] += gpus * (now - last)
        last = now
        time.sleep(max(0.0, CONTROL_S - (time.monotonic() - begun - now)))
    return [_parts(each) for each in used]


def _third(at_s: float) -> int:
    return (at_s >= AWAY_S[0]) + (at_s >= AWAY_S[1])


def _parts(used: Mapping[str, float]) -> dict[str, float]:
    whole = sum(used.values()) or 1.0
    return {account: round(value / whole, 3) for account, value in used.items()}


# ---- by the rules alone


def by_the_rules(tasks: Sequence[Task]) -> list[dict[str, float]]:
    """Second by second, with ironburst.shares.placing; what was ended begins anew."""
    jobs: dict[int, Job] = {}
    ends: dict[int, float] = {}
    seconds = {task.id: task.seconds for task in tasks}
    used = [dict.fromkeys(DEMAND, 0.0) for _ in range(3)]
    for now in range(LENGTH_S):
        for job in [job for job, end in ends.items() if end <= now]:
            del jobs[job], ends[job]
        jobs |= {task.id: task.job() for task in tasks if now - 1 < task.at_s <= now}
        made = schedule(SHARES, NODES, jobs.values())
        for job in made.ended:
            jobs[job.id] = replace(job, on=(), over=False)
            del ends[job.id]
        for job in made.started:
            jobs[job.id], ends[job.id] = job, now + seconds[job.id]
        for job in jobs.values():
            if job.on:
                used[_third(now)][job.account] += job.gpus
    return [_parts(each) for each in used]


# ---- Slurm


class InSlurm:
    """The lab's Slurm, with the shares as the role tells them; alice is in all teams."""

    def __init__(self, inside: Inside):
        self.head = inside.site.host("head")
        self.slurm = Slurm(inside.argv(*inside.head_prefix()))

    def begin(self, tasks: Sequence[Task]) -> None:
        """By the account alone, all at once: each may begin at its time."""
        sbatch = "runuser -u alice -- sbatch --quiet -c 1 --time=5"
        lines = [
            f"{sbatch} -A {task.account} --gres=gpu:{task.gpus} --begin=now+{task.at_s:.0f} "
            f"--wrap 'sleep {task.seconds}'"
            for task in tasks
        ]
        self.head.ssh("cd /shared/alice && " + " && ".join(lines))

    def control(self, _: float) -> Mapping[str, int]:
        """As `ironburst run` would."""
        seen = self.slurm.observe()
        self.slurm.limit(SHARES, quotas_now(SHARES, "home", seen.nodes, seen.jobs, seen.shares))
        found = dict.fromkeys(DEMAND, 0)
        for job in seen.jobs:
            if job.state == "RUNNING" and job.account in found:
                found[job.account] += job.nodes * job.each.gpus
        return found


# ---- Kubernetes


class InKubernetes:
    """The lab's cluster. A user asks for the guarantee first, and over quota where that is used; what is refused in
    both is sent again, as is what was ended.
    """

    def __init__(self, plane: ControlPlane):
        self.api = plane.api()
        self.coming: list[Task] = []
        self.tasks: dict[int, Task] = {}
        self.sent: dict[int, Job] = {}
        for thing in kubernetes.objects(SHARES, {}, quotas(SHARES, sum(NODES.values()), [])):
            apply(self.api, thing)
        for name, gpus in NODES.items():
            plane.add_node(NodeSpec(name, {}, {"nvidia.com/gpu": str(gpus), "cpu": "64"}, devices_after_s=0.1))
        accounts = [f"/api/v1/namespaces/{share.account}/serviceaccounts" for share in SHARES]
        wait_for(lambda: all(self.api.call("GET", each)["items"] for each in accounts), 60, "the namespaces")

    def begin(self, tasks: Sequence[Task]) -> None:
        """Sent at their time."""
        self.coming = list(tasks)

    def control(self, now_s: float) -> Mapping[str, int]:
        """See, write, send."""
        while self.coming and self.coming[0].at_s <= now_s:
            self.tasks[self.coming[0].id] = self.coming.pop(0)
        pods = {
            int(pod["metadata"]["name"][1:]): pod
            for share in SHARES
            for pod in self.api.call("GET", f"/api/v1/namespaces/{share.account}/pods")["items"]
        }
        found, jobs = dict.fromkeys(DEMAND, 0), list[Job]()
        for id, job in list(self.sent.items()):
            pod = pods.get(id)
            if pod is None:
                del self.sent[id]  # ended for somebody's guarantee
            elif pod["status"].get("phase") in ("Succeeded", "Failed"):
                del self.sent[id], self.tasks[id]
            else:
                node = pod["spec"].get("nodeName", "")
                jobs.append(replace(job, on=(node,) if node else ()))
                found[job.account] += job.gpus if node else 0
        waiting = [task.job() for task in self.tasks.values() if task.id not in self.sent]
        now = quotas(SHARES, capacity(NODES, jobs), [*jobs, *waiting])
        for thing in kubernetes.quotas_of(SHARES, {}, now):
            apply(self.api, thing)
        for task in sorted(self.tasks.values(), key=lambda task: task.at_s):
            if task.id not in self.sent and task.id not in pods:
                self._send(task)
        return found

    def _send(self, task: Task) -> None:
        for over in (False, True):
            pod = pod_of(task.job(over))
            pod["metadata"]["annotations"] = {f"{NOTE}run-seconds": str(task.seconds)}
            try:
                self.api.call("POST", f"/api/v1/namespaces/{task.account}/pods", pod)
            except Refused as refusal:
                if "exceeded quota" not in str(refusal):
                    raise
            else:
                self.sent[task.id] = task.job(over)
                return


# ---- the table


def in_kubernetes(tasks: Sequence[Task]) -> list[dict[str, float]]:
    """In a control plane of its own."""
    plane = ControlPlane(f"shares-{os.getpid()}")
    plane.up(tied=True)
    try:
        return play(InKubernetes(plane), tasks)
    finally:
        plane.down()


def table(by: Mapping[str, Sequence[Mapping[str, float]]]) -> Json:
    """{thirds, largest difference between the two schedulers, as a part of all GPU-seconds}."""
    parts = ("all are there", "vision is away", "vision is back")
    rows = {part: {name: found[n] for name, found in by.items()} for n, part in enumerate(parts)}
    found: Json = {"thirds": rows}
    if "slurm" in by and "kubernetes" in by:
        pairs = zip(by["slurm"], by["kubernetes"], strict=True)
        found["largest_difference"] = max(abs(a[team] - b[team]) for a, b in pairs for team in DEMAND)
    return found


def main(argv: list[str] | None = None) -> int:
    """Exit code 1: Slurm and Kubernetes differ by more than 5% of all GPU-seconds."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.share_table", description=__doc__.partition("\n")[0])
    parser.add_argument("--lab", metavar="PREFIX", help="a lab that is up, its head converged with these shares")
    parser.add_argument("--no-kubernetes", action="store_true")
    arguments = parser.parse_args(argv)
    tasks = workload()
    by = {"rules": by_the_rules(tasks)}
    if not arguments.no_kubernetes:
        by["kubernetes"] = in_kubernetes(tasks)
    if arguments.lab:
        by["slurm"] = play(InSlurm(Inside(Site(arguments.lab))), tasks)
    found = table(by)
    print(json.dumps(found, indent=1))
    return int(found.get("largest_difference", 0.0) > 0.05)


if __name__ == "__main__":
    sys.exit(main())
