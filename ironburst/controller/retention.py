"""How long the ledger keeps what cost no money. What money was spent on stays, and why."""

from __future__ import annotations

from ironburst.controller.ledger import Ledger

KEEP_S = 90 * 86400.0
_KEY, _EVERY_S = "forgot", 86400.0


def forget_old(ledger: Ledger, now_s: float) -> None:
    """Once a day: forget what is older than KEEP_S."""
    last_s = float(ledger.noted(_KEY) or 0.0)
    if 0 <= now_s - last_s < _EVERY_S:
        return
    with ledger.transaction():
        ledger.forget_before(now_s - KEEP_S)
        ledger.note(_KEY, repr(now_s))
