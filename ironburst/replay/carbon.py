"""What a price of carbon changes in a played trace: it is played again with none. Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from ironburst.burst import Pool, explain
from ironburst.replay import results
from ironburst.replay.declared import Declared, DeclaredCarbon
from ironburst.replay.outcome import Played
from ironburst.replay.simulate import play
from ironburst.replay.traces import Trace

HEAD = f"{'carbon':22}"


def unweighed(trace: Trace, declared: Declared, progress: Callable[[int, int], None] | None = None) -> Played | None:
    """The trace played without the price. None: carbon weighs nothing."""
    if declared.carbon is None:
        return None
    cloud = replace(declared.cloud, pools=tuple(map(_weightless, declared.cloud.pools)))
    return play(trace, declared.home, declared.policy, cloud, progress)


def gather(trace: Trace, declared: Declared, played: Played, without: Played | None) -> dict[str, Any] | None:
    """With the price and without it (`unweighed`), as JSON values. None: carbon weighs nothing."""
    carbon = declared.carbon
    if carbon is None or without is None:
        return None
    return {
        "usd_per_tonne": carbon.usd_per_tonne,
        "gco2_per_kwh": dict(carbon.gco2_per_kwh),
        "with": _figures(trace, declared, carbon, played),
        "without": _figures(trace, declared, carbon, without),
    }


def _weightless(pool: Pool) -> Pool:
    others = tuple(replace(each, carbon_usd_per_hour=0.0) for each in pool.other_types)
    return replace(pool, carbon_usd_per_hour=0.0, other_types=others)


def _figures(trace: Trace, declared: Declared, carbon: DeclaredCarbon, played: Played) -> dict[str, float]:
    """`kg`: of all leases, as if their nodes had been at work all the time."""
    first = {pool.name: pool.instance_type for pool in declared.cloud.pools}
    grams = sum(
        (bill.to_s - bill.from_s)
        / 3.6e6
        * carbon.watts.get(bill.instance_type or first[bill.pool], 0.0)
        * carbon.gco2_per_kwh.get(bill.pool, 0.0)
        for bill in played.bills
    )
    return {
        "kg": grams / 1000,
        "usd": played.total_usd,
        "mean_h": results.waits(trace, played.start_s).mean_h,
    }


def lines(said: dict[str, Any] | None) -> list[str]:
    """What `gather` gathered, for people."""
    if said is None:
        return []
    now, before = said["with"], said["without"]
    head = f"{HEAD}at {explain.usd(said['usd_per_tonne'])} a tonne: "
    if now == before:
        return [f"{head}{now['kg']:,.0f} kg CO2e of rented nodes at work, as without a price: it changes nothing here"]
    per_tonne = (now["usd"] - before["usd"]) / (before["kg"] - now["kg"]) * 1000 if before["kg"] > now["kg"] else None
    costs = f", {explain.usd(per_tonne)} for each tonne less" if per_tonne is not None and per_tonne > 0 else ""
    waits = [explain.duration(3600 * each["mean_h"]) for each in (now, before)]
    paid = f"paid {explain.usd(now['usd'])} (without {explain.usd(before['usd'])}{costs})"
    return [
        f"{head}{now['kg']:,.0f} kg CO2e of rented nodes at work (without a price {before['kg']:,.0f})",
        f"{'':22}{paid}, mean wait {waits[0]} (without {waits[1]})",
    ]
