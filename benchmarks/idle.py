"""What idle leases cost against the best in hindsight: python -m benchmarks.idle --trace FILE [--pool-gpus N]

Gaps (idle times of rented nodes) come from a plain generator, no simulator of the burst policy: a published renting run
over the trace (benchmarks.peers: no_wait and starburst), its rented jobs packed first fit onto nodes of 8 GPUs; a gap
is the time between two uses of a node. A node that is needed again is had again whatever was done before, so the gaps
are the same for every rule. A gap that the trace's end cuts is left out. On top, sequences made against the rule. All
rules get the same gaps; "best in hindsight" knows each of them.

Paid: price x (idle time kept + a boot for each lease that was given back and is needed again). By the second with 60 s
at least, as EC2 bills Linux; at one size also by the hour, as others do.
"""

from __future__ import annotations

import argparse
import heapq
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from benchmarks import peers
from benchmarks.figures import Outcome, trace_path
from ironburst.burst import Lease, Pool, Resources, idle
from ironburst.burst.memory import IdleHistory
from ironburst.replay import traces

USD_PER_HOUR = 55.04  # p5.48xlarge on demand, us-east-1, 2026-07-20; the ratios don't depend on it
BOOT_S, MIN_BILLING_S = 600.0, 60.0
IDLE_S = 600.0  # the pool's default limit: what "fixed" waits
KEPT_ASIDE = 0.3  # of the trace's time, reported by itself: no parameter was chosen on it
ASKED, WANTED, NEVER_OVER = 1.3, 1.15, 2.0


@dataclass(frozen=True)
class Gap:
    node: int
    since_s: float
    until_s: float


def gaps_of(trace: traces.Trace, outcome: Outcome) -> list[Gap]:
    """The gaps that the nodes of a renting run see, in order of their beginning."""
    ends: list[tuple[float, list[tuple[int, int]]]] = []
    free: list[int] = []
    since: list[float | None] = []
    gaps = []
    rented = np.flatnonzero(outcome.rented)
    for job in rented[np.argsort(outcome.start_s[rented], kind="stable")]:
        now = float(outcome.start_s[job])
        while ends and ends[0][0] <= now:
            end, parts = heapq.heappop(ends)
            for node, gpus in parts:
                free[node] += gpus
                if free[node] == peers.NODE_GPUS:
                    since[node] = end
        whole, rest = divmod(int(trace.gpus[job]), peers.NODE_GPUS)
        parts = []
        for gpus in [peers.NODE_GPUS] * whole + [rest] * bool(rest):
            taken = {node for node, _ in parts}
            node = next((n for n, room in enumerate(free) if room >= gpus and n not in taken), len(free))
            if node == len(free):
                free.append(peers.NODE_GPUS)
                since.append(None)
            if (began := since[node]) is not None and now > began:
                gaps.append(Gap(node, began, now))
            since[node] = None
            parts.append((node, gpus))
        for node, gpus in parts:
            free[node] -= gpus
        heapq.heappush(ends, (now + float(trace.duration_s[job]), parts))
    return sorted(gaps, key=lambda gap: (gap.since_s, gap.node))


# ---- rules: (history, terms) -> seconds kept


Rule = Callable[[IdleHistory, idle.Terms], float]
RULES: dict[str, Rule] = {
    "ours": lambda history, terms: idle.keep_s(history, terms, USD_PER_HOUR),
    "break_even": lambda _history, terms: terms.break_even_s,
    "at_once": lambda _history, terms: terms.free_s,
    "fixed_10_min": lambda _history, terms: terms.same_until_s(IDLE_S),
}


# events of one moment, in this order: a gap ends, begins; its break-even is over; its lease is looked at
ENDS, BEGINS, BREAK_EVEN, LOOK = range(4)


@dataclass
class Run:
    """A rule over gaps. `paid` and `best` in USD, one for each gap, in order of their beginning."""

    rule: Rule
    pool: Pool
    history: IdleHistory = field(default_factory=IdleHistory)
    paid: dict[int, float] = field(default_factory=dict)
    best: dict[int, float] = field(default_factory=dict)
    kept: dict[int, float] = field(default_factory=dict)

    def over(self, gaps: Sequence[Gap]) -> Run:
        """Event by event. A lease is looked at when its gap begins, when its time is over, and when the history
        changes.
        """
        events = [(gap.since_s, BEGINS, n) for n, gap in enumerate(gaps)]
        events += [(gap.until_s, ENDS, n) for n, gap in enumerate(gaps)]
        heapq.heapify(events)
        paid_from: dict[int, float] = {}
        terms: dict[int, idle.Terms] = {}
        idling: dict[int, float] = {}
        looks: dict[int, float] = {}  # when its time is over, as last expected
        known, keeps = self.history, dict[idle.Terms, float]()
        while events:
            now, kind, n = heapq.heappop(events)
            gap = gaps[n]
            if kind == BEGINS:
                lease = _lease(gap.node, paid_from.setdefault(gap.node, gap.since_s - BOOT_S), gap.since_s)
                terms[n] = idle.terms(self.pool, lease, (), gap.since_s, gap.since_s)
                idling[n] = gap.since_s
            elif kind == ENDS and n in idling:
                del idling[n]
                self._used(n, terms[n], gap)
            elif kind == ENDS:
                paid_from[gap.node] = gap.until_s - self.pool.boot_s
                self._conclude(n, terms[n], gap.until_s - gap.since_s)
            elif kind == BREAK_EVEN and n not in idling:
                self._conclude(n, terms[n], now - gap.since_s)
            if self.history is not known:
                known, keeps = self.history, {}
            for m, since in list(idling.items()):
                if terms[m] not in keeps:
                    keeps[terms[m]] = self.rule(self.history, terms[m])
                keep = keeps[terms[m]]
                if now - since >= keep - 1e-6:
                    del idling[m]
                    self._given_back(m, terms[m], now - since, gaps[m])
                    heapq.heappush(events, (since + terms[m].break_even_s + 1.0, BREAK_EVEN, m))
                elif looks.get(m) != since + keep:
                    looks[m] = since + keep
                    heapq.heappush(events, (since + keep, LOOK, m))
        return self

    def _used(self, n: int, terms: idle.Terms, gap: Gap) -> None:
        length = gap.until_s - gap.since_s
        self.history = idle.used_again(self.history, terms, length, USD_PER_HOUR)
        self._book(n, terms.rent_s(length), terms.best_s(length))

    def _given_back(self, n: int, terms: idle.Terms, kept_s: float, gap: Gap) -> None:
        self.kept[n] = kept_s
        self.history = idle.given_back(self.history, terms, kept_s, USD_PER_HOUR)
        self._book(n, terms.rent_s(kept_s) + terms.buy_s, terms.best_s(gap.until_s - gap.since_s))

    def _conclude(self, n: int, terms: idle.Terms, gap_s: float) -> None:
        """Once: when it is needed again, or break-even is over."""
        if n in self.kept:
            self.history = idle.concluded(self.history, terms, self.kept.pop(n), gap_s, USD_PER_HOUR)

    def _book(self, n: int, paid_s: float, best_s: float) -> None:
        self.paid[n], self.best[n] = paid_s * USD_PER_HOUR / 3600, best_s * USD_PER_HOUR / 3600

    def totals(self, *numbers: int) -> tuple[float, float]:
        chosen = numbers or tuple(self.paid)
        return sum(self.paid[n] for n in chosen), sum(self.best[n] for n in chosen)

    def worst_prefix(self) -> float:
        """The largest paid / best over all beginnings of the sequence."""
        order = sorted(self.paid)
        paid, best = (np.cumsum([usd[n] for n in order]) for usd in (self.paid, self.best))
        return float(np.max(paid[best > 0] / best[best > 0], initial=0.0))


def _pool(boot_s: float, increment_s: float) -> Pool:
    return Pool(
        name="bench",
        partition="burst",
        nodes=(),
        instance_type="p5.48xlarge",
        each=Resources(8),
        gpu_type="h100",
        markets=("on-demand",),
        usd_per_hour={"on-demand": USD_PER_HOUR},
        zones=("a",),
        boot_s=boot_s,
        idle_s=1e9,
        max_run_s=1e9,
        min_billing_s=MIN_BILLING_S,
        billing_increment_s=increment_s,
    )


def _lease(node: int, paid_from_s: float, since_s: float) -> Lease:
    return Lease(
        id=str(node),
        launch="",
        node=str(node),
        pool="bench",
        zone="a",
        market="on-demand",
        state="ready",
        jobs=(),
        usd_per_hour=USD_PER_HOUR,
        committed_until_s=0.0,
        idle_since_s=since_s,
        worked=True,
        paid_from_s=paid_from_s,
    )


# ---- sequences made against the rule: functions (kept, number, rng) -> gap


Adversary = Callable[[float, int, np.random.Generator], float]


def adversaries(boot_s: float) -> dict[str, Adversary]:
    def spite_when_trusted(kept: float, n: int, _rng: np.random.Generator) -> float:
        if n < 3:
            return 100.0
        return 20 * boot_s if n % 60 < 30 else kept + 0.001

    return {
        "ends right after the lease has gone": lambda kept, _n, _rng: kept + 0.001,
        "long until it trusts, then spite": spite_when_trusted,
        "short until it trusts, then long": lambda _kept, n, _rng: 0.3 * boot_s if n % 80 < 40 else 50 * boot_s,
        "one short, one long": lambda _kept, n, _rng: 0.1 * boot_s if n % 2 else 10 * boot_s,
        "just over break-even": lambda _kept, _n, _rng: boot_s + 1.0,
        "coin between spite and none": lambda kept, _n, rng: kept + 0.001 if rng.random() < 0.5 else 1.0,
    }


def against(rule: Rule, boot_s: float, adversary: Adversary, gaps: int = 600) -> float:
    """The largest paid / best over all beginnings of a sequence of gaps, one after another."""
    history, terms, paid, best, worst = IdleHistory(), idle.Terms(boot_s), 0.0, 0.0, 0.0
    rng = np.random.default_rng(1)
    for n in range(gaps):
        kept = rule(history, terms)
        gap = adversary(kept, n, rng)
        best += terms.best_s(gap)
        if gap <= kept:
            paid += terms.rent_s(gap)
            history = idle.used_again(history, terms, gap, USD_PER_HOUR)
        else:
            paid += terms.rent_s(kept) + terms.buy_s
            history = idle.given_back(history, terms, kept, USD_PER_HOUR)
            history = idle.concluded(history, terms, kept, gap, USD_PER_HOUR)
        worst = max(worst, paid / best)
    return worst


# ---- the report


def measure(trace: traces.Trace, pool_gpus: Sequence[int], boot_s: float) -> dict[str, Any]:
    sequences = {}
    for gpus in pool_gpus:
        for name in ("no_wait", "starburst"):
            gaps = gaps_of(trace, peers.run(trace, gpus, peers.PEERS[name]))
            if not gaps:
                continue
            sequences[f"{name}, {gpus} GPUs, by the second"] = _sequence(gaps, _pool(boot_s, 0.0))
            if gpus == pool_gpus[0]:
                sequences[f"{name}, {gpus} GPUs, by the hour"] = _sequence(gaps, _pool(boot_s, 3600.0))
    # by the hour is easier
    ratios = [sequence["ratio"] for name, sequence in sequences.items() if name.endswith("by the second")]
    hostile = {
        name: {rule: round(against(RULES[rule], boot_s, adversary), 4) for rule in RULES}
        for name, adversary in adversaries(boot_s).items()
    }
    prefixes = [sequence["worst_prefix"] for sequence in sequences.values()]
    most = max([*ratios, *prefixes, *(by_rule["ours"] for by_rule in hostile.values())], default=0.0)
    return {
        "boot_s": boot_s,
        "usd_per_hour": USD_PER_HOUR,
        "min_billing_s": MIN_BILLING_S,
        "sequences": sequences,
        "adversarial": hostile,
        "mean": round(float(np.mean(ratios)), 4) if ratios else None,
        "max": round(most, 4),
        "asked": {"mean": ASKED, "never_over": NEVER_OVER},
        "wanted": {"mean": WANTED},
        "met": bool(ratios) and float(np.mean(ratios)) <= ASKED and most <= NEVER_OVER + 1e-6,
    }


def _sequence(gaps: Sequence[Gap], pool: Pool) -> dict[str, Any]:
    runs = {name: Run(rule, pool).over(gaps) for name, rule in RULES.items()}
    split = gaps[0].since_s + (1 - KEPT_ASIDE) * (gaps[-1].until_s - gaps[0].since_s)
    first = [n for n, gap in enumerate(gaps) if gap.since_s < split]
    last = [n for n, gap in enumerate(gaps) if gap.since_s >= split]
    ours = runs["ours"]

    def ratio(run: Run, numbers: Sequence[int] = ()) -> float | None:
        paid, best = run.totals(*numbers)
        return round(paid / best, 4) if best else None

    return {
        "gaps": len(gaps),
        "longer_than_a_boot": round(sum(g.until_s - g.since_s > pool.boot_s for g in gaps) / len(gaps), 4),
        "paid_usd": round(ours.totals()[0], 2),
        "clairvoyant_usd": round(ours.totals()[1], 2),
        "ratio": ratio(ours),
        "ratio_first_part": ratio(ours, first) if first else None,
        "ratio_last_part": ratio(ours, last) if last else None,
        "worst_prefix": round(ours.worst_prefix(), 4),
        "others": {name: ratio(run) for name, run in runs.items() if name != "ours"},
    }


def table(result: dict[str, Any]) -> str:
    rules = [name for name in RULES if name != "ours"]
    heads = "".join(f"{name:>14}" for name in rules)
    lines = [f"paid for idle leases / best in hindsight; boot {result['boot_s']:g} s", ""]
    lines.append(f"{'gaps of':44}{'gaps':>6}{'ours':>8}{'last 30%':>10}{'worst':>8}{heads}")
    for name, of in result["sequences"].items():
        ours = f"{of['gaps']:6}{of['ratio']:8.3f}{of['ratio_last_part'] or 0:10.3f}{of['worst_prefix']:8.3f}"
        lines.append(f"{name:44}{ours}" + "".join(f"{of['others'][rule]:14.3f}" for rule in rules))
    lines += ["", f"{'made against the rule (worst of all beginnings)':50}{'ours':>8}{heads}"]
    for name, by_rule in result["adversarial"].items():
        lines.append(f"{name:50}{by_rule['ours']:8.3f}" + "".join(f"{by_rule[rule]:14.3f}" for rule in rules))
    mean = f"mean by the second {result['mean']} (asked <= {ASKED}, wanted {WANTED})"
    return "\n".join([*lines, "", f"{mean}, worst {result['max']} (never over {NEVER_OVER:g})"])


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.idle", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument(
        "--trace", default="philly_first70d.csv.xz", help="file, or its name in the folder of the shared data"
    )
    parser.add_argument(
        "--pool-gpus", type=int, action="append", help="GPUs at home; may be repeated (default: 512, 384, 640)"
    )
    parser.add_argument("--boot-s", type=float, default=BOOT_S, help=f"launch to joined (default: {BOOT_S:g})")
    parser.add_argument("--json", action="store_true", help="the figures as JSON on stdout")
    arguments = parser.parse_args(argv)
    if arguments.boot_s <= 0:
        parser.error(f"--boot-s {arguments.boot_s:g}: a boot takes more than 0 s")
    path = trace_path(arguments.trace, arguments.json)
    if not path:
        return 0
    try:
        result = measure(traces.read(path), arguments.pool_gpus or (512, 384, 640), arguments.boot_s)
    except ValueError as error:
        print(f"benchmarks.idle: {error}", file=sys.stderr)
        return 2
    print(json.dumps({"trace": path.name} | result, indent=1) if arguments.json else table(result))
    return 0


if __name__ == "__main__":
    sys.exit(main())
