"""Are the decisions still the same? python -m benchmarks.digest [--quick]

Prints a SHA-256 of the decisions, as JSON, on 200 random sites, on a whole trace of 70 days, and on parts of it with
learned run times and with clouds: two minutes. A change of `ironburst/burst` that should change no decision prints the
same lines before and after.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from unittest import mock

from benchmarks import burst, dollars, offers
from benchmarks.figures import trace_path
from ironburst.burst import Decision, Policy, Snapshot, decide, to_json
from ironburst.burst.limits import REFERENCE, Limits
from ironburst.replay import simulate, traces
from ironburst.replay.home import Home
from ironburst.replay.outcome import Played
from ironburst.replay.provider import SimulatedCloud
from ironburst.replay.simulate import play
from ironburst.replay.traces import Trace
from tests.fakes.random_sites import made

TRACE = "philly_first70d.csv.xz"
SITES, MOST_JOBS = 200, 8  # random sites, and pending jobs in one of them
LEARNED_JOBS, CLOUD_JOBS = 8000, 12_000  # of the trace, the first ones: half a minute each
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

    def decide(self, snapshot: Snapshot, policy: Policy, **_how: bool) -> Decision:
        """With its sentences, however it is asked."""
        decision = decide(snapshot, policy)
        self.sha256.update(json.dumps(to_json(decision)).encode())
        self.count += 1
        return decision

    def __str__(self) -> str:
        return f"{self.count} decisions {self.sha256.hexdigest()}"


def of_sites(seeds: Sequence[int] = range(SITES)) -> Digest:
    """Of the decisions of every policy on random sites."""
    digest = Digest()
    for seed in seeds:
        for policy in POLICIES:
            digest.decide(made(seed, count=seed % (MOST_JOBS + 1)), policy)
    return digest


def of_play(playing: Callable[[], Played]) -> Digest:
    """Of all decisions that a play asks for."""
    digest = Digest()
    with mock.patch.object(simulate, "decide", digest.decide):
        playing()
    return digest


def plays(trace: Trace) -> dict[str, Callable[[], Played]]:
    """By name: the first jobs with learned run times, the first jobs with clouds, the whole trace with known run
    times.
    """
    policy, home = Policy("home", 0.0, Limits(REFERENCE), spot_max_nodes=4), Home(512 // 8, 8)
    with_limits = burst.with_time_limits(trace.take(slice(LEARNED_JOBS)), 1)
    requeueable = dollars.requeueable(trace.take(slice(CLOUD_JOBS)), 1)
    reserved = offers.reserved({"g6.48xlarge": 1, "g5.12xlarge": 2})
    cloud = SimulatedCloud((*reserved, *offers.pools((offers.SPOT, offers.ON_DEMAND))), 1, dollars.SHORTAGES)
    small, settling = replace(home, nodes=24, tick_s=60.0), replace(policy, settle_s=60.0)
    return {
        "learned": lambda: play(with_limits, replace(home, nodes=32), policy),
        "clouds": lambda: play(requeueable, small, settling, cloud),
        "trace": lambda: play(trace, home, policy),
    }


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.digest", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="the random sites only")
    arguments = parser.parse_args(argv)
    print(f"sites: {of_sites()}", flush=True)
    if not arguments.quick and (path := trace_path(TRACE, False)):
        for name, playing in plays(traces.jittered(traces.read(path), 1)).items():
            print(f"{name}: {of_play(playing)}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
