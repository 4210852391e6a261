"""A rented node while it lives, the jobs on it, and the bill in the end. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from ironburst.burst import Job, Lease, Node, Pool
from ironburst.burst.cost import billed_s
from ironburst.replay.outcome import Bill
from ironburst.replay.view import COMING, JOINED, READY

STATES = {"coming": COMING, "joined": JOINED, "ready": READY}


@dataclass(eq=False)
class LiveLease:
    """A lease from its launch to its end. Times in seconds; `gpu_s`: GPU-seconds used, by job."""

    id: str
    launch: str
    node: str
    pool: Pool
    zone: str
    market: str
    usd_per_hour: float
    from_s: float
    committed_until_s: float
    waiting: list[int]  # jobs that count on it
    instance_type: str = ""  # empty: the pool's only one
    state: str = "coming"
    on: dict[int, int] = field(default_factory=dict)  # job: GPUs
    worked: bool = False
    idle_since_s: float | None = None
    look_s: float = math.inf  # when it is worth giving back, while it idles
    busy_s: float = 0.0
    joined_s: float = math.inf
    gpu_s: dict[int, float] = field(default_factory=dict)
    _busy_from_s: float = 0.0
    # as the policy sees them; None: something has changed since
    _seen: Lease | None = None
    _seen_node: Node | None = None

    @property
    def prepaid(self) -> bool:
        """Paid for whether used or not."""
        return self.market in self.pool.prepaid_markets

    @property
    def free_gpus(self) -> int:
        """GPUs that no job has."""
        return self.pool.each.gpus - sum(self.on.values())

    def joins(self, at_s: float) -> None:
        """Its node has registered."""
        self.state, self.joined_s = "joined", at_s
        self._seen = self._seen_node = None

    def assign(self, number: int, until_s: float) -> None:
        """A job counts on it, and money is set aside up to then."""
        self.committed_until_s = max(self.committed_until_s, until_s)
        if number not in self.waiting:
            self.waiting.append(number)
        self._seen = None

    def dismiss(self, number: int) -> None:
        """A job counts on it no more."""
        self.waiting.remove(number)
        self._seen = None

    def begin(self, number: int, gpus: int, now_s: float) -> None:
        """A job starts on that many of its GPUs."""
        if not self.on:
            if self.state != "ready":
                self.state, self._seen_node = "ready", None
            self.worked, self.idle_since_s, self.look_s, self._busy_from_s = True, None, math.inf, now_s
            self._seen = None
        self.on[number] = gpus

    def end(self, number: int, start_s: float, now_s: float) -> None:
        """A job that started on it then leaves it."""
        gpus = self.on.pop(number)
        self.gpu_s[number] = self.gpu_s.get(number, 0.0) + gpus * (now_s - start_s)
        if not self.on:
            self.busy_s += now_s - self._busy_from_s
            self.idle_since_s, self._seen = now_s, None

    def seen(self) -> Lease:
        """As the policy sees it; one and the same object while nothing changes: much is remembered by identity."""
        if self._seen is None:
            self._seen = Lease(
                id=self.id,
                launch=self.launch,
                node=self.node,
                pool=self.pool.name,
                zone=self.zone,
                market=self.market,
                state=self.state,
                jobs=tuple(self.waiting),
                usd_per_hour=self.usd_per_hour,
                committed_until_s=self.committed_until_s,
                idle_since_s=self.idle_since_s,
                worked=self.worked,
                paid_from_s=self.from_s,
                instance_type=self.instance_type,
            )
        return self._seen

    def seen_node(self) -> Node:
        """Its node, as the policy sees it; one and the same object in one state."""
        if self._seen_node is None:
            self._seen_node = Node(self.node, (self.pool.partition,), self.pool.each, STATES[self.state])
        return self._seen_node

    def charges(self) -> dict[int, float]:
        """USD of the time that it was busy, by job: in proportion to the GPU-seconds used."""
        gpu_s, price = sum(self.gpu_s.values()), self.usd_per_hour / 3600
        return {number: price * self.busy_s * part / gpu_s if gpu_s else 0.0 for number, part in self.gpu_s.items()}

    def bill(self, now_s: float, interrupted: bool) -> Bill:
        """What it costs if it ends now: without a job on it."""
        used_s, price = now_s - self.from_s, self.usd_per_hour / 3600
        usd = price * (used_s if self.prepaid else billed_s(self.pool, used_s))
        boot_usd = price * (min(self.joined_s, now_s) - self.from_s)
        return Bill(
            lease=self.id,
            pool=self.pool.name,
            zone=self.zone,
            market=self.market,
            from_s=self.from_s,
            to_s=now_s,
            usd=usd,
            boot_usd=boot_usd,
            idle_usd=max(0.0, usd - boot_usd - price * self.busy_s),
            jobs=len(self.gpu_s),
            interrupted=interrupted,
            prepaid=self.prepaid,
            instance_type=self.instance_type,
        )


@dataclass(eq=False)
class LeasedRun:
    """A job that runs on leases. `seen`: as the policy sees it."""

    number: int
    leases: list[LiveLease]
    start_s: float
    end_s: float
    seen: Job

    @classmethod
    def of(cls, job: Job, leases: list[LiveLease], start_s: float, end_s: float) -> LeasedRun:
        """Of a job that was pending. `end_s`: when it ends, which the policy doesn't know."""
        limit_s = job.time_limit_s or 0.0
        seen = Job(
            id=job.id,
            name="",
            user=job.user,
            state="RUNNING",
            submit_s=job.submit_s,
            nodes=job.nodes,
            each=job.each,
            time_limit_s=limit_s,
            partitions=(leases[0].pool.partition,),
            requeue=job.requeue,
            account=job.account,
            on=tuple(lease.node for lease in leases),
            start_s=start_s,
            end_s=start_s + limit_s,
            deadline_s=job.deadline_s,
            saves_s=job.saves_s,
        )
        return cls(job.id, leases, start_s, end_s, seen)

    def saved_s(self, now_s: float, every_s: float) -> float:
        """Seconds of its work up to the last checkpoint, if there is one so often (0: never)."""
        return every_s * math.floor((now_s - self.start_s) / every_s + 1e-9) if every_s else 0.0
