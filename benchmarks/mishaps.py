"""A random site for benchmarks.budget: jobs of two accounts, a cloud that sends a bill, and what goes wrong on the way.

Three clocks' worth of trouble: the world's own (the bill is made from it), the controller's (it is put forward and
back), and nobody's while the controller is dead. The bill knows nothing of the ledger: an instance costs the declared
price of each moment, from its launch to its end, at least a minute.
"""

from __future__ import annotations

import itertools
import math
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from ironburst import ports
from ironburst.controller import spending
from ironburst.controller.ledger import Ledger
from ironburst.controller.money import day, month
from ironburst.controller.records import CLOCK_S, ENDING_S
from ironburst.controller.tick import Controller
from ironburst.document import ClusterDocument
from ironburst.ports import CloudError, SchedulerError
from tests.fakes import Breaking, Crash, FakeClock, FakeCloud, FakeSlurm, document

ACCOUNTS = ("vision", "speech", "")
MONTH_END = 1_796_083_200.0  # 2026-12-01 00:00:00Z
MIN_BILL_S = 60.0


@dataclass
class Skewed:
    """The controller's clock: the world's, and some seconds off."""

    clock: FakeClock
    off_s: float = 0.0

    def now(self) -> float:
        return self.clock.now() + self.off_s

    def uptime(self) -> ports.Uptime:
        return self.clock.uptime()

    def wait(self, seconds: float) -> bool:
        return self.clock.wait(seconds)


NODE_CALLS = ("power_up", "resume", "drain", "release", "abandon", "heal")
SLURM_CALLS = {"claim", "observe", "put_permit", "remove_permit", "place", "requeue", "beat", *NODE_CALLS}


class Slurm(FakeSlurm):
    """May be out of reach. Its own life goes on."""

    down = False

    def __getattribute__(self, name):
        if name in SLURM_CALLS and object.__getattribute__(self, "down"):
            raise SchedulerError("slurmctld does not answer")
        return super().__getattribute__(name)


class Cloud(FakeCloud):
    """Sends a bill, and fails now and then as its `rng` says."""

    def __init__(self, clock: FakeClock, slurm: FakeSlurm, rng: random.Random, seen: Counter, boot_limit_s: float):
        super().__init__(clock, slurm)
        self.rng, self.seen, self.limit_s, self.down = rng, seen, boot_limit_s, False
        self.began: dict[str, float] = {}
        self.ended: dict[str, float] = {}
        self.due: list[tuple[float, str, str]] = []  # (when, instance, why): ends that come later
        self.shown: dict[str, float] = {}  # hidden from describe calls up to then

    def live(self) -> None:
        now = self.clock.now()
        for at, id, why in [end for end in self.due if end[0] <= now]:
            self.due.remove((at, id, why))
            if self.all[id].instance.alive:
                self.die(id, why)
        self.hidden = {id for id, at in self.shown.items() if at > now}

    def die(self, id, reason="Server.InternalError"):
        super().die(id, reason)
        self.ended.setdefault(id, self.clock.now())

    def _up(self):
        if self.down:
            raise ports.OutcomeUnknown("the cloud's API does not answer")

    def _strikes(self, kind: str, chance: float) -> bool:
        hit = self.rng.random() < chance
        self.seen[kind] += hit
        return hit

    def launch(self, request):
        self._up()
        if self._strikes("launch: no answer, nothing done", 0.04):
            raise ports.OutcomeUnknown("timeout")
        if self._strikes("launch: throttled", 0.04):
            raise ports.Throttled("slow down", "RequestLimitExceeded")
        if self._strikes("launch: quota", 0.01):
            raise ports.QuotaReached("no more vCPUs", "VcpuLimitExceeded")
        if self._strikes("launch: refused", 0.005):
            raise ports.Refused("not allowed", "UnauthorizedOperation")
        self.boot_s = self.rng.uniform(0.2, 0.9) * self.limit_s
        if self._strikes("node never joins", 0.05):
            self.boot_s = math.inf
        lost = request.token not in self.tokens and self._strikes("launch: done, answer lost", 0.08)
        self.lost_answers = int(lost)
        before = set(self.all)
        try:
            return super().launch(request)
        except ports.InsufficientCapacity:
            self.seen["launch: insufficient capacity"] += 1
            raise
        finally:
            for id in self.all.keys() - before:
                self.began[id] = self.clock.now()
                if request.market == "spot" and self.rng.random() < 0.25:
                    self.due.append((self.clock.now() + self.rng.uniform(60, 5400), id, "spot"))
                if self._strikes("describe: shown late", 0.1):
                    self.shown[id] = self.clock.now() + self.rng.uniform(30, 200)

    def terminate(self, ids):
        self._up()
        if self._strikes("terminate: error", 0.05):
            raise ports.OutcomeUnknown("internal error")
        for id in ids:
            if id in self.all and self.all[id].instance.alive:
                if self._strikes("terminate: lives on for a while", 0.1):
                    self.due.append((self.clock.now() + self.rng.uniform(5, 90), id, "Client.UserInitiatedShutdown"))
                else:
                    self.die(id, "Client.UserInitiatedShutdown")
        if self._strikes("terminate: done, answer lost", 0.05):
            raise ports.OutcomeUnknown("timeout")
        return {id for id in ids if id in self.all and not self.all[id].instance.alive}

    def instances(self, cluster):
        self._up()
        return super().instances(cluster)

    def described(self, ids):
        self._up()
        return super().described(ids)

    def interruptions(self, queues):
        self._up()
        return super().interruptions(queues)

    def notices(self) -> None:
        """Spot interruptions: most with two minutes' notice, some without."""
        for at, id, why in [end for end in self.due if end[2] == "spot" and end[0] <= self.clock.now()]:
            self.due.remove((at, id, why))
            if not self.all[id].instance.alive:
                continue
            self.seen["spot interruption"] += 1
            if self.rng.random() < 0.7:
                self.interrupt(id)
                self.due.append((self.clock.now() + 120, id, "Server.SpotInstanceTermination"))
            else:
                self.die(id, "Server.SpotInstanceTermination")


@dataclass
class Outcome:
    """What one scenario came to. `windows`: (kind, account, spent USD, what was allowed)."""

    seed: int
    seen: Counter
    launches: int
    jobs: int
    done: int
    waited_for_money: int
    windows: list[tuple[str, str, float, float]] = field(default_factory=list)
    left_over: int = 0

    @property
    def passed(self) -> list[tuple[str, str, float, float]]:
        return [window for window in self.windows if window[2] > window[3] + 0.01]

    @property
    def most(self) -> float:
        return max((spent / allowed for _, _, spent, allowed in self.windows), default=0.0)


class Scenario:
    """One random site. `away_s`: the longest time for which the controller, the cloud's API or the scheduler is out of
    reach; `ticks`: how many the controller has, beside those in which the last leases end; None: some number.
    """

    def __init__(self, seed: int, folder: Path, away_s: float = 180.0, ticks: int | None = None):
        self.rng, self.seed, self.away_s, self.seen = random.Random(seed), seed, away_s, Counter()
        rng = self.rng
        self.tick_s = rng.choice([20.0, 30.0, 45.0, 60.0])
        length = self.tick_s * (ticks or rng.randint(80, 200))
        edge = rng.choice([MONTH_END, MONTH_END, MONTH_END - 86400 * rng.randint(1, 20), MONTH_END - 43200])
        self.clock = FakeClock(edge - length * rng.uniform(0.1, 0.9))
        self.end_s = self.clock.now() + length
        self.own = Skewed(self.clock)
        nodes = [f"p5-{n}" for n in range(1, rng.randint(2, 5) + 1)]
        boot_s, self.longest_s = rng.randint(90, 600), min(rng.uniform(900, 5400), length)
        self.slurm = Slurm(self.clock, home=1, burst={"burst-p5": nodes})
        self.cloud = Cloud(self.clock, self.slurm, rng, self.seen, boot_s)
        said = document(
            nodes=nodes,
            boot_s=boot_s,
            idle_s=rng.randint(30, 600),
            wait_limit_s=rng.choice([1, 60, 600]),
            tick_s=int(self.tick_s),
            cool_down_s=120,
        ).model_dump(mode="json")
        self.prices = {"on-demand": rng.uniform(5, 100), "spot": rng.uniform(2, 40)}
        use = len(nodes) * self.prices["on-demand"] * length / 3600  # if all were rented all the time
        a_month = use * rng.uniform(0.15, 0.8)
        accounts = {name: a_month * rng.uniform(0.2, 1.0) for name in ACCOUNTS[:2] if rng.random() < 0.7}
        a_day = a_month * rng.uniform(0.3, 1.0) if rng.random() < 0.7 else None
        self.money = {"usd_per_month": a_month, "usd_per_day": a_day, "accounts": accounts}
        self.declared = [(self.clock.now(), dict(self.prices), dict(self.money))]  # what counted from when on
        self.said, self.serial = said, 1
        self.payers: dict[str, list[tuple[float, str]]] = {}  # instance: (from then on, account)
        self.allowed: dict[tuple, float] = {}
        self.before: list[tuple[str, str, float, float]] = []  # passed before it was declared anew
        self.path, self.ledger = folder / f"{seed}.sqlite", None
        self.down_until = {"controller": 0.0, "cloud": 0.0, "scheduler": 0.0}
        self.trouble_at = self.clock.now() + rng.uniform(0, 1800)
        self._declare()
        self._start()

    # ---- the site
    def _declare(self) -> None:
        self.said["pools"][0]["usd_per_hour"] = dict(self.prices)
        self.said["budget"], self.said["serial"] = dict(self.money), self.serial
        self.document = ClusterDocument.model_validate(self.said)

    def _start(self) -> None:
        """A controller, new or restarted on the same ledger; some die at one of their next calls."""
        if self.ledger:
            self.ledger.close()
        doomed = self.rng.random() < 0.5
        at, after, counter = self.rng.randint(1, 60) if doomed else None, self.rng.random() < 0.5, itertools.count(1)
        slurm, cloud = (Breaking(port, counter, at, after) for port in (self.slurm, self.cloud))
        self.ledger = Ledger(self.path)
        self.ledger._db.execute("PRAGMA synchronous=OFF")  # no power cut here; four times as fast
        self.controller = Controller(slurm, cloud, self.ledger, self.own)

    def run(self) -> Outcome:
        submitting = self.clock.now() + (self.end_s - self.clock.now()) * 0.8
        self.slurm.submit(nodes=1, limit_s=1e6, runs_s=self.end_s + 86400 - self.clock.now())  # home is full
        while self.clock.now() < self.end_s or (self.cloud.alive() and self.clock.now() < self.end_s + 6 * 3600):
            if self.clock.now() < submitting and self.rng.random() < self.tick_s / 150:
                self._submit()
            if self.clock.now() < self.end_s:
                self._mishap()
            self._step()
        self._hold_to_account()
        jobs = list(self.slurm.jobs.values())
        waited = len({row.job for row in self.ledger.decisions() if row.code in ("budget", "over_budget")})
        windows = self.before + [
            (key[0], key[1], self._spent(key), allowed) for key, allowed in sorted(self.allowed.items())
        ]
        outcome = Outcome(
            seed=self.seed,
            seen=self.seen,
            launches=len(self.cloud.began),
            jobs=len(jobs) - 1,
            done=sum(fake.done == "COMPLETED" for fake in jobs),
            waited_for_money=waited,
            windows=windows,
            left_over=len(self.cloud.alive()),
        )
        self.ledger.close()
        return outcome

    def _submit(self) -> None:
        rng = self.rng
        limit = rng.uniform(120, self.longest_s)
        ran = limit * (rng.uniform(0.05, 1.0) if rng.random() < 0.6 else 1.0)
        if rng.random() < 0.1:
            ran = limit * rng.uniform(1.0, 2.5)
            self.seen["job runs past its limit"] += 1
        per_node = ports.Resources(rng.choice([4, 8]), 1, 500)
        self.slurm.submit(
            nodes=rng.choice([1, 1, 1, 2]),
            limit_s=limit,
            runs_s=ran,
            account=rng.choice(ACCOUNTS),
            each=per_node,
            requeue=rng.random() < 0.7,
            batch=rng.random() < 0.9,
        )

    def _step(self) -> None:
        before = self.clock.now()
        self.cloud.down, self.slurm.down = self.down_until["cloud"] > before, self.down_until["scheduler"] > before
        self.cloud.notices()
        self.cloud.live()
        if self.slurm.down:
            self.slurm.live()
        if self.down_until["controller"] <= before:
            try:
                self.controller.tick(self.document)
            except Crash:
                self.seen["controller killed at a call"] += 1
                self.down_until["controller"] = self.clock.now() + self.rng.uniform(0, self.away_s)
                self._quiet()
                self._start()
            except (SchedulerError, CloudError):
                pass
            self._who_pays(before)
        else:
            self.slurm.live()
        self.clock.at = max(self.clock.at, before + self.tick_s)

    # ---- what goes wrong
    def _quiet(self) -> None:
        """One trouble after the other: away_s is the longest time without anybody who could end a node."""
        self.trouble_at = max(self.down_until.values()) + self.rng.uniform(900, 3600)
        for name in self.down_until:
            if name != "controller":
                self.down_until[name] = 0.0

    def _mishap(self) -> None:
        rng, now = self.rng, self.clock.now()
        if now >= self.trouble_at:
            name = rng.choice(list(self.down_until))
            self.seen[f"{name} out of reach"] += 1
            self.down_until[name] = now + rng.uniform(0.3, 1.0) * self.away_s
            self.trouble_at = self.down_until[name] + rng.uniform(900, 3600)
        for zone in ("us-east-1a", "us-east-1b"):
            for market in ("spot", "on-demand"):
                if rng.random() < 0.02:
                    self.cloud.capacity[zone, market] = rng.choice([0, 1, 2, 99, 99])
        if rng.random() < 0.01:
            self.own.off_s = rng.uniform(-0.5, 0.5) * CLOCK_S
            self.seen["clock put forward or back"] += 1
        if rng.random() < 0.004:
            market = rng.choice(list(self.prices))
            self.prices[market] *= rng.uniform(0.6, 1.6)
            self._declare_anew("price declared anew")
        if rng.random() < 0.004:
            self._hold_to_account()  # what has begun by now, by what was declared up to now
            factor = rng.uniform(0.5, 1.6)
            a_month, a_day, accounts = self.money["usd_per_month"], self.money["usd_per_day"], self.money["accounts"]
            self.money = {
                "usd_per_month": a_month * factor,
                "usd_per_day": a_day and a_day * factor,
                "accounts": {name: usd * factor for name, usd in accounts.items()},
            }
            self._declare_anew("ceiling declared anew")
        running = [fake for fake in self.slurm.jobs.values() if fake.job.on and fake.ends and fake.job.id > 1]
        if running and rng.random() < 0.004:
            fake = rng.choice(running)
            longer = fake.job.time_limit_s
            fake.job = replace(fake.job, time_limit_s=2 * longer, end_s=fake.job.end_s + longer)
            fake.ends += longer
            self.seen["limit of a running job raised"] += 1

    def _declare_anew(self, what: str) -> None:
        self.seen[what] += 1
        self.serial += 1
        self._hold_to_account()
        self.declared.append((self.clock.now(), dict(self.prices), dict(self.money)))
        self._declare()
        if "ceiling" in what:
            self._allow_what_is_spent()

    # ---- the bill
    def _who_pays(self, since_s: float) -> None:
        """Names only: whose job each instance was given to, by the ledger; the money is the cloud's."""
        rates = spending.rates(self.ledger, self.own.now())
        for lease in self.ledger.leases():
            if lease.instance_id and lease.id in rates:
                said = self.payers.setdefault(lease.instance_id, [(0.0, rates[lease.id][0].account)])
                if said[-1][1] != rates[lease.id][-1].account:
                    said.append((since_s, rates[lease.id][-1].account))

    def _keys(self) -> set[tuple]:
        """(kind, account, from, to) of every ceiling since the beginning."""
        times, now = [], self.declared[0][0]
        while now < self.clock.now() + 86400:
            times.append(min(now, self.clock.now()))
            now += 43200
        money = self.money
        months = {("month", "", *month(at)) for at in times}
        months |= {("month", name, *month(at)) for at in times for name in money["accounts"]}
        return months | {("day", "", *day(at)) for at in times if money["usd_per_day"]}

    def _usd(self, key: tuple) -> float:
        if key[0] == "day":
            return self.money["usd_per_day"]
        return self.money["accounts"][key[1]] if key[1] else self.money["usd_per_month"]

    def _hold_to_account(self) -> None:
        for key in self._keys():
            self.allowed.setdefault(key, self._usd(key))

    def _allow_what_is_spent(self) -> None:
        """A ceiling that is lowered can't undo what is spent, nor end a node at once: what it then has to allow."""
        now = self.clock.now()
        for key, allowed in self.allowed.items():
            if (spent := self._spent(key)) > allowed:
                self.before.append((key[0], key[1], spent, allowed))
        for key in self._keys():
            ending = 0.0
            if key[2] - ENDING_S <= now < key[3]:
                alive = self.cloud.alive()
                ending = sum(self.prices[self._market(instance.id)] * ENDING_S / 3600 for instance in alive)
            self.allowed[key] = max(self._usd(key), self._spent(key) + ending)

    def _market(self, id: str) -> str:
        return self.cloud.tokens[self.cloud.all[id].instance.token][0].market

    def _spent(self, key: tuple) -> float:
        """What the cloud's bill says of a day or a month, for everybody or one account."""
        _, account, start, end = key
        total = 0.0
        for id, began in self.cloud.began.items():
            least = began + MIN_BILL_S if id in self.cloud.ended else began
            over = max(self.cloud.ended.get(id, self.clock.now()), least)
            for (since, prices, _), until in _spans(self.declared):
                for (from_s, payer), to_s in _spans(self.payers.get(id, [(0.0, "?")])):
                    seconds = min(over, end, until, to_s) - max(began, start, since, from_s)
                    if seconds > 0 and account in ("", payer):
                        total += seconds / 3600 * prices[self._market(id)]
        return total


def _spans(changes: Sequence[tuple]) -> list[tuple[tuple, float]]:
    """(what counts, until when) of changes that begin with their moment."""
    return list(zip(changes, [*(change[0] for change in changes[1:]), math.inf], strict=True))
