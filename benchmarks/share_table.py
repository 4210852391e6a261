"""The same lines of config in Slurm and in Kubernetes: which shares are reached? python -m benchmarks.share_table

One workload of three teams on two nodes of eight GPUs, in real time and side by side: in the lab's Slurm (real
slurmctld on lab hosts; root), in the lab's Kubernetes (real API server and scheduler, kwok's nodes), and by the rules
alone. In the middle of it the team with the largest guarantee submits nothing; then it comes back. What each team may
have now is written to both every few seconds, by the controller's own adapters. Printed: each team's part of the
GPU-seconds in each third.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, Protocol

from benchmarks import share_lab
from benchmarks.share_lab import InSlurm, in_use
from benchmarks.shares_kubernetes import apply, everything, fits, pod_of
from ironburst import burst
from ironburst.adapters.kubernetes import Access, Client, Kubernetes, KubernetesSite
from ironburst.shares import SharedJob, TeamShare, kubernetes, quotas
from ironburst.shares.observed import quotas_now
from ironburst.shares.placing import schedule
from lab.hosts.check import check
from lab.kubernetes import binaries
from lab.kubernetes.access import Refused
from lab.kubernetes.control_plane import ControlPlane
from lab.kubernetes.nodes import NodeSpec
from lab.kubernetes.stages import NOTE
from lab.system import LabError, wait_for

SHARES = (TeamShare("vision", 8, weight=2), TeamShare("nlp", 4), TeamShare("free", 0))
NODES = {"dgx01": 8, "dgx02": 8}
LENGTH_S = 420
AWAY_S = (140, 280)  # vision submits nothing
DEMAND = {"vision": 11, "nlp": 9, "free": 6}  # GPUs that each team's jobs would fill: more than it may have
CONTROL_S = 2.0
PARTS = ("all are there", "vision is away", "vision is back")
ASKED = 0.05  # of the GPU-seconds
Json = dict[str, Any]


@dataclass(frozen=True)
class Task:
    """One job of the workload."""

    id: int
    at_s: float
    account: str
    gpus: int
    seconds: int

    def job(self, over: bool = False) -> SharedJob:
        """As the arithmetic has it."""
        return SharedJob(self.id, self.account, 1, self.gpus, self.at_s, over=over)

    def waits(self) -> burst.Job:
        """As the controller sees a job that waits."""
        each = burst.Resources(self.gpus)
        return burst.Job(self.id, "", "", "PENDING", self.at_s, 1, each, None, ("home",), account=self.account)


class Place(Protocol):
    """Where the workload is played."""

    def begin(self, tasks: Sequence[Task]) -> None:
        """The workload begins now."""

    def control(self, now_s: float, /) -> Mapping[str, int]:
        """Write the quotas anew; {account: GPUs in use now}. `now_s`: since the workload began."""


def workload(seed: int = 1) -> list[Task]:
    """Jobs of 1 and 2 GPUs and 15 to 30 s: a part of the GPUs is reached by many of them."""
    dice, found = random.Random(seed), list[Task]()
    for account, gpus in DEMAND.items():
        at = 0.0
        while at < LENGTH_S:
            size, seconds = dice.choice([1, 2]), dice.randint(15, 30)
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
        for account in DEMAND:
            used[_third(now)][account] += running.get(account, 0) * (now - last)
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
    jobs: dict[int, SharedJob] = {}
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


# ---- Kubernetes


class InKubernetes:
    """The lab's cluster. A user asks for the guarantee first, and over quota where that is used; what is refused in
    both is sent again once there is room, and what was ended, too: every CONTROL_S, where a Job's controller waits 1 to
    60 s, for the jobs here are short. The controller knows what was refused, as it does of Jobs.
    """

    def __init__(self, plane: ControlPlane):
        self.api = plane.api()
        self.kube = Kubernetes(Client(Access(plane.layout().kubeconfig("admin"))), KubernetesSite("shares"))
        self.coming: list[Task] = []
        self.tasks: dict[int, Task] = {}
        self.sent: set[int] = set()
        for thing in kubernetes.objects(SHARES, {}, quotas(SHARES, sum(NODES.values()), [])):
            apply(self.api, thing)
        for name, gpus in NODES.items():
            plane.add_node(NodeSpec(name, {}, {kubernetes.GPU: str(gpus), "cpu": "64"}, devices_after_s=0.1))
        accounts = [f"/api/v1/namespaces/{share.account}/serviceaccounts" for share in SHARES]
        wait_for(lambda: all(self.api.call("GET", each)["items"] for each in accounts), 60, "the namespaces")

    def begin(self, tasks: Sequence[Task]) -> None:
        """Sent at their time."""
        self.coming = list(tasks)

    def control(self, now_s: float) -> Mapping[str, int]:
        """As the controller's tick does; then what the users do."""
        while self.coming and self.coming[0].at_s <= now_s:
            task = self.coming.pop(0)
            self.tasks[task.id] = task
        seen = self.kube.observe()
        refused = [task.waits() for task in self.tasks.values() if task.id not in self.sent]
        now, gpus = quotas_now(SHARES, "home", seen.nodes, [*seen.jobs, *refused], seen.shares)
        self.kube.limit(SHARES, now, gpus)
        self._send()
        return in_use(seen.jobs)

    def _send(self) -> None:
        pods, room = everything(self.api, "pods"), everything(self.api, "resourcequotas")
        there = {int(name[1:]): pod for (_, name), pod in pods.items()}
        self.sent &= there.keys()  # the others were ended for somebody's guarantee
        for id in [id for id, pod in there.items() if pod["status"].get("phase") == "Succeeded"]:
            self.tasks.pop(id, None)
        for task in sorted(self.tasks.values(), key=lambda task: task.at_s):
            if task.id not in there and (job := self._taken(task, room)):
                self.sent.add(job.id)

    def _taken(self, task: Task, room: Mapping[tuple[str, str], Json]) -> SharedJob | None:
        for job in (task.job(over=False), task.job(over=True)):
            if not fits(job, task.account, room):
                continue
            pod = pod_of(job)
            pod["metadata"]["annotations"] = {f"{NOTE}run-seconds": str(task.seconds)}
            try:
                self.api.call("POST", f"/api/v1/namespaces/{task.account}/pods", pod)
            except Refused as refusal:
                if "exceeded quota" not in str(refusal):
                    raise
            else:
                return job
        return None


# ---- the table


def measured(tasks: Sequence[Task], prefix: str | None) -> Json:
    """All three, both schedulers at the same time."""
    plane = ControlPlane(f"shares-{os.getpid()}")
    plane.up(tied=True)
    try:
        with share_lab.converged(SHARES, prefix) as inside, ThreadPoolExecutor(2) as pool:
            places: dict[str, Place] = {"slurm": InSlurm(inside, SHARES), "kubernetes": InKubernetes(plane)}
            played = {name: pool.submit(play, place, tasks) for name, place in places.items()}
            return table({"rules": by_the_rules(tasks), **{name: each.result() for name, each in played.items()}})
    finally:
        plane.down()


def table(by: Mapping[str, Sequence[Mapping[str, float]]]) -> Json:
    """{parts: {part: {place: {account: part of the GPU-seconds}}}, and what Slurm and Kubernetes differ by, at most:
    differences: {part: of it}, largest_difference}.
    """
    found: Json = {"parts": {part: {name: rows[n] for name, rows in by.items()} for n, part in enumerate(PARTS)}}
    if {"slurm", "kubernetes"} <= by.keys():
        pairs = zip(PARTS, by["slurm"], by["kubernetes"], strict=True)
        found["differences"] = {part: round(max(abs(a[team] - b[team]) for team in DEMAND), 3) for part, a, b in pairs}
        found["largest_difference"] = max(found["differences"].values())
    return found


def main(argv: list[str] | None = None) -> int:
    """Exit code 1: Slurm and Kubernetes differ by more than 5% of all GPU-seconds."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.share_table", description=__doc__.partition("\n")[0])
    parser.add_argument("--lab", metavar="PREFIX", help="a lab that is up, its head converged with these shares")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args(argv)
    if lacks := missing():
        print(json.dumps({"skipped": lacks}))
        return 0
    found = measured(workload(), arguments.lab)
    print(json.dumps(found, indent=None if arguments.json else 1))
    return int(found["largest_difference"] > ASKED)


def missing() -> str:
    """Why it can't be measured here; empty: it can."""
    try:
        check()
    except LabError as error:
        return str(error)
    return "" if binaries.built() else "the lab's Kubernetes isn't built: make kubernetes"


if __name__ == "__main__":
    sys.exit(main())
