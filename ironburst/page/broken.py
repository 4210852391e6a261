"""What is broken, of what the controller's files say. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from ironburst.burst import explain
from ironburst.controller.records import EventRow
from ironburst.nodes import naming
from ironburst.nodes import states as node_states
from ironburst.page.seen import At, Look, PageFiles

TOLD_S, TROUBLE_S = 3 * 86400.0, 86400.0  # so long events are shown on top: a weekend, a day
LOOKED_S = 7 * 86400.0  # a look for drift that is older is told
DONE = ("unchanged", "converged")  # hosts of a converge that are as declared
_BAD = ("failed", "unreachable", "invalid", "unknown")
ON_TOP = ("trouble", "needs_a_person", "stale")  # events that are shown on top


@dataclass(frozen=True)
class Trouble:
    """Something that is broken. `act`: a person has to do something, else it heals by itself or is to be known."""

    act: bool
    what: str
    text: str
    when: str = ""


def troubles(seen: PageFiles, at: At) -> list[Trouble]:
    """What a person has to do something about comes first."""
    said = seen.said
    found = [Trouble(True, "The controller is silent", seen.late)] if seen.late else []
    found += [Trouble(True, "Can't be read", text) for text in seen.wrong]
    if said["last_tick"] is None:
        found.append(Trouble(True, "No controller", "none has run with this ledger yet: start it (`ironburst run`)"))
    kinds = [naming.SCHEDULERS[kind] for kind in said["silent"]]
    found += [Trouble(True, f"{name} gave no answer", "at the last tick; its queue isn't known") for name in kinds]
    found += [_order(each, at) for each in said["orders"]]
    found += _closed(said["closed"], at)
    found += [_node(node) for node in said["home"] if node_states.closed(node["states"])]
    now_s = said["at_s"]
    found += _told(seen.events, "needs_a_person", now_s - TOLD_S, "Needs a person", True, at)
    found += _spent(said["money"], at)
    found += _told(seen.events, "trouble", now_s - TROUBLE_S, "Trouble", False, at)
    found += _told(seen.events, "stale", now_s - TROUBLE_S, "Stale", False, at)
    found += _drifted(seen.look, now_s)
    return sorted(found, key=lambda each: not each.act)


def _order(said: dict[str, Any], at: At) -> Trouble:
    who = f"by {said['who']} at {at(said['at_s'])}"
    until = "" if said["until_s"] is None else f", until {at(said['until_s'])}"
    return Trouble(
        False, said["what"], f"{said['why'] or 'no reason was given'} (`{said['lifted_by']}` lifts it)", who + until
    )


def _closed(closed: Iterable[dict[str, Any]], at: At) -> list[Trouble]:
    """One for all places of a pool that are closed for the same reason."""
    places: dict[tuple[str, str, float | None], list[str]] = {}
    for place in closed:
        size = f"{place['nodes']} nodes or more" if place["nodes"] > 1 else ""
        words = " ".join(filter(None, (place["zone"], place["market"], place["instance_type"], size)))
        places.setdefault((place["pool"], place["reason"], place["until_s"]), []).append(words)
    found = []
    for (pool, reason, until_s), where in places.items():
        again = f". Cure the cause, then open it: ironburst open {pool}" if until_s is None else ""
        when = "" if until_s is None else f"until {at(until_s)}"
        found.append(Trouble(until_s is None, f"Pool {pool} is closed", f"{reason} ({', '.join(where)}){again}", when))
    return found


def _node(node: dict[str, Any]) -> Trouble:
    dead = bool({"DOWN", "FAIL", "ERROR", "NOT_RESPONDING", "INVALID_REG"} & set(node["states"]))
    reason = node["reason"] or "no reason is given"
    return Trouble(dead, f"{node['node']} takes no jobs", f"{'+'.join(node['states'])}: {reason}")


def _told(events: Iterable[EventRow], kind: str, since_s: float, what: str, act: bool, at: At) -> list[Trouble]:
    """Each text once, the newest first."""
    newest: dict[str, float] = {}
    times: dict[str, int] = {}
    for event in events:
        if event.kind == kind and event.at_s >= since_s:
            newest[event.text] = max(event.at_s, newest.get(event.text, 0.0))
            times[event.text] = times.get(event.text, 0) + 1
    rows = sorted(newest, key=lambda text: -newest[text])
    often = {text: f", {count} times" if (count := times[text]) > 1 else "" for text in rows}
    return [Trouble(act, what, text, f"{at(newest[text])}{often[text]}") for text in rows]


def _spent(money: dict[str, Any], at: At) -> list[Trouble]:
    full = [row for row in money["ceilings"] if row["spent_usd"] + row["committed_usd"] >= row["usd"]]
    text = "nothing more is rented under it"
    return [Trouble(False, f"{ceiling_name(row)}: nothing is left", text, f"until {at(row['to_s'])}") for row in full]


def _drifted(look: Look, now_s: float) -> list[Trouble]:
    if look.report is None:
        return [Trouble(False, "Drift isn't known", look.why)]
    found = []
    for name, host in look.report["hosts"].items():
        if host["state"] not in DONE:
            found.append(Trouble(host["state"] in _BAD, f"{name} is {host['state']}", host_text(host)))
    if look.report.get("error"):
        found.append(Trouble(True, "The look for drift failed", str(look.report["error"])))
    if (age_s := now_s - look.report["started"]) > LOOKED_S:
        found.append(Trouble(False, "Nobody has looked for drift lately", f"for {explain.duration(age_s)}"))
    return found


def host_text(host: dict[str, Any]) -> str:
    """What is otherwise on a host of a converge."""
    words = [*([host["error"]] if host.get("error") else []), *host.get("why", []), *host.get("remaining", [])]
    return explain.listed(words or [f"{host.get('changed', 0)} tasks would change something"])


def ceiling_name(row: dict[str, Any]) -> str:
    """As people say it."""
    return f"Account {row['account']}, this {row['kind']}" if row["account"] else f"This {row['kind']}"
