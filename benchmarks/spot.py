"""What do jobs with a deadline cost with spot? python -m benchmarks.spot [--cold]

The windows of shared data's spot_deadline_dev (two zones of AWS, 2022), one job of 48 h of work in each, a deadline of
52 or 70 h, a changeover of 3 or 12 minutes; the rules and the published policies are spot_peers'. Ours is
`burst.decide`, asked at each tick with a snapshot of that moment: the job pending or on its rented node, spot's
cool-down while there is none. A launch for the job is its changeover. Before a window the controller has seen that
zone's probes from the beginning of the series on, as one that has run for some days (`--cold`: nothing).

What is known of spot beforehand (ironburst.burst.spot.PRIOR) is of the first half of the series' time: `aside` are the
windows that begin after it, `first` those that end in it.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from benchmarks import spot_peers
from benchmarks.figures import trace_path
from benchmarks.spot_peers import SETTINGS, TICK, USD_PER_HOUR, On, Paid, Setting, State, Window
from ironburst.burst import Budget, CoolDown, Decision, Job, Lease, Node, Policy, Pool, Resources, Snapshot, decide
from ironburst.burst.memory import SpotMarket
from ironburst.burst.policy import DeadlineMoves
from ironburst.burst.spot import learn

WINDOWS = "spot_deadline_dev/windows.csv.xz"
HALF = 883  # tick of the series
PARTS = {"all": (0, 10**9), "first": (0, HALF - 554), "aside": (HALF, 10**9)}  # first and last start
ASKED = 0.95
NAMES = tuple(f"burst-{n}" for n in range(4))
OFF, UP = ("CLOUD", "DRAIN", "IDLE", "POWERED_DOWN"), ("CLOUD", "MIXED")
BEGIN_S, _ENDLESS = 1.7e9, 1e9  # of a window, on the clock; longer than any of them


def ours(setting: Setting, seen: SpotMarket, declared: DeadlineMoves | None) -> spot_peers.Policy:
    """`burst.decide` over one window. `seen`: what was seen of spot before it; `declared` None: as without the key."""
    pool = Pool(
        name="burst",
        partition="burst",
        nodes=NAMES,
        instance_type="p3.2xlarge",
        each=Resources(1),
        gpu_type="v100",
        markets=("on-demand", "spot"),
        usd_per_hour={"on-demand": USD_PER_HOUR["on-demand"], "spot": USD_PER_HOUR["spot"]},
        zones=("zone",),
        boot_s=60.0 * setting.changeover,
        idle_s=600.0,
        max_run_s=10 * 86400.0,
        checkpoint_s=1.0,
    )
    policy = Policy("home", 0.0, deadline_moves=declared)
    off = tuple(Node(name, ("burst",), pool.each, OFF) for name in NAMES)
    market = [seen]

    def choose(state: State) -> On:
        now_s = BEGIN_S + 60.0 * TICK * state.tick
        if state.tick == 0:
            market[0] = seen
        market[0] = learn(market[0], state.there, now_s)
        snapshot = _snapshot(state, setting, now_s, pool, off, market[0])
        return _wanted(decide(snapshot, policy), state.on)

    return choose


def _snapshot(
    state: State, setting: Setting, now_s: float, pool: Pool, off: tuple[Node, ...], market: SpotMarket
) -> Snapshot:
    on = state.on != "nothing"
    # a changeover that isn't over is work, too
    done_s = 60.0 * (setting.work - state.work - state.changing)
    job = Job(
        id=1,
        name="train",
        user="ada",
        state="RUNNING" if on else "PENDING",
        submit_s=now_s - 60.0 * TICK * state.tick,
        nodes=1,
        each=pool.each,
        time_limit_s=60.0 * setting.work,
        time_min_s=60.0,
        partitions=("burst",) if on else ("home",),
        on=NAMES[:1] if on else (),
        start_s=now_s if on else None,
        end_s=now_s + 60.0 * setting.work if on else None,
        deadline_s=now_s + 60.0 * state.left,
        saves_s=0.0,
        saved_s=done_s,
    )
    lease = Lease(
        id="0",
        launch="0",
        node=NAMES[0],
        pool=pool.name,
        zone="zone",
        market=state.on,
        state="ready",
        jobs=(1,),
        usd_per_hour=USD_PER_HOUR[state.on],
        committed_until_s=now_s + _ENDLESS,
        worked=True,
        paid_from_s=now_s,
    )
    refused = CoolDown(pool.name, "zone", "spot", 1, now_s + 60.0 * TICK, "InsufficientInstanceCapacity")
    return Snapshot(
        now_s=now_s,
        jobs=(job,),
        nodes=(Node(NAMES[0], ("burst",), pool.each, UP), *off[1:]) if on else off,
        pools=(pool,),
        leases=(lease,) if on else (),
        cool_downs=() if state.there else (refused,),
        budget=Budget(np.inf, 0.0, 0.0, now_s + _ENDLESS),
        spot=(market,),
    )


def _wanted(decision: Decision, on: On) -> On:
    """Where the job goes by it: to what is launched for it, else it stays where it is."""
    markets: list[On] = ["spot" if launch.market == "spot" else "on-demand" for launch in decision.launches]
    return markets[0] if markets else on


def known_before(windows: Sequence[Window]) -> dict[tuple[str, str], SpotMarket]:
    """For each window what a controller knows that looked at each tick of its series up to its beginning."""
    ticks: dict[str, dict[int, bool]] = {}
    for window in windows:
        ticks.setdefault(window.series, {}).update({window.start + n: bool(at) for n, at in enumerate(window.there)})
    known: dict[tuple[str, int], SpotMarket] = {}
    for series, probes in ticks.items():
        market = SpotMarket("burst")
        for tick, there in sorted(probes.items()):
            known[series, tick] = market
            market = learn(market, there, BEGIN_S + 60.0 * TICK * tick)
    by_id = {}
    for window in windows:
        market, later_s = known[window.series, window.start], -60.0 * TICK * window.start
        by_id[window.series, window.id] = replace(
            market, since_s=market.since_s + later_s, seen_s=market.seen_s + later_s
        )
    return by_id


def play_all(windows: Sequence[Window], setting: Setting, cold: bool) -> dict[str, list[Paid]]:
    """What each window costs, by policy; ours with and without the key in the stack file."""
    nothing, declared = SpotMarket("burst"), DeadlineMoves(0.0, 60.0 * TICK)
    seen = {} if cold else known_before(windows)
    ways: dict[str, Callable[[Window], spot_peers.Policy]] = {
        "greedy": lambda _window: spot_peers.greedy(setting),
        "uniform_progress": lambda _window: spot_peers.uniform_progress(setting),
        "without_the_key": lambda _window: ours(setting, nothing, None),
        "ours": lambda window: ours(setting, seen.get((window.series, window.id), nothing), declared),
    }
    return {name: [spot_peers.play(each.there, setting, way(each)) for each in windows] for name, way in ways.items()}


def figures(paid: dict[str, list[Paid]], best: list[float], chosen: Sequence[int]) -> dict[str, Any]:
    """Of some windows: the mean USD by policy, and ratios to uniform progress."""
    usd = {name: float(np.mean([of[n].usd for n in chosen])) for name, of in paid.items()}
    usd["optimum"] = float(np.mean([best[n] for n in chosen]))
    mine, peer = [paid["ours"][n] for n in chosen], usd["uniform_progress"]
    return {
        "usd": {name: round(value, 4) for name, value in usd.items()},
        "ratio": round(usd["ours"] / peer, 4),
        "without_ratio": round(usd["without_the_key"] / peer, 4),
        "optimum_ratio": round(usd["optimum"] / peer, 4),
        "worst_window": round(max(paid["ours"][n].usd / paid["uniform_progress"][n].usd for n in chosen), 4),
        "missed": {name: sum(not of[n].in_time for n in chosen) for name, of in paid.items()},
        "launches": round(float(np.mean([each.launches for each in mine])), 1),
        "spot_part": round(float(np.mean([each.hours["spot"] / sum(each.hours.values()) for each in mine])), 3),
    }


def report(windows: Sequence[Window], cold: bool) -> dict[str, Any]:
    """Of the settings, by part of the windows."""
    chosen = {
        part: [n for n, window in enumerate(windows) if first <= window.start <= last]
        for part, (first, last) in PARTS.items()
    }
    parts: dict[str, Any] = {part: {"windows": len(numbers)} for part, numbers in chosen.items()}
    for setting in SETTINGS:
        paid = play_all(windows, setting, cold)
        best = [spot_peers.optimum(window.there, setting) for window in windows]
        for part, numbers in chosen.items():
            parts[part][setting.name] = figures(paid, best, numbers)
    ratios = {part: [parts[part][setting.name]["ratio"] for setting in SETTINGS] for part in PARTS}
    missed = sum(parts["all"][setting.name]["missed"]["ours"] for setting in SETTINGS)
    return {
        "seen_before": not cold,
        "parts": parts,
        "ratios": ratios,
        "missed": missed,
        "asked": {"ratio": ASKED, "missed": 0},
        "met": missed == 0 and max(ratios["all"]) <= ASKED,
    }


def table(result: dict[str, Any]) -> str:
    heads = ("optimum", "ours", "asked", "without", "worst", "missed", "launches", "on spot")
    lines = ["cost / that of uniform progress", ""]
    for part, by_setting in result["parts"].items():
        lines.append(f"{part} ({by_setting['windows']} windows)".ljust(24) + "".join(f"{head:>10}" for head in heads))
        for setting in SETTINGS:
            of = by_setting[setting.name]
            ratios = of["optimum_ratio"], of["ratio"], ASKED, of["without_ratio"], of["worst_window"]
            rest = f"{of['missed']['ours']:10}{of['launches']:10}{of['spot_part']:10.0%}"
            lines.append(f"  {setting.name:22}" + "".join(f"{ratio:10.3f}" for ratio in ratios) + rest)
    return "\n".join(lines)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.spot", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--windows", default=WINDOWS, metavar="FILE", help="default: %(default)s")
    parser.add_argument("--cold", action="store_true", help="nothing was seen of a zone before a window")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args(argv)
    if (path := trace_path(arguments.windows, arguments.json)) is None:
        return 0
    result = report(spot_peers.read(path), arguments.cold)
    print(json.dumps(result) if arguments.json else table(result))
    return 0


if __name__ == "__main__":
    sys.exit(main())
