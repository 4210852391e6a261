"""Are the decisions still the same? python -m benchmarks.digest [--quick]

Prints a SHA-256 of the decisions, as JSON, on a whole trace of 70 days, on parts of it with learned run times and with
clouds, and on 200 random sites. A change of `ironburst/burst` that should change no decision prints the same lines
before and after.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from collections.abc import Callable
from dataclasses import replace

from benchmarks import burst, dollars
from benchmarks.figures import trace_path
from ironburst.burst import Decision, Policy, Snapshot, decide, to_json
from ironburst.burst.limits import REFERENCE, Limits
from ironburst.replay import simulate, traces
from ironburst.replay.home import Home
from ironburst.replay.provider import Cloud
from ironburst.replay.simulate import play
from ironburst.replay.traces import Trace
from tests.fakes.random_sites import made

TRACE = "philly_first70d.csv.xz"
SITES = 200
LEARNED_JOBS, CLOUD_JOBS = 8000, 12_000  # the first ones: a minute each
POLICIES = (
    Policy("home", 3600.0),
    Policy("home", 3600.0, settle_s=120.0),
    Policy("home", 0.0),
    Policy("home", 0.0, Limits(REFERENCE)),
)


class Digest:
    """Decides, and adds each decision to a digest."""

    def __init__(self) -> None:
        self.sha256, self.count = hashlib.sha256(), 0

    def decide(self, snapshot: Snapshot, policy: Policy) -> Decision:
        decision = decide(snapshot, policy)
        self.sha256.update(json.dumps(to_json(decision)).encode())
        self.count += 1
        return decision


def of_play(playing: Callable[[], object]) -> Digest:
    """The digest of all decisions that a play asks for."""
    digest, real = Digest(), simulate.decide
    simulate.decide = digest.decide
    try:
        playing()
    finally:
        simulate.decide = real
    return digest


def of_sites() -> Digest:
    digest = Digest()
    for seed in range(SITES):
        for policy in POLICIES:
            digest.decide(made(seed, count=seed % 9), policy)
    return digest


def plays(trace: Trace) -> dict[str, Callable[[], object]]:
    """By name: the whole trace with known run times, the first jobs with learned ones, and the first jobs with
    clouds.
    """
    policy, home = Policy("home", 0.0, Limits(REFERENCE), spot_max_nodes=4), Home(512 // 8, 8)
    few, some = trace.take(slice(LEARNED_JOBS)), trace.take(slice(CLOUD_JOBS))
    reserved = dollars.reserved({"g6.48xlarge": 1, "g5.12xlarge": 2})
    cloud = Cloud((*reserved, *dollars.pools((dollars.SPOT, dollars.ON_DEMAND))), 1, dollars.SHORTAGES)
    small = replace(home, nodes=24, tick_s=60.0)
    return {
        "learned": lambda: play(burst.with_time_limits(few, 1), replace(home, nodes=32), policy),
        "clouds": lambda: play(dollars.requeueable(some, 1), small, replace(policy, settle_s=60.0), cloud),
        "trace": lambda: play(trace, home, policy),
    }


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.digest", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="the random sites only")
    args = parser.parse_args(argv)
    found: dict[str, Callable[[], Digest]] = {"sites": of_sites}
    if not args.quick and (path := trace_path(TRACE, False)):
        trace = traces.jittered(traces.read(path), 1)
        found |= {name: lambda playing=playing: of_play(playing) for name, playing in plays(trace).items()}
    for name, run in found.items():
        digest = run()
        print(f"{name}: {digest.count} decisions {digest.sha256.hexdigest()}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
