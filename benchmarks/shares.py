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
import sys
from dataclasses import replace

from benchmarks import shares_kubernetes
from benchmarks.share_sequences import NODES, Played, Step, figures, overfull, shares_of, steps_of
from ironburst.shares import SharedJob
from ironburst.shares.placing import deprived, schedule
from lab.kubernetes import binaries

ROUNDS = 20  # in which the rules come to rest


def play(seed: int) -> Played:
    """One sequence, with placing as the scheduler."""
    shares, played = shares_of(seed), Played()
    jobs: dict[int, SharedJob] = {}
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


def _happen(step: Step, jobs: dict[int, SharedJob], drained: set[str]) -> None:
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


def main(argv: list[str] | None = None) -> int:
    """Exit code 1: a guarantee was broken."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.shares", description=__doc__.partition("\n")[0])
    parser.add_argument("--kubernetes", action="store_true", help="against the lab's API server and scheduler")
    parser.add_argument("--sequences", type=int, default=200)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args(argv)
    if arguments.kubernetes:
        if not binaries.built():
            print(json.dumps({"skipped": "the lab's Kubernetes isn't built: make kubernetes"}))
            return 0
        found = shares_kubernetes.figures_of(range(arguments.sequences))
    else:
        found = figures([play(seed) for seed in range(arguments.sequences)])
    found = {"scheduler": "kubernetes" if arguments.kubernetes else "rules", **found}
    print(json.dumps(found) if arguments.json else "\n".join(f"{name}: {value}" for name, value in found.items()))
    return 1 if found["guarantees_broken"] else 0


if __name__ == "__main__":
    sys.exit(main())
