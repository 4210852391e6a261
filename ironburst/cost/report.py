"""Who used how many GPU-hours, at home and rented, what they cost, and how long jobs waited. Pure."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from ironburst.cost import leases as rented
from ironburst.cost.accounted import First, JobRun, Window, first_starts
from ironburst.cost.leases import MICRO, Charge, Occupied, Part, Priced
from ironburst.replay import results, traces
from ironburst.replay.results import Waits

NOBODY = "-"
"""the account of jobs without one"""
COMMON = "(common budget)"
"""who pays for leases beside the ceilings of accounts"""
HOME = "home"
BY = ("account", "user", "job", "pool", "cloud", "day")


@dataclass(frozen=True)
class CostBasis:
    """What is declared: GPUs of a node of each pool, and its cloud; the pool of each rented node, and what a GPU-hour
    of each home node costs, owned or fixed in the cloud (None: not known) and how many GPUs it has.
    """

    pool_gpus: Mapping[str, int]
    pool_of: Mapping[str, str]
    home_usd_per_gpu_hour: Mapping[str, float | None]
    home_gpus: int
    cloud_of: Mapping[str, str] = field(default_factory=dict)


@dataclass
class CostRow:
    """One account, user, job, pool, cloud or day. Money in micro-dollars."""

    name: str
    jobs: int = 0  # that began
    home_gpu_s: float = 0.0
    rented_gpu_s: float = 0.0
    unpriced_gpu_s: float = 0.0  # of home's: nobody has said what they cost
    home_micro: int = 0
    rented: dict[Part, int] = field(default_factory=lambda: {"jobs": 0, "boot": 0, "idle": 0, "other": 0})
    waits: Waits | None = None

    @property
    def home_usd(self) -> float | None:
        """None: not known, for some of it has no declared price."""
        return None if self.unpriced_gpu_s else self.home_micro / MICRO

    @property
    def rented_micro(self) -> int:
        """Of its jobs, and what it paid beside them."""
        return sum(self.rented.values())


@dataclass(frozen=True)
class Market:
    """What was rented in one market, as a whole."""

    micro: int
    gpu_s: float


@dataclass(frozen=True)
class CostReport:
    """`rows`: the dearest first, days in their order; `total`: their sum. `unleased_gpu_s`: on nodes of pools at times
    of which the ledger has no lease; `unpriced`: home nodes without a declared price that were used; `home_gpu_s`: what
    the owned nodes of today could have given.
    """

    rows: Sequence[CostRow]
    total: CostRow
    markets: Mapping[str, Market]
    unleased_gpu_s: float
    unpriced: Sequence[str]
    home_gpu_s: float
    charges: Sequence[Charge]


@dataclass
class _Sums:
    """While they are added up."""

    by: str
    site: CostBasis
    runs: Sequence[JobRun]
    windows: Sequence[tuple[str, Window]]  # days have names
    now_s: float
    ends: Sequence[float]  # of the windows
    rows: dict[str, CostRow] = field(default_factory=dict)
    unpriced: set[str] = field(default_factory=set)

    def row(self, name: str) -> CostRow:
        return self.rows.setdefault(name, CostRow(name))

    def key(self, run: JobRun, window: int, pool: str) -> str:
        named: dict[str, Callable[[], str]] = {
            "account": lambda: run.account or NOBODY,
            "user": lambda: run.user or NOBODY,
            "job": lambda: run.called,
            "pool": lambda: pool or HOME,
            "cloud": lambda: self.site.cloud_of.get(pool, NOBODY) if pool else HOME,
            "day": lambda: self.windows[window][0],
        }
        return named[self.by]()

    def overlapped(self, run: JobRun) -> range:
        """The windows that a try may lie in."""
        if run.start_s is None:
            return range(0)
        end_s = self.now_s if run.end_s is None else run.end_s
        return range(bisect_right(self.ends, run.start_s), min(bisect_right(self.ends, end_s) + 1, len(self.ends)))

    def use(self) -> None:
        """The GPU-hours of all tries, and dollars at home."""
        for run in self.runs:
            pool = next((self.site.pool_of[node] for node in run.nodes if node in self.site.pool_of), None)
            prices = [] if pool is not None else [self.site.home_usd_per_gpu_hour.get(node) for node in run.nodes]
            known = [price for price in prices if price is not None]
            for n in self.overlapped(run):
                part = run.part(self.windows[n][1], self.now_s)
                if not part:
                    continue
                row, gpu_s = self.row(self.key(run, n, pool or "")), run.gpus * run.busy * (part[1] - part[0])
                if pool is not None:
                    row.rented_gpu_s += gpu_s
                    continue
                row.home_gpu_s += gpu_s
                row.home_micro += _micro(run, sum(known), *part)
                if len(known) < len(prices):
                    row.unpriced_gpu_s += gpu_s * (len(prices) - len(known)) / len(prices)
                    self.unpriced |= {node for node, price in zip(run.nodes, prices, strict=True) if price is None}

    def charge(self, charge: Charge, lease: Priced) -> None:
        """A share of what a lease cost."""
        if charge.run >= 0:
            name = self.key(self.runs[charge.run], charge.window, lease.lease.pool)
        elif self.by in ("user", "job"):
            name = f"no job, {charge.account}" if charge.account else f"no job {COMMON}"
        else:
            names = {"account": charge.account or COMMON, "pool": lease.lease.pool or NOBODY}
            names["cloud"] = self.site.cloud_of.get(lease.lease.pool, NOBODY)
            name = names.get(self.by) or self.windows[charge.window][0]
        self.row(name).rented[charge.part] += charge.micro

    def wait(self, firsts: Iterable[First]) -> None:
        """The waits of jobs that began."""
        by_row: dict[str, list[First]] = {}
        for first in firsts:
            at_s = first.run.start_s or 0.0
            window = bisect_right(self.ends, at_s)
            pool = next((self.site.pool_of[node] for node in first.run.nodes if node in self.site.pool_of), "")
            by_row.setdefault(self.key(first.run, window, pool), []).append(first)
        for name, its in by_row.items():
            self.row(name).jobs = len(its)
            self.row(name).waits = waits(its)


def _micro(run: JobRun, usd_per_gpu_hours: float, from_s: float, to_s: float) -> int:
    """Of a try at home, on nodes whose prices have this sum: parts that meet add up to the whole."""
    scale = MICRO * usd_per_gpu_hours * run.gpus_a_node * run.busy / 3600
    start = run.start_s or 0.0
    return round((to_s - start) * scale) - round((from_s - start) * scale)


def waits(firsts: Sequence[First]) -> Waits | None:
    """The waits of these jobs; None: there is none."""
    if not firsts:
        return None
    if len(firsts) == 1:
        return Waits(*[firsts[0].wait_s / 3600] * 7)
    trace = traces.in_order(
        [(each.run.start_s or 0.0) - each.wait_s for each in firsts],
        [each.run.elapsed_s for each in firsts],
        [each.run.gpus for each in firsts],
        start_s=[each.run.start_s or 0.0 for each in firsts],
    )
    found = results.recorded(trace)
    return found[1] if found else None


def report(
    by: str,
    runs: Sequence[JobRun],
    leases: Sequence[Priced],
    site: CostBasis,
    windows: Sequence[tuple[str, Window]],
    now_s: float,
) -> CostReport:
    """Of windows that follow each other. `by`: one of BY; for days, each window is one, and has its name."""
    parts = [window for _, window in windows]
    sums = _Sums(by, site, runs, windows, now_s, [each.to_s for each in parts])
    whole = Window(parts[0].from_s, parts[-1].to_s)
    sums.use()
    on = Occupied(runs, now_s)
    charges = list(rented.charges(leases, on, site.pool_gpus, parts))
    for charge in charges:
        sums.charge(charge, leases[charge.lease])
    firsts = first_starts(runs, whole)
    sums.wait(firsts)
    total = _total(sums.rows.values())
    total.waits = waits(firsts)
    of_market, leased = _markets(leases, on, charges, whole)
    dearest = sorted(sums.rows.values(), key=lambda row: (-row.rented_micro - row.home_micro, row.name))
    return CostReport(
        rows=sorted(dearest, key=lambda row: row.name) if by == "day" else dearest,
        total=total,
        markets=of_market,
        unleased_gpu_s=max(total.rented_gpu_s - leased, 0.0),
        unpriced=sorted(sums.unpriced),
        home_gpu_s=site.home_gpus * max(min(whole.to_s, now_s) - whole.from_s, 0.0),
        charges=charges,
    )


def _total(rows: Iterable[CostRow]) -> CostRow:
    total = CostRow("total")
    for row in rows:
        total.jobs += row.jobs
        total.home_gpu_s += row.home_gpu_s
        total.rented_gpu_s += row.rented_gpu_s
        total.unpriced_gpu_s += row.unpriced_gpu_s
        total.home_micro += row.home_micro
        for part, micro in row.rented.items():
            total.rented[part] += micro
    return total


def _markets(
    leases: Sequence[Priced], on: Occupied, charges: Iterable[Charge], whole: Window
) -> tuple[dict[str, Market], float]:
    """By market; and the GPU-seconds of jobs on leases, of all markets."""
    micro: dict[str, int] = {}
    for charge in charges:
        market = leases[charge.lease].lease.market
        micro[market] = micro.get(market, 0) + charge.micro
    used = dict.fromkeys(micro, 0.0)
    for lease in leases:
        for each in on.during(lease) if lease.lease.market in used else ():
            part = whole.overlap(max(each.from_s, lease.from_s), min(each.to_s, lease.to_s))
            used[lease.lease.market] += each.gpus * (part[1] - part[0]) if part else 0.0
    return {name: Market(micro[name], used[name]) for name in sorted(micro)}, sum(used.values())
