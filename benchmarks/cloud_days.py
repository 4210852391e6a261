"""Random days of a site that rents in three clouds: python -m benchmarks.cloud_days [--days 1000] [--seed 1]

As benchmarks.days, with a pool in AWS (in memory), in Google Cloud and in Azure (their real adapters before the lab's
stand-ins), one budget, and accidents that meet one of the clouds or all: no answer for hours, answers that are lost,
no capacity, spot that is taken back, a controller that dies for some minutes, is away for hours, or loses its ledger.
Nodes have the dead man's switch that the role cloud_node gives them: in AWS that ends them, in Google Cloud they have
themselves deleted, or are off if nobody answers, and in Azure they are off, and the reaper's workflow ends them
(components/azure/reaper.py, every 5 minutes). Counted are jobs that were lost, or started again though nothing had
happened to their nodes; instances that live an hour after anybody needed them; dollars beyond a ceiling; and what is
left in a cloud when the day is over. In Azure nobody can end a machine while it answers nobody, the workflow neither:
that is no hour, and its dollars are a figure of their own, with those for machines that are off until a run of the
workflow (docs/adr/0134).
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import product
from pathlib import Path
from typing import Any

from benchmarks import days
from benchmarks.days import AGAIN, BEYOND, DAY_S, HOUR_S, IDLE, LEFT, LOST, Outcome
from benchmarks.mishaps import MIN_BILL_S, Skewed
from components.azure import reaper
from ironburst.controller.ledger import Ledger
from ironburst.controller.money import day, month
from ironburst.controller.tick import Controller
from ironburst.document import ClusterDocument
from ironburst.ports import OutcomeUnknown
from lab.azure.workflows import Run
from tests.fakes import T0, FakeClock, FakeSlurm, document
from tests.fakes.cloud import FakeCloud
from tests.fakes.three import POOLS, USD, Trio, burst, in_three

NODES = 3  # of each pool
CLOUDS = tuple(POOLS)
ZONES = ("us-east-1a", "us-east-1b")
OFF = "USD in Azure for machines that are off, or that nobody can end while it gives no answer"
REAPER_S = 60.0 * reaper.EVERY_MIN
# a notice of 120 s, the half minute of a shutdown, a tick: a job may start in it on a node that is taken
GOES_S = 150.0 + days.MAX_TICK_S
CALLS = {"image_id", "launch_all", "instances", "described", "by_token", "console", "terminate", "troubles"}


class Silent(FakeCloud):
    """`fails`: what each call raises for now."""

    fails: OutcomeUnknown | None = None

    def __getattribute__(self, name: str) -> Any:
        if name in CALLS and (error := object.__getattribute__(self, "fails")):
            raise error
        return super().__getattribute__(name)


class Clouds(Trio):
    """Sends a bill: each instance from its launch until it was seen no more."""

    first = Silent

    def __init__(self, clock: FakeClock, slurm: FakeSlurm):
        self.clock = clock
        self.paid: dict[str, tuple[float, float, float]] = {}  # id: from, to, USD an hour
        self.stopped: set[str] = set()
        self.taken: dict[str, float] = {}  # node: when the provider took its instance
        super().__init__(clock, slurm)

    def living(self) -> dict[str, str]:
        """{id: node} of what lives."""
        found = {}
        for whose, cloud in self.clouds.items():
            for each in cloud.alive():
                if each.id in self.stopped or (whose == "google" and each.state == "stopped"):
                    self.stopped.add(each.id)  # its disk is left
                    continue
                market = "spot" if each.market == "spot" else "on-demand"
                began_s = self.paid.get(each.id, (each.launched_s, 0.0, 0.0))[0]
                self.paid[each.id] = began_s, self.clock.at, USD[whose][market]
                found[each.id] = self.node_of(whose, each)
        return found

    def node_of(self, whose: str, instance: Any) -> str:
        cloud = self.clouds[whose]
        return cloud.all[instance.id].node if whose == "aws" else cloud.nodes.get(instance.id.split("/")[1], "")

    def reap(self) -> None:
        """One run of the workflow that ends what no controller looks after in Azure."""
        lab = self.clouds["azure"].lab

        def send(method: str, uri: str, _audience: str) -> tuple[int, Any]:
            answer = lab.handle(method, uri.removeprefix(lab.url), b"", {"Authorization": "Bearer reaper"})
            return (answer.status, json.loads(answer.body or b"null")) if answer else (504, None)

        Run(reaper.definition("lab", lab.subscription, "/its/id", lab.url), send, lab.now)

    def waits_for_its_end(self, id: str) -> tuple[bool, bool]:
        """Whether this machine is off, and paid for, and whether nobody can end it now: Azure answers nobody."""
        lab = self.clouds["azure"].lab
        vm = next((each for each in lab.vms.values() if id.startswith(f"{each.group}/{each.name}/")), None)
        silent = any(fault.name == "*" and fault.status for fault in lab.faults)
        return vm is not None and vm.power == "stopped", vm is not None and silent

    def storm(self, whose: str) -> None:
        """Spot takes all that it has in one cloud."""
        cloud, now = self.clouds[whose], self.clock.at
        spot = [each for each in cloud.alive() if each.market == "spot"]
        self.taken |= {self.node_of(whose, each): now for each in spot}
        if whose != "aws":
            cloud.storm()
        for each in spot if whose == "aws" else ():
            cloud.interrupt(each.id)
            cloud.die(each.id, "Server.SpotInstanceTermination")

    def usd(self, start_s: float, end_s: float) -> float:
        paid = ((began_s, max(ended_s, began_s + MIN_BILL_S), usd) for began_s, ended_s, usd in self.paid.values())
        return _usd(paid, start_s, end_s)


def _usd(paid: Iterable[tuple[float, float, float]], start_s: float, end_s: float) -> float:
    """What was paid of these (from, to, USD an hour) within a window."""
    return sum(max(0.0, min(to_s, end_s) - max(from_s, start_s)) / 3600 * usd for from_s, to_s, usd in paid)


class CloudDay(days.Day):
    """One random day."""

    def __init__(self, seed: int, folder: Path, *, only: str = "", hours: float = 24.0):
        self.rng, self.folder = random.Random(seed), folder
        rng = self.rng
        self.tick_s = rng.choice([60.0, 90.0, days.MAX_TICK_S])
        self.clock = FakeClock(T0 + rng.uniform(0, DAY_S * 12))
        self.length_s, self.kill_s = hours * HOUR_S, float("inf")
        self.end_s = self.clock.now() + self.length_s
        self.slurm = FakeSlurm(self.clock, home=2, burst=burst(NODES))
        self.cloud = Clouds(self.clock, self.slurm)
        self.cloud.boot_s = rng.uniform(60, days.MAX_BOOT_S)
        self.said = self._declared().model_dump(mode="json")
        if rng.random() < 0.7:
            self.said["budget"]["usd_per_day"] = self.said["budget"]["usd_per_month"] * rng.uniform(0.3, 1.0)
        self.document = ClusterDocument.model_validate(self.said)
        self.path, self.ledger = folder / f"{seed}.sqlite", None
        self.away_until, self.second_until, self.full_until, self.rival = 0.0, 0.0, 0.0, None
        self.outcome, self.left = Outcome(seed, Counter()), list[str]()
        names = [only] if only else rng.sample(sorted(ACCIDENTS), rng.randint(2, 5))
        self.plan = sorted((self.clock.now() + rng.uniform(0.1, 0.8) * self.length_s, name) for name in names)
        self.idle_since: dict[str, float] = {}
        self.off: list[tuple[float, float, float]] = []  # machines that are off or can't be: from, to, USD an hour
        self.watched_s = self.reaped_s = self.clock.now()
        self.lasting, self.later = [], []
        self.start()

    def _declared(self) -> ClusterDocument:
        rng = self.rng
        said = document(
            boot_s=900,
            dead_man_s=days.DEAD_MAN_S,
            idle_s=rng.choice([120, 600]),
            wait_limit_s=rng.choice([60, 600]),
            tick_s=int(self.tick_s),
            cool_down_s=120,
            usd_per_month=rng.uniform(500, 6000),
            max_run_s=6 * 3600,
        )
        return in_three(said, NODES)

    def start(self) -> None:
        self.cloud.connect()
        self.ledger = Ledger(self.path)
        self.ledger._db.execute("PRAGMA synchronous=OFF")  # no power cut here; four times as fast
        self.controller = Controller(self.slurm, self.cloud, self.ledger, Skewed(self.clock))

    def _happens(self, name: str) -> None:
        ACCIDENTS[name](self)

    def _step(self, now: float) -> None:
        self.cloud.nodes_live()
        if now >= self.reaped_s + REAPER_S:
            self.reaped_s = now
            self.cloud.reap()
        if now < self.away_until:
            self.slurm.live()
        else:
            self._tick(self.controller, full=now < self.full_until)

    def _watch(self) -> None:
        now = self.clock.now()
        busy = {node for fake in self.slurm.jobs.values() if not fake.done for node in fake.job.on}
        for id, node in self.cloud.living().items():
            off, waits = self.cloud.waits_for_its_end(id) if node not in busy else (False, False)
            if off or waits:
                self.off.append((self.watched_s, now, self.cloud.paid[id][2]))
            if node in busy or waits:
                self.idle_since.pop(id, None)
                continue
            since = self.idle_since.setdefault(id, now)
            if now - since > HOUR_S and not any(id in text for text in self.outcome.idle):
                self.outcome.idle.append(f"{id} ({node}) at {now - self.end_s + self.length_s:.0f} s")
        self.watched_s = now

    def _count(self) -> Outcome:
        out = self.outcome
        for fake in self.slurm.jobs.values():
            if fake.done == "NODE_FAIL":
                out.lost.append(f"job {fake.job.id}")
            for (at, nodes), (again, _) in zip(fake.started, fake.started[1:], strict=False):
                if not any(at - GOES_S <= self.cloud.taken.get(node, 0.0) <= again for node in nodes):
                    out.again.append(f"job {fake.job.id} on {','.join(nodes)} from {at:.0f} to {again:.0f}")
        out.jobs, out.launches = len(self.slurm.jobs), len(self.cloud.paid)
        out.done = sum(fake.done == "COMPLETED" for fake in self.slurm.jobs.values())
        out.usd = self.cloud.usd(0.0, float("inf"))
        budget, times = self.document.budget, (self.end_s - self.length_s, self.end_s)
        allowed = [(window, budget.usd_per_month) for window in {month(at) for at in times}]
        allowed += [(window, budget.usd_per_day) for window in {day(at) for at in times} if budget.usd_per_day]
        out.beyond_usd = sum(
            max(0.0, self.cloud.usd(*window) - _usd(self.off, *window) - usd) for window, usd in allowed
        )
        out.lasting_usd = _usd(self.off, 0.0, float("inf"))
        out.accidents |= Counter({f"rented in {whose}": self._rented(pool) for whose, pool in POOLS.items()})
        self.ledger.close()
        left = self.cloud.left_over() | ({"aws": True} if self.cloud.alive() else {})
        out.silent = [f"{left}"] if left else []  # the place of what is left in a cloud
        out.idle += [f"an answer that no API gives: {wrong}" for wrong in self.cloud.wrong()]
        self.cloud.close()
        return out

    def _rented(self, pool: str) -> int:
        return len([lease for lease in self.ledger.leases(open_only=False) if lease.pool == pool and lease.from_s])


# ---- accidents


def _some(day: CloudDay) -> Sequence[str]:
    """One of the clouds, or all."""
    return day.rng.choice([*((whose,) for whose in CLOUDS), CLOUDS])


def _no_answer(day: CloudDay) -> None:
    """Nothing that a cloud is asked has an answer, for up to two hours."""
    for whose in _some(day):
        cloud, over_s = day.cloud.clouds[whose], day.clock.now() + day.rng.uniform(300, 2 * HOUR_S)
        if whose == "aws":
            cloud.fails = OutcomeUnknown("Could not connect to the endpoint URL")
            day.later.append((over_s, lambda cloud=cloud: setattr(cloud, "fails", None)))
        else:
            fault = cloud.lab.fault("*", 503, times=-1)
            day.later.append((over_s, lambda cloud=cloud, fault=fault: cloud.lab.faults.remove(fault)))


def _lost_answers(day: CloudDay) -> None:
    for whose in _some(day):
        cloud, times = day.cloud.clouds[whose], day.rng.randint(1, 12)
        if whose == "aws":
            cloud.lost_answers = times
        else:
            cloud.lab.fault("*", drop=True, after=True, times=times)


def _no_capacity(day: CloudDay) -> None:
    for whose in _some(day):
        cloud, left = day.cloud.clouds[whose], day.rng.choice([0, 1])
        if whose == "aws":
            cloud.capacity = dict.fromkeys(product(ZONES, ("spot", "on-demand")), left)
            day.later.append((day.clock.now() + HOUR_S, cloud.capacity.clear))
        else:
            cloud.out_of_capacity(left)
            day.later.append((day.clock.now() + HOUR_S, cloud.lab.capacity.clear))


def _storm(day: CloudDay) -> None:
    for whose in _some(day):
        day.cloud.storm(whose)


def _shown_late(day: CloudDay) -> None:
    """Lists show new instances minutes later."""
    for whose in ("google", "azure"):
        delays = day.cloud.clouds[whose].lab.delays
        day.later.append((day.clock.now() + HOUR_S, lambda delays=delays: setattr(delays, "list_s", 0.0)))
        delays.list_s = day.rng.uniform(30, 240)


def _slow(day: CloudDay) -> None:
    """Launches take longer than usual."""
    day.cloud.clouds["google"].lab.delays.insert_s = day.rng.uniform(120, 400)
    day.cloud.clouds["azure"].lab.delays.create_s = day.rng.uniform(120, 400)


def _restarted(day: CloudDay) -> None:
    """The controller's process dies, and another one goes on in some minutes."""
    day.ledger.close()
    day.away_until = day.clock.now() + day.rng.uniform(60, 900)
    day.start()


SHARED = ("an image that never joins", "the pool is declared no more", "a ledger of some hours ago")
SHARED += ("the disk is full", "the ledger is lost", "the controller is away for hours")
ACCIDENTS: dict[str, Callable[[Any], None]] = {
    "a cloud gives no answer": _no_answer,
    "answers are lost": _lost_answers,
    "no capacity": _no_capacity,
    "spot takes all": _storm,
    "instances are shown late": _shown_late,
    "launches take longer": _slow,
    "another process": _restarted,
    **{name: days.ACCIDENTS[name] for name in SHARED},
}


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.cloud_days", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--days", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1, help="the first one; day n has seed + n")
    parser.add_argument("--hours", type=float, default=24.0, help="how long a day is (default: %(default)g)")
    parser.add_argument("--only", default="", choices=["", *ACCIDENTS], help="this accident alone", metavar="ACCIDENT")
    parser.add_argument("--processes", type=int, default=1)
    said = "each day that has ended goes there, and isn't played again: a run that was stopped goes on"
    parser.add_argument("--keep", type=Path, metavar="FILE", help=said)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args(argv)
    for name in ("days", "processes"):
        if (value := getattr(arguments, name)) < 1:
            parser.error(f"--{name} is {value}; it must be 1 or more")
    begun, seeds = time.perf_counter(), range(arguments.seed, arguments.seed + arguments.days)
    outcomes = [outcome for outcome in days.kept(arguments.keep) if outcome.seed in seeds]
    rest = sorted(set(seeds) - {outcome.seed for outcome in outcomes})
    more = {"of": CloudDay, "only": arguments.only, "hours": arguments.hours}
    for outcome in days.play(rest, arguments.processes, **more):
        outcomes.append(outcome)
        days.keep(arguments.keep, outcome)
        if outcome.wrong or outcome.silent or len(outcomes) % 50 == 0:
            said = ", ".join([*outcome.wrong, *outcome.silent]) or "good"
            print(f"day {len(outcomes)}, seed {outcome.seed}: {said}", file=sys.stderr, flush=True)
    found = days.figures(outcomes)
    kept = ("days", "accidents", "jobs", "launches", "usd", LOST, AGAIN, IDLE, BEYOND)
    results = {name: found[name] for name in kept} | {LEFT: found[days.SILENT]}
    results["hours"] = arguments.hours
    results[OFF] = found["paid for states that last, USD"]
    results["wall_s"] = round(time.perf_counter() - begun, 1)
    print(json.dumps(results, indent=1))
    return int(any(value for key, value in results.items() if key.endswith("(0)")))


if __name__ == "__main__":
    sys.exit(main())
