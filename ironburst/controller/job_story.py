"""The story of one job, by the ledger: what was decided, when and why; as JSON values, and for people."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from typing import Any

from ironburst.burst import Infeasible, Wait, explain, from_json, sentence
from ironburst.burst.sentence import Asked
from ironburst.controller.ledger import Ledger
from ironburst.controller.records import DecisionRow, EventRow, LeaseRow
from ironburst.nodes import naming
from ironburst.system import local_time
from ironburst.system.bad_input import BadInput

SILENT_S = 600.0
"""a decision older than that is told with its age"""


def numbers(ledger: Ledger, asked: str) -> list[int]:
    """Of one job, or of all parts of one. Raises BadInput for what nobody has, and for what is no number of Slurm's."""
    if re.fullmatch(r"-?[0-9]{1,18}", asked):
        parts = [row.job for row in ledger.parts(int(asked))]
        return sorted({*parts, int(asked)} if ledger.job(int(asked)) else parts) or [int(asked)]
    if together := re.fullmatch(r"([0-9]{1,10})_\[.*\]", asked):  # as squeue writes tasks that wait together
        return numbers(ledger, together[1])
    if part := re.fullmatch(r"([0-9]+)(?=[_+@])(?:[_+][0-9]+)?(?:@[0-9TZ:-]+)?", asked):
        return [_part(ledger, asked, int(part[1]))]
    if found := ledger.job(asked):
        return [found.job]
    if re.fullmatch(r"-?[0-9]+", asked):
        return [int(asked)]  # nobody's
    if re.fullmatch(r"[0-9][0-9_+,:%\[\]-]*", asked):
        raise BadInput(
            f"{asked!r} is no job's number: write N, a task of an array as N_M, or a part of a heterogeneous job as N+M"
        )
    raise BadInput(
        f"no job {asked!r} was seen by the controller of this ledger: check the name (pods have NAMESPACE/NAME), "
        "or --ledger"
    )


def _part(ledger: Ledger, asked: str, whole: int) -> int:
    """Raises BadInput."""
    rows = ledger.parts(whole)
    for row in rows:
        if row.called == asked:
            return row.job
    seen = f"nor any part of {whole}"
    if rows:
        saw = explain.listed(row.called for row in rows)
        seen = f"of job {whole} it saw {saw}, for of an array that waits the next 100 tasks are looked at"
    raise BadInput(f"job {asked} was never seen by the controller of this ledger; {seen}")


def gather(ledger: Ledger, job: int, now_s: float) -> dict[str, Any]:
    """Everything that is known of a job, as JSON values. Raises BadInput for one that the controller never saw."""
    row = ledger.job(job) if abs(job) < 2**63 else None  # a larger one can't be asked for
    if row is None:
        raise BadInput(f"job {job} was never seen by the controller of this ledger: check the number, or --ledger")
    leases = ledger.leases_for(job)
    ids, launches = {lease.id for lease in leases}, {lease.launch for lease in leases}
    events = [
        event
        for event in ledger.events_of(job, launches)
        if event.job == job or (event.job is None and (not event.lease or event.lease in ids))
    ]
    story = [*map(decision, ledger.decisions(job)), *map(_event, events)]
    return {
        "job": job,
        "scheduler": naming.scheduler_of(job),
        "called": row.called or str(job),
        "name": row.name,
        "user": row.user,
        "state": row.state,
        "nodes": row.nodes,
        "gpus": row.nodes * row.gpus,
        "time_limit_s": row.time_limit_s,
        "submit_s": row.submit_s,
        "start_s": row.start_s,
        "ran_on": row.ran_on,
        "last_s": row.last_s,
        "asked_s": now_s,
        "story": sorted(story, key=lambda item: item["at_s"]),
        "prices_as_of": json.loads(ledger.noted("last_tick") or "{}").get("prices_as_of"),
        "leases": [_lease(lease, ledger.launch(lease.launch).reason, now_s) for lease in leases],
    }


def decision(row: DecisionRow) -> dict[str, Any]:
    """One decision as `gather` has it."""
    return {
        "at_s": row.at_s,
        "last_s": row.last_s,
        "kind": row.kind,
        "code": row.code,
        "text": row.text,
        "look_again_s": row.look_again_s,
        **_figures(row),
    }


def _event(row: EventRow) -> dict[str, Any]:
    return {
        "at_s": row.at_s,
        "last_s": row.at_s,
        "kind": "event",
        "code": row.kind,
        "text": row.text,
        "look_again_s": None,
    }


def _lease(lease: LeaseRow, why: str, now_s: float) -> dict[str, Any]:
    return {
        "node": lease.node,
        "instance_type": lease.instance_type,
        "market": lease.market,
        "zone": lease.zone,
        "state": lease.state,
        "instance_id": lease.instance_id,
        "usd_per_hour": lease.usd_per_hour,
        "from_s": lease.from_s,
        "to_s": lease.to_s,
        "usd": lease.usd(now_s),
        "why": why,
        "end_reason": lease.end_reason,
    }


def _figures(row: DecisionRow) -> dict[str, Any]:
    """What was expected, and the alternatives; nothing where an older ironburst wrote the row."""
    try:
        said = json.loads(row.figures) if row.figures else {}
        return {name: said[name] for name in ("start_s", "usd", "run_s", "alternatives")} if said else {}
    except (ValueError, KeyError, TypeError):
        return {}


def spoken(said: dict[str, Any]) -> list[str]:
    """The newest decision as a sentence, then the alternatives that were rejected. Empty: nothing was decided yet."""
    decisions = [item for item in said["story"] if item["kind"] != "event"]
    if not decisions:
        return []
    newest = max(decisions, key=lambda item: item["last_s"])
    at_s = newest["last_s"]
    asked = Asked(said["called"], said["nodes"], said["gpus"] // said["nodes"], said["time_limit_s"])
    if newest["kind"] == "infeasible":
        return [sentence.sentence(asked, Infeasible(said["job"], newest["code"], newest["text"]), at_s)]
    wait = from_json(Wait, {"job": said["job"], **newest})
    rest = [f"  instead: {sentence.alternative(choice, wait, at_s)}" for choice in wait.alternatives]
    return [sentence.sentence(asked, wait, at_s, local_time.clock(at_s)), *rest]


def lines(said: dict[str, Any]) -> list[str]:
    """What `gather` gathered, for people."""
    limit = "no limit" if said["time_limit_s"] is None else f"limit {explain.duration(said['time_limit_s'])}"
    size = f"{explain.plural(said['nodes'], 'node')}, {explain.plural(said['gpus'], 'GPU')}, {limit}"
    state = "has left the queue" if said["state"] == "LEFT_QUEUE" else said["state"]
    whose = " of Kubernetes" if said["scheduler"] == "kubernetes" else ""
    who = f"job {said['called']}{whose} ({said['name']}, {said['user']})"
    out = [f"{who}: {size}; submitted {local_time.at(said['submit_s'])}; {state}"]
    pending, ended = said["state"] == "PENDING", said["state"] == "LEFT_QUEUE"
    if said["ran_on"]:
        before = "was on" if pending or ended else "on"
        until = f"; it was last seen {local_time.at(said['last_s'])}" if ended else ""
        since = f"{'from' if ended else 'since'} {local_time.at(said['start_s'])}"
        out.append(f"{before} {said['ran_on']} {since}{until}")
    decided_s = max((item["last_s"] for item in said["story"] if item["kind"] != "event"), default=0.0)
    now = pending and decided_s >= said["last_s"]
    if now:
        out += spoken(said)
        if said["asked_s"] - decided_s > SILENT_S:
            out.append(f"so it was {local_time.at(decided_s)}; nothing was decided since: see `ironburst status`")
    elif pending:
        out.append("nothing is decided of it now: it came or came back just now, or nobody rents for its partition")
    told = [_story_line(item, now and item["last_s"] == decided_s) for item in said["story"]]
    today = datetime.fromtimestamp(said["asked_s"], UTC).date()
    priced = [f"dollars are estimates, prices of {local_time.prices_of(said['prices_as_of'], today)}"]
    return [*out, *told, *map(_lease_line, said["leases"]), *priced]


def _story_line(item: dict[str, Any], now: bool) -> str:
    until = f" to {local_time.at(item['last_s'])}" if item["last_s"] - item["at_s"] >= 1 else ""
    again = ""
    if now and item["look_again_s"]:
        again = f"; looked at again {local_time.at(item['look_again_s'])} or when something changes"
    word = {"wait": "waits", "infeasible": "can't be rented for", "event": item["code"]}[item["kind"]]
    return f"  {local_time.at(item['at_s'])}{until}  {word}: {item['text']}{again}"


def _lease_line(lease: dict[str, Any]) -> str:
    what = f"{lease['instance_type']} {lease['market']} {lease['zone']}"
    price = f"{explain.usd(lease['usd_per_hour'])}/h, {explain.usd(lease['usd'])} (estimate)"
    when = "never launched"
    if lease["from_s"]:
        until = local_time.at(lease["to_s"]) if lease["to_s"] else "now"
        when = f"{local_time.at(lease['from_s'])} to {until}"
    return f"  rented {lease['node']}: {what}, {when}, {price}: {lease['why']}"
