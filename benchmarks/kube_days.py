"""Random days of a site whose scheduler is Kubernetes: python -m benchmarks.kube_days [--days 50] [--seed 1]

The controller over the real adapter and an API server in memory (tests.fakes.kube_world). Its accidents are pods that
never start, never end, or wait for room that never comes, what looks like them and is slow and good (an image of 100
GB, a registry that is away for a while, an init container that stages data), and those of benchmarks.days that fit.
"""

from __future__ import annotations

import itertools
import random
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from benchmarks import days
from benchmarks.lasting import Lasting
from ironburst.adapters.kubernetes import Access, scheduler
from ironburst.adapters.kubernetes.client import Client
from ironburst.controller.money import day, month
from ironburst.nodes.state_times import JOB, POD, StateTime
from ironburst.ports import CloudError, SchedulerError
from tests.fakes.kube_api import KubeApi, kubeconfig_of
from tests.fakes.kube_world import JOBS, PODS, KubeWorld, stamp

HOUR_S = days.HOUR_S
GRACE_S = 30.0  # a pod's, before it is killed
LATER_KUBELETS = "SomethingNewError"
NEVER: dict[str, StateTime] = {name: row for name, row in POD.items() if not row.again} | {
    LATER_KUBELETS: JOB["CONFIGURING"]
}
BACKOFF_LIMIT = 6  # a Job that failed more often is given up


class KubeDay(KubeWorld):
    """One random day; `only`: this accident alone."""

    def __init__(self, seed: int, folder: Path, *, only: str = "", hours: float = 24.0):
        self.rng, self.folder, self.server = random.Random(seed), folder, KubeApi()
        rng = self.rng
        self.tick_s = rng.choice([60.0, 90.0, days.MAX_TICK_S])
        settings = {
            "boot_s": 600,
            "idle_s": rng.choice([120, 600]),
            "wait_limit_s": rng.choice([60, 600]),
            "cool_down_s": 120,
            "usd_per_month": rng.uniform(2000, 20000),
            "tick_s": int(self.tick_s),
        }
        client = Client(Access(kubeconfig_of(self.server, folder / "kubeconfig")), wait=lambda _: None)
        super().__init__(folder, self.server, client, eks=rng.random() < 0.3, **settings)
        self.clock.at += rng.uniform(0, 12 * days.DAY_S)
        self.cloud = days.Billed(self.clock, self.slurm)
        self.cloud.boot_s = rng.uniform(60, days.MAX_BOOT_S)
        self.restart()
        self.outcome = days.Outcome(seed, Counter())
        self.length_s = hours * HOUR_S
        self.end_s, self.away_until = self.clock.at + self.length_s, 0.0
        names = [only] if only else rng.sample(sorted(ACCIDENTS), rng.randint(2, 5))
        self.plan = sorted((self.clock.at + rng.uniform(0.1, 0.7) * self.length_s, name) for name in names)
        self.later: list[tuple[float, Callable[[], None]]] = []
        self.lasting: list[Lasting] = []
        self.stuck: set[str] = set()  # jobs that begin again for what lasted
        self.lingers: dict[str, float] = {}  # jobs whose pods don't go, and how long they work otherwise
        self.never: dict[str, str] = {}  # jobs whose pods never start, and what they wait for
        self.begins_s: dict[str, float] = {}  # how long the pods of others take to begin
        self.idle_since: dict[str, float] = {}

    def restart(self) -> None:
        self.ledger.close()
        self.start()

    def forget_ledger(self) -> None:
        for path in self.folder.glob("ledger.sqlite*"):
            path.unlink()

    # ---- a day
    def run(self) -> days.Outcome:
        rng, settle_s = self.rng, scheduler._SETTLE_S
        scheduler._SETTLE_S = 0.0  # of the wall's clock
        try:
            while self.clock.at < self.end_s or (self.cloud.alive() and self.clock.at < self.end_s + days.DAY_S):
                if self.clock.at < self.end_s - self.length_s / 4 and rng.random() < self.tick_s / 900:
                    self.submits()
                while self.plan and self.plan[0][0] <= self.clock.at:
                    name = self.plan.pop(0)[1]
                    self.outcome.accidents[name] += 1
                    ACCIDENTS[name](self)
                for item in [item for item in self.later if item[0] <= self.clock.at]:
                    self.later.remove(item)
                    item[1]()
                self._step()
                self._watch()
            return self._count()
        finally:
            scheduler._SETTLE_S = settle_s
            self.kube.close()
            self.server.close()

    def submits(self, name: str = "good", limit_s: float = 0.0, runs_s: float = 0.0) -> str:
        rng, name = self.rng, f"{name}-{len(self.runs_s)}"
        limit_s = limit_s or rng.uniform(600, 5 * HOUR_S)
        self.submit(name, rng.choice([1, 1, 1, 2]), runs_s or limit_s * rng.uniform(0.1, 1.0), limit_s)
        return name

    def _step(self) -> None:
        before = self.clock.at
        self.cloud.take()  # the nodes' own switch reads Slurm's word here
        try:
            if before < self.away_until:
                self.live()
            else:
                self.tick()
        except (SchedulerError, CloudError) as error:
            self.outcome.accidents[f"tick without result: {type(error).__name__}"] += 1
        self.clock.at = max(self.clock.at, before + self.tick_s)

    def live(self) -> None:
        super().live()
        for raw in self.of(PODS):
            name = _of(raw)
            if self.never.get(name) == "CrashLoopBackOff" and raw["spec"].get("nodeName"):
                runs = self.rng.random() < 0.3  # between two tries
                state = {"running": {}} if runs else {"waiting": {"reason": "CrashLoopBackOff"}}
                self._set(raw, phase="Running", containerStatuses=[{"name": "main", "state": state}])

    def _set(self, raw: dict[str, Any], **status: Any) -> None:
        meta = raw["metadata"]
        self.api.edit(PODS, meta["namespace"], meta["name"], lambda pod: pod["status"].update(status))

    def bind(self, name, pods, free, now):
        self.runs_s[name] = self.lingers.pop(name, self.runs_s[name])
        super().bind(name, pods, free, now)
        here = {fake.node: id for id, fake in self.cloud.all.items() if fake.instance.alive}
        ids = tuple(here[node] for node in self.started[name][-1][1] if node in here)
        if ids and name in self.never:
            word = self.never[name]
            # the table's name of a word that it doesn't know is that of its job's state; of the words of a row any
            what = () if word == LATER_KUBELETS else (word,)
            what = (*what, f" on {self.started[name][-1][1][0]} ")
            self.lasting.append(Lasting(what, NEVER[word], now, ids, GRACE_S))
        if name in self.never and len(self.started[name]) == 1:
            self.later.append((now + self.rng.uniform(6, 12) * HOUR_S, lambda: self._deletes(name)))
        if name in self.begins_s:
            self._begins(name, now)

    def _deletes(self, name: str) -> None:
        """Its user, who was told hours ago."""
        for raw in [raw for raw in self.of(PODS) if _of(raw) == name]:
            self.api.remove(PODS, "team-a", raw["metadata"]["name"])
        self.api.remove(JOBS, "team-a", name)

    def _begins(self, name: str, bound_s: float) -> None:
        """What is slow and good works after its time: in its first half the registry may be away, or it pulls; then it
        pulls, or an init container stages.
        """

        def changes(status: Mapping[str, Any]) -> Callable[[], None]:
            def change() -> None:
                for raw in self.of(PODS):
                    if _of(raw) == name and raw["spec"].get("nodeName") and self.started[name][-1][0] == bound_s:
                        self._set(raw, **status)

            return change

        takes_s = self.begins_s[name]
        self.later.append((bound_s + takes_s / 2, changes(_waits("ContainerCreating"))))
        self.later.append((bound_s + takes_s, changes({"phase": "Running", "containerStatuses": []})))

    # ---- what counts
    def _watch(self) -> None:
        now = self.clock.at
        busy = {node for raw in self.of(PODS) if raw["status"]["phase"] != "Succeeded" for node in self._node(raw)}
        for instance in self.cloud.alive():
            node = self.cloud.all[instance.id].node
            if node in busy:
                self.idle_since.pop(instance.id, None)
                continue
            since_s = self.idle_since.setdefault(instance.id, now)
            if now - since_s > HOUR_S and not any(instance.id in text for text in self.outcome.idle):
                self.outcome.idle.append(f"{instance.id} ({node}) at {now - self.end_s + self.length_s:.0f} s")

    def _node(self, raw: dict[str, Any]) -> list[str]:
        there = self.api.get("v1 nodes", "", raw["spec"].get("nodeName", ""))
        return [there["metadata"]["labels"].get("ironburst.io/node", there["metadata"]["name"])] if there else []

    def _count(self) -> days.Outcome:
        out = self.outcome
        for name, runs in self.started.items():
            failed = self.api.get(JOBS, "team-a", name)["status"].get("failed", 0) if name not in self.never else 0
            if failed > BACKOFF_LIMIT:
                out.lost.append(f"job {name} failed {failed} times")
            for (at, nodes), (again, _) in itertools.pairwise(runs):
                if name not in self.stuck and not self._cause(at, again, nodes):
                    out.again.append(f"job {name} on {','.join(nodes)} from {at:.0f} to {again:.0f}")
        out.jobs, out.launches = len(self.runs_s), len(self.cloud.began)
        out.done = sum(self.done(name) for name in self.started if name not in self.never)
        out.usd = self.cloud.usd(0.0, float("inf"))
        times = (self.end_s - self.length_s, self.end_s, self.clock.at)
        budget = self.document.budget
        windows = {(month(at), budget.usd_per_month) for at in times}
        if budget.usd_per_day:
            windows |= {(day(at), budget.usd_per_day) for at in times}
        out.beyond_usd = sum(max(0.0, self.cloud.usd(*window) - usd) for window, usd in windows)
        days.count_lasting(out, self.lasting, self.cloud, self.ledger, self.tick_s)
        self.ledger.close()
        return out

    def _cause(self, from_s: float, to_s: float, nodes: tuple[str, ...]) -> bool:
        taken = self.cloud.taken.items()
        return any(from_s <= at <= to_s and self.cloud.all[id].node in nodes for id, at in taken)


def _of(raw: dict[str, Any]) -> str:
    return raw["metadata"]["ownerReferences"][0]["name"]


def _waits(reason: str, *, init: bool = False) -> dict[str, Any]:
    said = {"name": "main", "state": {"waiting": {"reason": reason, "message": f"{reason} of an image"}}}
    main = {"name": "main", "state": {"waiting": {"reason": "PodInitializing"}}}
    inits = {"initContainerStatuses": [said]} if init else {}
    return {"phase": "Pending", **inits, "containerStatuses": [main if init else said]}


# ---- accidents


def _never_starts(day: KubeDay) -> None:
    """A typo in an image, a container that can't be made, volumes that don't come, an init container that crashes."""
    word = day.rng.choice(sorted(NEVER))
    name = day.submits("never", limit_s=24 * HOUR_S, runs_s=24 * HOUR_S)
    day.never[name] = word
    day.stuck.add(name)
    day.begin_as[name] = _waits(word, init=day.rng.random() < 0.5)
    for raw in [raw for raw in day.of(PODS) if _of(raw) == name and raw["spec"].get("nodeName")]:
        day._set(raw, **day.begin_as[name])


def _never_ends(day: KubeDay) -> None:
    """A process that can't be killed, a finalizer that nobody takes off: a pod on a rented node stays Terminating."""
    here = {fake.node: id for id, fake in day.cloud.all.items() if fake.instance.alive}
    works = [raw for raw in day.of(PODS) if {*day._node(raw)} & here.keys() and raw["status"]["phase"] == "Running"]
    works = [raw for raw in works if _of(raw).startswith("good") and not raw["metadata"].get("deletionTimestamp")]
    if not works:
        if day.clock.at < day.end_s:
            day.later.append((day.clock.at + 600, lambda: _never_ends(day)))
        return
    name, grace_s = _of(day.rng.choice(works)), day.rng.choice([GRACE_S, 600.0, HOUR_S])
    day.stuck.add(name)
    day.lingers[name], day.runs_s[name] = day.runs_s[name], float("inf")
    pods = [raw for raw in day.of(PODS) if _of(raw) == name]
    until = stamp(day.clock.at + grace_s)
    for raw in pods:
        meta = raw["metadata"]
        day.api.edit(PODS, "team-a", meta["name"], lambda pod: pod["metadata"].update(deletionTimestamp=until))
    ids = tuple(here[node] for raw in pods for node in day._node(raw))
    what = "has been COMPLETING", f" on {day._node(pods[0])[0]} "
    day.lasting.append(Lasting(what, JOB["COMPLETING"], day.clock.at, ids, grace_s))


def _slow(word: str, most_s: float) -> Callable[[KubeDay], None]:
    def happens(day: KubeDay) -> None:
        takes_s = day.rng.uniform(0.3, 0.95) * most_s
        runs_s = day.rng.uniform(600, HOUR_S)
        name = day.submits("good-slow", limit_s=(takes_s + runs_s) * 1.5, runs_s=takes_s + runs_s)
        day.begin_as[name], day.begins_s[name] = _waits(word), takes_s
        if day.started.get(name):
            day._begins(name, day.clock.at)  # at home

    return happens


def _nominated(day: KubeDay) -> None:
    """kube-scheduler promises room at home, and what is there never leaves."""
    name = day.submits("good")
    for raw in [raw for raw in day.of(PODS) if _of(raw) == name and not raw["spec"].get("nodeName")]:
        day._set(raw, nominatedNodeName="dgx01")


ACCIDENTS: dict[str, Callable[[Any], None]] = {
    "a pod that never starts": _never_starts,
    "a pod that never ends": _never_ends,
    "a large image": _slow("ContainerCreating", POD["ContainerCreating"].steps[-1][0]),
    "a registry that is away": _slow("ImagePullBackOff", 2 * POD["ImagePullBackOff"].steps[-1][0]),
    "an init container that stages data": _slow("PodInitializing", POD["PodInitializing"].steps[-1][0]),
    "room at home that is promised": _nominated,
    **{
        name: days.ACCIDENTS[name]
        for name in (
            "an instance dies",
            "spot takes all",
            "no capacity",
            "lost answers",
            "the ledger is lost",
            "the controller is away for hours",
            "listings that are cut",
        )
    },
}


if __name__ == "__main__":
    from benchmarks import kube_days  # by its own name, for the processes that play

    sys.exit(days.main(kubernetes=kube_days))
