"""`ironburst status`: queue, home nodes, leases, and money against the budget."""

from __future__ import annotations

import argparse
import json
import time
from typing import Any

from ironburst.burst import Job, explain
from ironburst.cli import site_options
from ironburst.controller import spending
from ironburst.controller.ledger import Ledger, LedgerError
from ironburst.controller.recorder import Usage, usage
from ironburst.controller.records import DecisionRow
from ironburst.document import ClusterDocument
from ironburst.ports import Observation


def add_parser(subparsers: argparse._SubParsersAction) -> None:
    parser = subparsers.add_parser(
        "status",
        help="queue, home nodes, leases, money",
        description=f"Queue, home nodes, leases, and money committed and spent (estimates) against the budget. {site_options.EXIT_CODES}",
        epilog="example: ironburst status --json | jq .money",
    )
    site_options.add(parser)
    parser.set_defaults(func=run)


@site_options.guarded
def run(arguments: argparse.Namespace) -> int:
    document, scheduler = site_options.read_document(arguments), site_options.slurm(arguments)
    try:
        ledger = site_options.open_ledger(arguments, read_only=True)
    except LedgerError:
        if site_options.ledger_path(arguments).exists():
            raise
        ledger = None  # no controller has run yet: there is still a queue
    said = gather(document, scheduler.observe(), ledger, time.time()) | {
        "rounds": _rounds(usage(site_options.rounds_path(arguments)))
    }
    print(json.dumps(said) if arguments.json else "\n".join(lines(said)))
    return 0


def gather(document: ClusterDocument, observation: Observation, ledger: Ledger | None, now_s: float) -> dict[str, Any]:
    """Everything that is shown, as JSON values."""
    home = document.scheduler.home_partition
    queue = [_job(job, ledger.last_decision(job.id) if ledger and job.pending else None) for job in observation.jobs]
    nodes = [
        {
            "node": node.name,
            "states": list(node.states),
            "gpus": node.total.gpus,
            "reason": node.reason,
            "gpus_used": sum(job.each.gpus for job in observation.on(node.name)),
        }
        for node in observation.nodes
        if home in node.partitions
    ]
    leases = [
        {
            "lease": lease.id,
            "node": lease.node,
            "state": lease.state,
            "instance_type": lease.instance_type,
            "zone": lease.zone,
            "market": lease.market,
            "instance_id": lease.instance_id,
            "usd_per_hour": lease.usd_per_hour,
            "from_s": lease.from_s,
            "usd": lease.usd(now_s),
            "jobs": [job.id for job in observation.on(lease.node)],
        }
        for lease in (ledger.leases() if ledger else [])
    ]
    ages = [pool.price_as_of for pool in document.pools if pool.price_as_of]
    budget, usd_per_month = document.budget, document.budget.usd_per_month if document.budget else None
    more = (budget.usd_per_day, budget.accounts) if budget else ()
    money = spending.budget(ledger, usd_per_month or 0.0, now_s, *more) if ledger else None
    ceilings = [
        {
            "kind": each.kind,
            "account": each.account,
            "usd": each.usd,
            "spent_usd": each.spent_usd,
            "committed_usd": each.committed_usd,
            "from_s": each.from_s,
            "to_s": each.to_s,
        }
        for each in (money.ceilings if money and budget else ())
        if each.from_s <= now_s < each.to_s
    ]
    closed = [
        {"pool": c.pool, "zone": c.zone, "market": c.market, "nodes": c.nodes, "until_s": c.until_s, "reason": c.reason}
        for c in (ledger.cool_downs(now_s) if ledger else [])
    ]
    last = json.loads(ledger.noted("last_tick") or "null") if ledger else None
    return {
        "at_s": now_s,
        "cluster": document.cluster,
        "serial": document.serial,
        "last_tick": last,
        "queue": queue,
        "home": nodes,
        "leases": leases,
        "closed": closed,
        "money": {
            "estimates": True,
            "usd_per_month": usd_per_month,
            "spent_usd": money.spent_usd if money else 0.0,
            "committed_usd": money.committed_usd if money else 0.0,
            "prices_as_of": min(ages, default=None),
            "ceilings": ceilings,
        },
    }


def _rounds(kept: Usage) -> dict[str, Any]:
    return {
        "files": kept.files,
        "bytes": kept.bytes,
        "from_s": kept.from_s,
        "to_s": kept.to_s,
        "mb_a_day": kept.mb_a_day,
    }


def _job(job: Job, decided: DecisionRow | None) -> dict[str, Any]:
    return {
        "job": job.id,
        "name": job.name,
        "user": job.user,
        "state": job.state,
        "nodes": job.nodes,
        "gpus": job.nodes * job.each.gpus,
        "on": list(job.on),
        "waits_since_s": job.since_s if job.pending else None,
        "why": decided.text if decided else "",
        "code": decided.code if decided else "",
    }


def lines(said: dict[str, Any]) -> list[str]:
    last = said["last_tick"]
    ago = f"last tick {explain.duration(said['at_s'] - last['at_s'])} ago" if last else "no controller has run yet"
    out = [f"cluster {said['cluster']}, document {said['serial']}, {ago}", "", "queue"]
    for job in said["queue"]:
        where = ",".join(job["on"]) or "-"
        out.append(
            f"  {job['job']:>7} {job['state']:<10} {job['user']:<10} {job['gpus']:>3} GPUs  {where:<16} {job['why']}"
        )
    out += [] if said["queue"] else ["  empty"]
    out.append("home")
    for node in said["home"]:
        out.append(
            f"  {node['node']:<12} {node['gpus_used']}/{node['gpus']} GPUs  {'+'.join(node['states'])} {node['reason']}".rstrip()
        )
    out.append("rented")
    for lease in said["leases"]:
        place = f"{lease['instance_type']} {lease['market']} {lease['zone'] or '(no zone yet)'}"
        out.append(
            f"  {lease['node']:<8} {lease['state']:<11} {place}  {lease['instance_id'] or '-'}  {explain.usd(lease['usd'])}"
        )
    out += [] if said["leases"] else ["  nothing"]
    for each in said["closed"]:
        until = "a person reopens it" if each["until_s"] is None else site_options.at(each["until_s"])
        out.append(
            f"  closed: {each['pool']} {each['zone']} {each['market']} for {each['nodes']}+ nodes until {until}: {each['reason']}"
        )
    money = said["money"]
    limit = (
        "no budget declared" if money["usd_per_month"] is None else f"of {explain.usd(money['usd_per_month'])} a month"
    )
    spent = f"money (estimates, prices of {money['prices_as_of'] or 'the stack file'})"
    out.append(
        f"{spent}: spent {explain.usd(money['spent_usd'])}, committed {explain.usd(money['committed_usd'])}, {limit}"
    )
    for each in money["ceilings"]:
        if each["kind"] == "day" or each["account"]:
            whose = f"account {each['account']}, this {each['kind']}" if each["account"] else f"this {each['kind']}"
            left = f"{explain.usd(each['spent_usd'])} spent, {explain.usd(each['committed_usd'])} set aside of {explain.usd(each['usd'])}"
            out.append(f"  {whose}: {left}, until {site_options.at(each['to_s'])}")
    if (kept := said["rounds"])["files"]:
        a_day = "" if kept["mb_a_day"] is None else f", {kept['mb_a_day']:.2g} MB a day"
        out.append(f"rounds on disk: {kept['bytes'] / 1e6:.2g} MB since {site_options.at(kept['from_s'])}{a_day}")
    return out
