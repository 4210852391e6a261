"""What it is expected to cost to bring a job to its end on rented nodes: boots, minimum billing,
and interruptions with the work they lose.

Interruptions come at a constant rate (a Poisson process) to each node, and one of them stops the whole job. It goes on,
after another boot, from its last checkpoint. To get through a stretch of s seconds that is lost as a whole takes (exp(r
s) - 1) / r seconds on average at a rate r, and r times that many interruptions: a run is stretches of a checkpoint
interval each, and a shorter last one.
"""

from __future__ import annotations

import math

from ironburst.burst.snapshot import Pool

_NEVER = 50.0  # interruptions expected in one stretch, from which on it never gets through


def on_nodes_s(run_s: float, nodes: int, interruptions_per_hour: float, checkpoint_s: float) -> tuple[float, float]:
    """(seconds that it is expected to run, with what is done twice; interruptions).
    `checkpoint_s` 0: nothing is saved on the way.
    """
    rate = nodes * interruptions_per_hour / 3600
    if rate <= 0 or run_s <= 0:
        return run_s, 0.0
    stretch = min(checkpoint_s, run_s) if checkpoint_s > 0 else run_s
    if rate * stretch > _NEVER or not math.isfinite(run_s):
        return math.inf, math.inf
    whole = math.floor(run_s / stretch)
    took = (whole * math.expm1(rate * stretch) + math.expm1(rate * (run_s - whole * stretch))) / rate
    return took, rate * took


def billed_s(pool: Pool, used_s: float) -> float:
    """Seconds that are paid for a lease that lived so long."""
    over, step = max(0.0, used_s - pool.min_billing_s), pool.billing_increment_s
    return pool.min_billing_s + (step * math.ceil(over / step - 1e-9) if step and math.isfinite(over) else over)


def boot_s(pool: Pool) -> float:
    """From launch to joined: as seen lately, else as declared."""
    return pool.boot_s if pool.usual_boot_s is None else pool.usual_boot_s


def to_completion_usd(pool: Pool, market: str, nodes: int, run_s: float, booted: bool = False) -> float:
    """USD for `run_s` seconds of work, as home does it, on that many nodes of a pool, new ones or (`booted`) such as
    are there. What is prepaid costs nothing more.
    """
    if market in pool.prepaid_markets:
        return 0.0
    seconds = _used_s(pool, market, nodes, run_s, booted)
    seconds = seconds if booted else billed_s(pool, seconds)
    return nodes * (pool.usd_per_hour.get(market) or 0.0) * seconds / 3600


def weight_usd(pool: Pool, market: str, nodes: int, run_s: float) -> float:
    """The same on new nodes, and what their emissions weigh, of prepaid ones, too: by it a place is chosen."""
    usd = to_completion_usd(pool, market, nodes, run_s)
    if not pool.carbon_usd_per_hour:
        return usd
    return usd + nodes * pool.carbon_usd_per_hour * _used_s(pool, market, nodes, run_s) / 3600


def _used_s(pool: Pool, market: str, nodes: int, run_s: float, booted: bool = False) -> float:
    """How long each node is there, boots and what is done twice with it."""
    rate = pool.interruptions_per_hour.get(market, 0.0)
    took_s, again = on_nodes_s(run_s / pool.speed, nodes, rate, pool.checkpoint_s)
    return boot_s(pool) * (again + (0 if booted else 1)) + took_s
