"""Random days with accidents that kill jobs and burn money: python -m benchmarks.days [--days 1000] [--seed 1] [--dead]

A day of a site in memory (tests.fakes): the real controller, a cloud that sends a bill, nodes with the dead-man's
switch that the role slurm_node gives them, and two to five accidents (`ACCIDENTS`), each at a random moment. Counted
are jobs that were lost, or started again though nothing had happened to their nodes; instances that live an hour
after anybody needed them; dollars beyond a ceiling by the cloud's bill; and those paid for states that last, beyond
what ironburst.nodes.state_times allows (on days on which nothing else hides them from the controller).
With --dead the controller is killed for
ever at a random moment, and what counts is how long the last rented instance outlives it and its job.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import sqlite3
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

from benchmarks.lasting import Lasting
from benchmarks.mishaps import MIN_BILL_S, Skewed
from ironburst.controller.ledger import Ledger
from ironburst.controller.lock import LockedError
from ironburst.controller.money import day, month
from ironburst.controller.tick import Controller
from ironburst.document import ClusterDocument
from ironburst.nodes import naming
from ironburst.nodes.state_times import JOB, NODE
from ironburst.ports import CloudError, SchedulerError
from tests.fakes import T0, FakeClock, FakeCloud, FakeSlurm, document

DAY_S, HOUR_S = 86400.0, 3600.0
# a node counts its dead man's time from its boot on, and this looks at it once a tick
DEAD_MAN_S, MAX_BOOT_S, MAX_TICK_S = 1800, 240.0, 180.0
LOST, AGAIN = "jobs lost (0)", "jobs started again without a cause (0)"
IDLE, BEYOND = "instances alive an hour after they were needed (0)", "days with USD beyond a ceiling (0)"
LEFT = "left in a cloud (0)"  # of cloud_days
LASTING = "USD for states that last, beyond what the table allows (0)"
SILENT = "states that lasted without an event (0)"
OUTLIVED = "longest that a node outlived a dead controller and its job, s"
PRICES = {"on-demand": 55.0, "spot": 24.0}
NODES = [f"p5-{n}" for n in range(1, 7)]
REASONS = ("BadConstraints", "ReqNodeNotAvail, Reserved for maintenance", "AccountNotAllowed", "PartitionDown")


class Billed(FakeCloud):
    """Knows from when to when each instance was paid for, and what the provider itself did to it."""

    def __init__(self, clock: FakeClock, slurm: FakeSlurm):
        super().__init__(clock, slurm)
        self.began: dict[str, float] = {}
        self.ended: dict[str, float] = {}
        self.taken: dict[str, float] = {}  # when the provider gave notice, or ended it by itself
        self.due: list[tuple[float, str]] = []  # when spot takes it
        self.cut_until = 0.0

    def launch(self, request):
        before = set(self.all)
        try:
            return super().launch(request)
        finally:
            for id in self.all.keys() - before:
                self.began[id] = self.clock.at

    def instances(self, cluster):
        shown = super().instances(cluster)
        if self.clock.at < self.cut_until:
            shown = shown[: random.Random(self.clock.at).randint(0, len(shown))]
        return shown

    def die(self, id, reason="Server.InternalError"):
        super().die(id, reason)
        self.ended.setdefault(id, self.clock.at)
        if reason.startswith("Server"):
            self.taken.setdefault(id, self.clock.at)

    def notice(self, id: str) -> None:
        self.taken.setdefault(id, self.clock.at)
        self.interrupt(id)
        self.due.append((self.clock.at + 120, id))

    def live(self) -> None:
        self.take()
        self.nodes_live()

    def take(self) -> None:
        """What spot's notices have announced."""
        for at, id in [each for each in self.due if each[0] <= self.clock.at]:
            self.due.remove((at, id))
            if self.all[id].instance.alive:
                self.die(id, "Server.SpotInstanceTermination")

    def usd(self, start_s: float, end_s: float, ids: Iterable[str] | None = None) -> float:
        """The bill of a window; None: of all instances."""
        total = 0.0
        for id, began in self.began.items() if ids is None else ((id, self.began[id]) for id in ids):
            over = max(self.ended.get(id, self.clock.at), began + MIN_BILL_S)
            market = self.tokens[self.all[id].instance.token][0].market
            total += max(0.0, min(over, end_s) - max(began, start_s)) / 3600 * PRICES[market]
        return total


@dataclass
class Outcome:
    """What a day came to."""

    seed: int
    accidents: Counter
    jobs: int = 0
    done: int = 0
    launches: int = 0
    usd: float = 0.0
    told: int = 0
    lost: list[str] = field(default_factory=list)
    again: list[str] = field(default_factory=list)
    idle: list[str] = field(default_factory=list)
    beyond_usd: float = 0.0
    lasting: int = 0  # states that last, on days on which a controller can see them
    lasting_usd: float = 0.0  # paid for them
    lasting_allowed_usd: float = 0.0  # by the table of how long each is believed
    silent: list[str] = field(default_factory=list)  # of these, without an event
    outlived_s: float = 0.0  # with --dead: what the last rented instance lived on, idle

    @property
    def beyond(self) -> bool:
        """By more than what rounding makes."""
        return self.beyond_usd > 0.01

    @property
    def wrong(self) -> list[str]:
        """Sentences; empty: nothing was."""
        beyond = [f"{self.beyond_usd:.2f} USD beyond a ceiling"] if self.beyond else []
        return [*self.lost, *self.again, *self.idle, *beyond]


class Day:
    """One random day. `dead`: the controller is killed for ever on the way."""

    def __init__(self, seed: int, folder: Path, *, dead: bool = False, only: str = "", hours: float = 24.0):
        self.rng, self.folder = random.Random(seed), folder
        rng = self.rng
        self.tick_s = rng.choice([60.0, 90.0, MAX_TICK_S])
        self.clock = FakeClock(T0 + rng.uniform(0, DAY_S * 12))
        self.length_s = hours * HOUR_S
        self.end_s = self.clock.now() + self.length_s
        self.slurm = FakeSlurm(self.clock, home=2, burst={"burst-p5": NODES})
        self.cloud = Billed(self.clock, self.slurm)
        self.cloud.boot_s = rng.uniform(60, MAX_BOOT_S)
        said = document(
            nodes=NODES,
            boot_s=600,
            dead_man_s=DEAD_MAN_S,
            idle_s=rng.choice([120, 600]),
            wait_limit_s=rng.choice([60, 600]),
            tick_s=int(self.tick_s),
            cool_down_s=120,
            usd_per_month=rng.uniform(500, 6000),
            max_run_s=6 * 3600,
        )
        self.said = said.model_dump(mode="json")
        if rng.random() < 0.7:
            self.said["budget"]["usd_per_day"] = self.said["budget"]["usd_per_month"] * rng.uniform(0.3, 1.0)
        self.document = ClusterDocument.model_validate(self.said)
        self.path, self.ledger = folder / f"{seed}.sqlite", None
        self.away_until, self.second_until, self.full_until = 0.0, 0.0, 0.0
        self.rival: Controller | None = None
        self.outcome = Outcome(seed, Counter())
        names = [only] if only else rng.sample(sorted(ACCIDENTS), rng.randint(2, 5))
        self.plan = sorted((self.clock.now() + rng.uniform(0.1, 0.8) * self.length_s, name) for name in names)
        self.kill_s = self.clock.now() + rng.uniform(0.05, 0.7) * self.length_s if dead else float("inf")
        self.idle_since: dict[str, float] = {}
        self.lasting: list[Lasting] = []
        self.later: list[tuple[float, Callable[[], None]]] = []
        self.start()

    def start(self) -> None:
        self.ledger = Ledger(self.path)
        self.ledger._db.execute("PRAGMA synchronous=OFF")  # no power cut here; four times as fast
        self.controller = Controller(self.slurm, self.cloud, self.ledger, Skewed(self.clock))

    def declare(self, **changed: Any) -> None:
        """A new document is published."""
        self.said |= {**changed, "serial": self.said["serial"] + 1}
        self.document = ClusterDocument.model_validate(self.said)

    def forget_ledger(self) -> None:
        """With what sqlite keeps beside it."""
        for path in self.path.parent.glob(self.path.name + "*"):
            path.unlink()

    # ---- a day
    def run(self) -> Outcome:
        rng = self.rng
        while self.clock.now() < self.end_s or (self.cloud.alive() and self.clock.now() < self.end_s + DAY_S):
            now = self.clock.now()
            if now < self.end_s - self.length_s / 4 and rng.random() < self.tick_s / 900:
                self._submit()
            while self.plan and self.plan[0][0] <= now:
                name = self.plan.pop(0)[1]
                self.outcome.accidents[name] += 1
                self._happens(name)
            for item in [item for item in self.later if item[0] <= now]:
                self.later.remove(item)
                item[1]()
            self._step(now)
            self._watch()
            self.clock.at = max(self.clock.at, now + self.tick_s)
        return self._count()

    def _happens(self, name: str) -> None:
        ACCIDENTS[name](self)

    def _submit(self) -> None:
        rng = self.rng
        limit = rng.uniform(600, 5 * HOUR_S)
        self.slurm.submit(nodes=rng.choice([1, 1, 1, 2]), limit_s=limit, runs_s=limit * rng.uniform(0.1, 1.0))

    def _step(self, now: float) -> None:
        self.cloud.live()
        if now < self.away_until or now >= self.kill_s:
            self.slurm.live()
        else:
            self._tick(self.controller, full=now < self.full_until)
        if self.rival and now < self.second_until:
            self._tick(self.rival)

    def _tick(self, controller: Controller, full: bool = False) -> None:
        try:
            if full:
                controller.ledger._db.execute("PRAGMA max_page_count=1")
            controller.tick(self.document)
        except (SchedulerError, CloudError, LockedError, sqlite3.Error) as error:
            self.outcome.accidents[f"tick without result: {type(error).__name__}"] += 1
        finally:
            if full:
                controller.ledger._db.execute("PRAGMA max_page_count=1073741823")

    # ---- what counts
    def _watch(self) -> None:
        now = self.clock.now()
        busy = {node for fake in self.slurm.jobs.values() if not fake.done for node in fake.job.on}
        for instance in self.cloud.alive():
            node = self.cloud.all[instance.id].node
            if node in busy:
                self.idle_since.pop(instance.id, None)
                continue
            if now > self.kill_s:
                idle_s = now - max(self.kill_s, self.idle_since.get(instance.id, now))
                self.outcome.outlived_s = max(self.outcome.outlived_s, idle_s)
            since = self.idle_since.setdefault(instance.id, now)
            if now - since > HOUR_S and not any(instance.id in text for text in self.outcome.idle):
                self.outcome.idle.append(f"{instance.id} ({node}) at {now - self.end_s + self.length_s:.0f} s")

    def _count(self) -> Outcome:
        out, lasting = self.outcome, {each.job for each in self.lasting}
        for fake in self.slurm.jobs.values():
            if fake.done == "NODE_FAIL":
                out.lost.append(f"job {fake.job.id}")
            for (at, nodes), (again, _) in zip(fake.started, fake.started[1:], strict=False):
                if fake.job.id not in lasting and not self._cause(at, again, nodes):
                    out.again.append(f"job {fake.job.id} on {','.join(nodes)} from {at:.0f} to {again:.0f}")
        out.jobs, out.launches = len(self.slurm.jobs), len(self.cloud.began)
        out.done = sum(fake.done == "COMPLETED" for fake in self.slurm.jobs.values())
        out.usd = self.cloud.usd(0.0, float("inf"))
        budget = self.document.budget
        windows = {month(self.end_s - self.length_s), month(self.end_s)}
        days = {day(self.end_s - self.length_s), day(self.end_s)} if budget.usd_per_day else set()
        allowed = [(window, budget.usd_per_month) for window in windows] + [(d, budget.usd_per_day) for d in days]
        out.beyond_usd = sum(max(0.0, self.cloud.usd(*window) - usd) for window, usd in allowed)
        count_lasting(out, self.lasting, self.cloud, self.ledger, self.tick_s)
        self.ledger.close()
        return out

    def _cause(self, from_s: float, to_s: float, nodes: Sequence[str]) -> bool:
        """Whether the provider did something to one of the nodes in that time."""
        return any(from_s <= at <= to_s and self.cloud.all[id].node in nodes for id, at in self.cloud.taken.items())


# ---- accidents


def _bad_image(day: Day) -> None:
    """No node joins, for hours; whoever is told opens the pool again when the image is mended."""
    day.slurm.gate_fails |= set(NODES)

    def mended() -> None:
        day.slurm.gate_fails.clear()
        for pool in day.document.pools:
            day.ledger.reopen(pool.name)

    day.later.append((day.clock.now() + day.rng.uniform(1, 8) * HOUR_S, mended))


def _cut_listings(day: Day) -> None:
    day.cloud.cut_until = day.clock.now() + day.rng.uniform(120, HOUR_S)


def _unstartable(day: Day) -> None:
    """Jobs that Slurm has a reason not to start: on rented nodes, or anywhere; while they wait, or from the start."""
    for _ in range(day.rng.randint(1, 3)):
        id = day.slurm.submit(limit_s=HOUR_S, runs_s=600)
        if not day.slurm.jobs[id].job.on:
            where = day.rng.choice([("burst-p5",), ("home", "burst-p5")])
            day.slurm.refuse(id, day.rng.choice(REASONS), *where)


def _pool_removed(day: Day) -> None:
    before, after = list(day.said["pools"]), day.clock.now() + day.rng.uniform(0.5, 8) * HOUR_S
    day.declare(pools=[])
    day.later.append((after, lambda: day.declare(pools=before)))


def _restored(day: Day) -> None:
    """Yesterday's ledger, or that of some hours ago."""
    copy = day.folder / f"{day.outcome.seed}.kept"
    with sqlite3.connect(copy) as kept:
        day.ledger._db.backup(kept)

    def restore() -> None:
        day.ledger.close()
        day.forget_ledger()
        shutil.copy(copy, day.path)
        day.start()

    day.later.append((day.clock.now() + day.rng.uniform(0.2, 8) * HOUR_S, restore))


def _lost_ledger(day: Day) -> None:
    day.ledger.close()
    day.forget_ledger()
    day.start()


def _second_controller(day: Day) -> None:
    path = day.folder / f"{day.outcome.seed}.second"
    day.rival = Controller(day.slurm, day.cloud, Ledger(path), Skewed(day.clock))
    day.second_until = day.clock.now() + day.rng.uniform(600, 2 * HOUR_S)


def _away(day: Day) -> None:
    day.away_until = day.clock.now() + day.rng.uniform(600, 4 * HOUR_S)


def _lost_answers(day: Day) -> None:
    day.cloud.lost_answers = day.rng.randint(1, 6)


def _storm(day: Day) -> None:
    """Spot takes all that it has."""
    for instance in day.cloud.alive():
        if day.cloud.tokens[instance.token][0].market == "spot":
            day.cloud.notice(instance.id)


def _dies(day: Day) -> None:
    """One instance's hardware fails, without a notice."""
    if alive := day.cloud.alive():
        day.cloud.die(day.rng.choice(alive).id)


def _no_capacity(day: Day) -> None:
    for zone in ("us-east-1a", "us-east-1b"):
        for market in PRICES:
            day.cloud.capacity[zone, market] = day.rng.choice([0, 1, 99])
    day.later.append((day.clock.now() + HOUR_S, day.cloud.capacity.clear))


def _disk_full(day: Day) -> None:
    day.full_until = day.clock.now() + day.rng.uniform(300, 3 * HOUR_S)


def lasts(state: str) -> Callable[[Any], None]:
    """A rented node's job stays in a state that should be short, or the node in COMPLETING when it has gone: a hung
    epilog or prolog, a burst buffer, a job that was suspended and forgotten.
    """

    def happens(day: Any) -> None:
        here = {fake.node: id for id, fake in day.cloud.all.items() if fake.instance.alive}
        works = [fake for fake in day.slurm.unfinished.values() if _works(fake, here)]
        if not works:
            if day.clock.at < day.end_s:
                day.later.append((day.clock.at + 600, lambda: happens(day)))
            return
        fake, now = day.rng.choice(works), day.clock.at
        job, nodes = fake.job, list(fake.job.on)
        if state == NODE_COMPLETES:
            nodes = [day.rng.choice(nodes)]
            day.slurm._end(fake, "COMPLETED")
            day.slurm.nodes[nodes[0]].states |= {"COMPLETING"}
            what, row = (f"node {nodes[0]} has been COMPLETING",), NODE["COMPLETING"]
        else:
            end_s = day.clock.now() if state == "COMPLETING" else job.end_s
            fake.job, fake.ends = replace(job, state=state, end_s=end_s), None
            what, row = (f"job {job.called or naming.called(job.id)} of {job.user} has been {state}",), JOB[state]
        kill_wait_s = day.document.scheduler.kill_wait_s if state == "COMPLETING" else 0.0
        ids = tuple(here[name] for name in nodes)
        on = job.id if state != NODE_COMPLETES else None
        day.lasting.append(Lasting(what, row, now, ids, kill_wait_s + day.slurm.suspend_s, on))

    return happens


def _works(fake: Any, here: Mapping[str, str]) -> bool:
    """On rented nodes alone with what they have."""
    return (
        fake.job.state == "RUNNING" and fake.completes is None and bool(fake.job.on) and here.keys() >= {*fake.job.on}
    )


NODE_COMPLETES = "COMPLETING, by its node alone"
LASTING_STATES = (*sorted(name for name, row in JOB.items() if row.steps and not row.works), NODE_COMPLETES)


def _lasts(day: Day) -> None:
    lasts(day.rng.choice(LASTING_STATES))(day)


ACCIDENTS: dict[str, Callable[[Day], None]] = {
    "an image that never joins": _bad_image,
    "listings that are cut": _cut_listings,
    "jobs that Slurm won't start": _unstartable,
    "the pool is declared no more": _pool_removed,
    "a ledger of some hours ago": _restored,
    "the ledger is lost": _lost_ledger,
    "a second controller": _second_controller,
    "the controller is away for hours": _away,
    "lost answers": _lost_answers,
    "spot takes all": _storm,
    "an instance dies": _dies,
    "no capacity": _no_capacity,
    "the disk is full": _disk_full,
    "a state lasts": _lasts,
}
# of these, those that a controller doesn't see everything in, or forgets what it saw
BLIND = {
    "the controller is away for hours",
    "the ledger is lost",
    "a ledger of some hours ago",
    "a second controller",
    "the disk is full",
    "listings that are cut",
    "spot takes all",
    "an instance dies",
}


# ---- figures


def count_lasting(out: Outcome, lasting: Sequence[Lasting], cloud: Billed, ledger: Ledger, tick_s: float) -> None:
    """Where the controller was there all day: else a state lasts on while nobody looks."""
    if BLIND & out.accidents.keys():
        return
    events = ledger.events()
    for each in lasting:
        out.lasting += 1
        out.lasting_usd += each.paid(cloud)
        out.lasting_allowed_usd += each.allowed(cloud, tick_s)
        if each.unheard(cloud, events, tick_s):
            out.silent.append(f"{', '.join(each.what)} at {each.since_s:.0f}")


def play(seeds: Sequence[int], processes: int = 1, **more: Any) -> Iterator[Outcome]:
    """Each seed's day, in their order; `more` as Day takes it. `of`: another class of days."""
    if processes == 1:
        yield from map(partial(_one, **more), seeds)
    else:
        with ProcessPoolExecutor(processes) as pool:
            yield from pool.map(partial(_one, **more), seeds)


def _one(seed: int, *, of: Callable[..., Any] | None = None, **more: Any) -> Outcome:
    with tempfile.TemporaryDirectory() as folder:
        return (of or Day)(seed, Path(folder), **more).run()


def kept(path: Path | None) -> list[Outcome]:
    """The days that an earlier run has kept. Whoever changes the code in between starts a new file."""
    lines = path.read_text().splitlines() if path and path.exists() else []
    return [Outcome(**said | {"accidents": Counter(said["accidents"])}) for said in map(json.loads, lines)]


def keep(path: Path | None, outcome: Outcome) -> None:
    """One line of a file."""
    if path:
        with path.open("a") as file:
            file.write(json.dumps(vars(outcome)) + "\n")


def figures(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """What counts, over all days."""
    return {
        "days": len(outcomes),
        "accidents": dict(sorted(sum((outcome.accidents for outcome in outcomes), Counter()).items())),
        "jobs": sum(outcome.jobs for outcome in outcomes),
        "launches": sum(outcome.launches for outcome in outcomes),
        "usd": round(sum(outcome.usd for outcome in outcomes)),
        LOST: [f"day {each.seed}: {what}" for each in outcomes for what in each.lost],
        AGAIN: [f"day {each.seed}: {what}" for each in outcomes for what in each.again],
        IDLE: [f"day {each.seed}: {what}" for each in outcomes for what in each.idle],
        BEYOND: {each.seed: round(each.beyond_usd, 2) for each in outcomes if each.beyond},
        LASTING: sum(max(0.0, round(each.lasting_usd - each.lasting_allowed_usd, 2)) for each in outcomes),
        "states that last": sum(each.lasting for each in outcomes),
        "paid for states that last, USD": round(sum(each.lasting_usd for each in outcomes), 2),
        SILENT: [f"day {each.seed}: {what}" for each in outcomes for what in each.silent],
        OUTLIVED: max(each.outlived_s for each in outcomes),
        "allowed of that, s": DEAD_MAN_S + MAX_BOOT_S + MAX_TICK_S,
    }


def main(argv: Sequence[str] | None = None, kubernetes: ModuleType | None = None) -> int:
    """`kubernetes`: benchmarks.kube_days, for its days."""
    asked = kubernetes or sys.modules[__name__]
    name = "kube_days" if kubernetes else "days"
    parser = argparse.ArgumentParser(
        prog=f"python -m benchmarks.{name}",
        description=asked.__doc__,
        formatter_class=argparse.RawTextHelpFormatter,
    )
    parser.add_argument("--days", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1, help="the first one; day n has seed + n")
    parser.add_argument("--hours", type=float, default=24.0, help="how long a day is (default: %(default)g)")
    if not kubernetes:
        parser.add_argument("--dead", action="store_true", help="the controller is killed for ever on the way")
    names = ["", *asked.ACCIDENTS]
    parser.add_argument("--only", default="", choices=names, help="this accident alone", metavar="ACCIDENT")
    parser.add_argument("--processes", type=int, default=1)
    said = "each day that has ended goes there, and isn't played again: a run that was stopped goes on"
    parser.add_argument("--keep", type=Path, metavar="FILE", help=said)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args(argv)
    if arguments.days < 1:
        parser.error(f"--days is {arguments.days}; it must be 1 or more")
    if arguments.processes < 1:
        parser.error(f"--processes is {arguments.processes}; it must be 1 or more")
    begun = time.perf_counter()
    seeds = range(arguments.seed, arguments.seed + arguments.days)
    dead = not kubernetes and arguments.dead
    day = {"only": arguments.only, "hours": arguments.hours}
    day |= {"of": kubernetes.KubeDay} if kubernetes else {"dead": dead}
    outcomes = [outcome for outcome in kept(arguments.keep) if outcome.seed in seeds]
    left = sorted(set(seeds) - {outcome.seed for outcome in outcomes})
    for outcome in play(left, arguments.processes, **day):
        outcomes.append(outcome)
        keep(arguments.keep, outcome)
        if outcome.wrong or len(outcomes) % 50 == 0:  # a thousand take more than an hour
            said = ", ".join(outcome.wrong) or "good"
            print(f"day {len(outcomes)}, seed {outcome.seed}: {said}", file=sys.stderr, flush=True)
    results = {"dead": dead, "kubernetes": bool(kubernetes), "only": arguments.only} | figures(outcomes)
    results["wall_s"] = round(time.perf_counter() - begun, 1)
    print(json.dumps(results, indent=1))
    return int(any(value for key, value in results.items() if key.endswith("(0)")))


if __name__ == "__main__":
    sys.exit(main())
