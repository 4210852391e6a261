"""What the rented dollars bought: how much later jobs would have started at home, by what was predicted when they were
rented for. Pure.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ironburst.controller.records import DecisionRow
from ironburst.cost.accounted import First


@dataclass(frozen=True)
class Bought:
    """`jobs` began on rented nodes. Of `known` of them the ledger has a predicted start at home: they would have begun
    `later_h` hours later, all together. `no_later`: not later than they began.
    """

    jobs: int
    known: int
    later_h: float
    no_later: int


RENTED = ("renting", "coming", "widened")  # codes of decisions whose start isn't home's


def bought(firsts: Iterable[First], rented_nodes: Iterable[str], home_s: Mapping[int, float]) -> Bought:
    """Of jobs that began on such nodes. `home_s`: their predicted starts at home (`predicted`)."""
    nodes = set(rented_nodes)
    its = [each.run for each in firsts if nodes.intersection(each.run.nodes)]
    later = [home_s[run.job] - (run.start_s or 0.0) for run in its if run.job in home_s]
    return Bought(len(its), len(later), sum(max(each, 0.0) for each in later) / 3600, sum(each <= 0 for each in later))


def predicted(decisions: Iterable[DecisionRow]) -> dict[int, float]:
    """By job, when home would have started it: the newest prediction that was written down, from before it was rented
    for or from that very moment. `decisions`: the oldest first.
    """
    found: dict[int, float] = {}
    for row in decisions:
        at_s = _home_s(row)
        if at_s is not None:
            found[row.job] = at_s
    return found


def _home_s(row: DecisionRow) -> float | None:
    """None: this row says nothing of home."""
    try:
        said = json.loads(row.figures) if row.figures else {}
        home = [each["in_s"] for each in said.get("alternatives", ()) if each["what"] == "home"]
        if home:
            return row.last_s + float(home[0])
        start_s = said.get("start_s")
        return None if row.code in RENTED or start_s is None else float(start_s)
    except (ValueError, KeyError, TypeError, AttributeError):
        return None  # an older ironburst wrote it
