"""One tick of the controller: observe, decide, re-check, apply, record."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar, cast

from ironburst.burst import Decision, Halt, Snapshot, decide
from ironburst.controller import (
    ceilings,
    clock_repair,
    comments,
    cool_downs,
    copies,
    deadline_moves,
    drained,
    foreign,
    going,
    hall_events,
    idle_store,
    karpenter,
    lasting,
    leases,
    notices,
    order_spool,
    orders,
    own_exclusions,
    ownership,
    policy_view,
    reaper,
    rebuild,
    records,
    renewing,
    retention,
    shares,
    sightings,
    spot_prices,
    unstarted,
    waits_watch,
)
from ironburst.controller.apply import acts, apply, recheck
from ironburst.controller.brake import Brake
from ironburst.controller.heartbeat import Heartbeat
from ironburst.controller.idle_gpus import IdleGpus
from ironburst.controller.job_runs import JobRuns
from ironburst.controller.ledger import Ledger
from ironburst.controller.lock import Fenced, LockedError
from ironburst.controller.logbook import Logbook
from ironburst.controller.recorder import Recorder
from ironburst.controller.records import EventRow
from ironburst.controller.site import PoolImage, Site, Told, pool_images
from ironburst.document import ClusterDocument
from ironburst.ports import Clock, Cloud, CloudError, Instance, Observation, Scheduler, SchedulerError, SomeSilent
from ironburst.ports.karpenter import Karpenter
from ironburst.system import collector

Port = TypeVar("Port")

_POLL_S = 0.3  # between looks while the scheduler handles a power_up
_UNLISTED_S = 1800.0  # without a list of instances: throttling is over by then, a missing right isn't


@dataclass(frozen=True)
class Report:
    """What one tick saw and did."""

    at_s: float
    pending: int
    running: int
    leases: dict[str, int]  # by state
    decision: Decision
    dropped: tuple[str, ...]
    events: tuple[EventRow, ...] = field(default=())
    called: dict[int, str] = field(default_factory=dict)  # jobs that have another name than their id

    @classmethod
    def of(
        cls,
        began: float,
        snapshot: Snapshot,
        decision: Decision,
        ledger: Ledger,
        leases: dict[str, int],
        dropped: Sequence[str] = (),
        *,
        after: int,
    ) -> Report:
        """With the events after the mark `after`."""
        pending = sum(job.pending for job in snapshot.jobs)
        running = sum(bool(job.on) for job in snapshot.jobs)
        events = tuple(ledger.events(after=after))
        called = {job.id: job.called for job in snapshot.jobs if job.called}
        called = {event.job: called[event.job] for event in events if event.job in called}
        return cls(began, pending, running, leases, decision, tuple(dropped), events, called)


@dataclass
class Controller:
    """Only one at a time may use a ledger: hold `lock.held` around it."""

    scheduler: Scheduler
    cloud: Cloud
    ledger: Ledger
    clock: Clock
    recorder: Recorder | None = None
    karpenter: Karpenter | None = None
    job_runs: JobRuns = field(default_factory=JobRuns)
    idle_gpus: IdleGpus = field(default_factory=IdleGpus)
    backup: Path | None = None  # where copies of the ledger are put, a file or a folder
    _said: bool = field(default=False, init=False)  # this process has told the next one what it knows
    _heartbeat: Heartbeat = field(default_factory=Heartbeat, init=False)
    _stuck: set[Path] = field(default_factory=set, init=False)  # orders that can't be taken off their spool
    _told: Told = field(default_factory=Told, init=False)
    _brake: Brake = field(default_factory=Brake, init=False)
    _comments: comments.Comments = field(default_factory=comments.Comments, init=False)
    _logbook: Logbook = field(init=False)
    _spare: set[str] = field(default_factory=set, init=False)
    _unlisted: dict[str, float] = field(default_factory=dict, init=False)  # since when, by provider
    _images: dict[str, str] = field(default_factory=dict, init=False)  # by parameter, as found last

    def __post_init__(self) -> None:
        self._logbook = Logbook(self.ledger, self.recorder)

    def tick(self, document: ClusterDocument) -> Report:
        """Raises SchedulerError if the queue can't be seen at all, and CloudError if nothing proves our clock, neither
        an answer of the cloud nor the host's uptime: nothing is decided blindly. Raises LockedError if another
        controller holds the site (OwnedElsewhere), or may by now (Lost); then nothing is done. Raises whatever else
        goes wrong, after the brake was pulled; its notes say what that did.
        """
        try:
            with collector.paused():
                report = self._tick(document)
            self._told.tick_ended()
            self._brake.remember(self.ledger.leases())
            return report
        except (SchedulerError, CloudError, LockedError):
            raise
        except Exception as error:
            for said in self._brake.pull(lambda: self._seen(document)):
                error.add_note(said)
            raise

    def stopped(self, document: ClusterDocument) -> None:
        """Nothing comes after this: say so, so that a controller elsewhere need not wait. Raises SchedulerError."""
        if self._said:
            ownership.say(self._made(document, self.clock.now(), []), stopped=True)
            self._said = False

    @property
    def hurried(self) -> bool:
        """Whether a person's order wants the next tick at once."""
        with suppress(sqlite3.Error, ValueError):
            waiting = set(order_spool.waiting(self.ledger.path))
            return not waiting <= self._stuck or orders.hurried(self.ledger, self.clock.now())
        return False

    def tell(self, kind: str, text: str) -> None:
        """An event for as long as the same holds. A ledger that takes nothing is no reason to stop."""
        if self._told.is_new(text):
            with suppress(sqlite3.Error):
                self.ledger.event(kind, text, self.clock.now())

    def _tick(self, document: ClusterDocument) -> Report:
        began, uptime = self.clock.now(), self.clock.uptime()
        self._stuck = orders.take(self.ledger, document, began)
        # first of all else: the cloud refuses a wrong clock (by minutes), and then nothing is forgotten or ended by it
        site = orders.halted(self._seen(document))
        if not site.silent:  # what is deleted wrongly doesn't come back
            retention.forget_old(self.ledger, began)
        mark = self.ledger.last_event()
        cool_downs.forgive(self.ledger, document.serial, began)
        last_s = clock_repair.tick_began(self.ledger, began, document.burst.tick_s, uptime)
        sightings.note(site)
        spot_prices.look(site)
        ceilings.reprice(site, last_s)
        try:
            heard = ownership.claim(site, first=not self._said)
            notices.interruptions(site)
            observation = self.scheduler.observe()
        except ownership.OwnedElsewhere:
            self._said = False  # what the other one says meanwhile is to be heard first
            raise
        except SchedulerError:
            orders.enforce_blindly(site)
            raise
        for text in observation.unreadable:
            site.tell("trouble", text)
        self.job_runs.look(site, observation)  # before ids that are another job's now are set apart
        self._logbook.learn(document, observation, self.clock.now())
        waits_watch.look(site)
        shown = karpenter.look(site)
        rebuild.run(site, observation, heard)
        with self._trouble(site):
            self._say(site)
        notices.troubles(site, observation)
        leases.admit(site)
        leases.advance(site, observation)
        self._enforce(site, observation)
        for each in (foreign, drained, unstarted, own_exclusions, hall_events, renewing):
            each.look(site, observation)
        for pool in document.pools:
            idle_store.tidy(self.ledger, pool.name, site.now)
        observation = lasting.believed(site, observation)
        policy, images = policy_view.policy(document, observation.silent), pool_images(site, self._images)
        snapshot = deadline_moves.snapshot(site, policy, observation, images)
        decision = decide(snapshot, policy)
        self._logbook.write(policy, snapshot, decision, observation)
        checked, dropped, spare = decision, list[str](), frozenset(self._spare)
        if acts(decision):
            with self._trouble(site):
                checked, dropped, observation = self._act(site, decision, snapshot, images)
        if shown:
            karpenter.offer(site)
        self._comments.say(site, observation, decision)
        shares.hold(site, observation)
        reaper.tidy(site, observation)
        going.let_go(site, spare.difference(*(launch.nodes for launch in checked.launches)), observation)
        reaper.reap_safely(site, observation)
        took_s, day = self.clock.now() - began, spot_prices.day(site.document)
        said = {"at_s": began, "took_s": took_s, "serial": document.serial, "prices_as_of": day}
        self.ledger.note("last_tick", json.dumps(said | {"jobs": len(observation.jobs)} | copies.noted(self.backup)))
        return self._report(began, mark, snapshot, checked, dropped)

    def site(self, document: ClusterDocument) -> Site:
        """What a tick works with; of several clouds some may be `silent`. Raises CloudError."""
        now = self.clock.now()
        try:
            listed, silent = self.cloud.instances(document.cluster), dict[str, str]()
        except SomeSilent as error:
            listed, silent = error.answer, error.silent
        return self._without(silent, self._made(document, now, listed), now)

    def _seen(self, document: ClusterDocument) -> Site:
        """`site`; where a cloud gives no list of instances what is known counts on, as long as another one's answer or
        the uptime proves the clock.
        """
        now, uptime = self.clock.now(), self.clock.uptime()  # of one moment: a call may take a minute
        try:
            return self.site(document)
        except CloudError as error:
            if not clock_repair.goes_on(self.ledger, now, uptime):
                raise
            providers = [cloud.provider for cloud in document.clouds] or [""]
            return self._without(dict.fromkeys(providers, str(error)), self._made(document, now, []), now)

    def _without(self, silent: Mapping[str, str], site: Site, now: float) -> Site:
        """The site, in which these clouds are silent since they were first; that is told."""
        self._unlisted = {provider: self._unlisted.get(provider, now) for provider in silent}
        for provider, why in silent.items():
            who = provider if site.document.other_clouds else "the cloud"
            since_s, what = self._unlisted[provider], f"{who} doesn't list its instances"
            site.silent[provider] = Halt("ironburst", f"{what}: {why}", since_s)
            told = f"what is rented goes on by what is known, nothing new is rented: {why}"
            if now - since_s >= _UNLISTED_S:
                self.tell("needs_a_person", f"{what} for half an hour: {told}")
            else:
                self.tell("trouble", f"{what}: {told}")
        return site

    def _say(self, site: Site) -> None:
        if not self._said:
            ownership.say(site)
            self._said = True

    def _enforce(self, site: Site, observation: Observation) -> None:
        """What ends jobs and leases that went well so far: idle GPUs, a state that lasts, a ceiling, an order."""
        ending = False
        ceilings.exchange(site, observation)
        self.idle_gpus.look(site, observation)
        with self._trouble(site):
            ending |= lasting.look(site, observation)
        self._heartbeat.beat(site, observation)
        for enforce in (ceilings.enforce, orders.enforce):
            with self._trouble(site):
                ending |= enforce(site, observation)
        if ending:
            leases.advance(site, observation)

    @contextmanager
    def _trouble(self, site: Site) -> Iterator[None]:
        """What fails here is told, and stops nothing that follows."""
        try:
            yield
        except (SchedulerError, CloudError) as error:
            site.tell("trouble", str(error))

    def _made(self, document: ClusterDocument, began: float, listed: Iterable[Instance]) -> Site:
        late_s = began + document.burst.tick_s
        instances = {instance.id: instance for instance in listed}
        told, way = self._told, self.karpenter and self._fenced(self.karpenter)
        ports = self._fenced(self.scheduler), self._fenced(self.cloud)
        site = Site(document, *ports, self.ledger, self.clock, instances, told, late_s, way)
        site.spare = self._spare
        return site

    def _fenced(self, port: Port) -> Port:
        return cast(Port, Fenced(port, self.ledger.check)) if self.ledger.shared else port

    def _act(
        self, site: Site, decision: Decision, snapshot: Snapshot, images: dict[str, PoolImage]
    ) -> tuple[Decision, list[str], Observation]:
        """Re-check and apply: what was done, what was dropped and why, and what is there then."""
        observation, budget = self.scheduler.observe(), karpenter.budget_of(site)
        checked, dropped = recheck(
            decision, observation, budget, snapshot.leases, site.now, snapshot.spare, snapshot.jobs
        )
        for text in dropped:
            site.event("dropped", text)
        apply(site, checked, observation, images)
        return checked, dropped, self._carry_on(site, observation)

    def _carry_on(self, site: Site, observation: Observation) -> Observation:
        """Go on with what was just decided: the scheduler's answer to a
        power_up comes within its power_save_interval.
        """
        stale = leases.advance(site, observation)
        powering = (records.INTENDED, records.POWERING)
        while any(lease.state in powering and not observation.unseen(lease.node) for lease in self.ledger.leases()):
            if site.late or self.clock.wait(_POLL_S):
                break
            observation = self.scheduler.observe()
            stale = leases.advance(site, observation)
        return self.scheduler.observe() if stale else observation

    def _report(self, began: float, mark: int, snapshot: Snapshot, decision: Decision, dropped: list[str]) -> Report:
        states: dict[str, int] = {}
        for lease in self.ledger.leases():
            states[lease.state] = states.get(lease.state, 0) + 1
        return Report.of(began, snapshot, decision, self.ledger, states, dropped, after=mark)
