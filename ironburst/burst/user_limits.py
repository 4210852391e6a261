"""What a person lets one user's jobs have of rented nodes, while one decision is made."""

from __future__ import annotations

from ironburst.burst import explain
from ironburst.burst.refusals import Obstacle
from ironburst.burst.snapshot import Job, Snapshot

_ROUNDING_USD = 1e-6


class UserLimits:
    """GPUs are counted by what jobs ask for that are on rented nodes, or have some; money as it is promised."""

    def __init__(self, snapshot: Snapshot):
        limits = snapshot.budget.users if snapshot.budget else ()
        self._limits = {limit.user: limit for limit in limits}
        self._gpus: dict[str, dict[int, int]] = {user: {} for user in self._limits}  # by job
        self._usd = {user: limit.spent_usd + limit.aside_usd for user, limit in self._limits.items()}
        if self._limits:
            rented = {lease.node for lease in snapshot.leases}
            meant = {job for lease in snapshot.leases if lease.state != "leaving" for job in lease.jobs}
            for job in snapshot.jobs:
                if job.user in self._gpus and (job.id in meant if job.pending else not rented.isdisjoint(job.on)):
                    self._gpus[job.user][job.id] = job.nodes * job.each.gpus

    def over(self, job: Job, usd: float) -> Obstacle | None:
        """What keeps it from rented nodes that set that much money aside; None: nothing."""
        if (limit := self._limits.get(job.user)) is None:
            return None
        gpus = sum(count for id, count in self._gpus[job.user].items() if id != job.id)
        asked = job.nodes * job.each.gpus
        if limit.gpus is not None and gpus + asked > limit.gpus:
            has = f"{job.user}'s jobs have {gpus} of {limit.gpus} rented ones"
            said = f"it needs {explain.plural(asked, 'GPU')}, and {has}"
        elif limit.usd is not None and self._usd[job.user] + usd > limit.usd + _ROUNDING_USD:
            used = f"{explain.usd(self._usd[job.user])} of {explain.usd(limit.usd)}"
            said = f"it would set aside {explain.usd(usd)}, and {job.user} has used {used} this month"
        else:
            return None
        return Obstacle("user_limit", f"{said} (limited {limit.said})")

    def take(self, job: Job, usd: float) -> None:
        """It has them."""
        if job.user in self._limits:
            self._gpus[job.user][job.id] = job.nodes * job.each.gpus
            self._usd[job.user] += usd
