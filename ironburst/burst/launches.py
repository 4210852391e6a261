"""New nodes for a job: the cheapest offer that free node names, cool-downs and the budget leave open."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property
from itertools import chain

from ironburst.burst import explain
from ironburst.burst.commitments import Commitments
from ironburst.burst.cost import boot_s
from ironburst.burst.decision import Launch
from ironburst.burst.eligibility import in_time
from ironburst.burst.offers import JobOffers, Offer, Offers
from ironburst.burst.refusals import (
    Obstacle,
    Refusal,
    all_zones_closed,
    dearer_closed,
    halted,
    not_launchable,
    too_few_names,
)
from ironburst.burst.reuse import Reused
from ironburst.burst.slots import Room, Slot, Slots
from ironburst.burst.snapshot import CoolDown, Job, Pool, Snapshot

TOLD = 3  # offers of which a waiting job's reason says what is in the way


class Launches:
    """The launches of one decision, and the node names that are left for more."""

    def __init__(self, snapshot: Snapshot, offers: Offers, slots: Slots, commitments: Commitments):
        self.made: list[Launch] = []
        self._snapshot, self._offers, self._slots, self._commitments = snapshot, offers, slots, commitments
        # by the identity of a list of offers: those that had names enough when last looked at
        self._open: dict[int, list[Offer]] = {}
        # and after so many launches, what is in the way of all jobs that it is for, whatever their limits
        self._refused: dict[int, tuple[int, Refusal]] = {}
        self._too_few: dict[tuple[str, int, int, tuple[str, ...]], Obstacle] = {}  # said of thousands of jobs

    @cached_property
    def _names(self) -> dict[str, list[str]]:
        """Of each pool the nodes that are free to rent; made when a first job asks."""
        snapshot = self._snapshot
        free = snapshot.launchable.union(name for name in snapshot.spare if name in snapshot.node_of)
        free -= {lease.node for lease in snapshot.leases}
        return {pool.name: [name for name in pool.nodes if name in free] for pool in snapshot.pools}

    @property
    def _most_names(self) -> int:
        """Of one pool."""
        return max(map(len, self._names.values()), default=0)

    def launch(self, job: Job, why: str) -> Launch | Refusal:
        """Rent nodes for it, the cheapest open offer; or what is in the way."""
        if self._snapshot.halt:
            return halted(self._snapshot.halt)
        mine, before = self._offers.of(job), len(self.made)
        refused = self._refused.get(id(mine.ranked)) if mine.for_all else None
        if refused and refused[0] == before:
            return refused[1]
        obstacles: list[Obstacle] = []
        for offer in chain(mine.fitting[:TOLD], self._still_open(job, mine)):
            launched = self._launch(job, offer, why)
            if isinstance(launched, Launch):
                return launched
            obstacles.append(launched)
        told, dearer = obstacles[:TOLD], len(mine.fitting) - TOLD
        if dearer > 0:
            told.append(dearer_closed(dearer, obstacles[TOLD:]))
        refusal = Refusal(tuple(told))
        if mine.for_all and all(obstacle.code in ("max_nodes", "cool_down") for obstacle in obstacles):
            self._refused[id(mine.ranked)] = before, refusal
        return refusal

    def share(self, reused: Reused, job: Job) -> None:
        """Let the job have a part of what is launched for another one."""
        launch = self.made[reused.slots[0].launch]
        self.made[reused.slots[0].launch] = replace(
            launch,
            jobs=(*launch.jobs, job.id),
            committed_until_s=max(launch.committed_until_s, reused.committed_until_s),
            committed_usd=launch.committed_usd + reused.committed_usd,
        )

    def least_usd_now(self, job: Job) -> float:
        """What it is expected to cost to its end at the best offer that is open now; infinite if there is none."""
        for offer in self._offers.options(job):
            if self.open_now(job, offer):
                return offer.usd(job, self._offers.run_s(job))
        return math.inf

    def open_now(self, job: Job, offer: Offer) -> bool:
        """Whether no person has halted it, and node names and cool-downs leave it open."""
        return not self._snapshot.halt and self.enough_names(job, offer) and not all(self._cool_downs(offer, job.nodes))

    def enough_names(self, job: Job, offer: Offer) -> bool:
        """Whether that many of the pool's nodes are free to rent."""
        return len(self._names_for(job, offer.pool)) >= job.nodes

    def _still_open(self, job: Job, mine: JobOffers) -> Iterator[Offer]:
        """Of the dearer offers those whose pools have names enough:
        names only ever become fewer while one decision is made.
        """
        if self._most_names < job.nodes or len(mine.fitting) <= TOLD:
            return
        ranked, limit_s, told = mine.ranked, job.least_limit_s, mine.fitting[:TOLD]
        still_open = [offer for offer in self._open.get(id(ranked), ranked) if self.enough_names(job, offer)]
        self._open[id(ranked)] = still_open
        for offer in still_open:
            fits = limit_s <= offer.pool.max_run_s and in_time(job, offer.pool, self._snapshot.now_s)
            if fits and not any(offer is tried for tried in told):
                yield offer

    def _launch(self, job: Job, offer: Offer, why: str) -> Launch | Obstacle:
        """Rent there, or what is in the way."""
        pool, market, names = offer.pool, offer.market, self._names_for(job, offer.pool)
        if len(names) < job.nodes:
            return self._too_few_names(job, pool, len(names))
        cool_downs = self._cool_downs(offer, job.nodes)
        if all(cool_downs):
            return all_zones_closed(offer.name, [cool_down for cool_down in cool_downs if cool_down])
        until_s = self._commitments.until_s(job, pool, boot=True)
        asked = self._commitments.charges(job, job.nodes * offer.usd_per_hour, until_s)
        what = f"{explain.plural(job.nodes, 'node')} of {offer.name}"
        if obstacle := self._commitments.commit(job, asked, what):
            return obstacle
        launch = Launch(
            pool=pool.name,
            zones=tuple(zone for zone, closed in zip(pool.zones, cool_downs, strict=True) if not closed),
            market=market,
            nodes=tuple(names[: job.nodes]),
            jobs=(job.id,),
            usd_per_hour=offer.usd_per_hour,
            committed_until_s=until_s,
            committed_usd=asked[0].usd,
            reason=why,
            account=self._commitments.payer(job),
            instance_type=offer.instance_type,
            running=not job.pending,
        )
        self._names[pool.name] = [name for name in self._names[pool.name] if name not in launch.nodes]
        for node in launch.nodes:
            self._slots.add(self._slot(node, launch, job, pool))
        self.made.append(launch)
        return launch

    def _names_for(self, job: Job, pool: Pool) -> list[str]:
        """Those of the pool that are free to rent for it."""
        names = self._names[pool.name]
        return [name for name in names if name not in job.keeps_off] if job.keeps_off else names

    def _slot(self, node: str, launch: Launch, job: Job, pool: Pool) -> Slot:
        """What the job leaves free on a node that is launched for it."""
        slot = Slot(
            node=node,
            pool=pool,
            market=launch.market,
            zone="",
            room=Room.of(pool.each, [job]),
            committed_until_s=launch.committed_until_s,
            usd_per_hour=launch.usd_per_hour,
            account=launch.account,
            launch=len(self.made),
            coming=True,
            ready_s=self._snapshot.now_s + boot_s(pool),
        )
        slot.busy_until_s = slot.ends_s(job, self._offers.run_s(job))
        return slot

    def _too_few_names(self, job: Job, pool: Pool, free: int) -> Obstacle:
        if (key := (pool.name, free, job.nodes, job.keeps_off)) not in self._too_few:
            pool = self._snapshot.pool_of[pool.name]
            self._too_few[key] = too_few_names(pool, free, job.nodes, self._taken(job, pool))
        return self._too_few[key]

    def _taken(self, job: Job, pool: Pool) -> dict[str, list[str]]:
        """The pool's nodes that can't be launched for it, by what keeps them."""
        leases = {
            lease.node: "being given back" if lease.state == "leaving" else "rented" for lease in self._snapshot.leases
        }
        asked = {name for launch in self.made for name in launch.nodes}
        nodes = self._snapshot.node_of
        refused_s = max((self._snapshot.refused_s.get(name, 0.0) for name in pool.nodes), default=0.0)  # said once
        taken: dict[str, list[str]] = {}
        for name in pool.nodes:
            if name in job.keeps_off:
                words = "excluded by it (--exclude)"
            elif name in asked:
                words = "being rented for jobs before it"
            elif name in leases:
                words = leases[name]
            elif name in self._names[pool.name]:
                continue
            else:
                words = not_launchable(nodes.get(name), refused_s if name in self._snapshot.refused_s else None)
            taken.setdefault(words, []).append(name)
        return taken

    def _cool_downs(self, offer: Offer, nodes: int) -> list[CoolDown | None]:
        """Of each of the pool's zones what closes it longest for that many nodes; None: it is open."""
        return [self._cool_down(offer, zone, nodes) for zone in offer.pool.zones]

    def _cool_down(self, offer: Offer, zone: str, nodes: int) -> CoolDown | None:
        closing = [
            cool_down
            for cool_down in self._snapshot.cool_downs
            if cool_down.concerns(offer.pool)
            and (cool_down.zone, cool_down.market) == (zone, offer.market)
            and cool_down.nodes <= nodes
            and (cool_down.until_s is None or cool_down.until_s > self._snapshot.now_s)
        ]
        return max(closing, key=lambda closes: math.inf if closes.until_s is None else closes.until_s, default=None)
