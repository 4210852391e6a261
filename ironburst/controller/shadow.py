"""A controller that only looks: it decides, writes down and explains, and asks nothing of scheduler or cloud.

It decides from the queue as it is, so what it would have rented doesn't take a job out of it: a job is reported once
that it would be rented for, and decided on until it starts at home. What would have become of the queue and the money
is a simulation of the jobs that were seen (`ironburst report --shadow`).
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import cast

from ironburst.burst import Launch, Node, Resources, decide, explain
from ironburst.controller import clock_repair, policy_view, retention, spot_prices
from ironburst.controller.ledger import Ledger
from ironburst.controller.logbook import Logbook
from ironburst.controller.recorder import Recorder
from ironburst.controller.site import PoolImage, Site, Told
from ironburst.controller.tick import Report
from ironburst.document import ClusterDocument
from ironburst.ports import Clock, Cloud, Observation, Scheduler

OFF = ("CLOUD", "DRAIN", "IDLE", "POWERED_DOWN")
"""a node that may be rented, as slurmctld shows it"""


@dataclass
class Shadow:
    """Only one at a time may use a ledger: hold `lock.held` around it. It is no real controller's."""

    scheduler: Scheduler
    ledger: Ledger
    clock: Clock
    recorder: Recorder | None = None
    hurried: bool | None = field(default=None, init=False)  # nobody orders anything of it
    _told: Told = field(default_factory=Told, init=False)
    _logbook: Logbook = field(init=False)

    def __post_init__(self) -> None:
        self._logbook = Logbook(self.ledger, self.recorder)

    def tick(self, document: ClusterDocument) -> Report:
        """Raises SchedulerError if the queue can't be seen."""
        began = self.clock.now()
        retention.forget_old(self.ledger, began)
        mark = self.ledger.last_event()
        clock_repair.tick_began(self.ledger, began, document.burst.tick_s, self.clock.uptime())
        observation = self.scheduler.observe()
        observation = replace(observation, nodes=(*observation.nodes, *_not_there_yet(document, observation)))
        for text in observation.unreadable:
            self.tell("trouble", text)
        self._logbook.learn(document, observation, self.clock.now())
        # the cloud is never asked: neither for instances nor for images
        site = Site(document, self.scheduler, cast(Cloud, None), self.ledger, self.clock, {}, self._told)
        images = {pool.name: PoolImage("none") for pool in document.pools}
        policy = policy_view.policy(document, observation.silent)
        snapshot = policy_view.snapshot(site, observation, images)
        decision = decide(snapshot, policy)
        self._logbook.write(policy, snapshot, decision, observation)
        for launch in decision.launches:
            self._would_rent(launch)
        self._told.tick_ended()
        took_s, day = self.clock.now() - began, spot_prices.day(document)
        noted = {"at_s": began, "took_s": took_s, "serial": document.serial, "prices_as_of": day}
        self.ledger.note("last_tick", json.dumps(noted))
        return Report.of(began, snapshot, decision, self.ledger, {}, after=mark)

    def tell(self, kind: str, text: str) -> None:
        """An event for as long as the same holds. A ledger that takes nothing is no reason to stop."""
        if self._told.is_new(text):
            with suppress(sqlite3.Error):
                self.ledger.event(kind, text, self.clock.now())

    def _would_rent(self, launch: Launch) -> None:
        """Once for as long as the same is decided; wording and money change as time goes by."""
        job, what = launch.jobs[0], f"{explain.plural(len(launch.nodes), 'node')} of {launch.pool} ({launch.market})"
        if self._told.is_new(f"{job} {what}"):
            text = f"{what}, ${launch.committed_usd:,.2f} set aside: {launch.reason}"
            self.ledger.event("would_rent", text, self.clock.now(), job=job)


def _not_there_yet(document: ClusterDocument, observation: Observation) -> Iterator[Node]:
    """The pools' nodes that the scheduler doesn't know: before its administrator added them."""
    there = {node.name for node in observation.nodes}
    for pool in document.pools:
        if document.scheduler_of(pool).kind in observation.silent:
            continue
        each = Resources(pool.gpu.count, pool.slurm.cpus, pool.slurm.memory_mb)
        for name in pool.nodes:
            if name not in there:
                yield Node(name, (pool.partition,), each, OFF, reason="no lease")
