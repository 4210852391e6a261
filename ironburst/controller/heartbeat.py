"""The controller's heartbeat: a rented node that hears none, and one whose lease has ended, ends itself
(playbooks/roles/cloud_node, docs/adr/0022).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from ironburst.controller import records
from ironburst.controller.records import LeaseRow
from ironburst.controller.site import Site
from ironburst.nodes import state_times
from ironburst.ports import CloudError, Job, Observation, SchedulerError

BEAT_S = 60.0  # between two of them; a tick longer than that has one each time
STEP_S = 60  # leases that end in the same minute are told so in one call
HEARD_S = 120.0  # a node looks once a minute: so much later it may hear it, and act


def hard_limit_s(boot_s: float, max_run_s: float, idle_s: float) -> int:
    """Seconds without a heartbeat after which a node ends whatever runs on it: a job that began when the last one was
    heard has had its time. Pure.
    """
    return int(boot_s + max_run_s + idle_s + records.ENDING_S)


def left_s(lease: LeaseRow, jobs: list[Job], max_run_s: float, now_s: float) -> int:
    """Seconds for which money is set aside for a node, so that it never ends later; but as long as the jobs on it may
    take. Pure.
    """
    _, until_s = lease.aside(now_s) or (now_s, now_s)
    left = int((until_s - now_s - HEARD_S) // STEP_S) * STEP_S
    ends = [job.end_s if job.end_s is not None else now_s + min(max_run_s, _longest_s(job)) for job in jobs]
    needed = max((end - now_s + records.ENDING_S for end in ends), default=0.0)
    return max(left, -int(-needed // STEP_S) * STEP_S)


def _longest_s(job: Job) -> float:
    """How long its state may last from now on, where that isn't its time limit's."""
    _, row = state_times.of_job(job.state, job.reason_word)
    return row.steps[-1][0] if row.steps and not row.works else math.inf


@dataclass
class Heartbeat:
    """Once a minute, and at once for a node that has just registered."""

    _at_s: float = field(default=-math.inf, init=False)  # of the host's uptime, which nobody puts back
    _told: set[str] = field(default_factory=set, init=False)  # leases

    def beat(self, site: Site, observation: Observation) -> None:
        """Send the heartbeat to the rented nodes that have registered, if it is time to. Trouble is written down, and
        stops nothing.
        """
        nodes = {
            lease.node: lease
            for lease in site.ledger.leases()
            if lease.state in (records.JOINED, records.READY) and observation.node(lease.node)
        }
        ids, uptime_s = {lease.id for lease in nodes.values()}, site.clock.uptime().seconds
        if not nodes or (ids <= self._told and uptime_s - self._at_s < BEAT_S):
            return
        runs = {pool.name: float(pool.max_run_s) for pool in site.document.pools}
        now = site.now
        left = {
            node: left_s(lease, observation.on(node), runs.get(lease.pool, 0.0), now) for node, lease in nodes.items()
        }
        try:
            site.scheduler.beat(left, now)
            self._told, self._at_s = ids, uptime_s
        except SchedulerError as error:  # tried anew at the next tick
            site.tell("trouble", str(error))
        stay = {each.instance_id: now + _stays_s(site, each, left) for each in nodes.values() if each.instance_id}
        try:
            site.cloud.prolong(stay)
        except CloudError as error:  # with the next one
            site.tell("trouble", f"the end of what is rented isn't put off: {error}")


def _stays_s(site: Site, lease: LeaseRow, left: dict[str, int]) -> float:
    """Seconds from now on in which it may not have ended itself. It has booted."""
    pool = site.document.pool(lease.pool)
    limit_s = hard_limit_s(0, pool.max_run_s, pool.idle_s) if pool else 0.0
    return max(limit_s, left[lease.node])
