"""Random sequences of what happens to teams' shares: what benchmarks.shares and its play on Kubernetes share."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ironburst.shares import SharedJob, TeamShare

NODES = {"n1": 8, "n2": 8, "n3": 8}
TEAMS = ("a", "b", "c")
STEPS = 30


@dataclass(frozen=True)
class Step:
    """One thing that happens. `pick`: which of the jobs or nodes that it can happen to, as a part of their number."""

    what: str  # submit, finish, kill, drain
    pick: float
    job: SharedJob | None = None


@dataclass
class Played:
    """What is counted of one sequence."""

    broken: list[str] = field(default_factory=list)
    preempted: int = 0
    started: int = 0
    slowest_s: float = 0.0  # from a step to the last guarantee kept


def shares_of(seed: int) -> list[TeamShare]:
    """Three teams whose guarantees fit into the nodes; one of them may not go over quota, now and then."""
    dice = random.Random(f"shares {seed}")
    left, found = sum(NODES.values()), []
    for team in TEAMS:
        sure = dice.choice([0, 4, 8, 12, 16])
        sure = min(sure, left)
        left -= sure
        most = dice.choice([None, None, None, sure + 8])
        found.append(TeamShare(team, sure, dice.random() < 0.85, dice.randint(1, 3), most))
    return found


def steps_of(seed: int, gangs: bool) -> Iterator[Step]:
    """What happens. Jobs come faster than they end, so that the nodes fill."""
    dice = random.Random(f"steps {seed}")
    for number in range(STEPS):
        what = dice.choices(["submit", "finish", "kill", "drain"], [66, 18, 6, 10])[0]
        nodes = 2 if gangs and dice.random() < 0.2 else 1
        job = SharedJob(number, dice.choice(TEAMS), nodes, dice.choice([1, 2, 4, 4, 8, 8]), number)
        yield Step(what, dice.random(), job if what == "submit" else None)


def overfull(jobs: Mapping[int, SharedJob]) -> list[str]:
    """The nodes that have more on them than they have."""
    used = dict.fromkeys(NODES, 0)
    for job in jobs.values():
        for name in job.on:
            used[name] += job.each
    return [f"{name} has {used[name]} GPUs in use" for name in used if used[name] > NODES[name]]


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
