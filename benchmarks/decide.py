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
GPU_TYPES = ("", "", "", "h100", "a100")
POLICY = Policy(home_partition="home", wait_limit_s=3600.0)


def site(jobs: int, nodes: int, seed: int = 1) -> Snapshot:
    """A snapshot with so many pending jobs and owned nodes; a pool of 8 nodes for each type that the catalogue has a
    GPU for.
    """
    rng = np.random.default_rng(seed)
    owned = [Node(f"n{n:05}", ("home",), KINDS[n % 3], ("ALLOCATED",)) for n in range(nodes)]
    running = [
        Job(
            1_000_000 + n,
            "run",
            "u",
            "RUNNING",
            NOW - 7200,
            1,
            node.total,
            86400.0,
            ("home",),
            on=(node.name,),
            start_s=NOW - 3600,
            end_s=NOW + float(rng.exponential(20_000)),
        )
        for n, node in enumerate(owned)
        if rng.random() < 0.95
    ]
    pools = []
    for number, name in enumerate(sorted(catalog.instance_types())):
        kind = catalog.instance_type(name)
        each = Resources(kind.gpu_count, kind.vcpus, int(kind.memory_mib))
        rentable = tuple(f"{name.replace('.', '-')}-{n}" for n in range(8))
        price = {"on-demand": 5.0 + number, "spot": 2.0 + number / 3}
        pools.append(
            Pool(
                f"p{number}",
                f"burst-{number}",
                rentable,
                name,
                each,
                "h100" if number % 2 else "a100",
                ("spot", "on-demand"),
                price,
                ("a", "b"),
                600.0,
                300.0,
                2 * 86400.0,
            )
        )
    off = ("CLOUD", "DRAIN", "IDLE", "POWERED_DOWN")
    rented = [Node(name, (pool.partition,), pool.each, off) for pool in pools for name in pool.nodes]
    pending = []
    for n in range(jobs):
        gpus = int(rng.choice([1, 1, 1, 2, 4, 8]))
        gang = int(rng.choice([1, 1, 1, 1, 2, 4])) if gpus == 8 else 1
        pending.append(
            Job(
                n + 1,
                "train",
                f"user{n % 50}",
                "PENDING",
                NOW - float(rng.exponential(7200)),
                gang,
                Resources(gpus, 4 * gpus, 30_000 * gpus),
                float(rng.integers(600, 90_000)),
                ("home",),
                priority=int(rng.integers(0, 1000)),
                requeue=bool(rng.random() < 0.7),
                gpu_type=str(rng.choice(GPU_TYPES)),
            )
        )
    budget = Budget(1_000_000.0, 0.0, 0.0, NOW + 20 * 86400)
    return Snapshot(NOW, (*running, *pending), (*owned, *rented), tuple(pools), budget=budget)


def measure(jobs: int, nodes: int, repeat: int) -> dict[str, object]:
    seconds, decided = {}, {}
    for count in (jobs // 4, jobs // 2, jobs):
        snapshot = site(count, nodes)
        times = []
        for _ in range(repeat):
            begun = time.perf_counter()
            decision = decide(snapshot, POLICY)
            times.append(time.perf_counter() - begun)
        said = {item.job for item in (*decision.waits, *decision.infeasible)} | {
            job for launch in decision.launches for job in launch.jobs
        }
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
        "types": len(catalog.instance_types()),
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
    print(
        json.dumps(results, indent=1)
        if arguments.json
        else "\n".join(f"{key:26} {value}" for key, value in results.items())
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
