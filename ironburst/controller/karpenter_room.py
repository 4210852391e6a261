"""How many nodes Karpenter may have under a budget's ceilings (docs/adr/0045). Pure.

A limit of L nodes is paid for if L new ones are, less what is set aside already for those that are there: Karpenter may
take any of them away at any moment, which gives that back, and launch a new one in its place, which costs all of it. It
launches none before it has fewer than L, so the dearest that can happen is that all are replaced.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from ironburst.burst import Budget
from ironburst.burst.budget import Ceiling
from ironburst.controller.records import ENDING_S, Rate

_ROUNDING_USD = 1e-6
_ALWAYS = Ceiling("month", 0.0, -math.inf, math.inf)


@dataclass(frozen=True)
class Wish:
    """What there is to know of a NodePool."""

    name: str
    new: Rate  # of a new node, from now on
    until_s: float  # a new one costs up to then at most
    most: int  # nodes, by the declaration
    reach: int  # nodes that it may still have, by what it was let have before
    there: tuple[tuple[Rate, float], ...]  # what nodes cost that give back their money when they go, and until when

    def usd(self, nodes: int, ceiling: Ceiling) -> float:
        """What that many nodes may cost under a ceiling beyond what is set aside."""
        from_s = self.new.from_s
        gone_s = from_s + ENDING_S  # it costs while it ends
        back = sum(_usd(rate, gone_s, min(until_s, self.until_s), ceiling) for rate, until_s in self.there)
        return max(0.0, nodes * _usd(self.new, from_s, self.until_s, ceiling) - back)


def reserved(budget: Budget, wishes: Sequence[Wish]) -> Budget:
    """The budget, with all that is within reach set aside."""
    own = [
        replace(each, committed_usd=each.committed_usd + _within_reach(wishes, each, {})) for each in budget.ceilings
    ]
    committed_usd = budget.committed_usd + _within_reach(wishes, _ALWAYS, {})
    return replace(budget, committed_usd=committed_usd, ceilings=tuple(own))


def handed_out(budget: Budget, wishes: Sequence[Wish]) -> dict[str, int]:
    """The nodes that each may have: one at a time to each in turn, as long as every ceiling can pay. Beyond what it
    could have by its last limits only with money that nothing within another one's reach can still take.
    """
    given = {wish.name: 0 for wish in wishes}
    taking = list(wishes)
    while taking:
        for wish in tuple(taking):
            more = {**given, wish.name: given[wish.name] + 1}
            if more[wish.name] <= wish.most and _paid(budget, wishes, more, beyond=more[wish.name] > wish.reach):
                given = more
            else:
                taking.remove(wish)
    return given


def _paid(budget: Budget, wishes: Sequence[Wish], given: Mapping[str, int], *, beyond: bool) -> bool:
    for each in budget.ceilings:
        usd = sum(wish.usd(given[wish.name], each) for wish in wishes)
        usd = max(usd, _within_reach(wishes, each, given)) if beyond else usd
        if usd > max(each.left_usd, 0.0) + _ROUNDING_USD:
            return False
    return True


def _within_reach(wishes: Iterable[Wish], ceiling: Ceiling, given: Mapping[str, int]) -> float:
    return sum(wish.usd(max(wish.reach, given.get(wish.name, 0)), ceiling) for wish in wishes)


def _usd(rate: Rate, from_s: float, until_s: float, ceiling: Ceiling) -> float:
    return rate.usd_per_hour * ceiling.hours(from_s, until_s) if ceiling.account in ("", rate.account) else 0.0
