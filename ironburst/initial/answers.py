"""What answers are, and what more than one module asks of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ironburst import catalog

Given = dict[str, Any]
"""key of an answer: what was given, checked"""


class Wrong(ValueError):
    """An answer that can't be used; the text is one sentence."""


@dataclass(frozen=True)
class Question:
    """One thing to be known. `default`: of what is known so far; None: there is none. `when`: whether it is asked."""

    key: str
    words: str
    read: Callable[[str, Given], Any]
    default: Callable[[Given], str | None] = lambda _: None
    when: Callable[[Given], bool] = lambda _: True


def known(look_up: Callable[[str], Any]) -> Callable[[str, Given], str]:
    """Reads what a look-up of the catalogue knows."""

    def read(text: str, _: Given) -> str:
        try:
            look_up(text)
        except catalog.Unknown as error:
            raise Wrong(str(error)) from None
        return text

    return read


def rents(given: Given) -> bool:
    """Whether nodes are to be rented."""
    return given["region"] is not None


def hall(given: Given) -> bool:
    """Whether there is a place with machines: the nodes', or that of a head that is made."""
    return bool(given["nodes"]) or (given["managed"] == "yes" and not given["hosted"])


def made_here(given: Given) -> bool:
    """Whether the cluster's authority is known only once its head is converged."""
    return bool(given["scheduler"] == "kubernetes" and given["managed"] == "yes" and not given["hosted"])


def price_lines(given: Given) -> list[str]:
    """Of `cloud`, where the catalogue has no price of what is rented."""
    if "price" not in given:
        return []
    return [
        "      price: # USD per hour of one instance",
        f"        {given['rent'][0]}: {{on_demand: {given['price']:g}}}",
    ]


def money(given: Given) -> str:
    """The line of the budget."""
    mails = f", notify: [{', '.join(given['mail'])}]" if given["mail"] else ""
    return f"    budget: {{usd_per_month: {given['budget']:g}{mails}}} # the most; usd_per_day and accounts may be less"
