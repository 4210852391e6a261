"""What answers are, and what more than one module asks of them."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterator
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


def matching(form: str, refusal: str) -> Callable[[str, Given], str]:
    """Reads a text of this form, a regular expression, whole. `refusal`: what is said of another, behind it."""

    def read(text: str, _: Given) -> str:
        if not re.fullmatch(form, text):
            raise Wrong(f"{text!r} {refusal}")
        return text

    return read


def rents(given: Given) -> bool:
    """Whether nodes are to be rented."""
    return given["region"] is not None


def rents_in(provider: str) -> Callable[[Given], bool]:
    """Whether that is in this cloud."""
    return lambda given: rents(given) and catalog.region(given["region"]).provider == provider


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


def zones(form: str, example: str) -> Callable[[str, Given], list[str]]:
    """Reads zones of the region as they were answered. `form`: what follows its name, a regular expression."""

    def read(text: str, given: Given) -> list[str]:
        named = text.replace(",", " ").split()
        for zone in named:
            if not re.fullmatch(re.escape(given["region"]) + form, zone):
                said = f"{zone!r} is not a zone of {given['region']}; write for example {given['region']}{example}"
                raise Wrong(said)
        return named

    return read


def alike(given: Given, provider: str) -> str | None:
    """Two of the cheapest instance type of a cloud that has the GPUs of an owned node and a price on demand; None:
    there is none.
    """
    home = catalog.platform(given["platform"]) if given["nodes"] else None
    like = [
        (kind.od_usd_per_hour, kind.name)
        for kind in catalog.instance_types(provider).values()
        if home and (kind.gpu_model, kind.gpu_count) == (home.gpu.model, home.gpu_count) and kind.od_usd_per_hour
    ]
    return f"{min(like, key=lambda each: each[0])[1]}=2" if like else None


def free_networks(given: Given) -> Iterator[str]:
    """Networks of 65,536 addresses that the nodes' isn't one of."""
    taken = ipaddress.IPv4Network(given.get("network") or "10.0.0.0/32")
    return (f"10.{n}.0.0/16" for n in range(90, 250) if not ipaddress.IPv4Network(f"10.{n}.0.0/16").overlaps(taken))


def pool_lines(given: Given, called: str) -> Iterator[str]:
    """Of `cloud`: the one pool, or what it will be. `called`: what its name is made of."""
    (kind, nodes), named = given["rent"], f"[{', '.join(given['zones'])}]"
    name = re.sub(r"[^a-z0-9]", "", called.lower())
    pool = f"{{name: {name}, instance_type: {kind}, max_nodes: {nodes}, zones: {named}}}"
    if made_here(given):
        yield "      pools: [] # once the head is converged: write its authority under scheduler.ca, and then"
        yield f"      # pools: [{pool}]"
    else:
        yield "      pools:"
        yield f"        - {pool} # markets: [spot, on-demand] for jobs that may be requeued"
