"""What people ordered of the renting, kept in the ledger: a restart or a new document lifts nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from ironburst.burst import CoolDown, Halt, UserLimit, explain, from_json, signed, to_json
from ironburst.controller import money, records
from ironburst.controller.ledger import Ledger
from ironburst.document import BudgetDocument, ClusterDocument, PoolDocument

_KEY = "orders"
_KEPT = 50  # orders that are over: who gave one asks what came of it
GRACE_S = 5.0
HALTS = ("pause", "stop")


@dataclass(frozen=True)
class Request:
    """What a person asks for."""

    verb: str  # pause, stop, resume, close, open, budget, limit
    why: str = ""
    until_s: float | None = None  # None: until a person says otherwise
    target: str = ""  # close, open: a pool, zone or instance type; limit: a user
    usd: float | None = None  # budget, limit; None: it is lifted
    per: str = "month"  # budget: month or day
    gpus: int | None = None  # limit
    now: bool = False  # stop: what is rented ends, too
    end_jobs: bool = False  # with its jobs that can't be put back into the queue
    grace_s: float = GRACE_S  # that jobs have between SIGTERM and their node's end
    sudo: str = ""  # who became root to ask; root alone is believed


@dataclass(frozen=True)
class Order:
    """A request that was taken up. `over_s` None: it is in force."""

    id: str
    who: str
    at_s: float
    asked: Request
    answer: str = ""  # for who gave it; empty: there is none yet
    refused: bool = False
    over_s: float | None = None

    @property
    def signed(self) -> str:
        """by alice since …: why"""
        return signed(self.who, self.at_s, self.asked.until_s, self.asked.why)

    @property
    def what(self) -> str:
        """What holds by it, for people."""
        asked = self.asked
        if asked.verb in HALTS:
            return halt_of(self).what
        if asked.verb == "close":
            return f"{asked.target} is closed"
        if asked.verb == "budget":
            return f"at most {explain.usd(asked.usd or 0.0)} a {asked.per} may be spent"
        most = [explain.plural(asked.gpus, "rented GPU")] if asked.gpus is not None else []
        most += [f"{explain.usd(asked.usd)} a month"] if asked.usd is not None else []
        return f"{asked.target}'s jobs may have {' and '.join(most)}"

    @property
    def text(self) -> str:
        """With who ordered it, since when, and why."""
        return f"{self.what} {self.signed}"


def read(ledger: Ledger) -> list[Order]:
    """All that are kept, the oldest first."""
    return [from_json(Order, each) for each in json.loads(ledger.noted(_KEY) or "[]")]


def write(ledger: Ledger, orders: Sequence[Order]) -> None:
    """All in force, and the newest of those that are over."""
    over = [order.id for order in orders if order.over_s is not None]
    forgotten = set(over[:-_KEPT])
    kept = [to_json(order) for order in orders if order.id not in forgotten]
    ledger.note(_KEY, json.dumps(kept, separators=(",", ":")))


def in_force(ledger: Ledger, now_s: float, *verbs: str) -> list[Order]:
    """Of these verbs; none given: of all."""
    holds = [order for order in read(ledger) if order.over_s is None and not ended(order, now_s)]
    return [order for order in holds if not verbs or order.asked.verb in verbs]


def ended(order: Order, now_s: float) -> bool:
    """Its own time is over."""
    return order.asked.until_s is not None and order.asked.until_s <= now_s


def halting(ledger: Ledger, now_s: float) -> Order | None:
    """What halts the renting; None: nothing."""
    return next(iter(in_force(ledger, now_s, *HALTS)), None)


def halt_of(order: Order) -> Halt:
    """As the policy has it."""
    asked = order.asked
    return Halt(order.who, asked.why, order.at_s, asked.until_s, stops=asked.verb == "stop")


def closings(ledger: Ledger, document: ClusterDocument, now_s: float) -> list[CoolDown]:
    """The places of today's pools that people closed."""
    orders = in_force(ledger, now_s, "close")
    return [place for order in orders for pool in document.pools for place in _places(pool, order)]


def _places(pool: PoolDocument, order: Order) -> Iterator[CoolDown]:
    target, reason = order.asked.target, f"closed {order.signed}"
    for zone in pool.zone_names:
        for kind in (pool.instance_type, *(other.instance_type for other in pool.other_types)):
            if target in (pool.name, zone, kind):
                for market in pool.markets:
                    yield CoolDown(pool.name, zone, market, 1, order.asked.until_s, reason, kind)


def closed_node_pools(ledger: Ledger, document: ClusterDocument, now_s: float) -> set[str]:
    """Karpenter's, that may launch nothing."""
    targets = {order.asked.target for order in in_force(ledger, now_s, "close")}
    if halting(ledger, now_s):
        return {pool.node_pool for pool in document.karpenter}
    return {pool.node_pool for pool in document.karpenter if targets & {pool.node_pool, pool.instance_type}}


def budget(ledger: Ledger, document: ClusterDocument, now_s: float) -> BudgetDocument | None:
    """The declared one, as far as no person has lowered it. None: none is declared."""
    declared = document.budget
    if declared is None:
        return None
    for order in in_force(ledger, now_s, "budget"):
        name, usd = f"usd_per_{order.asked.per}", order.asked.usd or 0.0
        before = getattr(declared, name)
        declared = declared.model_copy(update={name: usd if before is None else min(before, usd)})
    return declared


def user_limits(ledger: Ledger, now_s: float, rates: money.Paid) -> tuple[UserLimit, ...]:
    """With what each has used this month: a node counts for whose job it was rented for first."""
    orders = in_force(ledger, now_s, "limit")
    if not orders:
        return ()
    month = money.month(now_s)
    leases = ledger.leases_paid_after(month[0])
    users = {lease.id: _user(ledger, lease.id) for lease in leases}
    limits = []
    for order in orders:
        mine = [lease for lease in leases if users[lease.id] == order.asked.target]
        spent = sum(money.within(mine, rates, month, now_s).values())
        aside = sum(_aside_usd(lease, rates, now_s) for lease in mine)
        asked = order.asked
        limits.append(UserLimit(asked.target, order.signed, asked.gpus, asked.usd, spent, aside))
    return tuple(limits)


def _user(ledger: Ledger, lease: str) -> str:
    jobs = ledger.jobs_of(lease)
    row = ledger.job(jobs[0]) if jobs else None
    return row.user if row else ""


def _aside_usd(lease: records.LeaseRow, rates: money.Paid, now_s: float) -> float:
    from_s, until_s = lease.aside(now_s) or (0.0, 0.0)
    return (until_s - from_s) / 3600 * money.rates_of(lease, rates)[-1].usd_per_hour


def answered(ledger: Ledger, id: str, answer: str) -> None:
    """What came of an order, for who gave it."""
    write(ledger, [replace(each, answer=answer) if each.id == id else each for each in read(ledger)])
