"""The ledger's estimates compared with a bill, line by line. Pure.

estimates + every difference = what the bill has of ours, exactly. A difference has one of the causes of causes.py where
the line, or the ledger's own times, bear it out; what neither does stays unexplained, with its dollars.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from ironburst.cost.accounted import Window
from ironburst.cost.bill import billed_as
from ironburst.cost.bill_row import UNITS
from ironburst.cost.causes import CAUSES, UNEXPLAINED
from ironburst.cost.instance_bill import Found, of_instance
from ironburst.cost.leases import MICRO, Priced
from ironburst.cost.line import Line
from ironburst.nodes import naming

NODE_POOL_TAG = "karpenter.sh/nodepool"  # Karpenter puts it on its instances and their disks
LAG_S = 86400.0  # exports are delivered once a day at least; usage of the last day may be missing


@dataclass(frozen=True)
class Stack:
    """Whose lines are ours: by the tags of a cluster, its pools, its groups of fixed nodes, Karpenter's NodePools.
    `gpus`: of a node of each pool, where bills count by GPU.
    """

    cluster: str
    pools: frozenset[str]
    groups: frozenset[str] = frozenset()
    karpenter: frozenset[str] = frozenset()
    gpus: Mapping[str, int] = field(default_factory=dict)

    def owns(self, line: Line) -> bool:
        """By its tags. Where the cluster's isn't active for cost allocation, the pool's or the group's counts."""
        if cluster := line.tag(naming.CLUSTER_TAG):
            return cluster == self.cluster
        if line.tag(NODE_POOL_TAG) in self.karpenter:
            return True
        return line.tag(naming.POOL_TAG) in self.pools or line.tag(naming.GROUP_TAG) in self.groups


@dataclass(frozen=True)
class CostDifference:
    """What one cause makes of one thing: an instance, a disk, ... `lines`: of the bill, that show it."""

    cause: str
    what: str
    node: str
    units: int  # 1e-10 USD
    lines: int


@dataclass(frozen=True)
class Compared:
    """All in 1e-10 USD: `estimated` + the sum of `differences` = `billed`. `others`: lines of the file that aren't
    ours, of the account's other users, and their sum. `left_out`: leases of clouds of which there is no bill.
    """

    window: Window
    estimated: int
    billed: int
    lines: int
    others: int
    others_units: int
    differences: Sequence[CostDifference]
    left_out: int = 0

    @property
    def unexplained(self) -> int:
        """Of both signs: what is missing here isn't made up for by what is too much there."""
        return sum(abs(each.units) for each in self.differences if each.cause == UNEXPLAINED)


@dataclass
class _Sorted:
    """The lines of a bill, by what they are of ours."""

    of_instances: dict[str, list[Line]] = field(default_factory=dict)
    differences: dict[tuple[str, str, str], tuple[int, int]] = field(default_factory=dict)
    billed: int = 0
    count: int = 0
    others: int = 0
    others_units: int = 0
    horizon_s: float = 0.0  # the end of the newest usage

    def add(self, cause: str, what: str, node: str, units: int, lines: int = 1) -> None:
        before = self.differences.get((cause, what, node), (0, 0))
        self.differences[cause, what, node] = before[0] + units, before[1] + lines


def compare(lines: Iterable[Line], leases: Sequence[Priced], stack: Stack, window: Window | None) -> Compared:
    """The lines that begin in a window (None: all of them, and it is theirs). Raises ValueError, one sentence, for a
    line that lies across its edge.
    """
    taken = list(_within(lines, window))
    if window is None:
        usage = [line for line in taken if line.to_s > line.from_s and line.kind not in ("tax", "fee")]
        own = [line for line in usage if not line.earlier] or usage
        ends = [line.to_s for line in own]
        window = Window(min((line.from_s for line in own), default=0.0), max(ends, default=0.0))
    given = {line.provider for line in taken}
    every, leases = leases, [lease for lease in leases if _has_bill(lease, given)]
    ours = _Ours(leases, stack)
    found = _Sorted(horizon_s=max((line.to_s for line in taken if line.kind == "usage"), default=window.from_s))
    for line in taken:
        _sort(found, line, ours, before=line.earlier and line.from_s < window.from_s)
    estimated = 0
    for lease in leases:
        if part := window.overlap(lease.from_s, lease.to_s):
            units = lease.micro(*part) * (UNITS // MICRO)
            estimated += units
            _lease(found, lease, Window(*part), units, stack)
    for instance in list(found.of_instances):  # of leases that cost nothing in the window
        _lease(found, ours.by_name[instance], Window(window.from_s, window.from_s), 0, stack)
    differences = [CostDifference(*key, *value) for key, value in found.differences.items() if value[0]]
    order = list(CAUSES)
    differences.sort(key=lambda each: (order.index(each.cause), -abs(each.units), each.what))
    assert estimated + sum(each.units for each in differences) == found.billed
    return Compared(
        window,
        estimated,
        found.billed,
        found.count,
        found.others,
        found.others_units,
        differences,
        len(every) - len(leases),
    )


def _within(lines: Iterable[Line], window: Window | None) -> Iterable[Line]:
    for line in lines:
        inside = window is None or window.from_s <= line.from_s < window.to_s
        across = window is not None and (
            line.from_s < window.from_s < line.to_s or (inside and line.to_s > window.to_s)
        )
        if across and line.of_instance:
            raise ValueError(
                f"line {line.number} of the bill lies across the edge of the window: give --from and --to at times "
                "where lines begin and end (UTC), or neither, and the bill's own window is taken"
            )
        if inside:
            yield line


def _has_bill(lease: Priced, given: set[str]) -> bool:
    """Whether a lease is of a cloud of which there are lines; without any line nobody knows whose bill it is."""
    cloud, _ = billed_as(lease.lease.instance_id or "")
    return not cloud or not given or cloud in given


class _Ours:
    """The leases, by how lines name their instances and what is theirs."""

    def __init__(self, leases: Sequence[Priced], stack: Stack):
        self.stack = stack
        self.by_name: dict[str, Priced] = {}
        self.nodes: dict[str, set[str]] = {}  # by the group of things that a lease's launch has
        for lease in leases:
            _, name = billed_as(lease.lease.instance_id or "")
            if name:
                self.by_name[name] = lease
            if group := name.rpartition("/")[0]:
                self.nodes.setdefault(group, set()).add(lease.lease.node)

    def node(self, line: Line) -> str | None:
        """Whose it is; empty: nobody's alone. None: the line isn't ours."""
        if lease := self.by_name.get(line.resource):
            return lease.lease.node
        if (nodes := self.nodes.get(line.resource.rpartition("/")[0])) is not None:
            return next(iter(nodes)) if len(nodes) == 1 else ""
        return "" if self.stack.owns(line) else None


def _sort(found: _Sorted, line: Line, ours: _Ours, *, before: bool) -> None:
    """`before`: it is about a time before the window."""
    if (node := ours.node(line)) is None:
        found.others += 1
        found.others_units += line.units
        return
    found.billed += line.units
    found.count += 1
    if before:
        found.add("correction", line.resource or line.usage_type, node, line.units)
    elif not line.of_instance:
        found.add(line.beside, line.resource or line.usage_type or line.kind, node, line.units)
    elif line.resource in ours.by_name:
        found.of_instances.setdefault(line.resource, []).append(line)
    elif line.tag(naming.GROUP_TAG):
        found.add("fixed_node", line.resource, line.tag(naming.GROUP_TAG), line.units)
    elif line.tag(naming.ROLE_TAG):
        found.add("image_build", line.resource, "", line.units)
    elif line.tag(NODE_POOL_TAG) in ours.stack.karpenter:
        found.add("karpenter", line.tag(NODE_POOL_TAG), "", line.units)
    else:
        found.add("orphan", line.resource, line.tag(naming.POOL_TAG), line.units)


def _lease(found: _Sorted, lease: Priced, part: Window, units: int, stack: Stack) -> None:
    """Hold one lease's part in the window against its lines."""
    row = lease.lease
    if row.instance_id is None:
        karpenter = row.pool in stack.karpenter
        cause, what = ("karpenter", row.pool) if karpenter else ("no_instance", row.id)
        found.add(cause, what, "", -units, 0)
        return
    lines = found.of_instances.pop(billed_as(row.instance_id)[1], [])
    if not lines:
        late = lease.to_s > found.horizon_s - LAG_S
        found.add("not_billed_yet" if late else "missing", row.instance_id, row.node, -units, 0)
        return

    gpus = stack.gpus.get(row.pool, 0)
    if not gpus and any(line.of_gpus for line in lines):  # of a pool that isn't declared any more
        billed = sum(line.units for line in lines)
        found.add(UNEXPLAINED, row.instance_id, row.node, billed - units, len(lines))
        return

    def say(cause: Found, amount: int, count: int) -> None:
        found.add(cause, row.instance_id or "", row.node, amount, count)

    of_instance(lease, lines, gpus, part, units, found.horizon_s, say)
