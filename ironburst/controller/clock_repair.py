"""A clock that is put back uncounts no money: as much time has passed since the last tick as the host was up."""

from __future__ import annotations

import json
from typing import NamedTuple

from ironburst.controller.ledger import Ledger
from ironburst.ports import Uptime

_KEY = "clock"
_ROUNDING_S = 0.1  # of a clock; less is no step
_STEP_S = 30.0  # what may be put right without us doubting a clock


class LastTick(NamedTuple):
    """When the last tick began, by the clock and by the host's uptime. An older ironburst wrote only the clock."""

    at_s: float
    boot: str = ""
    up_s: float = 0.0


def tick_began(ledger: Ledger, now_s: float, tick_s: float, uptime: Uptime) -> float:
    """Write down that a tick begins, and pay for the time that the clock lost since the last one.
    Returns when the last one began, by the clock, seconds since 1970; `now_s` where there was none.
    """
    last = _noted(ledger)
    with ledger.transaction():
        if last is not None and (lost := lost_s(last, now_s, tick_s, uptime)) > _ROUNDING_S:
            ledger.backdate(lost)
        ledger.note(_KEY, json.dumps([now_s, *uptime]))
    return now_s if last is None else last.at_s


def goes_on(ledger: Ledger, now_s: float, uptime: Uptime) -> bool:
    """Whether the clock has gone with the host's uptime since the last tick: it is as right as it was then."""
    last = _noted(ledger)
    known = last is not None and last.boot and last.boot == uptime.boot
    return bool(last and known and abs(lost_s(last, now_s, 0.0, uptime)) <= _STEP_S)


def lost_s(last: LastTick, now_s: float, tick_s: float, uptime: Uptime) -> float:
    """By how much the clock is behind the time that has passed since: what the host was up, or one tick since another
    boot. Below 0: it was put forward, or the controller was away. Pure.
    """
    passed_s = uptime.seconds - last.up_s if last.boot and last.boot == uptime.boot else tick_s
    return last.at_s + passed_s - now_s


def _noted(ledger: Ledger) -> LastTick | None:
    said = json.loads(ledger.noted(_KEY) or "null")
    if said is None:
        return None
    return LastTick(*said) if isinstance(said, list) else LastTick(said)
