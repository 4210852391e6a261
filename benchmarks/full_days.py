"""Days of 2,000 jobs and every fault: python -m benchmarks.full_days [--days 5] [--seed 1] [--jobs 2000] [--json]

A day of a site in memory, time-compressed: the real controller, ledger and document reader of tests.faults.story; jobs
of three accounts, among them arrays and gangs, more by day than by night; and each fault of tests/faults once, each
accident of benchmarks.days that is none of them, and the controller killed before or after some of its calls and
writes, all at random moments. Counted are jobs that were lost or ended more than once, jobs that were started again
although nothing had happened to them or to their nodes, instances that nobody accounts for, launches whose token
bought twice, and dollars beyond a ceiling by the cloud's own bill.
"""

from __future__ import annotations

import argparse
import itertools
import json
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks import days
from benchmarks.lasting import Lasting
from ironburst.controller.ledger import LedgerError
from ironburst.controller.money import day, month
from ironburst.controller.tick import Controller
from ironburst.document import ClusterDocument
from ironburst.ports import Resources
from tests.fakes import T0, Breaking, Crash, FakeClock, document
from tests.faults import story as stories
from tests.faults.test_adapters import FAULTS
from tests.faults.test_crashes import STEP

DAY_S, HOUR_S = 86400.0, 3600.0
HOME, NODES = 10, [f"p5-{n}" for n in range(1, 9)]
ACCOUNTS, USERS = ("vision", "speech", ""), ("ada", "ben", "cem", "dora")
WHOLE, HALF = Resources(8, 2, 1000), Resources(4, 1, 500)
DEAD_MAN_S, UNKNOWN_S = 1800, 900.0  # so long an instance may live that no lease and no open launch knows
CRASHES = 10  # of each kind
LOST, TWICE = "jobs lost (0)", "jobs ended twice, or started again without a cause (0)"
ORPHANS, BOUGHT = "instances unaccounted for (0)", "launch tokens that bought twice (0)"
BEYOND, LEFT = "USD beyond a ceiling (0)", "left at the end (0)"
ZEROES = (LOST, TWICE, ORPHANS, BOUGHT, BEYOND, LEFT)


class Slurm(stories.Slurm):
    """Writes down each end of a job."""

    def __init__(self, *args: Any, **more: Any):
        self.ends: dict[int, list[str]] = {}
        super().__init__(*args, **more)

    def _end(self, fake, how):
        self.ends.setdefault(fake.job.id, []).append(how)
        super()._end(fake, how)


class Cloud(days.Billed, stories.Cloud):
    """Sends a bill, and may be out of reach."""


class Dying:
    """A ledger's file: the process is killed before or after its n-th write of a step."""

    def __init__(self, db: Any, at: int, late: bool):
        self.db, self.at, self.late, self.count = db, at, late, itertools.count(1)

    def execute(self, sql: str, *values: Any) -> Any:
        number = next(self.count) if STEP.match(sql.strip()) else 0
        if number == self.at and not self.late:
            raise Crash(f"before {sql[:60]}")
        done = self.db.execute(sql, *values)
        if number == self.at:
            raise Crash(f"after {sql[:60]}")
        return done

    def __getattr__(self, name: str) -> Any:
        return getattr(self.db, name)


@dataclass(frozen=True)
class Harm:
    """What takes nodes from under jobs, or jobs from their nodes: between these moments."""

    from_s: float
    to_s: float
    nodes: frozenset[str]
    jobs: frozenset[int]

    def causes(self, job: int, nodes: Sequence[str], began_s: float, again_s: float) -> bool:
        """Whether a job that began then on these nodes was started again for it."""
        return began_s <= self.to_s and self.from_s <= again_s and (job in self.jobs or bool(self.nodes & set(nodes)))


@dataclass
class Outcome:
    """What a day came to. `wrong`: sentences, by what counts."""

    seed: int
    faults: Counter
    jobs: int = 0
    done: int = 0
    cancelled: int = 0
    rented: int = 0
    again: int = 0
    launches: int = 0
    ticks: int = 0
    missed: int = 0
    usd: float = 0.0
    budget: float = 0.0  # the largest part of a ceiling that was spent
    lasting: int = 0  # states that lasted
    unknown_s: float = 0.0  # the longest that an instance was in no lease
    wrong: dict[str, list[str]] = field(default_factory=lambda: {name: [] for name in ZEROES})

    @property
    def good(self) -> bool:
        return not any(self.wrong.values())


class FullDay(stories.Story):
    """One random day."""

    tick_s = 60.0  # time is compressed: less often than the product's

    def __init__(self, seed: int, folder: Path, jobs: int = 2000, hours: float = 24.0, faults: Sequence[str] = ()):
        self.rng, self.folder, self.path = random.Random(seed), folder, folder / "ledger.sqlite"
        rng = self.rng
        self.outcome, self.length_s = Outcome(seed, Counter()), hours * HOUR_S
        self.clock = FakeClock(T0 + rng.uniform(0, DAY_S * 12))
        self.began_s, self.end_s = self.clock.at, self.clock.at + self.length_s
        self.slurm = Slurm(self.clock, home=HOME, burst={"burst-p5": NODES})
        self.cloud = Cloud(self.clock, self.slurm)
        self.cloud.boot_s = rng.uniform(60, 200)
        self.said = self._declared().model_dump(mode="json")
        self.read = stories.Reader(folder / "document.json", folder / "last-good.json")
        self.declare()
        self.document = self.read()  # as it is at first
        self.missed, self.later, self.stopped = [], [], False
        self.harms: list[Harm] = []
        self.lasting: list[Lasting] = []
        self.picked: set[int] = set()  # jobs that a fault of now meets
        self.cancelled: set[int] = set()
        self.unknown: dict[str, float] = {}  # instance that no lease knows: since when
        self.busy_until: Counter[str] = Counter()
        self.deaths: list[Callable[[FullDay], None]] = []  # that wait for their call or write
        self.queue = sorted(self._submissions(jobs), key=lambda each: each[0])
        names = list(faults or EVENTS)
        self.plan = sorted((self.began_s + rng.uniform(0.02, 0.9) * self.length_s, name) for name in names)
        self.start()

    def _declared(self) -> ClusterDocument:
        rng = self.rng
        said = document(
            nodes=NODES,
            boot_s=300,
            dead_man_s=DEAD_MAN_S,
            idle_s=rng.choice([120, 600]),
            wait_limit_s=rng.choice([60, 300]),
            tick_s=int(self.tick_s),
            cool_down_s=120,
            usd_per_month=rng.uniform(1000, 8000),
            max_run_s=6 * 3600,
        )
        budget = said.budget.model_copy(update={"usd_per_day": said.budget.usd_per_month * rng.uniform(0.4, 1.0)})
        return said.model_copy(update={"budget": budget})

    def declare(self, **changed: Any) -> None:
        """A new document is published, over whatever is there."""
        self.said |= {**changed, "serial": self.said["serial"] + 1}
        published = ClusterDocument.model_validate(self.said)
        (self.folder / "document.json").write_text(published.model_dump_json())

    def forget_ledger(self) -> None:
        """With what sqlite keeps beside it."""
        for path in self.folder.glob("ledger.sqlite*"):
            path.unlink()

    def start(self) -> None:
        super().start()
        # without a record of the ticks, which is a quarter of the time
        self.controller = Controller(self.slurm, self.cloud, self.ledger, self.clock)
        for death in self.deaths:
            death(self)

    # ---- what users do
    def _submissions(self, count: int) -> Iterator[tuple[float, dict[str, Any]]]:
        """So many jobs: (when, how): single ones, gangs and arrays, most of them by day."""
        rng, numbers = self.rng, itertools.count(1)
        while count:
            # two peaks; the last hours are for what is left
            at = self.began_s + self.length_s * min(0.95, max(0.0, rng.gauss(rng.choice([0.3, 0.65]), 0.13)))
            limit = rng.uniform(300, 2.5 * HOUR_S)
            nodes, each = rng.choice([(1, HALF)] * 6 + [(1, WHOLE)] * 6 + [(2, WHOLE)] * 2 + [(4, WHOLE)])
            job = {
                "nodes": nodes,
                "each": each,
                "limit_s": limit,
                "account": rng.choice(ACCOUNTS),
                "user": rng.choice(USERS),
                "requeue": rng.random() < 0.9,
            }
            tasks = min(count, rng.randint(5, 30)) if rng.random() < 0.06 and nodes == 1 else 1
            array = next(numbers)
            for task in range(tasks):
                called = {"called": f"a{array}_{task}"} if tasks > 1 else {}
                yield at, job | called | {"runs_s": min(limit, 30 + rng.expovariate(1 / 600))}
            count -= tasks

    def _job(self) -> int:
        """One that a user does something to: pending or running, and short."""
        stuck = {each.job for each in self.lasting}  # nothing that a user asks for is done to it
        may = (id for id, fake in self.slurm.unfinished.items() if fake.runs_s < 1700 and fake.job.requeue)
        choice = [id for id in may if id not in stuck]
        on = [id for id in choice if set(self.slurm.jobs[id].job.on) & set(NODES)]
        self.picked.add(id := self.rng.choice(on or choice) if choice else next(iter(self.slurm.jobs)))
        return id

    gang = single = property(_job)

    # ---- a day
    def run(self) -> Outcome:
        limit_s = self.end_s + DAY_S
        while self.clock.at < self.end_s or self._unended():
            if self.clock.at > limit_s:
                self._wrong(LEFT, f"a day later: {self._unended()}, {self.states()}")
                break
            self.tick()
        for _ in range(3):
            self.tick()
        return self._count()

    def _unended(self) -> str:
        """What is still there; nothing: all is over."""
        if self.stopped or self.later:
            return "faults"
        named = {"jobs": self.slurm.unfinished, "instances": self.cloud.alive(), "leases": self.ledger.leases()}
        return ", ".join(f"{len(there)} {name}" for name, there in named.items() if there)

    def tick(self) -> None:
        while self.queue and self.queue[0][0] <= self.clock.at:
            self.slurm.submit(**self.queue.pop(0)[1])
        while self.plan and self.plan[0][0] <= min(self.clock.at, self.end_s):
            self._happen(self.plan.pop(0)[1])
        self.cloud.live()
        self.outcome.ticks += 1
        before, missed = self.clock.at, len(self.missed)
        try:
            super().tick()
        except Crash:
            self._killed()
            self.clock.at = max(self.clock.at, before + self.tick_s)
        self._watch(missed == len(self.missed) and not self.stopped)

    def _happen(self, name: str) -> None:
        """A fault, now; or a minute later, while another one of its kind (the part of the site) lasts."""
        kind, begun = EVENTS[name][0], len(self.later)
        later = (kind and self.busy_until[kind] > self.clock.at) or self.stopped
        if later or self.slurm.out_of_reach or not self.slurm.unfinished:  # nor does a user get through
            self.plan = sorted([*self.plan, (self.clock.at + 60.0, name)])
            return
        self.outcome.faults[name] += 1
        self.picked.clear()
        nodes = frozenset(self.cloud.all[each.id].node for each in self.cloud.alive())
        EVENTS[name][1](self)
        if name.startswith("killed at"):
            self.deaths.append(EVENTS[name][1])
        ends_s = max([at for at, _ in self.later[begun:]], default=self.clock.at) + 2 * self.tick_s
        self.busy_until[kind] = ends_s
        if name in FAULTS and FAULTS[name].cancels:
            self.cancelled |= {id for id in self.picked if self.slurm.state(id) == "CANCELLED"}
        elif name in FAULTS and FAULTS[name].again:
            mine = frozenset(self.picked)
            self.harms.append(Harm(self.clock.at, ends_s + 300, frozenset() if mine else nodes, mine))
        self.after(ends_s - self.clock.at + 600, lambda: self.ledger.reopen("p5"))  # whoever is told

    def after(self, seconds: float, what: Callable[[], None]) -> None:
        """Who finds the ledger closed, locked or full tries again in a minute."""

        def tried() -> None:
            try:
                what()
            except (LedgerError, stories.sqlite3.Error):
                self.after(60.0, what)

        super().after(seconds, tried)

    def _killed(self) -> None:
        self.outcome.faults["the controller died"] += 1
        self.deaths.pop()  # one is over, whichever met its call first
        self.ledger.close()
        self.stopped = True
        self.after(self.rng.uniform(0, 300), self.start)

    # ---- what counts
    def _wrong(self, what: str, text: str) -> None:
        self.outcome.wrong[what].append(text)

    def _watch(self, acted: bool) -> None:
        """After each tick: whether each instance is in a lease or an open launch."""
        now = self.clock.at
        leases = [] if self.stopped else self.ledger.leases()
        known = {lease.instance_id or lease.launch for lease in leases}
        unknown = [each.id for each in self.cloud.alive() if not {each.id, each.launch} & known]
        self.unknown = {id: self.unknown.get(id, now) if acted else now for id in unknown}
        for id, since_s in self.unknown.items():
            self.outcome.unknown_s = max(self.outcome.unknown_s, now - since_s)
            if UNKNOWN_S < now - since_s <= UNKNOWN_S + self.tick_s:
                self._wrong(ORPHANS, f"{id} at {now - self.began_s:.0f} s")

    def _count(self) -> Outcome:
        out, slurm = self.outcome, self.slurm
        for id, fake in slurm.jobs.items():
            self._judge(id, fake)
        for token, (request, _) in self.cloud.tokens.items():
            bought = sum(fake.instance.token == token for fake in self.cloud.all.values())
            if bought != request.count:
                self._wrong(BOUGHT, f"{token}: {bought} instead of {request.count}")
        left = self._unended()
        if left or slurm.permits:
            self._wrong(LEFT, f"permits {sorted(slurm.permits)}, {left}")
        out.jobs, out.cancelled, out.missed = len(slurm.jobs), len(self.cancelled), len(self.missed)
        out.done = sum(fake.done == "COMPLETED" for fake in slurm.jobs.values())
        out.rented = sum(any(set(on) & set(NODES) for _, on in fake.started) for fake in slurm.jobs.values())
        out.lasting = len(self.lasting)
        out.again = sum(len(fake.started) > 1 for fake in slurm.jobs.values())
        out.launches, out.usd = len(self.cloud.began), self.cloud.usd(0.0, float("inf"))
        budget, times = self.document.budget, (self.began_s, self.end_s, self.clock.at)
        windows = [(month(at), budget.usd_per_month) for at in times] + [(day(at), budget.usd_per_day) for at in times]
        for window, allowed in sorted(set(windows)):
            spent = self.cloud.usd(*window)
            out.budget = max(out.budget, spent / allowed)
            if spent > allowed + 0.01:
                self._wrong(BEYOND, f"{spent - allowed:.2f} of {allowed:.2f} from {window[0]:.0f} on")
        self.ledger.close()
        return out

    def _judge(self, id: int, fake: Any) -> None:
        """One job: ended once, as it should, and started again only with a cause."""
        wanted = "CANCELLED" if id in self.cancelled else "COMPLETED"
        ends = self.slurm.ends.get(id, [])
        for (at, nodes), (again, _) in zip(fake.started, fake.started[1:], strict=False):
            if not self._caused(id, nodes, at, again):
                self._wrong(TWICE, f"job {id} on {','.join(nodes)} from {at:.0f} to {again:.0f}")
        if len(ends) > 1:
            self._wrong(TWICE, f"job {id}: {', '.join(ends)}")
        elif (
            ends == ["NODE_FAIL"] and not fake.job.requeue and self._caused(id, fake.started[-1][1], *self._last(fake))
        ):
            self.outcome.faults["a job that may not be requeued lost its node"] += 1
        elif ends != [wanted]:
            self._wrong(LOST, f"job {id}: {ends or fake.job.state}, not {wanted}")

    def _last(self, fake: Any) -> tuple[float, float]:
        began_s = fake.started[-1][0]
        return began_s, began_s + fake.runs_s

    def _caused(self, id: int, nodes: Sequence[str], began_s: float, again_s: float) -> bool:
        taken = any(began_s <= at <= again_s and self.cloud.all[i].node in nodes for i, at in self.cloud.taken.items())
        stuck = any(each.job == id and began_s <= each.since_s <= again_s for each in self.lasting)
        return taken or stuck or any(harm.causes(id, nodes, began_s, again_s) for harm in self.harms)


# ---- what happens


def _killed_at_a_call(day: FullDay) -> None:
    counter, at, late = itertools.count(1), day.rng.randint(1, 12), day.rng.random() < 0.5
    for name in ("scheduler", "cloud"):
        setattr(day.controller, name, Breaking(getattr(day.controller, name), counter, at=at, after=late))


def _killed_at_a_write(day: FullDay) -> None:
    day.ledger._db = Dying(day.ledger._db, day.rng.randint(1, 20), day.rng.random() < 0.5)


def _away(day: FullDay) -> None:
    day.ledger.close()
    day.stopped = True
    day.after(day.rng.uniform(600, 3 * HOUR_S), day.start)


def _unstartable(day: FullDay) -> None:
    """Until an administrator lifts what keeps them, two hours later."""
    days.ACCIDENTS["jobs that Slurm won't start"](day)
    day.after(2 * HOUR_S, day.slurm.refused.clear)


def _kind(name: str) -> str:
    """Faults of one kind don't overlap: each puts back what it found."""
    words = {"ledger": "ledger", "disk": "ledger", "controller": "ledger", "document": "document", "clock": "clock"}
    return next((kind for word, kind in words.items() if word in name), "")


ALSO = ("listings that are cut", "spot takes all", "an instance dies")
EVENTS: dict[str, tuple[str, Callable[[Any], None]]] = {
    **{name: (_kind(name), fault.happens) for name, fault in FAULTS.items()},
    **{name: ("", days.ACCIDENTS[name]) for name in ALSO},
    "jobs that Slurm won't start": ("", _unstartable),
    **{f"a state lasts: {state}": ("", days.lasts(state)) for state in days.LASTING_STATES},
    "the pool is declared no more": ("document", days.ACCIDENTS["the pool is declared no more"]),
    "a ledger of some hours ago": ("ledger", days.ACCIDENTS["a ledger of some hours ago"]),
    "the controller is away for hours": ("ledger", _away),
    **{f"killed at a call {n}": ("ledger", _killed_at_a_call) for n in range(CRASHES)},
    **{f"killed at a write {n}": ("ledger", _killed_at_a_write) for n in range(CRASHES)},
}


# ---- figures


def one(seed: int, **more: Any) -> Outcome:
    with tempfile.TemporaryDirectory() as folder:
        return FullDay(seed, Path(folder), **more).run()


def figures(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """What counts, over all days."""
    counts = {
        name: sum(getattr(each, name) for each in outcomes)
        for name in ("jobs", "done", "cancelled", "rented", "again", "launches", "ticks", "missed", "lasting")
    }
    zeroes = {name: [f"day {each.seed}: {text}" for each in outcomes for text in each.wrong[name]] for name in ZEROES}
    return {
        "full_days": len(outcomes),
        **counts,
        "faults": dict(sorted(sum((each.faults for each in outcomes), Counter()).items())),
        "usd": round(sum(each.usd for each in outcomes)),
        "largest part of a ceiling spent": round(max(each.budget for each in outcomes), 3),
        "longest that an instance was in no lease, s": max(each.unknown_s for each in outcomes),
        **zeroes,
    }


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.full_days", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--days", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1, help="the first one; day n has seed + n")
    parser.add_argument("--jobs", type=int, default=2000, help="of a day (default: %(default)s)")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--json", action="store_true", help="as always: for benchmarks.all")
    arguments = parser.parse_args(argv)
    for name in ("days", "jobs", "processes"):
        if (value := getattr(arguments, name)) < 1:
            parser.error(f"--{name} is {value}; it must be 1 or more")
    begun, outcomes = time.perf_counter(), []
    seeds = range(arguments.seed, arguments.seed + arguments.days)
    with ProcessPoolExecutor(arguments.processes) as pool:
        for outcome in pool.map(partial(one, jobs=arguments.jobs), seeds):
            outcomes.append(outcome)
            said = "good" if outcome.good else json.dumps({k: v for k, v in outcome.wrong.items() if v})
            print(f"seed {outcome.seed}: {said}", file=sys.stderr, flush=True)
    results = figures(outcomes) | {"wall_s": round(time.perf_counter() - begun, 1)}
    print(json.dumps(results, indent=1))
    return int(any(results[name] for name in ZEROES))


if __name__ == "__main__":
    sys.exit(main())
