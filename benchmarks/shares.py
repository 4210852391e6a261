"""Is a team's guarantee ever broken? python -m benchmarks.shares [--kubernetes] [--sequences N] [--json]

Random sequences of submit, finish, kill, drain and resume, for three teams on three nodes of eight GPUs. After each
step the scheduler has its rounds; then no job within its team's guarantee may wait that fits on idle GPUs and on those
of work over quota (ironburst.shares.placing.deprived), and no work that isn't over quota may have been ended.

Without --kubernetes the scheduler is ironburst.shares.placing: the rules against themselves. With it the pods go to the
lab's kube-apiserver and kube-scheduler, whose nodes are kwok's, a stand-in (shares_kubernetes.py; `make kubernetes`
builds them); the quotas are written after each step, as a controller would.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ironburst.shares import Job, Share
from ironburst.shares.placing import deprived, schedule

NODES = {"n1": 8, "n2": 8, "n3": 8}
TEAMS = ("a", "b", "c")
STEPS = 30
ROUNDS = 20  # in which the rules come to rest


@dataclass(frozen=True)
class Step:
    """One thing that happens. `pick`: which of the jobs or nodes that it can happen to, as a part of their number."""

    what: str  # submit, finish, kill, drain
    pick: float
    job: Job | None = None


@dataclass
class Played:
    """What is counted of one sequence."""

    broken: list[str] = field(default_factory=list)
    preempted: int = 0
    started: int = 0
    slowest_s: float = 0.0  # from a step to the last guarantee kept


def shares_of(seed: int) -> list[Share]:
    """Three teams whose guarantees fit into the nodes; one of them may not go over quota, now and then."""
    dice = random.Random(f"shares {seed}")
    left, found = sum(NODES.values()), []
    for team in TEAMS:
        sure = dice.choice([0, 4, 8, 12, 16])
        sure = min(sure, left)
        left -= sure
        most = dice.choice([None, None, None, sure + 8])
        found.append(Share(team, sure, dice.random() < 0.85, dice.randint(1, 3), most))
    return found


def steps_of(seed: int, gangs: bool) -> Iterator[Step]:
    """What happens. Jobs come faster than they end, so that the nodes fill."""
    dice = random.Random(f"steps {seed}")
    for number in range(STEPS):
        what = dice.choices(["submit", "finish", "kill", "drain"], [66, 18, 6, 10])[0]
        nodes = 2 if gangs and dice.random() < 0.2 else 1
        job = Job(number, dice.choice(TEAMS), nodes, dice.choice([1, 2, 4, 4, 8, 8]), number)
        yield Step(what, dice.random(), job if what == "submit" else None)


# ---- the rules against themselves


def play(seed: int) -> Played:
    """One sequence, with placing as the scheduler."""
    shares, played = shares_of(seed), Played()
    jobs: dict[int, Job] = {}
    drained: set[str] = set()
    for step in steps_of(seed, gangs=True):
        _happen(step, jobs, drained)
        nodes = {name: gpus for name, gpus in NODES.items() if name not in drained}
        for _ in range(ROUNDS):
            made = schedule(shares, nodes, jobs.values())
            if not made.started:
                break
            if wrong := [job.id for job in made.ended if not job.over]:
                played.broken.append(f"step {step}: work within a guarantee was ended: {wrong}")
            played.preempted += len(made.ended)
            played.started += len(made.started)
            jobs |= {job.id: replace(job, on=(), over=False) for job in made.ended}
            jobs |= {job.id: job for job in made.started}
            played.broken += overfull(jobs)
        played.broken += [
            f"{step.what}: job {job.id} of {job.account} waits" for job in deprived(shares, nodes, jobs.values())
        ]
    return played


def _happen(step: Step, jobs: dict[int, Job], drained: set[str]) -> None:
    """A step's effect on the queue and the nodes."""
    running = [job for job in jobs.values() if job.on]
    if step.job:
        jobs[step.job.id] = step.job
    elif step.what == "drain":
        drained ^= {sorted(NODES)[int(step.pick * len(NODES))]}
    elif running:
        job = running[int(step.pick * len(running))]
        if step.what == "finish":
            del jobs[job.id]
        else:
            jobs[job.id] = replace(job, on=(), over=False)


def overfull(jobs: Mapping[int, Job]) -> list[str]:
    """The nodes that have more on them than they have."""
    used = dict.fromkeys(NODES, 0)
    for job in jobs.values():
        for name in job.on:
            used[name] += job.each
    return [f"{name} has {used[name]} GPUs in use" for name in used if used[name] > NODES[name]]


# ---- the figures


def figures(played: list[Played], **more: Any) -> dict[str, Any]:
    """As printed."""
    return {
        "sequences": len(played),
        "steps": len(played) * STEPS,
        "guarantees_broken": sum(len(each.broken) for each in played),
        "preempted": sum(each.preempted for each in played),
        "started": sum(each.started for each in played),
        "said": [words for each in played for words in each.broken][:20],
        **more,
    }


def main(argv: list[str] | None = None) -> int:
    """Exit code 1: a guarantee was broken."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.shares", description=__doc__.partition("\n")[0])
    parser.add_argument("--kubernetes", action="store_true", help="against the lab's API server and scheduler")
    parser.add_argument("--sequences", type=int, default=200)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args(argv)
    if arguments.kubernetes:
        from benchmarks import shares_kubernetes

        found = shares_kubernetes.figures_of(range(arguments.sequences))
    else:
        found = figures([play(seed) for seed in range(arguments.sequences)])
    show: Callable[[Any], str] = json.dumps
    print(show(found) if arguments.json else "\n".join(f"{name}: {value}" for name, value in found.items()))
    return 1 if found["guarantees_broken"] else 0


if __name__ == "__main__":
    sys.exit(main())
