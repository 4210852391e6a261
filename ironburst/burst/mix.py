"""Which instances to rent for many pending pods, and which pods run on each: the cheapest mix that is found.

For pods that may share a node and fit into one; gangs are placed elsewhere (`packing`). Equal pods are one *shape*; a
linear programme (`patterns`) says how many nodes with which pods on them are cheapest, in parts of nodes; whole ones
are taken, the rest is asked again, and at last some nodes are emptied and filled again as long as that is cheaper. The
time depends on the number of shapes, hardly on that of pods.

Guaranteed: every pod is on exactly one node, or in `unplaced` with the reason, and there only if it fits into no empty
node; no node holds more GPUs, CPU, memory or pods than its type allows, nor a pod that insists on another GPU model;
equal arguments give equal results with the same numpy on the same kind of machine. Not guaranteed: that no mix is
cheaper. `benchmarks/mix.py` measures how far from a certified bound it is.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from ironburst.burst.patterns import Floats, Integers, Master, Problem, holds

MOST_SHAPES = 200  # in one linear programme, which has a row for each; of more, parts are placed on nodes of their own
ROUNDS = 40  # of the search for patterns, for all pods
ROUNDS_OF_REST = 3  # the same, each time that some nodes are settled
SETTLED = 0.125  # of the nodes of the rest, settled each time
EMPTIED = 16  # nodes that are emptied and filled anew
ATTEMPTS = 8  # times that this is tried


Shape: TypeAlias = tuple[int, int, int, str | None]  # GPUs, milli-CPUs, MiB, GPU model


@dataclass(frozen=True)
class Pod:
    """What a pod asks for: CPU in milli-CPUs, memory in MiB, whole GPUs, and of a model if it insists on one (None:
    any). Its name is its own.
    """

    name: str
    cpu_milli: int
    memory_mib: int
    gpus: int = 0
    gpu_model: str | None = None


@dataclass(frozen=True)
class NodeType:
    """A type of instance with its price: milli-CPUs, MiB and GPUs of the whole machine, what of it is reserved for the
    kubelet and the system, and how many pods a node may have.
    """

    name: str
    usd_per_hour: float
    cpu_milli: int
    memory_mib: int
    gpus: int
    gpu_model: str | None
    pods: int
    reserved_cpu_milli: int = 0
    reserved_memory_mib: int = 0

    @property
    def room(self) -> tuple[int, int, int, int]:
        """(GPUs, milli-CPUs, MiB, pods) that pods may have."""
        cpu, memory = self.cpu_milli - self.reserved_cpu_milli, self.memory_mib - self.reserved_memory_mib
        return self.gpus, max(cpu, 0), max(memory, 0), self.pods


@dataclass(frozen=True)
class NodeToRent:
    """One instance to rent, and the names of the pods on it."""

    type: NodeType
    pods: tuple[str, ...]


@dataclass(frozen=True)
class Mix:
    """The instances to rent, and the pods that fit into none: name and reason."""

    nodes: tuple[NodeToRent, ...]
    unplaced: Mapping[str, str]

    @property
    def usd_per_hour(self) -> float:
        """The price of all nodes."""
        return sum(node.type.usd_per_hour for node in self.nodes)

    @property
    def instances(self) -> dict[str, int]:
        """How many of each type, by its name; the most first."""
        return dict(Counter(node.type.name for node in self.nodes).most_common())


def mix(pods: Sequence[Pod], types: Sequence[NodeType]) -> Mix:
    """The mix for these pods of these types. Raises ValueError for two pods or two types of one name, a negative
    request, or a price that is not above 0.
    """
    _check(pods, types)
    shapes: dict[Shape, list[str]] = {}
    unplaced: dict[str, str] = {}
    for pod in pods:
        shapes.setdefault((pod.gpus, pod.cpu_milli, pod.memory_mib, pod.gpu_model), []).append(pod.name)
    for shape in list(shapes):
        if reason := unplaceable(shape, types):
            unplaced |= dict.fromkeys(shapes.pop(shape), reason)
    parts = math.ceil(len(shapes) / MOST_SHAPES)
    by_size = sorted(shapes, key=lambda shape: (shape[:3], shape[3] or ""))
    nodes: list[NodeToRent] = []
    for part in range(parts):
        some = by_size[part::parts]  # of all sizes
        problem, kinds = _problem(some, types)
        for kind, pattern in _whole(problem, np.array([len(shapes[shape]) for shape in some], np.float64)):
            held = [(some[at], int(pattern[at])) for at in np.flatnonzero(pattern)]
            on = tuple(name for shape, size in held for name in _taken(shapes[shape], size))
            nodes.append(NodeToRent(types[kinds[kind]], on))
    return Mix(tuple(sorted(nodes, key=lambda node: (node.type.name, node.pods))), unplaced)


def unplaceable(shape: Shape, types: Sequence[NodeType]) -> str:
    """Why a pod of (GPUs, milli-CPUs, MiB, GPU model) fits into no empty node of these types, in one sentence; empty if
    it fits into one.
    """
    gpus, cpu, memory, model = shape
    of_model = [each for each in types if model in (None, each.gpu_model)]
    if not of_model:
        return f"it insists on GPU {model}, and no type that is offered has one"
    asked = (("GPUs", gpus), ("milli-CPUs", cpu), ("MiB", memory), ("pods", 1))
    if any(all(has >= (needs := ask[1]) for has, ask in zip(each.room, asked, strict=True)) for each in of_model):
        return ""
    words = f" with GPU {model}" if model else ""
    for number, (what, needs) in enumerate(asked):
        if (most := max(each.room[number] for each in of_model)) < needs:
            return f"it asks for {needs} {what}, and the largest node{words} has {most} for pods"
    return f"no type{words} has {gpus} GPUs, {cpu} milli-CPUs and {memory} MiB for pods in one node"


def _check(pods: Sequence[Pod], types: Sequence[NodeType]) -> None:
    for what, things in (("pods", pods), ("types", types)):
        if twice := [name for name, times in Counter(each.name for each in things).items() if times > 1]:
            raise ValueError(f"two {what} are called {twice[0]!r}; give each a name of its own")
    if wrong := [pod for pod in pods if min(pod.gpus, pod.cpu_milli, pod.memory_mib) < 0]:
        raise ValueError(f"pod {wrong[0].name!r} asks for less than nothing: {wrong[0]}")
    if free := [each for each in types if not 0 < each.usd_per_hour < float("inf")]:
        raise ValueError(
            f"type {free[0].name!r} costs {free[0].usd_per_hour} USD/h; leave out what has no price above 0"
        )


def _problem(shapes: Sequence[Shape], types: Sequence[NodeType]) -> tuple[Problem, list[int]]:
    """(the problem, which of the types it has): without those that another one is better than in all."""
    need: Floats = np.array([(*shape[:3], 1) for shape in shapes], np.float64)
    room: Floats = np.array([each.room for each in types], np.float64)
    price = np.array([each.usd_per_hour for each in types])
    models = np.array([[shape[3] in (None, each.gpu_model) for shape in shapes] for each in types])
    allowed = models & (holds(room[:, None, :], need) > 0)
    kinds: list[int] = []
    for kind in np.lexsort((-room.sum(axis=1), price)):
        better = [has for has in kinds if (room[has] >= room[kind]).all() and (allowed[has] >= allowed[kind]).all()]
        if allowed[kind].any() and not better:
            kinds.append(int(kind))
    return Problem(need, room[kinds], price[kinds], allowed[kinds].astype(float)), kinds


def _taken(names: list[str], count: int) -> list[str]:
    """The first of the names, which go."""
    taken, names[:] = names[:count], names[count:]
    return taken


Nodes = list[tuple[int, Floats]]  # (number of the type, pattern)


def _whole(problem: Problem, count: Floats) -> Nodes:
    """Nodes that hold `count` pods of each shape."""
    nodes = _cover(problem, count, ROUNDS, 0)
    random = np.random.default_rng(0)
    for attempt in range(1, ATTEMPTS + 1):
        order = random.permutation(len(nodes))
        emptied, kept = order[:EMPTIED], np.sort(order[EMPTIED:])
        before = [nodes[number] for number in emptied]
        after = _cover(problem, np.sum([pattern for _, pattern in before], axis=0), ROUNDS_OF_REST, attempt)
        if _price(problem, after) < _price(problem, before) - 1e-9:
            nodes = [nodes[number] for number in kept] + after
    return nodes


def _price(problem: Problem, nodes: Nodes) -> float:
    return sum(float(problem.price[kind]) for kind, _ in nodes)


def _cover(problem: Problem, count: Floats, rounds: int, seed: int) -> Nodes:
    """Nodes for `count` pods of each shape: whole nodes of the linear programme's mix, then, of what they leave, those
    that it wants nearly whole, until nothing is left.
    """
    nodes: Nodes = []
    left = count.copy()
    known: tuple[Integers, Floats] = np.zeros(0, np.int64), np.zeros((0, len(count)))
    while left.any():
        wanted = np.flatnonzero(left)
        part = Problem(problem.need[wanted], problem.room, problem.price, problem.allowed[:, wanted])
        master = Master(part, left[wanted])
        master.add(known[0], np.minimum(known[1], left)[:, wanted])
        master.generate(rounds, seed)
        patterns = np.zeros((len(master.types), len(count)))
        patterns[:, wanted] = master.patterns
        known, rounds = (master.types, patterns), ROUNDS_OF_REST
        level = np.maximum(master.level, 0.0)
        many = np.floor(level + 1e-6)
        if not many.any():
            nearly = np.argsort(-level, kind="stable")[: max(1, int(SETTLED * len(level)))]
            many[nearly[level[nearly] >= 0.5]] = 1.0
            many[nearly[0]] = 1.0
        for row, times in zip(master.basis, many, strict=True):
            for _ in range(int(times)):
                pattern = np.minimum(patterns[row], left)
                if pattern.any():
                    nodes.append((_cheapest(problem, pattern, int(master.types[row])), pattern))
                    left -= pattern
    return nodes


def _cheapest(problem: Problem, pattern: Floats, kind: int) -> int:
    """The cheapest type that holds the pattern; that it was made for, if none is cheaper."""
    fits = (pattern @ problem.need <= problem.room).all(axis=1) & problem.allowed[:, pattern > 0].all(axis=1)
    price = np.where(fits, problem.price, np.inf)
    cheapest = int(price.argmin())
    return cheapest if price[cheapest] < problem.price[kind] else kind
