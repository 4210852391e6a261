"""`ironburst explain JOB`: what was decided for one job, when and why; also after it has ended."""

from __future__ import annotations

import argparse
import json
import time
from typing import Any

from ironburst.burst import Infeasible, Wait, explain, from_json, sentence
from ironburst.burst.sentence import Asked
from ironburst.cli import site_options
from ironburst.controller.ledger import Ledger
from ironburst.controller.records import DecisionRow


def add_parser(subparsers: argparse._SubParsersAction) -> None:
    parser = subparsers.add_parser(
        "explain",
        help="why a job waits or was rented for",
        description="Each decision about one job over time, its rented nodes and their cost; also after it has ended. "
        + site_options.EXIT_CODES,
        epilog="example: ironburst explain 4711",
    )
    parser.add_argument("job", type=int, help="Slurm's job id")
    site_options.add(parser, slurm=False, needs_document=False)
    parser.set_defaults(func=run)


@site_options.guarded
def run(arguments: argparse.Namespace) -> int:
    ledger = site_options.open_ledger(arguments, read_only=True)
    said = gather(ledger, arguments.job, time.time())
    print(json.dumps(said) if arguments.json else "\n".join(lines(said)))
    return 0


def gather(ledger: Ledger, job: int, now_s: float) -> dict[str, Any]:
    """Everything that is known of a job, as JSON values. Raises BadInput for one that the controller never saw."""
    row = ledger.job(job) if 0 <= job < 2**63 else None  # a larger one can't be asked for
    if row is None:
        raise site_options.BadInput(
            f"job {job} was never seen by the controller of this ledger: check the number, or --ledger"
        )
    leases = ledger.leases_for(job)
    launches = {lease.launch for lease in leases}
    story = [
        {
            "at_s": d.at_s,
            "last_s": d.last_s,
            "kind": d.kind,
            "code": d.code,
            "text": d.text,
            "look_again_s": d.look_again_s,
        }
        | _figures(d)
        for d in ledger.decisions(job)
    ]
    ids = {lease.id for lease in leases}
    story += [
        {"at_s": e.at_s, "last_s": e.at_s, "kind": "event", "code": e.kind, "text": e.text, "look_again_s": None}
        for e in ledger.events_of(job, launches)
        if e.job == job or (e.job is None and (not e.lease or e.lease in ids))
    ]
    rented = [
        {
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
            "why": ledger.launch(lease.launch).reason,
            "end_reason": lease.end_reason,
        }
        for lease in leases
    ]
    return {
        "job": job,
        "name": row.name,
        "user": row.user,
        "state": row.state,
        "nodes": row.nodes,
        "gpus": row.nodes * row.gpus,
        "time_limit_s": row.time_limit_s,
        "submit_s": row.submit_s,
        "start_s": row.start_s,
        "ran_on": row.ran_on,
        "story": sorted(story, key=lambda each: each["at_s"]),
        "leases": rented,
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
    newest = max(
        (each for each in said["story"] if each["kind"] != "event"), key=lambda each: each["last_s"], default=None
    )
    if newest is None:
        return []
    asked = Asked(said["job"], said["nodes"], said["gpus"] // said["nodes"], said["time_limit_s"])
    if newest["kind"] == "infeasible":
        return [sentence.sentence(asked, Infeasible(said["job"], newest["code"], newest["text"]), newest["last_s"])]
    wait = from_json(Wait, {"job": said["job"], **newest})
    at_s = newest["last_s"]
    rest = [f"  instead: {sentence.alternative(each, wait, at_s)}" for each in wait.alternatives]
    return [sentence.sentence(asked, wait, at_s, site_options.clock(at_s)), *rest]


def lines(said: dict[str, Any]) -> list[str]:
    limit = "no limit" if said["time_limit_s"] is None else f"limit {explain.duration(said['time_limit_s'])}"
    size = f"{explain.plural(said['nodes'], 'node')}, {explain.plural(said['gpus'], 'GPU')}, {limit}"
    state = "has left the queue" if said["state"] == "LEFT_QUEUE" else said["state"]
    out = [
        f"job {said['job']} ({said['name']}, {said['user']}): {size}; submitted {site_options.at(said['submit_s'])}; {state}"
    ]
    if said["ran_on"]:
        out.append(f"on {said['ran_on']} since {site_options.at(said['start_s'])}")
    if not said["ran_on"] and said["state"] == "PENDING":
        out += spoken(said)
    for each in said["story"]:
        until = f" to {site_options.at(each['last_s'])}" if each["last_s"] - each["at_s"] >= 1 else ""
        again = (
            f"; looked at again {site_options.at(each['look_again_s'])} or when something changes"
            if each["look_again_s"]
            else ""
        )
        word = {"wait": "waits", "infeasible": "can't be rented for", "event": each["code"]}[each["kind"]]
        out.append(f"  {site_options.at(each['at_s'])}{until}  {word}: {each['text']}{again}")
    for lease in said["leases"]:
        price = f"{explain.usd(lease['usd_per_hour'])}/h, {explain.usd(lease['usd'])} (estimate)"
        when = f"{site_options.at(lease['from_s'])} to {site_options.at(lease['to_s']) if lease['to_s'] else 'now'}"
        when = when if lease["from_s"] else "never launched"
        out.append(
            f"  rented {lease['node']}: {lease['instance_type']} {lease['market']} {lease['zone']}, {when}, {price}: {lease['why']}"
        )
    return out
