"""What fits into one node, and the linear programme over it: the arithmetic under `mix`.

A *shape* is a set of equal pods, a *pattern* the number of pods of each shape in one node of some type. Covering all
pods by patterns at the least price is a linear programme with a column a pattern; its columns are made when they are
wanted, from the shadow prices of the shapes (Gilmore and Gomory, "A linear programming approach to the cutting-stock
problem", 1961). Nothing here is drawn by chance but from a fixed seed.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]

NOTHING = 1e-9
HELPS = 1e-8  # USD/h that a pattern must be worth more than it costs
LOOKED_AT = 60  # patterns at a time
STEPS = 8  # of the weights that are tried for each resource
KEPT = 10  # patterns of each type that are improved
TRIES = 12  # changes of each pattern
CHANCE = 0.1  # standard deviation of the logarithm of what a pod's worth is taken for
SEEDED = 12  # rounds in which patterns are sought from nothing; then known ones are changed
REFACTOR = 256  # pivots after which the inverse is made anew
MISSES = 3  # rounds without a pattern that helps, after which there is none
SMOOTH = 0.5  # how much of the shadow prices of the round before goes into those that patterns are sought for


@dataclass(frozen=True, eq=False)
class Problem:
    """`need` (shapes x resources) and `room` (types x resources): whole numbers; `price` (USD/h of each type);
    `allowed` (types x shapes; 0 or 1). The last resource is the number of pods: each needs one.
    """

    need: Floats
    room: Floats
    price: Floats
    allowed: Floats

    @cached_property
    def most(self) -> Floats:
        """How many pods of each shape fit into a node of each type (types x shapes)."""
        return self.allowed * holds(self.room[:, None, :], self.need[None, :, :])

    @cached_property
    def weights(self) -> Floats:
        """What a unit of each resource may weigh, as a part of the whole node (weights x resources)."""
        grid = np.array(list(np.ndindex((STEPS + 1,) * self.need.shape[1])), float)
        weights: Floats = grid[grid.sum(axis=1) == STEPS] / STEPS
        return weights

    @cached_property
    def weight(self) -> Floats:
        """What part of a node a pod takes, by each of the weights (types x weights x shapes)."""
        with np.errstate(divide="ignore", invalid="ignore"):
            part = np.nan_to_num(self.need[None] / self.room[:, None, :], posinf=1.0)
        weight: Floats = np.einsum("tsr,wr->tws", part, self.weights)
        return weight + NOTHING


def holds(room: Floats, need: Floats) -> Floats:
    """How many pods of `need` fit into `room`, over the last axis (exact: whole numbers under 2**53)."""
    with np.errstate(divide="ignore", invalid="ignore"):
        found: Floats = np.floor(np.fmin.reduce(room / need, axis=-1))
    return np.maximum(found, 0.0)


def ceiling(problem: Problem, value: Floats) -> tuple[Floats, Integers]:
    """(what no pattern of each type is worth more than, the weights that say so): by weak duality of the knapsack. With
    some weights no pod is worth more than a given amount for a unit of weight, and the whole node weighs 1.
    """
    worth = np.where(problem.most > 0, value, 0.0)[:, None, :] / problem.weight
    best = worth.max(axis=2, initial=0.0)
    chosen = best.argmin(axis=1)
    return best[np.arange(len(chosen)), chosen] * (1 + NOTHING), chosen


def fill(problem: Problem, types: Integers, order: Integers, left: Floats, begun: Floats) -> Floats:
    """Patterns (rows x shapes), one for each of `types`: what is `begun`, and then as many pods of each shape as fit,
    and as are `left`, in its row of `order` (rows x some shapes).
    """
    rows, patterns = np.arange(len(types)), begun.copy()
    room = problem.room[types] - patterns @ problem.need
    for shapes in order.T:
        need = problem.need[shapes]
        count = np.minimum(holds(room, need), left[shapes] - patterns[rows, shapes])
        count *= problem.allowed[types, shapes]
        patterns[rows, shapes] += count
        room -= count[:, None] * need
    return patterns


def improve(problem: Problem, types: Integers, patterns: Floats, value: Floats, left: Floats) -> Floats:
    """The patterns, with one pod put in, or put in another's place, as long as that makes them worth more."""
    patterns, shapes = patterns.copy(), len(value)
    need, worth = np.vstack([problem.need, np.zeros(problem.need.shape[1])]), np.append(value, 0.0)
    live = np.arange(len(types))
    while len(live):
        now, kinds = patterns[live], types[live]
        row, out = np.nonzero(np.hstack([now, np.ones((len(now), 1))]))  # the last one: none goes out
        room = (problem.room[kinds] - now @ problem.need)[row] + need[out]
        fits = (problem.need <= room[:, None, :]).all(axis=2) & (now < left)[row] & (problem.allowed[kinds] > 0)[row]
        gain = np.where(fits, value - worth[out][:, None], -np.inf)
        into = gain.argmax(axis=1)
        best_first = np.lexsort((-gain[np.arange(len(row)), into], row))
        first = best_first[np.unique(row[best_first], return_index=True)[1]]
        first = first[gain[first, into[first]] > NOTHING]
        live = live[row[first]]
        goes = out[first] < shapes
        patterns[live[goes], out[first][goes]] -= 1
        patterns[live, into[first]] += 1
    return patterns


class Search:
    """Looks for patterns that are worth much: from nothing, and by changes of patterns that are known."""

    def __init__(self, problem: Problem, value: Floats, left: Floats, seed: int):
        """`value`: of a pod of each shape, USD/h; no pattern has more of a shape than are `left`."""
        self.problem, self.value, self.left = problem, value, left
        self.random = np.random.default_rng(seed)
        self.wanted = np.flatnonzero((value > NOTHING) & (left > 0))
        highest, self.weights = ceiling(problem, np.where(left > 0, value, 0.0))
        self.worth_it = highest > problem.price  # types that can have a pattern which is worth more than its price

    def seeded(self) -> tuple[Integers, Floats]:
        """(types, patterns): for each type that is worth it, from one pod of each shape on, and from as many as fit."""
        kinds = np.flatnonzero(self.worth_it)
        most = np.minimum(self.problem.most, self.left)[np.ix_(kinds, self.wanted)]
        at, seed = np.nonzero(most)
        types, rows = kinds[np.repeat(at, 2)], np.arange(len(at))
        begun = np.zeros((len(types), len(self.left)))
        begun[2 * rows, self.wanted[seed]], begun[2 * rows + 1, self.wanted[seed]] = 1.0, most[at, seed]
        types, patterns = best(types, self._filled(types, begun), self.value, KEPT)
        return types, improve(self.problem, types, patterns, self.value, self.left)

    def changed(self, types: Integers, patterns: Floats) -> tuple[Integers, Floats]:
        """Patterns made from these: two or three pods are taken out, and better ones sought for their place."""
        rows = np.repeat(np.flatnonzero(self.worth_it[types]), TRIES)
        types, begun = types[rows], np.minimum(patterns[rows], self.left)
        for _ in range(self.random.integers(2, 4)):
            out = np.where(begun > 0, self.random.random(begun.shape), -1.0).argmax(axis=1)
            begun[np.arange(len(out)), out] = np.maximum(begun[np.arange(len(out)), out] - 1, 0.0)
        types, patterns = best(types, self._filled(types, begun), self.value, KEPT)
        return types, improve(self.problem, types, patterns, self.value, self.left)

    def _filled(self, types: Integers, begun: Floats) -> Floats:
        worth = self.value[self.wanted] / self.problem.weight[types, self.weights[types]][:, self.wanted]
        worth *= np.exp(self.random.normal(0.0, CHANCE, worth.shape))  # patterns of one type shall differ
        return fill(self.problem, types, self.wanted[np.argsort(-worth, axis=1)], self.left, begun)


def best(types: Integers, patterns: Floats, value: Floats, count: int) -> tuple[Integers, Floats]:
    """Of each type the `count` patterns that are worth most, no two alike."""
    order = np.lexsort((-np.round(patterns @ value, 9), types))
    alike = (types[order][1:] == types[order][:-1]) & (patterns[order][1:] == patterns[order][:-1]).all(axis=1)
    order = order[np.append(True, ~alike)] if len(order) else order
    place = np.arange(len(order)) - np.searchsorted(types[order], types[order])
    kept = order[place < count]
    return types[kept], patterns[kept]


class Master:
    """The linear programme over the patterns that were found: the cheapest mix of them, in parts of nodes, that covers
    `demand` (pods of each shape; each > 0 and fit for some type). Solved by the revised simplex method.
    """

    def __init__(self, problem: Problem, demand: Floats):
        self.problem, self.demand = problem, demand
        shapes = len(demand)
        most = np.minimum(problem.most, demand)
        with np.errstate(divide="ignore"):
            cheapest = np.argmin(problem.price[:, None] / most, axis=0)
        self.types: Integers = cheapest
        self.patterns: Floats = np.diag(most[cheapest, np.arange(shapes)])
        self.known = {(int(kind), row.tobytes()) for kind, row in zip(self.types, self.patterns, strict=True)}
        self.basis: Integers = np.arange(shapes)
        # ties between shapes make the method go round in circles; a little more of some than of others ends that
        self.shaken = demand * (1 + 1e-7 * np.random.default_rng(0).random(shapes))
        self._factor()

    def _factor(self) -> None:
        self.inverse = np.linalg.inv(self.patterns[self.basis].T)
        self.level = self.inverse @ self.shaken
        self.pivots = 0

    @property
    def value(self) -> Floats:
        """The shadow price of a pod of each shape, USD/h; never below 0."""
        price: Floats = self.problem.price[self.types[self.basis]] @ self.inverse
        return np.maximum(price, 0.0)

    @property
    def cost(self) -> float:
        """Of the mix, USD/h."""
        return float(self.problem.price[self.types[self.basis]] @ self.level)

    def add(self, types: Integers, patterns: Floats) -> int:
        """Take those patterns in that are worth more than they cost. Returns how many are new."""
        gain = patterns @ self.value - self.problem.price[types]
        new = []
        for row in np.flatnonzero(gain > 1e-7):
            key = (int(types[row]), patterns[row].tobytes())
            if key not in self.known:
                self.known.add(key)
                new.append(row)
        self.types = np.concatenate([self.types, types[new]])
        self.patterns = np.concatenate([self.patterns, patterns[new]])
        return len(new)

    def solve(self) -> None:
        """To the best mix of the patterns that are known: those that look best are tried until none of them helps, then
        all are looked at again.
        """
        price = self.problem.price[self.types]
        for _ in range(50 * len(self.demand) + 1000):
            gain = self.patterns @ (price[self.basis] @ self.inverse) - price
            some = np.argsort(-gain, kind="stable")[:LOOKED_AT]
            if gain[some[0]] <= HELPS:
                return
            patterns = self.patterns[some]
            for _ in range(LOOKED_AT):
                gain = patterns @ (price[self.basis] @ self.inverse) - price[some]
                enter = int(np.argmax(gain))
                if gain[enter] <= HELPS or not self._pivot(int(some[enter])):
                    break

    def _pivot(self, enter: int) -> bool:
        step = self.inverse @ self.patterns[enter]
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.where(step > NOTHING, self.level / step, np.inf)
        leave = int(np.argmin(ratio))
        amount = ratio[leave]
        if not np.isfinite(amount):
            return False
        self.inverse[leave] /= step[leave]
        step[leave] = 0.0
        self.inverse -= np.outer(step, self.inverse[leave])
        self.level -= step * amount
        self.level[leave] = amount
        self.basis[leave] = enter
        self.pivots += 1
        if self.pivots >= REFACTOR:
            self._factor()
        return True

    def generate(self, rounds: int, seed: int = 0) -> None:
        """Find patterns and solve, for that many rounds, or until none is found that helps. The shadow prices jump from
        one round to the next; patterns are sought for prices between those of this round and of the ones before.
        """
        self.solve()
        sought, missed = self.value, 0
        for number in range(rounds):
            sought = SMOOTH * sought + (1 - SMOOTH) * self.value if not missed else self.value
            search = Search(self.problem, sought, self.demand, 1000 * seed + number)
            found = self.add(*search.seeded()) if missed or number < SEEDED else 0
            if number >= SEEDED:
                found += self.add(*search.changed(self.types[self.basis], self.patterns[self.basis]))
            missed = 0 if found else missed + 1
            if missed == MISSES:
                return
            self.solve()
