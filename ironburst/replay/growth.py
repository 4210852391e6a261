"""The three ways to grow, for `ironburst size --halls`: rent, more nodes, or more in the nodes of today."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from ironburst.burst import explain
from ironburst.nodes import ranges
from ironburst.replay.sizing import Candidate

UNKNOWN = (
    "what a node, a GPU or a memory module costs is in no catalogue: --owned-usd-per-gpu-hour is all that is counted",
    "how much memory jobs ask for is in no history that is read: whether more of it would start them isn't counted",
)


def of(
    candidates: Sequence[Candidate],
    best: Candidate | None,
    now: int,
    placed: Callable[[int], Iterable[dict[str, Any]]],
    upgrades: Iterable[dict[str, Any]],
) -> dict[str, Any]:
    """As JSON values. `now`: nodes of today; `placed`, `upgrades`: see ironburst.config.upgrades."""
    today = next((each for each in candidates if each.nodes == now), None)
    more = max(0, best.nodes - now) if best else None
    return {
        "nodes": now,
        "best_nodes": best.nodes if best else None,
        "more_nodes": more,
        "rent": asdict(today) | {"total_usd": today.total_usd} if today else None,
        "best_total_usd": best.total_usd if best else None,
        "own": [] if more is None else list(placed(more)),
        "upgrade": list(upgrades),
        "unknown": list(UNKNOWN),
    }


def lines(said: Mapping[str, Any], instance_type: str) -> Iterator[str]:
    """The same for people."""
    more, rent = said["more_nodes"], said["rent"]
    best = "no candidate keeps the wanted waits" if more is None else f"{said['best_nodes']} of the cheapest candidate"
    yield f"Growth, from {explain.plural(said['nodes'], 'owned node')} of today ({best}):"
    if rent:
        hours, usd = f"{rent['rented_node_hours']:,.0f} node-hours of {instance_type}", f"{rent['rented_usd']:,.0f}"
        reserved = (
            f" beside {explain.plural(rent['reserved_nodes'], 'reserved node')}" if rent["reserved_nodes"] else ""
        )
        late = "" if rent["kept"] else ", and jobs wait too long"
        whole = f"{rent['total_usd']:,.0f} USD in all"
        against = f" against {said['best_total_usd']:,.0f}" if more else ""
        yield f"  rent: {hours}{reserved} a year for {usd} USD; {whole}{against}{late}"
    if more == 0:
        yield "  more nodes: none are cheaper"
    for own in said["own"] if more else ():
        stand = more - own["no_room"]
        yield f"  more nodes: {stand} of {more} more {own['platform']} have room"
        for place in own["halls"]:
            for room in place["rooms"]:
                then = f"{', then' if room['count'] else ':'} {room['then']}" if room["then"] else ""
                yield f"    {place['hall']} {room['rack']}: {room['count'] or 'none'}{then}"
            if place["unlimited"]:
                yield f"    {place['hall']} {', '.join(place['unlimited'])}: no limits are declared, so nobody can say"
    for each in said["upgrade"]:
        yield f"  in {ranges.compact(each['nodes'])} ({each['platform']}): {each['says']}"
    yield from (f"  unknown: {each}" for each in said["unknown"])
