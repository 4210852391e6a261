"""A certified lower bound of what a mix of instances costs, by HiGHS.

Shadow prices of the shapes certify a bound, wherever they come from: if no pattern of any type is worth more than its
node costs, what all pods together are worth is a bound (weak duality); if some is, the prices are divided by the
worst ratio first (Farley, "A note on bounding a class of linear programming problems", 1990). How much the best pattern
of a type is worth is an integer programme with a row a resource; HiGHS solves it, and what counts is HiGHS's own bound
of it, so that one that isn't solved in time only weakens the result.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import highspy
import numpy as np

from ironburst.burst.mix import NodeType, Pod, Shape
from ironburst.burst.patterns import Master, Problem, ceiling, holds

SAFETY = 1e-6  # HiGHS's feasibility tolerance, with room
ENOUGH = 5e-4  # between the bound and the linear programme
MOST_SHAPES = 300  # in the linear programme
KNAPSACK_GAP, KNAPSACK_S = 5e-4, 20.0
ROUNDS, MORE_ROUNDS = 60, 2  # of the search for patterns without HiGHS: at first, and after each time that it was asked
KEPT = (0.8, 0.0)  # parts of the best shadow prices so far that go into those that are tried


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
    # parts of a node and of its price, so that the numbers are of one size
    part = problem.need[np.ix_(shapes, resources)] / problem.room[kind, resources]
    solver, columns = highspy.Highs(), np.arange(len(shapes), dtype=np.int32)
    solver.silent()
    for option, setting in {"mip_rel_gap": KNAPSACK_GAP, "time_limit": KNAPSACK_S, "threads": 1}.items():
        solver.setOptionValue(option, setting)
    solver.addVars(len(columns), np.zeros(len(columns)), most[shapes])
    solver.changeColsCost(len(columns), columns, value[shapes] / problem.price[kind])
    solver.changeColsIntegrality(len(columns), columns, np.full(len(columns), highspy.HighsVarType.kInteger))
    for row in part.T:
        solver.addRow(-highspy.kHighsInf, 1.0, len(columns), columns, row)
    solver.changeObjectiveSense(highspy.ObjSense.kMaximize)
    solver.run()
    found = solver.getInfo()
    if found.primal_solution_status == highspy.SolutionStatus.kSolutionStatusFeasible:
        pattern[shapes] = np.round(solver.getSolution().col_value)
        if (pattern @ problem.need > problem.room[kind]).any():
            pattern[:] = 0.0
    return float(found.mip_dual_bound) * problem.price[kind], pattern


def certify(problem: Problem, value: np.ndarray, count: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
    """(the bound that these shadow prices certify, types, and for each the best pattern that HiGHS found)."""
    highest, _ = ceiling(problem, value)
    kinds, patterns = [], []
    for kind in np.flatnonzero(highest > problem.price):
        highest[kind], pattern = knapsack(problem, int(kind), value, count)
        kinds.append(kind)
        patterns.append(pattern)
    worst = np.maximum(1.0, (highest / problem.price).max() + SAFETY)  # of NaN: NaN, which is no bound
    return float(value @ count / worst), np.array(kinds, int), np.array(patterns).reshape(len(kinds), len(value))


def lower_bound(problem: Problem, count: np.ndarray, budget_s: float) -> Bound:
    """The best bound that is found in about so many seconds; `count`: pods of each shape, all of which fit somewhere.

    The shadow prices that certified the best bound so far stay in those that are tried next (Wentges, "Weighted
    Dantzig-Wolfe decomposition for linear mixed-integer programming", 1997).
    """
    began, best = time.perf_counter(), 0.0
    master = Master(problem, count)
    master.generate(ROUNDS)
    centre = master.value
    while True:
        for kept in KEPT:
            tried = kept * centre + (1 - kept) * master.value
            bound, kinds, patterns = certify(problem, tried, count)
            if bound > best:
                best, centre = bound, tried
            if new := master.add(kinds, patterns):
                break
        if not new or best >= master.cost * (1 - ENOUGH) or time.perf_counter() - began > budget_s:
            return Bound(best, master.cost, time.perf_counter() - began)
        master.solve()
        master.generate(MORE_ROUNDS)


def grouped(shapes: Sequence[Shape], most: int) -> list[list[Shape]]:
    """The shapes, each alone or, if they are more than `most`, with those that are nearly as large (and ask for
    the same GPUs): by steps on a geometric scale, which become longer until the groups are few enough or a step is a
    factor of e.
    """
    step = 0.0
    while True:
        groups: dict[object, list[Shape]] = {}
        for shape in shapes:
            gpus, cpu, memory, model = shape
            scale = [math.ceil(math.log(size + 1) / step) if step else size for size in (cpu, memory)]
            groups.setdefault((gpus, *scale, model), []).append(shape)
        if len(groups) <= most or step > 1:
            return list(groups.values())
        step = max(0.01, step * 1.25)


def of(pods: Sequence[Pod], types: Sequence[NodeType], budget_s: float) -> Bound:
    """A bound of what these pods, each of which fits into some type, cost. Shapes that are too many are taken together
    as the least that their pods ask for: that can only make it lower.
    """
    if not pods:
        return Bound(0.0, 0.0, 0.0)
    shapes = Counter((pod.gpus, pod.cpu_milli, pod.memory_mib, pod.gpu_model) for pod in pods)
    groups = grouped(list(shapes), MOST_SHAPES)
    need = np.array([(*(min(shape[at] for shape in group) for at in range(3)), 1) for group in groups], float)
    room = np.array([kind.room for kind in types], float)
    models = np.array([[group[0][3] in (None, kind.gpu_model) for group in groups] for kind in types])
    allowed = (models & (holds(room[:, None, :], need) > 0)).astype(float)
    count = np.array([sum(shapes[shape] for shape in group) for group in groups], float)
    return lower_bound(Problem(need, room, np.array([kind.usd_per_hour for kind in types]), allowed), count, budget_s)
