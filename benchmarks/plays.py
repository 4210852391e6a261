"""How long does `simulate` take for a million jobs? python -m benchmarks.plays [--jobs N] [--trace FILE]

The first N jobs of the trace (more than it has: again and again, each time jittered otherwise, one after the other)
on 64 nodes of 8 GPUs, with what benchmarks.dollars rents (spot and on demand, offerings without capacity), asked every
10 s as a controller is. CPU seconds, and what a million jobs would take by these.

benchmarks.gate counts calls of functions, which are as many on every machine.
"""

from __future__ import annotations

import argparse
import cProfile
import gc
import json
import resource
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from benchmarks import decide, dollars, offers
from benchmarks.figures import trace_path
from ironburst import burst
from ironburst.burst.limits import REFERENCE, Limits
from ironburst.replay import traces
from ironburst.replay.home import Home
from ironburst.replay.outcome import Played
from ironburst.replay.provider import SimulatedCloud
from ironburst.replay.simulate import Progress, play
from ironburst.replay.traces import Trace

TRACE, JOBS, MILLION = "philly_first70d.csv.xz", 12_000, 1_000_000
MEMORY = "MB of memory at most"
POLICY = burst.Policy("home", 0.0, Limits(REFERENCE), spot_max_nodes=4)
# Calls of functions, a fifth over what they are (211 and 505), and decisions (1.25). A job of a play took 2,060 when
# each decision wrote sentences that nobody read and each of its passes made anew what all of them look up, 958 when
# each made the slots of all leases and looked at all of them again, 800 when a play kept nothing from one decision to
# the next, 610 (1.41 decisions) when a lease that was kept though its time was over had the policy asked again at the
# same moment, and 560 when all leases were looked at where one had changed, and offers were made anew where a pool had
# learned. Where alike jobs share no offers, one of a decision takes 1,256.
MOST_DECIDED = {"a pending job": 255.0}
MOST_PLAYED = {"a job of 1,000": 605.0, "decisions of it": 1.35}


def played(trace: Trace, nodes: int = 64, progress: Progress | None = None) -> Played:
    cloud = SimulatedCloud(offers.pools((offers.SPOT, offers.ON_DEMAND)), 1, dollars.SHORTAGES)
    return play(dollars.requeueable(trace, 1), Home(nodes), POLICY, cloud, progress)


def decided_calls() -> dict[str, float]:
    """Of one decision with its sentences."""
    site = decide.site(1000, 200)
    return {"a pending job": calls(lambda: burst.decide(site, decide.POLICY)) / 1000}


def played_calls() -> dict[str, float]:
    """Of a play; and how often the policy is asked."""
    jobs, decided = made(1000), list[int]()
    of_job = calls(lambda: decided.append(played(jobs, nodes=4).decisions)) / len(jobs)
    return {"a job of 1,000": of_job, "decisions of it": decided[-1] / len(jobs)}


def calls(of: Callable[[], object]) -> int:
    """Of functions in Python, which are as many each time."""
    of()  # what is remembered for good is made
    profile = cProfile.Profile(builtins=False)
    profile.runcall(of)
    return sum(entry.callcount for entry in profile.getstats())


def made(count: int) -> Trace:
    """Jobs for 4 nodes of 8 GPUs that are a little too few, some with a queue that is long."""
    rng = np.random.default_rng(1)
    gpus = rng.choice([1, 1, 1, 2, 4, 8, 16], count)
    return Trace(np.cumsum(rng.exponential(600, count)), rng.lognormal(7.5, 1.3, count), gpus)


def repeated(trace: Trace, count: int) -> Trace:
    """So many jobs: the trace again and again."""
    span_s, parts = float(trace.submit_s[-1] - trace.submit_s[0]) + 600, -(-count // len(trace))
    again = [traces.jittered(trace, seed + 1) for seed in range(parts)]
    submit_s = np.concatenate([part.submit_s + n * span_s for n, part in enumerate(again)])
    whole = traces.in_order(
        submit_s,
        np.concatenate([part.duration_s for part in again]),
        np.concatenate([part.gpus for part in again]),
    )
    return whole.take(slice(count))


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.plays", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--trace", default=TRACE, help="file, or its name in the folder of the shared data")
    parser.add_argument("--jobs", type=int, default=JOBS)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args(argv)
    if not (path := trace_path(arguments.trace, arguments.json)):
        return 0
    jobs = repeated(replace(traces.read(path), queue=None), arguments.jobs)
    gc.set_threshold(100_000, 20, 50)  # as ironburst.cli has it
    began_s = time.process_time()

    def progress(done: int, count: int) -> None:
        if done % 20_000 == 0:
            print(f"{done} of {count}: {time.process_time() - began_s:.1f} CPU seconds", file=sys.stderr, flush=True)

    outcome = played(jobs, progress=progress)
    cpu_s = time.process_time() - began_s
    said = {
        "jobs": len(jobs),
        "CPU seconds": round(cpu_s, 1),
        "of a million, minutes": round(cpu_s * MILLION / len(jobs) / 60, 1),
        MEMORY: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        "decisions": outcome.decisions,
        "USD": round(outcome.total_usd, 2),
    }
    print(json.dumps(said) if arguments.json else "\n".join(f"{name:24}{value}" for name, value in said.items()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
