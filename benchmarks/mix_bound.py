"""A certified lower bound of what a mix of instances costs, by HiGHS.

Shadow prices of the shapes certify a bound, wherever they come from: if no pattern of any type is worth more than its
node costs, what all pods together are worth is a bound (weak duality); if some is, the prices are divided by the
worst ratio first (Farley, "A note on bounding a class of linear programming problems", 1990). How much the best pattern
of a type is worth is an integer programme with a row a resource; HiGHS solves it, and what counts is HiGHS's own bound
of it, so that one that isn't solved in time only weakens the result.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import highspy
import numpy as np

from ironburst.burst.patterns import Master, Problem, ceiling

SAFETY = 1e-6  # HiGHS's feasibility tolerance, with room
GAP = 2e-4  # between the bound and the linear programme, at which it's good enough
RG = 1e-3
KNAPSACK_S = 20.0
ROUNDS = 100
PARTS = (0.8, 0.0)  # of the best shadow prices so far in the ones that are tried


@dataclass(frozen=True)
class Bound:
    """`usd_per_hour` that no mix can go below; `programme`: what the linear programme costs with the patterns that were
    found (the bound can't be above it); `seconds` of the search.
    """

    usd_per_hour: float
    programme: float
    seconds: float


def knapsack(problem: Problem, kind: int, value: np.ndarray, count: np.ndarray) -> tuple[float, np.ndarray]:
    """(a number that no pattern of this type is worth more than, a pattern that is worth about that)."""
    most = np.minimum(problem.most[kind], count)
    shapes = np.flatnonzero((most > 0) & (value > 0))
    pattern = np.zeros(len(value))
    if not len(shapes):
        return 0.0, pattern
    resources = np.flatnonzero(problem.need[shapes].any(axis=0))
    solver = highspy.Highs()
    solver.silent()
    solver.setOptionValue("mip_rel_gap", RG)
    solver.setOptionValue("mip_abs_gap", 1e-9)
    solver.setOptionValue("time_limit", KNAPSACK_S)
    solver.setOptionValue("threads", 1)
    model = highspy.HighsLp()
    model.num_col_, model.num_row_ = len(shapes), len(resources)
    # parts of a node, so that the numbers are of one size
    with np.errstate(divide="ignore", invalid="ignore"):
        part = np.nan_to_num(problem.need[np.ix_(shapes, resources)] / problem.room[kind, resources], posinf=1.0)
    model.col_cost_, model.sense_ = value[shapes] / problem.price[kind], highspy.ObjSense.kMaximize
    model.col_lower_, model.col_upper_ = np.zeros(len(shapes)), most[shapes]
    model.row_lower_, model.row_upper_ = np.full(len(resources), -np.inf), np.ones(len(resources))
    model.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    rows, starts, values = [], [0], []
    for column in part:
        used = np.flatnonzero(column)
        rows.extend(used)
        values.extend(column[used])
        starts.append(len(rows))
    model.a_matrix_.start_, model.a_matrix_.index_, model.a_matrix_.value_ = starts, rows, values
    model.integrality_ = [highspy.HighsVarType.kInteger] * len(shapes)
    solver.passModel(model)
    solver.run()
    info = solver.getInfo()
    if info.primal_solution_status == 2:
        pattern[shapes] = np.round(solver.getSolution().col_value)
        if (pattern @ problem.need > problem.room[kind]).any():
            pattern[:] = 0.0
    return float(info.mip_dual_bound) * problem.price[kind], pattern


def certify(problem: Problem, value: np.ndarray, count: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
    """(the bound that these shadow prices certify, types, and for each the best pattern that HiGHS found)."""
    highest, _ = ceiling(problem, value)
    kinds, patterns = [], []
    for kind in np.flatnonzero(highest > problem.price):
        highest[kind], pattern = knapsack(problem, int(kind), value, count)
        kinds.append(kind)
        patterns.append(pattern)
    worst = max(1.0, float((highest / problem.price).max()) + SAFETY)
    return float(value @ count) / worst, np.array(kinds, int), np.array(patterns).reshape(len(kinds), -1)


def lower_bound(problem: Problem, count: np.ndarray, budget_s: float) -> Bound:
    """The best bound that is found in about so many seconds; `count`: pods of each shape, all of which fit somewhere.

    The shadow prices that certified the best bound so far stay in the ones that are tried next (Wentges, "Weighted
    Dantzig-Wolfe decomposition for linear mixed-integer programming", 1997).
    """
    began = time.perf_counter()
    master, best = Master(problem, count), 0.0
    master.generate(ROUNDS)
    centre = master.value
    while True:
        new = 0
        for part in PARTS:
            tried = part * centre + (1 - part) * master.value
            bound, kinds, patterns = certify(problem, tried, count)
            if bound > best:
                best, centre = bound, tried
            new = master.add(kinds, patterns)
            import sys; print(round(time.perf_counter()-began,1), part, master.cost, bound, best, len(master.types), len(kinds), new, file=sys.stderr)
            if new or best >= master.cost * (1 - GAP) or time.perf_counter() - began > budget_s:
                break
        master.solve()
        if not new or best >= master.cost * (1 - GAP) or time.perf_counter() - began > budget_s:
            return Bound(best, master.cost, time.perf_counter() - began)
        master.generate(2)
