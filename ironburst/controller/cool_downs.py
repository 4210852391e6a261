"""Places that refused: closed for a while, twice as long each time (ironburst.burst.backoff),
until one of them is forgiven.
"""

from __future__ import annotations

from ironburst.burst import backoff
from ironburst.controller.ledger import Ledger
from ironburst.controller.records import CoolDownRow, Place

TAKEN_BACK = "a spot node was taken back"
_WAVE_S = 120.0  # the notice that spot gives: so far apart notices of one wave may lie


def close(ledger: Ledger, place: Place, seconds: float | None, reason: str, now_s: float, serial: int) -> float | None:
    """Close a place for requests of `place.nodes` or more, by the document of that serial. `seconds`: for the first
    refusal in a row; None: until a person or a new document reopens it. Until when it is closed.
    """
    with ledger.transaction():
        before = ledger.cool_down_of(place)
        closed = again(place, before, seconds, reason, now_s, serial)
        ledger.put_cool_down(closed)
    return closed.until_s


def taken_back(ledger: Ledger, place: Place, seconds: float, now_s: float, serial: int) -> None:
    """The cloud took a node of this place back that had been given: another one there goes the same way. All that it
    takes in one wave count once.
    """
    before = ledger.cool_down_of(place)
    if before is None or before.reason != TAKEN_BACK or now_s - before.at_s > _WAVE_S:
        close(ledger, place, seconds, TAKEN_BACK, now_s, serial)


def joined(ledger: Ledger, place: Place) -> None:
    """`place.nodes` nodes of a launch there joined: forget what refused that many or fewer.
    Not what a person reopens; and how often nodes were taken back only time shows.
    """
    with ledger.transaction():
        for row in ledger.all_cool_downs():
            there = (row.pool, row.zone, row.market) == (place.pool, place.zone, place.market)
            there = there and row.instance_type in ("", place.instance_type)
            if there and row.nodes <= place.nodes and row.until_s is not None and row.reason != TAKEN_BACK:
                ledger.reopen(*row.place)


def forgive(ledger: Ledger, serial: int, now_s: float) -> None:
    """Forget those that count no more under the document of that serial."""
    with ledger.transaction():
        for row in ledger.all_cool_downs():
            if is_forgiven(row, serial, now_s):
                ledger.reopen(*row.place)


def again(
    place: Place, before: CoolDownRow | None, seconds: float | None, reason: str, now_s: float, serial: int
) -> CoolDownRow:
    """The cool-down after one more refusal; `before`: the one that it follows. What a person reopens stays so. Pure."""
    strikes = before.strikes + 1 if before else 1
    if before and before.until_s is None and seconds is not None:
        return before
    until_s = None if seconds is None else now_s + backoff.lasts_s(seconds, strikes)
    pool, zone, market, nodes, instance_type = place
    return CoolDownRow(pool, zone, market, nodes, until_s, reason, strikes, now_s, serial, instance_type)


def is_forgiven(row: CoolDownRow, serial: int, now_s: float) -> bool:
    """A new document may have cured what was closed until further notice;
    the refusals before an old cool-down count no more. Pure.
    """
    if row.until_s is None:
        return row.serial != serial
    return row.until_s + backoff.FORGIVEN_AFTER * (row.until_s - row.at_s) < now_s
