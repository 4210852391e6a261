"""How a provider's bills name things: what each cloud's room says of a row of FOCUS. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal
from typing import NamedTuple

from ironburst.cost.bill_row import BillRow
from ironburst.cost.causes import UNEXPLAINED


class Credit(NamedTuple):
    """A reduction that is inside a line's cost: its cause, and what it adds (below zero) in the bill's currency."""

    cause: str
    amount: Decimal


class Billed(NamedTuple):
    """What a row is about.

    `resource`: the shortest name that tells it apart, GROUP/NAME where it is in a group of things; `use`: what usage is
    for, INSTANCE or a cause; `hours`: of an instance, or of its GPUs all together (`of_gpus`); `usd_per_hour`: the
    price that the row itself names; `rate`: the column with the rate of a bill that isn't in dollars, if it has one.
    """

    resource: str
    use: str = UNEXPLAINED
    spot: bool = False
    hours: float = 0.0
    of_gpus: bool = False
    usd_per_hour: float | None = None
    rate: str = ""
    credits: tuple[Credit, ...] = ()


class BillProvider(NamedTuple):
    """`title`: for people; `name`: what FOCUS calls it; `instance`: an instance by its id in the ledger, as
    `Billed.resource` names it (empty: it is no id of this cloud).
    """

    title: str
    name: re.Pattern[str]
    instance: Callable[[str], str]
    billed: Callable[[BillRow], Billed]
