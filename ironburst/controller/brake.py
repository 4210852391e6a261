"""What is ended even if a tick can't be: the brake for a fault of ours, a full disk, a damaged ledger.

It needs less than a tick: what the cloud and the scheduler show, and the leases as they were read last. It ends first
and writes afterwards, if the ledger takes it. What is idle for its pool's longest idle time goes, what is past its own
time, what a ceiling can't pay, and machines that are off and paid for, of whatever lease. Jobs of instances that the
provider takes back are put back into the queue.
"""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from ironburst.burst.drains import PREFIX
from ironburst.controller import ceilings, going, notices, ownership, records
from ironburst.controller.ledger import LedgerError
from ironburst.controller.records import LeaseRow
from ironburst.controller.site import Site
from ironburst.ports import CloudError, Observation, SchedulerError

_LEDGER = (sqlite3.Error, LedgerError)
_Ending = dict[str, tuple[LeaseRow, str]]  # by id: leases that are to end, and why


@dataclass
class Brake:
    """What it remembers across ticks, for a ledger that takes nothing or gives nothing."""

    _known: list[LeaseRow] = field(default_factory=list)
    _idle_since_s: dict[str, float] = field(default_factory=dict)  # by lease; math.inf: it was busy when last seen
    _given_back: set[str] = field(default_factory=set)  # leases that it has ended
    _ended_s: dict[str, float] = field(default_factory=dict)  # by lease: when its machine was first seen to be over

    def remember(self, leases: Iterable[LeaseRow]) -> None:
        """A tick went well, and these leases are open. What was seen in bad times counts on, for they may not be over:
        a full disk takes a little now and then.
        """
        self._known = list(leases)
        self._given_back, self._ended_s = set(), {}
        idle = {lease.id for lease in self._known if lease.state != records.READY or lease.idle_since_s is not None}
        self._idle_since_s = {id: since_s for id, since_s in self._idle_since_s.items() if id in idle}

    def pull(self, site: Callable[[], Site]) -> list[str]:
        """End what must end. What was done and what couldn't be, a sentence each. Never raises."""
        said: list[str] = []
        try:
            self._pull(site(), said)  # an answer of the cloud proves our clock, too: it refuses one that is wrong
        except Exception as error:
            said.append(f"the brake failed: {type(error).__name__}: {error}")
        return said

    def _pull(self, site: Site, said: list[str]) -> None:
        open_leases = self._open(site, said)
        observation = _observed(site, said)
        ending = self._unpayable(site, open_leases, said)
        if observation:
            _put_back(site, open_leases, observation, said)
            idle = self._idle(site, open_leases, observation)
            self._idle_ended(site, {id: item for id, item in idle.items() if id not in ending}, said)
        self._given_back |= _ended(site, ending, observation, said)
        _off(site, said)

    def _open(self, site: Site, said: list[str]) -> list[LeaseRow]:
        try:
            self._known = site.ledger.leases()
        except _LEDGER as error:
            said.append(f"the ledger can't be read ({error}): {len(self._known)} leases are known from before")
        self._note_ended(site)
        living = {id for id, instance in site.instances.items() if instance.alive}
        silent = {lease.instance_id for lease in self._known if lease.instance_id and site.silent_of(lease.pool)}
        may_live = [lease for lease in self._known if lease.instance_id in living | silent]
        return [lease for lease in may_live if lease.state != records.TERMINATED]

    def _note_ended(self, site: Site) -> None:
        """A machine that is over costs no more, though the ledger can't be told: else a ceiling seems used up, and
        jobs are ended that it pays for (day 188 of three clouds).
        """
        for lease in self._known:
            instance = site.instances.get(lease.instance_id or "")
            hidden = instance is None and lease.id in self._given_back and not site.silent_of(lease.pool)
            if hidden or (instance and not instance.alive and instance.state != "stopped"):
                self._ended_s.setdefault(lease.id, site.now)

    def _unpayable(self, site: Site, leases: list[LeaseRow], said: list[str]) -> _Ending:
        try:
            return {id: item for id, item in ceilings.unpayable(site, self._ended_s).items() if item[0].instance_id}
        except _LEDGER as error:
            said.append(f"what is spent can't be read ({error}): leases end when their own time is over")
        over = "the time that money was set aside for is over, and the ledger can't be read"
        return {lease.id: (lease, over) for lease in leases if ceilings.overdue(lease, site.now)}

    def _idle(self, site: Site, leases: list[LeaseRow], observation: Observation) -> _Ending:
        now, ending = site.now, {}
        for lease in leases:
            if observation.unseen(lease.node):
                continue
            if observation.on(lease.node):
                self._idle_since_s[lease.id] = math.inf
                continue
            pool = site.document.pool(lease.pool)
            since_s = self._idle_since_s.get(lease.id, lease.idle_since_s or now)
            if lease.state == records.LAUNCHED and pool:
                since_s = lease.changed_s + pool.boot_s
            since_s = self._idle_since_s[lease.id] = now if since_s == math.inf else since_s
            if lease.state in records.GOING:
                ending[lease.id] = lease, lease.end_reason or "it was to end"
            elif ceilings.overdue(lease, now) or now - since_s >= (pool.idle_s if pool else 0.0):
                ending[lease.id] = lease, f"idle for {max(now - since_s, 0.0):.0f} s, and the controller can't work"
        return ending

    def _idle_ended(self, site: Site, idle: _Ending, said: list[str]) -> None:
        """A job may just have begun on one: drained first, then looked at again."""
        if not idle:
            return
        try:
            site.scheduler.drain([lease.node for lease, _ in idle.values()], PREFIX + "idle")
            observation = site.scheduler.observe()
        except SchedulerError as error:
            said.append(f"{len(idle)} idle nodes aren't ended: {error}")
            return
        free = (node for lease, _ in idle.values() if not observation.on(node := lease.node))
        still = {node for node in free if not observation.unseen(node)}
        idle = {id: item for id, item in idle.items() if item[0].node in still}
        self._given_back |= _ended(site, idle, observation, said)


def _observed(site: Site, said: list[str]) -> Observation | None:
    try:
        return site.scheduler.observe()
    except Exception as error:  # whatever it is: what must be paid for no more is ended without it
        said.append(f"the scheduler shows nothing ({error}): only what no ceiling can pay for is ended")
        return None


def _put_back(site: Site, leases: list[LeaseRow], observation: Observation, said: list[str]) -> None:
    """Spot notices; they stay on their queue until they can be written down."""
    taken: set[str] = set()
    for queue in notices.queues(site):
        try:
            taken |= {notice.instance_id for notice in site.cloud.interruptions([queue])}
        except CloudError as error:
            said.append(str(error))
    nodes = [lease.node for lease in leases if lease.instance_id in taken and not observation.unseen(lease.node)]
    jobs = {job.id for node in nodes for job in observation.on(node) if job.state in going.STOPPABLE}
    try:
        if nodes:
            site.scheduler.drain(nodes, PREFIX + "spot interruption")
        if jobs:
            refused = site.scheduler.requeue(*sorted(jobs))
            said.append(f"{len(jobs) - len(refused)} jobs were put back: their instances are taken back")
    except SchedulerError as error:
        said.append(str(error))


def _terminated(site: Site, ending: _Ending, said: list[str]) -> _Ending:
    """All in one call; each by itself where that is refused. Those that the cloud was told to end."""
    of = {item[0].instance_id: id for id, item in ending.items() if item[0].instance_id}
    done = dict[str, tuple[LeaseRow, str]]()
    for ids in (list(of), *([each] for each in of)):
        if len(done) == len(of):
            break
        try:
            site.cloud.terminate(ids)
            done |= {of[id]: ending[of[id]] for id in ids}
        except CloudError as error:
            said.append(f"{', '.join(ids)}: {error}")
    return done


def _off(site: Site, said: list[str]) -> None:
    """Machines that powered off themselves, for no heartbeat came, and that their cloud keeps: also those of a launch
    whose answer couldn't be written down.
    """
    others = ownership.elsewhere(site)
    off = [each.id for each in site.instances.values() if each.state == "stopped" and each.owner not in others]
    for id in off:
        try:
            site.cloud.terminate([id])
            said.append(f"ended: {id}: off, and paid for")
        except CloudError as error:
            said.append(f"{id}: {error}")


def _ended(site: Site, ending: _Ending, observation: Observation | None, said: list[str]) -> set[str]:
    """The ids of those that the cloud was told to end."""
    if not ending:
        return set()
    ending = _terminated(site, ending, said)
    leases = [lease for lease, _ in ending.values()]
    names = ", ".join(lease.node for lease in leases)
    said.append(f"ended: {names}: {'; '.join(sorted({why for _, why in ending.values()}))}")
    if observation:
        try:
            site.scheduler.abandon([lease.node for lease in leases if observation.node(lease.node)], "given up")
            site.scheduler.remove_permit([lease.node for lease in leases])
        except SchedulerError as error:
            said.append(str(error))
    try:
        with site.ledger.transaction():
            for lease, why in ending.values():
                site.ledger.move([lease], records.LEAVING, site.now, end_reason=why)
                site.event("brake", f"{lease.node} is ended: {why}", launch=lease.launch, lease=lease.id)
    except _LEDGER as error:
        said.append(f"that can't be written down ({error})")
    return set(ending)
