"""Whether a job is late, which is to say worth renting for.
Pure; a verdict is plain data (ironburst.burst.answers puts it into words).

- A job is late when its predicted start at home is further from its submission than its wait limit. With limits by size
  (`Policy.limits`) a small job is late when it has waited so long, a larger one when it is predicted to.
- It isn't while home is sooner than a rented node would be; but that is believed for a while only.
- A deadline makes it late earlier, never later.
- Nothing is late before it has settled (`Policy.settle_s`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from ironburst.burst.home import could_ever_fit
from ironburst.burst.limits import Limit, Limits
from ironburst.burst.policy import Policy
from ironburst.burst.snapshot import Job, Node
from ironburst.burst.spot import Choice

LAST_CALL_S = 60.0  # before the last moment at which renting still meets a deadline: some ticks
# a job that is late is still left to a start at home that is nearer than a boot, but so long (or a boot) at most
DOUBT_S = 600.0

LateCode = Literal[
    "never_at_home",  # home couldn't take it with all its nodes up and empty, or the scheduler says so
    "home_down",  # it waited over its limit, and its nodes at home are down, or held by jobs without an end
    "over_limit",  # it is predicted to wait, or it waited, over its limit
    "over_predicted_limit",  # it is predicted to wait over the limit that its size sets for predictions
    "deadline",  # home would end it too late, and it is time to rent
    "last_call",  # home would end it in time, but it hasn't started and renting would soon be too late
    "prepaid",  # not late, but a node that is paid for anyway can take it sooner
    "makes_room",  # not late itself, but the cheapest way to make room for one that is
]
NotYetCode = Literal[
    "home_soon",  # home starts it within its limit
    "home_sooner",  # it is late, but home starts it before a rented node could
    "home_down",  # its nodes at home are down, or held by jobs without an end, and it may still wait
    "deadline",  # home would end it too late, and there is time for renting yet
    "settling",  # it is late, but too new to rent for
    "spot",  # it is late, and can still wait for spot
]


NO_LIMIT = Limit(math.inf)


class Late(NamedTuple):
    """Worth renting for, and why."""

    code: LateCode
    start_s: float  # predicted at home; infinite: not known
    limit: Limit = NO_LIMIT  # that it is over
    large: bool = False  # jobs before it may be rented for in its place
    rent_by_s: float = math.inf  # (last_call) a node that is rented later is too late
    because: Late | NotYet | None = None  # (prepaid) its own verdict; (makes_room) that of `room_for`
    room_for: Job | None = None
    choice: Choice | None = None  # between spot and on demand, of a job that moves


class NotYet(NamedTuple):
    """Not worth renting for now, and why."""

    code: NotYetCode
    start_s: float  # predicted at home; infinite: not known
    look_again_s: float
    rent_s: float | None = None  # when it is to be rented for if all goes as expected; None: not expected
    limit: Limit = NO_LIMIT  # that it keeps
    boot_s: float = 0.0  # (home_sooner) what a rented node would take
    because: Late | None = None  # (settling, spot) its verdict but for that
    choice: Choice | None = None  # (spot) how much time it has to spare


@dataclass(frozen=True)
class Lateness:
    """What lateness is judged by, beside the job and its start at home."""

    now_s: float
    policy: Policy
    home: Sequence[Node]  # up or not
    expected_s: Mapping[int, float]  # run times by job id, where more is known than the limit
    boot_s: Callable[[Job], float]  # of the rented node that would be there first
    room_now: Callable[[Job], bool]  # whether a rented node that is there could take a part of it

    def verdict(self, job: Job, start_s: float) -> Late | NotYet:
        """`start_s`: its predicted start at home; infinite: none, as its nodes are."""
        by_wait = self._by_wait(job, start_s)
        if isinstance(by_wait, NotYet):
            return by_wait if job.deadline_s is None else self._by_deadline(job, start_s) or by_wait
        settled_s = job.since_s + self.policy.settle_s
        if settled_s > self.now_s:
            return NotYet("settling", start_s, settled_s, rent_s=settled_s, because=by_wait)
        return by_wait

    def gpu_hours(self, job: Job) -> float:
        """What it is expected to take: its time limit where nothing better is known;
        infinite without one, 0 without GPUs.
        """
        limit_s, gpus = math.inf if job.time_limit_s is None else job.time_limit_s, job.nodes * job.each.gpus
        return gpus * self.expected_s.get(job.id, limit_s) / 3600 if gpus else 0.0

    def _by_wait(self, job: Job, start_s: float) -> Late | NotYet:
        limits = self.policy.limits
        if limits and start_s < math.inf:
            return self._by_size(job, start_s, limits)
        limit = Limit(limits.hard_s(self.gpu_hours(job)) if limits else self.policy.wait_limit_s)
        if start_s == math.inf:
            return self._by_home_that_is_down(job, limit)
        if start_s - job.since_s <= limit.seconds:
            again_s = min(max(start_s, self.now_s), job.since_s + limit.seconds)
            return NotYet("home_soon", start_s, again_s, limit=limit)
        return self._sooner_at_home(job, start_s, limit) or Late("over_limit", start_s, limit)

    def _by_home_that_is_down(self, job: Job, limit: Limit) -> Late | NotYet:
        if job.larger_than_home or job.over_home_limit or not could_ever_fit(job, self.home):
            return Late("never_at_home", math.inf)
        if self.now_s - job.since_s <= limit.seconds:
            ends_s = job.since_s + limit.seconds
            return NotYet("home_down", math.inf, ends_s, rent_s=ends_s, limit=limit)
        return Late("home_down", math.inf, limit)

    def _by_size(self, job: Job, start_s: float, limits: Limits) -> Late | NotYet:
        since_s = job.since_s
        small, limit, predicted = limits.of_size(self.gpu_hours(job))
        ends_s = since_s + limit.seconds
        may_wait = self.now_s - since_s < limit.seconds
        if may_wait and (small or start_s - since_s <= predicted.seconds):
            return NotYet("home_soon", start_s, ends_s, ends_s if start_s > ends_s else None, limit)
        if sooner := self._sooner_at_home(job, start_s, limit):
            return sooner
        if may_wait:
            return Late("over_predicted_limit", start_s, predicted, large=True)
        return Late("over_limit", start_s, limit, large=not small)

    def _sooner_at_home(self, job: Job, start_s: float, limit: Limit) -> NotYet | None:
        """A late job is left to a start at home that is nearer than a boot, unless it has
        been so for long or could use a node now.
        """
        boot_s = self.boot_s(job)
        over_s = limit.seconds + max(boot_s, DOUBT_S)
        if start_s > self.now_s + boot_s or self.now_s - job.since_s > over_s or self.room_now(job):
            return None
        return NotYet("home_sooner", start_s, start_s, limit=limit, boot_s=boot_s)

    def _by_deadline(self, job: Job, start_s: float) -> Late | NotYet | None:
        """What its deadline changes for a job that isn't late for its wait; None: nothing."""
        if job.deadline_s is None or job.time_limit_s is None:
            return None
        must_s, boot_s = job.deadline_s - job.work_s, self.boot_s(job)
        if start_s <= must_s:  # somebody may still come before it: renting is its last moment's insurance
            rent_by_s = must_s - boot_s
            if start_s > self.now_s and rent_by_s - LAST_CALL_S <= self.now_s <= rent_by_s:
                return Late("last_call", start_s, rent_by_s=rent_by_s)
            return None
        rent_s = must_s - 2 * boot_s  # one boot for a second try elsewhere
        return Late("deadline", start_s) if self.now_s >= rent_s else NotYet("deadline", start_s, rent_s, rent_s=rent_s)
