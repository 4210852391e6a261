"""A Karpenter in memory, as the real one's source and trials have it (docs/adr/0045): NodePools with limits that it
sees late, NodeClaims that it launches up to the limit it saw last, that it doesn't count any more once they are to end,
and that cost until they are gone.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from ironburst.ports import SchedulerError
from ironburst.ports.karpenter import NodeClaim, NodePools


@dataclass
class Machine:
    """A NodeClaim and its instance."""

    claim: NodeClaim
    ends_s: float | None = None  # the instance is gone then; None: nothing has ended it

    def counted(self) -> bool:
        """Under a limit."""
        return self.claim.deleting_s is None


@dataclass
class FakeKarpenter:
    """`clock`: of the API server. A limit that is written is seen by launches from `seen_after_s` on."""

    clock: object
    limits: dict = field(default_factory=dict)  # NodePool -> [(from when, nodes)]
    machines: list = field(default_factory=list)
    silent: str = ""
    written: list = field(default_factory=list)

    def declare(self, *pools):
        for pool in pools:
            self.limits[pool] = [(self.clock.now(), 0)]

    # ---- the port
    def look(self, cluster, sizes):
        self._answer()
        here = [each.claim for each in self.machines if each.ends_s is None or each.ends_s > self.clock.now()]
        return NodePools(tuple(here), {name: said[-1][1] for name, said in self.limits.items() if name in sizes})

    def limit(self, node_pool, size, nodes):
        self._answer()
        if node_pool not in self.limits:
            raise SchedulerError(f"the cluster has no NodePool {node_pool}: run `pulumi up`")
        self.limits[node_pool].append((self.clock.now(), nodes))
        self.written.append((node_pool, nodes))

    def _answer(self):
        if self.silent:
            raise SchedulerError(self.silent)

    # ---- what it does by itself
    def launch(self, pool, at_s=None, *, late_s=0.0, expires_s=None, launched=True, **of):
        """A machine, if a limit that was in force within the last `late_s` lets it. None: none does."""
        at_s = self.clock.now() if at_s is None else at_s
        said = self.limits[pool.node_pool]
        ended_s = [after for after, _ in said[1:]] + [float("inf")]
        seen = [nodes for (from_s, nodes), end_s in zip(said, ended_s, strict=True) if end_s + late_s > at_s >= from_s]
        here = sum(each.counted() for each in self.machines if each.claim.node_pool == pool.node_pool)
        if here >= max(seen, default=0):
            return None
        claim = NodeClaim(
            uid=f"uid-{len(self.machines)}",
            name=f"{pool.name}-{len(self.machines)}",
            node_pool=pool.node_pool,
            instance_type=pool.instance_type,
            market=pool.market,
            created_s=at_s,
            launched=launched,
            expires_s=at_s + pool.max_run_s if expires_s is None else expires_s,
            grace_s=pool.max_run_s,
        )
        self.machines.append(Machine(replace(claim, **of)))
        return self.machines[-1]

    def end(self, machine, at_s, drains_s):
        """It is to end, and is gone when it has drained."""
        machine.claim = replace(machine.claim, deleting_s=at_s)
        machine.ends_s = at_s + drains_s

    def running(self):
        return [each for each in self.machines if each.ends_s is None or each.ends_s > self.clock.now()]
