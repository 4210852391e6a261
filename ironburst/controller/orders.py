"""Orders of people: pause, stop, close, a lower budget, a limit for a user. Taken up at a tick's start from the spool,
kept in the ledger, and carried out here as far as the policy doesn't (it launches nothing, and gives back).
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from ironburst.burst import Job, explain, from_json
from ironburst.controller import ceilings, going, karpenter_store, leases, order_book, order_spool, records
from ironburst.controller.ledger import Ledger
from ironburst.controller.order_book import HALTS, Order, Request
from ironburst.controller.records import LeaseRow
from ironburst.controller.site import Site
from ironburst.document import ClusterDocument
from ironburst.nodes import naming
from ironburst.ports import Observation

_VERBS = (*HALTS, "resume", "close", "open", "budget", "limit")
_ENDING = (records.INTERRUPTED, records.LEAVING, records.TERMINATED)
_LONGEST_WHY = 200
HURRY_S = 180.0  # so long after `stop --now` ticks follow each other at once


def take(ledger: Ledger, document: ClusterDocument, now_s: float) -> set[Path]:
    """Take up what waits in the spool; end what has had its time. What can't be taken off the spool."""
    stuck = set[Path]()
    _expire(ledger, now_s)
    for found in order_spool.read(ledger.path):
        with ledger.transaction():
            if found.id not in {order.id for order in order_book.read(ledger)}:  # else we died before we removed it
                _take(ledger, document, found, now_s)
        try:
            found.path.unlink(missing_ok=True)
        except OSError:
            stuck.add(found.path)
    return stuck


def _take(ledger: Ledger, document: ClusterDocument, found: order_spool.Found, now_s: float) -> None:
    try:
        asked = from_json(Request, json.loads(found.text)) if found.text is not None else Request("")
    except ValueError as error:
        found, asked = replace(found, text=None, wrong=str(error)), Request("")
    asked = replace(asked, why=" ".join(asked.why.split())[:_LONGEST_WHY])
    who = f"{found.who} (by sudo of {asked.sudo})" if found.root and asked.sudo else found.who
    order = Order(found.id, who, now_s, asked)
    orders = order_book.read(ledger)
    if found.text is None or (wrong := _wrong(asked, document, orders, now_s)):
        wrong = f"an order can't be used: {found.wrong}" if found.text is None else wrong
        order_book.write(ledger, [*orders, replace(order, answer=wrong, refused=True, over_s=now_s)])
        ledger.event("order", f"{who} was refused: {wrong}", now_s)
        return
    lifted = [each for each in orders if each.over_s is None and _lifts(asked, each)]
    kept = [replace(each, over_s=now_s) if each in lifted else each for each in orders]
    holds = _holds(asked)
    answer = _answer(ledger, document, order, lifted)
    order = replace(order, answer="" if asked.now else answer, over_s=None if holds else now_s)
    order_book.write(ledger, [*kept, order])
    ledger.event("order", order.text if holds else f"{answer} ({order.signed})", now_s)


def _holds(asked: Request) -> bool:
    """Whether anything is in force by it from now on; else it lifts what was."""
    if asked.verb in ("budget", "limit"):
        return asked.usd is not None or asked.gpus is not None
    return asked.verb in (*HALTS, "close")


def _lifts(asked: Request, before: Order) -> bool:
    if asked.verb in (*HALTS, "resume"):
        return before.asked.verb in HALTS
    if asked.verb in ("close", "open"):
        return before.asked.verb == "close" and before.asked.target == asked.target
    same = before.asked.verb == asked.verb and before.asked.target == asked.target
    return same and (asked.verb == "limit" or not _holds(asked) or before.asked.per == asked.per)


def _wrong(asked: Request, document: ClusterDocument, orders: Iterable[Order], now_s: float) -> str:
    """Why it can't be done; empty: it can."""
    if asked.verb not in _VERBS:
        return f"{asked.verb!r} is no order: known are {', '.join(_VERBS)}"
    numbers = [asked.usd or 0.0, float(asked.gpus or 0), asked.grace_s, asked.until_s or 0.0]
    if not all(math.isfinite(number) and number >= 0 for number in numbers):
        return "its numbers must be 0 or more"
    if asked.until_s is not None and asked.until_s <= now_s:
        return f"{explain.at(asked.until_s)} is over"
    if asked.verb == "pause" and (stop := next((each for each in orders if _is_stop(each, now_s)), None)):
        return f"{order_book.halt_of(stop).text}; a pause would be less: `ironburst resume` first"
    if asked.verb in ("close", "open") and asked.target not in (known := _targets(document)):
        return (
            f"{asked.target!r} is no pool, zone or instance type of the document; it has {', '.join(known) or 'none'}"
        )
    if asked.verb == "limit" and not asked.target:
        return "a limit is for a user: say which"
    if asked.verb == "budget":
        return _too_high(asked, document)
    return ""


def _is_stop(order: Order, now_s: float) -> bool:
    return order.over_s is None and order.asked.verb == "stop" and not order_book.ended(order, now_s)


def _targets(document: ClusterDocument) -> list[str]:
    names = [pool.name for pool in document.pools] + [pool.node_pool for pool in document.karpenter]
    zones = [zone for pool in document.pools for zone in pool.zone_names]
    kinds = [
        kind for pool in document.pools for kind in (pool.instance_type, *(o.instance_type for o in pool.other_types))
    ]
    kinds += [pool.instance_type for pool in document.karpenter]
    return list(dict.fromkeys((*names, *zones, *kinds)))


def _too_high(asked: Request, document: ClusterDocument) -> str:
    if asked.per not in ("month", "day"):
        return f"a budget is for a month or a day, not for {asked.per!r}"
    if document.budget is None:
        return "no budget is declared, so nothing is rented"
    declared = document.budget.usd_per_month if asked.per == "month" else document.budget.usd_per_day
    if asked.usd is not None and declared is not None and asked.usd > declared:
        raised = f"the stack declares {explain.usd(declared)} a {asked.per}, and an order only lowers it"
        return f"{raised}: a higher budget is declared in the stack file (`pulumi up`, `ironburst publish`)"
    return ""


def _answer(ledger: Ledger, document: ClusterDocument, order: Order, lifted: list[Order]) -> str:
    """For who gave it."""
    asked = order.asked
    if _holds(asked):
        return order.text
    reopened = 0
    if asked.verb == "open" and document.pool(asked.target):
        reopened = ledger.reopen(asked.target)
    if not lifted and not reopened:
        return "nothing was to be lifted"
    told = [f"it is over that {each.text}" for each in lifted]
    return "; ".join([*told, *(["what refusals had closed there is open again"] if reopened else [])])


def _expire(ledger: Ledger, now_s: float) -> None:
    orders = order_book.read(ledger)
    over = [each for each in orders if each.over_s is None and order_book.ended(each, now_s)]
    if over:
        with ledger.transaction():
            order_book.write(ledger, [replace(each, over_s=now_s) if each in over else each for each in orders])
            for each in over:
                ledger.event("order", f"its time is over: {each.text}", now_s)


def halted(site: Site) -> Site:
    """The tick's site, which knows whether a person has halted the renting."""
    if order := order_book.halting(site.ledger, site.now):
        site.halt = order_book.halt_of(order)
        site.stop_s = min(order.asked.grace_s, site.stop_s) if order.asked.now else site.stop_s
    return site


# ---- stop --now
def hurried(ledger: Ledger, now_s: float) -> bool:
    """Whether the next tick is to follow at once: nodes end by a person's order."""
    order = order_book.halting(ledger, now_s)
    if order is None or not order.asked.now or now_s - order.at_s > HURRY_S:
        return False
    return not order.answer or any(lease.state in _GOING_NOW for lease in ledger.leases())


_GOING_NOW = (*records.EARLY, records.INTERRUPTED, records.LEAVING)


def enforce(site: Site, observation: Observation) -> bool:
    """`stop --now`: put back what runs on rented nodes, and end them; but not under a job that can't be put back,
    unless that was ordered. Whether anything was ended.
    """
    order = order_book.halting(site.ledger, site.now)
    if order is None or not order.asked.now:
        return False
    why, ends, back = order_book.halt_of(order).text, list[LeaseRow](), dict[int, Job]()
    stays = list[str]()
    for lease in site.ledger.leases():
        if lease.state in _ENDING or lease.state == records.REQUESTED:  # an open intent is answered first
            continue
        running = [job for job in observation.on(lease.node) if job.state in going.STOPPABLE]
        kept = [job for job in running if not (job.batch and job.requeue)]
        if observation.unseen(lease.node):
            stays.append(f"{lease.node} stays: its scheduler gives no answer")
        elif kept and not order.asked.end_jobs:
            stays.append(f"{lease.node} stays until {explain.listed(map(_of, kept))} has ended")
        else:
            leases.interrupt(site, lease, why)
            ends.append(lease)
            back |= {job.id: job for job in running}
    if not order.answer:
        order_book.answered(site.ledger, order.id, "; ".join(_told(site, order, ends, back, stays)))
    for text in stays:
        site.tell("order", text)
    return bool(ends)


def _of(job: Job) -> str:
    kind = "" if job.batch else ", interactive"
    return f"job {job.called or naming.called(job.id)} of {job.user}{kind}"


def _told(site: Site, order: Order, ends: list[LeaseRow], back: dict[int, Job], stays: list[str]) -> list[str]:
    """The answer to who ordered it."""
    told = [order_book.halt_of(order).text]
    nodes = sorted({lease.node for lease in ends})
    told.append(f"{explain.listed(nodes)} {'end' if len(nodes) > 1 else 'ends'}" if nodes else "no node has to end")
    grace = explain.duration(order.asked.grace_s)
    if lost := [_of(job) for job in back.values() if not (job.batch and job.requeue)]:
        told.append(f"{explain.listed(lost)} can't be put back, and ends in {grace} at most")
    if again := [_of(job) for job in back.values() if job.batch and job.requeue]:
        told.append(f"back to the queue, with {grace} to save: {explain.listed(again)}")
    told += stays
    if stays and not order.asked.end_jobs:
        told.append("`--end-jobs` ends such nodes with their jobs, which are lost")
    if theirs := [each.name for each in karpenter_store.read(site.ledger).claims if each.to_s is None]:
        told.append(f"Karpenter's end with their pods; at once: `kubectl delete nodeclaim {' '.join(theirs)}`")
    return told


def enforce_blindly(site: Site) -> None:
    """The scheduler is out of reach: what no ceiling can pay for, and what was ordered to end with its jobs, ends all
    the same; so does what is only the cloud's by now.
    """
    ceilings.enforce_blindly(site)
    order = order_book.halting(site.ledger, site.now)
    if order and order.asked.now and order.asked.end_jobs:
        why = order_book.halt_of(order).text
        ceilings.end_blindly(
            site, {lease.id: (lease, why) for lease in site.ledger.leases() if lease.state not in _ENDING}
        )
        if not order.answer:
            order_book.answered(site.ledger, order.id, f"{why}; the scheduler gives no answer: every node is ended")
    leases.advance(site, Observation((), (), silent=("the scheduler",)))
