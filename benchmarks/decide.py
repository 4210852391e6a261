"""How long does one decision take? python -m benchmarks.decide [--jobs 10000] [--nodes 2000] [--json]

A random site: owned nodes of three kinds, most of them busy, and a burst pool for each GPU instance type of the
catalogue. One `decide()` for a quarter, a half and all of the pending jobs; the slope is the exponent of time over jobs
(1 is linear).
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import sys
import time
from collections.abc import Sequence

import numpy as np

from ironburst import catalog
from ironburst.burst import Budget, Job, Node, Policy, Pool, Resources, Snapshot, decide

NOW = 1_795_262_400.0
KINDS = (Resources(8, 192, 2_000_000), Resources(8, 128, 1_000_000), Resources(4, 64, 500_000))
OFF = ("CLOUD", "DRAIN", "IDLE", "POWERED_DOWN")
GPU_TYPES = ("", "", "", "h100", "a100")
POLICY = Policy(home_partition="home", wait_limit_s=3600.0)


def site(jobs: int, nodes: int, seed: int = 1) -> Snapshot:
    """A snapshot with so many pending jobs and owned nodes; a pool of 8 nodes for each type that the catalogue has a
    GPU for.
    """
    rng = np.random.default_rng(seed)
    owned = [Node(f"n{n:05}", ("home",), KINDS[n % 3], ("ALLOCATED",)) for n in range(nodes)]
    running = [_running(rng, n, node) for n, node in enumerate(owned) if rng.random() < 0.95]
    pools = [_pool(number, name) for number, name in enumerate(sorted(catalog.instance_types("aws")))]
    rented = [Node(name, (pool.partition,), pool.each, OFF) for pool in pools for name in pool.nodes]
    pending = [_pending(rng, n) for n in range(jobs)]
    budget = Budget(1_000_000.0, 0.0, 0.0, NOW + 20 * 86400)
    return Snapshot(NOW, (*running, *pending), (*owned, *rented), tuple(pools), budget=budget)


def _running(rng: np.random.Generator, n: int, node: Node) -> Job:
    return Job(
        id=1_000_000 + n,
        name="run",
        user="u",
        state="RUNNING",
        submit_s=NOW - 7200,
        nodes=1,
        each=node.total,
        time_limit_s=86400.0,
        partitions=("home",),
        on=(node.name,),
        start_s=NOW - 3600,
        end_s=NOW + float(rng.exponential(20_000)),
    )


def _pool(number: int, name: str) -> Pool:
    kind = catalog.instance_type(name)
    return Pool(
        name=f"p{number}",
        partition=f"burst-{number}",
        nodes=tuple(f"{name.replace('.', '-')}-{n}" for n in range(8)),
        instance_type=name,
        each=Resources(kind.gpu_count, kind.vcpus, int(kind.memory_mib)),
        gpu_type="h100" if number % 2 else "a100",
        markets=("spot", "on-demand"),
        usd_per_hour={"on-demand": 5.0 + number, "spot": 2.0 + number / 3},
        zones=("a", "b"),
        boot_s=600.0,
        idle_s=300.0,
        max_run_s=2 * 86400.0,
    )


def _pending(rng: np.random.Generator, n: int) -> Job:
    gpus = int(rng.choice([1, 1, 1, 2, 4, 8]))
    gang = int(rng.choice([1, 1, 1, 1, 2, 4])) if gpus == 8 else 1
    return Job(
        id=n + 1,
        name="train",
        user=f"user{n % 50}",
        state="PENDING",
        submit_s=NOW - float(rng.exponential(7200)),
        nodes=gang,
        each=Resources(gpus, 4 * gpus, 30_000 * gpus),
        time_limit_s=float(rng.integers(600, 90_000)),
        partitions=("home",),
        priority=int(rng.integers(0, 1000)),
        requeue=bool(rng.random() < 0.7),
        gpu_type=str(rng.choice(GPU_TYPES)),
    )


def measure(jobs: int, nodes: int, repeat: int) -> dict[str, object]:
    seconds, decided = {}, {}
    for count in (jobs // 4, jobs // 2, jobs):
        snapshot = site(count, nodes)
        times = []
        for _ in range(repeat):
            begun = time.perf_counter()
            decision = decide(snapshot, POLICY)
            times.append(time.perf_counter() - begun)
        said = {item.job for item in (*decision.waits, *decision.infeasible)}
        said |= {job for launch in decision.launches for job in launch.jobs}
        assert len(said) == count, "every pending job is decided"
        seconds[count] = round(statistics.median(times), 3)
        decided[count] = {
            "launches": len(decision.launches),
            "waits": len(decision.waits),
            "infeasible": len(decision.infeasible),
        }
    slope = math.log(seconds[jobs] / seconds[jobs // 4]) / math.log(4)
    return {
        "nodes": nodes,
        "types": len(catalog.instance_types("aws")),
        "seconds": seconds,
        "decided": decided,
        "slope (1 is linear)": round(slope, 2),
        "seconds for all (<= 1)": seconds[jobs],
    }


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.decide", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--jobs", type=int, default=10_000)
    parser.add_argument("--nodes", type=int, default=2_000)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args(argv)
    if min(arguments.jobs, arguments.nodes) < 4 or arguments.repeat < 1:
        parser.error("--jobs and --nodes must be 4 or more, --repeat 1 or more")
    results = measure(arguments.jobs, arguments.nodes, arguments.repeat)
    lines = (f"{key:26} {value}" for key, value in results.items())
    print(json.dumps(results, indent=1) if arguments.json else "\n".join(lines))
    return 0


if __name__ == "__main__":
    sys.exit(main())
