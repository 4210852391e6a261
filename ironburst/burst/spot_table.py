"""What it is expected to cost to bring a job to its end by its deadline with spot, on demand and waiting. Pure.

Spot in a market comes and goes in spells; how likely one ends in the next step depends on how old it is (most are over
in minutes, those that aren't last for hours). From that the cheapest next step follows for each time that is left, work
that is left, spell and place, backwards from the deadline (a Markov decision process). What could end late whatever
spot does costs endlessly, so it is never chosen while anything else is possible.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

if TYPE_CHECKING:  # it is loaded where it is used: `ironburst status` would wait for it
    import numpy as np
    from numpy.typing import NDArray

STEP_S = 600.0
AGES = (0, 1, 2, 3, 6, 12, 24, 48)  # steps: where the groups of ages begin
CELLS = 4  # of work in a step
TABLES = (126, 504)  # steps of a table, up to 3.5 days; for what takes longer each step is longer
_LATE = 1e9  # in steps' price on demand
WAIT, SPOT, ON_DEMAND = range(3)  # what is to be done, and (waiting: nothing) what the job is on

# where there is a choice, by (spot is there, what the job is on): the place of its two bits
_SHIFT = {(False, WAIT): 0, (True, WAIT): 2, (True, SPOT): 4, (True, ON_DEMAND): 6}

Floats: TypeAlias = "NDArray[np.floating[Any]]"
Odds = tuple[tuple[float, ...], tuple[float, ...]]
"""by (away, there), then by group of ages: the chance that a spell ends in a step"""


class Terms(NamedTuple):
    """What a table is made for."""

    odds: Odds
    price: float  # of spot, on demand being 1
    changeover: int  # cells of work that a launch costs
    lost: int  # cells of work that are done again after an interruption, or a move
    scale: int = 1  # so many of STEP_S are a step


def age_group(steps: float) -> int:
    """Of a spell that is so old."""
    return sum(steps >= begins for begins in AGES[1:])


def best(terms: Terms, steps: int, left: int, there: bool, age: int, on: int, cells: int) -> int:
    """What is best to do, by a table of so many steps: with `left` of them to the deadline, spot there or not in a
    spell of that group of ages, the job on `on`, and so many cells of work left.
    """
    packed = int(_table(terms, steps)[left, age, cells])
    return packed >> _SHIFT[there, on] & 3 if (there, on) in _SHIFT else ON_DEMAND


@lru_cache(maxsize=8)
def _table(terms: Terms, steps: int) -> NDArray[np.uint8]:
    """What is best, two bits for each of _SHIFT, by [steps left, group of ages, cells of work left]. 8 MB at most."""
    import numpy as np

    odds = (1 - (1 - np.array(terms.odds, np.float32)) ** terms.scale)[..., None]  # of a longer step
    widths = np.diff(np.array([*AGES, np.inf], np.float32)) / terms.scale
    older = np.clip(1 / widths, 0.0, 1.0).astype(np.float32)[:, None]
    extra, cells = terms.changeover + terms.lost, CELLS * steps + 1
    billed = np.minimum(np.arange(cells + extra), CELLS).astype(np.float32) / CELLS
    # [there, age, work] of a job that is on nothing, on spot and on demand
    usd = [np.full((2, len(AGES), cells + extra), _LATE, np.float32) for _ in range(3)]
    for each in usd:
        each[..., 0] = 0.0
    packed = np.full((steps + 1, len(AGES), cells), sum(ON_DEMAND << shift for shift in _SHIFT.values()), np.uint8)
    for left in range(1, steps + 1):
        # what is more work than that is too late whatever is done
        usable = CELLS * left + 1
        end = min(usable + extra, cells + extra)
        usd[SPOT][0] = _delayed(usd[WAIT][0], terms.lost)  # away from spot: it has just lost it
        later = [_expected(each[..., :end], odds, older) for each in usd]
        spot = (terms.price * billed[:end] + _worked(later[SPOT][1])).astype(np.float32, copy=False)
        demand = (billed[:end] + _worked(later[ON_DEMAND])).astype(np.float32, copy=False)
        new_demand, moved, given_up = (
            _delayed(each, cells_of)
            for each, cells_of in ((demand, terms.changeover), (spot, extra), (demand[1], extra))
        )
        new_spot, here = _delayed(spot, terms.changeover), packed[left, :, : min(usable, cells)]
        ways: list[tuple[int, int, dict[int, Floats]]] = [
            (0, WAIT, {ON_DEMAND: new_demand[0], WAIT: later[WAIT][0]}),
            (1, WAIT, {ON_DEMAND: new_demand[1], WAIT: later[WAIT][1], SPOT: new_spot}),
            (1, SPOT, {ON_DEMAND: given_up, SPOT: spot}),
            (0, ON_DEMAND, {ON_DEMAND: demand[0]}),
            (1, ON_DEMAND, {ON_DEMAND: demand[1], SPOT: moved}),
        ]
        for there, on, each_usd in ways:
            least = each_usd.pop(ON_DEMAND)
            chosen = np.full(here.shape, ON_DEMAND, np.uint8)
            for what, costs in each_usd.items():
                better = costs < least
                least = np.where(better, costs, least)
                chosen[better[:, : here.shape[-1]]] = what
            if (shift := _SHIFT.get((bool(there), on))) is not None:
                here ^= (chosen ^ ON_DEMAND) << shift
            least[:, 0] = 0.0
            usd[on][there, :, :end] = np.minimum(least, _LATE)
    return packed


def _expected(usd: Floats, odds: Floats, older: Floats) -> Floats:
    """A step later: the spell has ended, or goes on and may have got into the next group of ages."""
    aged = usd.copy()
    aged[:, :-1] = usd[:, 1:]
    expected: Floats = odds * usd[::-1, :1] + (1 - odds) * (older * aged + (1 - older) * usd)
    return expected


def _worked(usd: Floats) -> Floats:
    """With a step's work before it."""
    worked = usd.copy()
    worked[..., :CELLS] = usd[..., :1]
    worked[..., CELLS:] = usd[..., :-CELLS]
    return worked


def _delayed(usd: Floats, cells: int) -> Floats:
    """With so many cells of work more."""
    delayed, left = usd.copy(), usd.shape[-1] - cells
    delayed[..., :left], delayed[..., left:] = usd[..., cells:], _LATE
    return delayed
