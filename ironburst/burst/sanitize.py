"""Sanitize: a snapshot that can't be right, made harmless. `decide` answers for every one and never raises.

What is damaged is left out or set to the side that costs no money, with a sentence; the rest is decided as ever:

- A pending job with an impossible time, size or id is `Infeasible` with the code "damaged", and nothing is done for it.
- A running job whose end can't be right holds its nodes for good; a node with an impossible size isn't there.
- A pool with impossible limits, or any pool under a budget that can't be right,
  rents nothing (`Pool.obstacle` says why).
- A price that isn't above 0 is an unknown one, unless the market is prepaid.

A clock that went back is no damage: times in the future are waits that haven't begun.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable
from dataclasses import replace
from operator import is_
from typing import Any, NamedTuple, TypeVar

from ironburst.burst.budget import Budget
from ironburst.burst.explain import FAR_S
from ironburst.burst.memory import Experience, IdleHistory
from ironburst.burst.orders import Halt
from ironburst.burst.resources import Resources
from ironburst.burst.snapshot import CoolDown, Job, Lease, Node, OtherType, Pool, Snapshot

MOST_GPUS = 1024  # of one node
MOST_LN = 100.0  # of a run time over its limit, as a logarithm
MOST = 2**53  # of anything that is counted
_SPANS = ("boot_s", "idle_s", "ending_s", "min_billing_s", "billing_increment_s")  # of a pool
_NO_LIMIT = {"idle_s": FAR_S, "max_run_s": FAR_S, "ends_s": None}
T = TypeVar("T")


class Damage(NamedTuple):
    """A pending job that can't be decided on, and why."""

    job: int
    text: str


def sound(snapshot: Snapshot) -> tuple[Snapshot, list[Damage]]:
    """The snapshot without its damage (itself, if there is none), and the pending jobs that are left out."""
    if not _moment(snapshot.now_s):
        why = f"the snapshot's time is {snapshot.now_s!r}"
        return Snapshot(0.0, (), (), ()), [Damage(job.id, why) for job in snapshot.jobs if job.pending]
    jobs, damaged = _jobs(snapshot.jobs)
    values: dict[str, Any] = {
        "jobs": jobs,
        "nodes": _nodes(snapshot.nodes),
        "pools": _pools(snapshot.pools, snapshot.budget),
        "leases": _each_once(snapshot.leases, ("id", "node"), _lease),
        "cool_downs": _each_once(snapshot.cool_downs, (), _cool_down),
        "experience": _experience(snapshot.experience),
        "halt": _halt(snapshot.halt),
    }
    changed = {name: value for name, value in values.items() if value is not getattr(snapshot, name)}
    return (replace(snapshot, **changed) if changed else snapshot), damaged


# ---- jobs


def _jobs(jobs: tuple[Job, ...]) -> tuple[tuple[Job, ...], list[Damage]]:
    sizes: dict[int, bool] = {}  # by identity: the hash of equal ones costs more than the check
    pending: set[int] = set()
    damaged: list[Damage] = []
    left: list[Job] = []
    for job in jobs:
        each, limit = job.each, job.time_limit_s
        good = sizes.get(id(each))
        if good is None:
            good = sizes[id(each)] = _size(each)
        fine = good and (
            0.0 <= job.submit_s <= FAR_S
            and 1 <= job.nodes <= MOST
            and (limit is None or 0.0 < limit <= FAR_S)
            and (job.eligible_s is None or 0.0 <= job.eligible_s <= FAR_S)
            and (job.deadline_s is None or 0.0 <= job.deadline_s <= FAR_S)
            and (job.run_s is None or 0.0 <= job.run_s <= FAR_S)
        )
        if job.pending:
            if not fine or job.id in pending:
                if why := _damage(job, job.id in pending):
                    damaged.append(Damage(job.id, why))
                    continue
                job = replace(job, time_limit_s=None)  # an endless limit is none
            pending.add(job.id)
        elif job.on and not (fine and _end(job.end_s)):
            job = replace(
                job,
                each=each if good else Resources(max(each.gpus, 0), max(each.cpus, 0), max(each.memory_mb, 0)),
                end_s=job.end_s if _end(job.end_s) else None,
                time_limit_s=limit if limit is not None and 0.0 < limit <= FAR_S else None,
                start_s=job.start_s if _end(job.start_s) else None,
                run_s=None,
            )
        left.append(job)
    same = len(left) == len(jobs) and all(map(is_, left, jobs))
    return (jobs if same else tuple(left)), damaged


def _damage(job: Job, again: bool) -> str:
    """Why a pending job can't be decided on; empty: it can."""
    if again:
        return "another pending job of the snapshot has the same id"
    if not _size(job.each):
        asked = f"{job.each.gpus} GPUs, {job.each.cpus} CPUs and {job.each.memory_mb} MiB of memory"
        return f"it asks for {asked} on each node"
    if not 1 <= job.nodes <= MOST:
        return f"it asks for {job.nodes} nodes"
    times = {"submit time": job.submit_s, "earliest start": job.eligible_s, "deadline": job.deadline_s}
    for name, value in times.items():
        if value is not None and not _moment(value):
            return f"its {name} is {value!r}; seconds since 1970 are needed"
    limit = job.time_limit_s
    if limit is not None and limit != math.inf and not 0.0 < limit <= FAR_S:
        return f"its time limit is {limit!r}; seconds above 0 are needed"
    if job.run_s is not None and not _span(job.run_s):
        return f"its run time is {job.run_s!r}; seconds are needed"
    return ""


# ---- the rest


def _nodes(nodes: tuple[Node, ...]) -> tuple[Node, ...]:
    totals = {id(node.total): node for node in nodes}  # nodes that are alike share it: one of them is looked at
    if all(map(_node, totals.values())) and len({node.name for node in nodes}) == len(nodes):
        return nodes
    return _each_once(nodes, ("name",), _node)


def _node(node: Node) -> Node | None:
    return node if _size(node.total) and node.total.gpus <= MOST_GPUS else None


def _pools(pools: tuple[Pool, ...], budget: Budget | None) -> tuple[Pool, ...]:
    """Each pool once, with nodes of its own."""
    broke, taken = _budget(budget), set[str]()
    left: list[Pool] = []
    for pool in _each_once(pools, ("name",), lambda pool: _pool(pool, broke)):
        if len(own := set(pool.nodes)) < len(pool.nodes) or taken & own:
            pool = replace(pool, nodes=tuple(name for name in dict.fromkeys(pool.nodes) if name not in taken))
        taken |= own
        left.append(pool)
    same = len(left) == len(pools) and all(map(is_, left, pools))
    return pools if same else tuple(left)


def _pool(pool: Pool, broke: str) -> Pool:
    wrong = {name: value for name in _SPANS if not _span(value := getattr(pool, name))}
    if not pool.max_run_s >= 0.0:
        wrong["max_run_s"] = pool.max_run_s
    if not _end(pool.ends_s):
        wrong["ends_s"] = pool.ends_s
    changes: dict[str, Any] = {name: _NO_LIMIT.get(name, 0.0) for name in wrong}
    if wrong or broke or not _size(pool.each):
        said = ", ".join(f"{name} {value!r}" for name, value in wrong.items()) or broke or f"a node of {pool.each}"
        changes["obstacle"] = pool.obstacle or f"the snapshot is damaged: {said}"
    changes |= _of_type(pool, pool)
    others = tuple(replace(other, **wrong) if (wrong := _of_type(pool, other)) else other for other in pool.other_types)
    if not all(map(is_, others, pool.other_types)):
        changes["other_types"] = others
    if pool.usual_boot_s is not None and not _span(pool.usual_boot_s):
        changes["usual_boot_s"] = None
    if not _span(pool.checkpoint_s):
        changes["checkpoint_s"] = 0.0
    if pool.relative_speed is not None and not 0 < pool.relative_speed < math.inf:
        changes["relative_speed"] = None
    history = pool.idle_history
    if not (all(map(_span, history.gaps_s)) and math.isfinite(history.credit_usd)):
        changes["idle_history"] = IdleHistory()
    if not _size(pool.each):
        changes["each"] = Resources(0)
    return replace(pool, **changes) if changes else pool


def _of_type(pool: Pool, of: Pool | OtherType) -> dict[str, Any]:
    """What to change of a type's own figures."""
    changes: dict[str, Any] = {}
    prices = {market: usd if _price(pool, market, usd) else None for market, usd in of.usd_per_hour.items()}
    if prices != of.usd_per_hour:
        changes["usd_per_hour"] = prices
    if not _span(of.carbon_usd_per_hour):
        changes["carbon_usd_per_hour"] = 0.0
    if not all(map(_span, of.interruptions_per_hour.values())):
        # a rate that can't be is as good as taken back all the time
        rates = of.interruptions_per_hour.items()
        changes["interruptions_per_hour"] = {market: rate if _span(rate) else FAR_S for market, rate in rates}
    return changes


def _price(pool: Pool, market: str, usd: float | None) -> bool:
    if usd is None:
        return True
    return math.isfinite(usd) and (usd > 0.0 or (usd == 0.0 and market in pool.prepaid_markets))


def _lease(lease: Lease) -> Lease:
    changes: dict[str, Any] = {}
    if not _span(lease.usd_per_hour):
        changes["usd_per_hour"] = 0.0
    if not _end(lease.committed_until_s):
        changes["committed_until_s"] = 0.0
    if not _end(lease.idle_since_s):
        changes["idle_since_s"] = None
    if not _end(lease.paid_from_s):
        changes["paid_from_s"] = None
    return replace(lease, **changes) if changes else lease


def _cool_down(cool_down: CoolDown) -> CoolDown:
    return cool_down if _end(cool_down.until_s) else replace(cool_down, until_s=None)


def _budget(budget: Budget | None) -> str:
    """What of it can't be right; empty: nothing."""
    if budget is None:
        return ""
    for path, value in _numbers(budget, "budget"):
        may_be_endless = not path.endswith(("spent_usd", "committed_usd", "_s"))  # what may be spent: no ceiling
        if math.isnan(value) or value < 0.0 or (math.isinf(value) and not may_be_endless):
            return f"{path} is {value!r}"
    return ""


def _numbers(value: Any, path: str) -> Iterable[tuple[str, float]]:
    if isinstance(value, float):
        yield path, value
    elif dataclasses.is_dataclass(value):
        for field in dataclasses.fields(value):
            yield from _numbers(getattr(value, field.name), f"{path}.{field.name}")
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _numbers(item, f"{path}[{key}]")
    elif isinstance(value, tuple):
        for number, item in enumerate(value):
            yield from _numbers(item, f"{path}[{number}]")


def _experience(experience: Experience) -> Experience:
    good = all(-MOST_LN <= ratio <= MOST_LN for ratios in experience.ratios.values() for ratio in ratios)
    return experience if good else Experience()


def _halt(halt: Halt | None) -> Halt | None:
    """Whatever its times are, it holds."""
    if halt is None or (_moment(halt.at_s) and _end(halt.until_s)):
        return halt
    return replace(halt, at_s=halt.at_s if _moment(halt.at_s) else 0.0, until_s=None)


def _each_once(items: tuple[T, ...], keys: tuple[str, ...], check: Callable[[T], T | None]) -> tuple[T, ...]:
    """Those that `check` leaves (None: not at all), as it leaves them, and of equal keys the
    first. The tuple itself if nothing changes.
    """
    left = [good for item in items if (good := check(item)) is not None]
    for key in keys:
        first: dict[Any, T] = {}
        for item in left:
            first.setdefault(getattr(item, key), item)
        left = list(first.values())
    return items if len(left) == len(items) and all(map(is_, items, left)) else tuple(left)


def _size(size: Resources) -> bool:
    return min(size.gpus, size.cpus, size.memory_mb) >= 0 and max(size.gpus, size.cpus, size.memory_mb) <= MOST


def _moment(value: float) -> bool:
    return 0.0 <= value <= FAR_S


def _end(value: float | None) -> bool:
    return value is None or -FAR_S <= value <= FAR_S


def _span(value: float) -> bool:
    return 0.0 <= value <= FAR_S
